package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// Limits of a search over all boards. What they leave out is said.
const (
	searchedAtOnce = 8    // boards
	searchedBoards = 1000 // at most
	searchedHits   = 20   // of each board
	searchedFor    = 3 * time.Second
)

// hits are what a search has found on one board.
type hits struct {
	Board string
	Jobs  []*job.Job
	More  string // a link to where there may be more; "": this is all
	err   error
}

type searchView struct {
	page
	Asked   string
	What    string // how the text was understood
	Hits    []hits
	Found   int
	Left    []string // boards that could not be searched
	Problem string
}

// searchPage searches every board that the visitor may see for a uuid, a label or the
// beginning of a name.
func (u *UI) searchPage(w http.ResponseWriter, r *http.Request, v *visit) {
	if err := v.session.Check("ListBoards"); err != nil {
		u.fail(w, r, v, err)
		return
	}
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	view := searchView{page: u.page(r, v, "Search"), Asked: text}
	view.Search = text
	if text == "" {
		u.show(w, r, http.StatusOK, "search", view)
		return
	}
	what, one := wanted(text)
	view.What = what
	ctx, cancel := context.WithTimeout(r.Context(), searchedFor)
	defer cancel()
	for _, h := range v.search(ctx, one) {
		switch {
		case job.KindOf(h.err) == job.Invalid:
			view.Problem = plain(h.err)
		case h.err != nil:
			view.Left = append(view.Left, h.Board)
		case len(h.Jobs) > 0 || h.More != "":
			view.Hits, view.Found = append(view.Hits, h), view.Found+len(h.Jobs)
		}
	}
	u.show(w, r, http.StatusOK, "search", view)
}

// finder searches one board.
type finder func(ctx context.Context, v *visit, name string) hits

// wanted says in words what a text asks for, and how a board is searched for it.
func wanted(text string) (string, finder) {
	if id, err := job.ParseID(text); err == nil {
		return "the job " + id.String(), func(ctx context.Context, v *visit, name string) hits { return findID(ctx, v, name, id) }
	}
	filter := "name >= " + quoted(text) + " AND name < " + quoted(text+"\U0010ffff")
	what := "jobs whose names begin with " + text
	if key, value, ok := strings.Cut(text, "="); ok && key != "" && !strings.ContainsAny(key, " \t<>!\"") {
		filter, what = "labels."+key+" = "+quoted(strings.TrimSpace(value)), "jobs with the label "+key+"="+strings.TrimSpace(value)
	}
	return what, func(ctx context.Context, v *visit, name string) hits { return findMatching(ctx, v, name, filter) }
}

// quoted is a text as a value of a filter.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func findID(ctx context.Context, v *visit, name string, id job.ID) hits {
	h := hits{Board: name}
	b, err := v.session.Board(ctx, name, "GetJobs")
	if err != nil {
		h.err = err
		return h
	}
	results, err := b.Get(ctx, []job.ID{id}, board.GetOptions{})
	switch {
	case err != nil:
		h.err = err
	case results[0].Err == nil:
		h.Jobs = []*job.Job{results[0].Job}
	case job.KindOf(results[0].Err) != job.NotFound:
		h.err = results[0].Err
	}
	return h
}

func findMatching(ctx context.Context, v *visit, name, filter string) hits {
	h := hits{Board: name}
	b, err := v.session.Board(ctx, name, "ListJobs")
	if err != nil {
		h.err = err
		return h
	}
	list, err := b.List(ctx, board.ListRequest{
		States: []job.State{job.Unclaimed, job.Claimed, job.Trashed, job.Complete}, Filter: filter, PageSize: searchedHits,
	})
	if h.Jobs, h.err = list.Jobs, err; list.Next != "" {
		h.More = asked{Filter: filter}.link(name)
	}
	return h
}

// search searches the boards that the visitor may see, some at a time, and returns what was
// found in the order of their names. One that is not served or not reached in time has an
// error.
func (v *visit) search(ctx context.Context, one finder) []hits {
	boards := v.session.Boards()
	list := make([]hits, len(boards))
	var searching sync.WaitGroup
	places := make(chan struct{}, searchedAtOnce)
	for i := range boards {
		name := boards[i].Config.Name
		list[i] = hits{Board: name, err: errNotSearched}
		if !boards[i].Status.Ready || i >= searchedBoards || ctx.Err() != nil {
			continue
		}
		if c := boards[i].Rests; c != nil && c.Ready+c.Delayed+c.Trashed+c.Complete == 0 {
			list[i].err = nil // there is nothing to be found
			continue
		}
		places <- struct{}{}
		searching.Go(func() {
			defer func() { <-places }()
			list[i] = one(ctx, v, name)
		})
	}
	searching.Wait()
	return list
}

var errNotSearched = job.Errorf(job.Unavailable, "the board was not searched")
