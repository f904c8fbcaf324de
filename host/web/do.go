package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// An action is something that can be done to chosen jobs.
type action struct {
	Name   string // in the form
	Verb   string // on the button
	Asks   string // what is asked before it is done
	Reason bool   // a reason is asked for
	Grave  bool   // it can't be undone
	call   string // what the visitor must be allowed
	do     func(ctx context.Context, b *board.Board, ids []job.ID, reason string) ([]error, error)
}

var actions = []action{
	{
		Name: "trash", Verb: "Set aside", Asks: "Set these jobs aside? They go to the trash, from where they can be restored.", Reason: true, call: "TrashJobs",
		do: func(ctx context.Context, b *board.Board, ids []job.ID, reason string) ([]error, error) {
			return b.Trash(ctx, nil, ids, reason)
		},
	},
	{
		Name: "restore", Verb: "Restore", Asks: "Put these jobs back onto the board?", call: "RestoreJobs",
		do: func(ctx context.Context, b *board.Board, ids []job.ID, _ string) ([]error, error) {
			return b.Restore(ctx, ids)
		},
	},
	{
		Name: "release", Verb: "Release", Asks: "Break the claims on these jobs? Whoever works on them loses them, and others may claim them at once.",
		Reason: true, call: "ReleaseJobs",
		do: func(ctx context.Context, b *board.Board, ids []job.ID, reason string) ([]error, error) {
			return b.Release(ctx, ids, "", reason)
		},
	},
	{
		Name: "cancel", Verb: "Cancel", Asks: "Cancel these jobs? What has not begun ends at once; a worker that waits is asked to stop. What runs goes on.", Grave: true, call: "CancelJobs",
		do: func(ctx context.Context, b *board.Board, ids []job.ID, _ string) ([]error, error) {
			return canceled(b.Cancel(ctx, ids, false))
		},
	},
	{
		Name: "purge", Verb: "Purge", Asks: "Remove these jobs for good? They can't be brought back.", Grave: true, call: "PurgeJobs",
		do: func(ctx context.Context, b *board.Board, ids []job.ID, _ string) ([]error, error) {
			return b.Purge(ctx, ids)
		},
	},
}

// canceled makes errors of what was answered in words.
func canceled(changes []board.Change, err error) ([]error, error) {
	list := make([]error, len(changes))
	for i, c := range changes {
		switch {
		case c.Err != nil:
			list[i] = c.Err
		case !c.Changed:
			list[i] = job.Errorf(job.Precondition, "%s", c.Message)
		}
	}
	return list, err
}

type doneView struct {
	page
	Board   string
	Action  action
	Results []doneResult
	Failed  int
	Back    string
}

type doneResult struct {
	ID      job.ID
	Problem string // empty: it was done
}

// do asks before it does something to jobs, and then does it.
func (u *UI) do(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	i := slices.IndexFunc(actions, func(a action) bool { return a.Name == r.PostForm.Get("action") })
	if i < 0 {
		u.fail(w, r, v, job.Errorf(job.Invalid, "nothing was chosen to be done"))
		return
	}
	ids, err := chosenIDs(r.PostForm["uuid"])
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	deed := admin.Deed{Call: actions[i].call, Board: name, Remote: r.RemoteAddr, Items: len(ids)}
	b, err := v.session.Board(r.Context(), name, actions[i].call)
	if err != nil {
		u.fail(w, r, v, errors.Join(err, v.session.Did(deed, err)))
		return
	}
	back := here(r.PostForm.Get("back"))
	if !meant(r) {
		u.ask(w, r, actions[i].question(u.page(r, v, fmt.Sprintf("%s: %s on %s", actions[i].Verb, jobs(len(ids)), name)), name, ids, back))
		return
	}
	failures, err := actions[i].do(r.Context(), b, ids, r.PostForm.Get("reason"))
	deed.Failed = len(slices.DeleteFunc(slices.Clone(failures), func(err error) bool { return err == nil }))
	if err := errors.Join(err, v.session.Did(deed, err)); err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := doneView{page: u.page(r, v, actions[i].Verb), Board: name, Action: actions[i], Back: back}
	for n, id := range ids {
		result := doneResult{ID: id}
		if failures[n] != nil {
			result.Problem = plain(failures[n])
			view.Failed++
		}
		view.Results = append(view.Results, result)
	}
	u.show(w, r, http.StatusOK, "done", view)
}

// question asks whether the action is meant.
func (a *action) question(p page, boardName string, ids []job.ID, back string) question {
	q := question{
		page: p, Asks: a.Asks, Verb: a.Verb, Action: "/ui/boards/" + url.PathEscape(boardName) + "/do",
		Fields: []field{{"action", a.Name}}, Reason: a.Reason, Grave: a.Grave, Back: back,
	}
	for _, id := range ids {
		q.Fields, q.Items = append(q.Fields, field{"uuid", id.String()}), append(q.Items, id.String())
	}
	return q
}

// jobs is a number of them in words.
func jobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// chosenIDs reads which jobs a form means.
func chosenIDs(texts []string) ([]job.ID, error) {
	switch {
	case len(texts) == 0:
		return nil, job.Errorf(job.Invalid, "no job was chosen: tick those that you mean")
	case len(texts) > board.MaxBatch:
		return nil, job.Errorf(job.Invalid, "%d jobs are too many at once: want at most %d", len(texts), board.MaxBatch)
	}
	ids := make([]job.ID, len(texts))
	for i, text := range texts {
		var err error
		if ids[i], err = parseID(text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (u *UI) pause(w http.ResponseWriter, r *http.Request, v *visit) {
	u.changeBoard(w, r, v, "PauseBoard", func(b *board.Board) error { return b.Pause(r.Context(), r.PostForm.Get("reason")) })
}

func (u *UI) resume(w http.ResponseWriter, r *http.Request, v *visit) {
	u.changeBoard(w, r, v, "ResumeBoard", func(b *board.Board) error { return b.Resume(r.Context()) })
}

// changeBoard makes a change to a board and shows the board.
func (u *UI) changeBoard(w http.ResponseWriter, r *http.Request, v *visit, call string, change func(*board.Board) error) {
	name := r.PathValue("board")
	b, err := v.session.Board(r.Context(), name, call)
	if err == nil {
		err = change(b)
	}
	if err = errors.Join(err, v.session.Did(admin.Deed{Call: call, Board: name, Remote: r.RemoteAddr}, err)); err != nil {
		u.fail(w, r, v, err)
		return
	}
	http.Redirect(w, r, "/ui/boards/"+url.PathEscape(name), http.StatusSeeOther)
}

// acknowledgeLoss asks, and then has a board show those losses no more that stood on the
// page: a later one has a higher generation.
func (u *UI) acknowledgeLoss(w http.ResponseWriter, r *http.Request, v *visit) {
	const call = "AcknowledgeLoss"
	name := r.PathValue("board")
	generation, err := strconv.ParseUint(r.PostForm.Get("generation"), 10, 64)
	if err != nil {
		u.fail(w, r, v, job.Errorf(job.Invalid, "generation: want a whole number, got %.40q", r.PostForm.Get("generation")))
		return
	}
	if !meant(r) && v.session.May(call, name) {
		back := "/ui/boards/" + url.PathEscape(name)
		u.ask(w, r, question{
			page: u.page(r, v, "Acknowledge the loss of "+name), Verb: "Acknowledge the loss", Action: back + "/loss", Back: back,
			Asks:   "Was what the loss says put right, or can it be left? Nobody is shown it from then on.",
			Fields: []field{{"generation", strconv.FormatUint(generation, 10)}},
		})
		return
	}
	u.changeBoard(w, r, v, call, func(b *board.Board) error { return b.AcknowledgeLoss(r.Context(), generation) })
}
