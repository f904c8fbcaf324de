package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

type jobView struct {
	page
	Board  string
	Job    *job.Job
	Why    board.Explanation
	NotWhy string // why there is no explanation
	Labels string // the worker's that the explanation is for, as they were given
	Steps  []step
	Log    []job.LogEntry // the end of it
	LogCut bool           // there is more before it
	May    may
}

// step is one thing that happened to a job.
type step struct {
	At   time.Time // zero: when is not known
	What string
	Text string
}

func (u *UI) jobPage(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	b, j, err := u.find(r, v, false)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := jobView{
		page: u.page(v, "Job "+j.Name), Board: name, Job: j, Labels: r.URL.Query().Get("labels"),
		Steps: steps(j), May: u.may(v, name),
	}
	view.Live = "/ui/boards/" + url.PathEscape(name) + "/live?job=" + j.ID.String()
	if _, err := v.session.Describe(name, "ExplainJob"); err == nil {
		labels, err := workerLabels(view.Labels)
		if err == nil {
			view.Why, err = b.Explain(r.Context(), j.ID, "", labels)
		}
		if err != nil {
			view.NotWhy = plain(err)
		}
	}
	if _, err := v.session.Describe(name, "ReadLog"); err == nil {
		if view.Log, view.LogCut, err = endOfLog(r.Context(), b, j.ID); err != nil {
			u.fail(w, r, v, err)
			return
		}
	}
	u.show(w, r, http.StatusOK, "job", view)
}

// shownLog is how many entries of a log a page shows.
const shownLog = 200

// endOfLog returns the last entries of a log, and whether there are more.
func endOfLog(ctx context.Context, b *board.Board, id job.ID) (entries []job.LogEntry, more bool, err error) {
	for last := int64(0); ; {
		page, err := b.ReadLog(ctx, id, last, 0, 0)
		if err != nil {
			return nil, false, err
		}
		if len(page.Entries) == 0 {
			return entries, more, nil
		}
		entries, last = append(entries, page.Entries...), page.Last
		if cut := len(entries) - shownLog; cut > 0 {
			entries, more = slices.Delete(entries, 0, cut), true
		}
	}
}

// find returns the board and the job that an address names.
func (u *UI) find(r *http.Request, v *visit, details bool) (*board.Board, *job.Job, error) {
	id, err := parseID(r.PathValue("uuid"))
	if err != nil {
		return nil, nil, err
	}
	b, err := v.session.Board(r.Context(), r.PathValue("board"), "GetJobs")
	if err != nil {
		return nil, nil, err
	}
	results, err := b.Get(r.Context(), []job.ID{id}, board.GetOptions{Details: details, Operations: true})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return nil, nil, err
	}
	return b, results[0].Job, nil
}

func parseID(text string) (job.ID, error) {
	id, err := job.ParseID(text)
	if err != nil {
		return job.ID{}, &job.Error{Kind: job.Invalid, Message: err.Error()}
	}
	return id, nil
}

// workerLabels reads "key=value, key=value".
func workerLabels(text string) ([]job.Label, error) {
	var labels []job.Label
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" {
			return nil, job.Errorf(job.Invalid, "the label %q: want KEY=VALUE, several with commas between them", part)
		}
		labels = append(labels, job.Label{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value)})
	}
	slices.SortFunc(labels, func(a, b job.Label) int { return cmp.Compare(a.Key, b.Key) })
	for i := 1; i < len(labels); i++ {
		if labels[i].Key == labels[i-1].Key {
			return nil, job.Errorf(job.Invalid, "the label %q is given twice", labels[i].Key)
		}
	}
	return labels, nil
}

// steps tell the job's life in order, as far as the board remembers it.
func steps(j *job.Job) []step {
	list := []step{{j.CreatedAt, "posted", ""}}
	if !j.StartedAt.IsZero() {
		list = append(list, step{j.StartedAt, "claimed for the first time", span(max(0, j.StartedAt.Sub(j.CreatedAt))) + " after it was posted"})
	}
	for _, reason := range j.Reasons {
		list = append(list, step{time.Time{}, "a claim ended without the job being done", reason})
	}
	switch {
	case j.State == job.Claimed:
		text := "by " + j.Owner
		if j.LeaseExpiresAt.IsZero() {
			text += ", without an expiry"
		} else {
			text += ", until " + j.LeaseExpiresAt.UTC().Format(time.RFC3339)
		}
		list = append(list, step{time.Time{}, "claimed now", text})
	case j.State == job.Trashed:
		list = append(list, step{j.EndedAt, "set aside", j.LastReason})
	case j.State == job.Complete:
		list = append(list, step{j.EndedAt, "ended", strings.ToLower(j.Outcome.String())})
	case !j.NotBefore.IsZero() && j.NotBefore.After(time.Now()):
		list = append(list, step{j.NotBefore, "may be claimed from then on", ""})
	}
	return list
}

type detailsView struct {
	page
	Board string
	Job   *job.Job
	Tree  *node
	Raw   string // what the details are, where they are not JSON
}

// detailsPage shows what the poster wrote. It is a page of its own, so that it is
// loaded and seen only by who asks for it.
func (u *UI) detailsPage(w http.ResponseWriter, r *http.Request, v *visit) {
	_, j, err := u.find(r, v, true)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := detailsView{page: u.page(v, "Details of "+j.Name), Board: r.PathValue("board"), Job: j}
	switch {
	case j.RawDetails != nil:
		view.Raw = j.RawDetails.Encoding.String() + ", " + size(len(j.RawDetails.Data))
	case len(j.Details) == 0:
		view.Raw = "none are kept"
	default:
		view.Tree = tree(j.Details)
	}
	u.show(w, r, http.StatusOK, "details", view)
}

type workersView struct {
	page
	Board    string
	Entities []board.Entity
	Holders  []holder
	Problem  string
}

// holder is somebody who holds jobs.
type holder struct {
	Owner string
	Jobs  []*job.Job
}

// heldJobs is how many claimed jobs the page of workers looks at.
const heldJobs = board.MaxPage

func (u *UI) workersPage(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	b, err := v.session.Board(r.Context(), name, "ListEntities")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := workersView{page: u.page(v, "Workers on "+name), Board: name}
	if view.Entities, err = b.Entities(r.Context()); err != nil {
		u.fail(w, r, v, err)
		return
	}
	if b, err = v.session.Board(r.Context(), name, "ListJobs"); err == nil {
		var list board.ListPage
		list, err = b.List(r.Context(), board.ListRequest{States: []job.State{job.Claimed}, PageSize: heldJobs})
		view.Holders = holders(list.Jobs)
	}
	if err != nil {
		view.Problem = plain(err)
	}
	u.show(w, r, http.StatusOK, "workers", view)
}

// holders sorts claimed jobs by who holds them.
func holders(jobs []*job.Job) []holder {
	at := map[string]int{}
	var list []holder
	for _, j := range jobs {
		i, ok := at[j.Owner]
		if !ok {
			i = len(list)
			at[j.Owner] = i
			list = append(list, holder{Owner: j.Owner})
		}
		list[i].Jobs = append(list[i].Jobs, j)
	}
	slices.SortFunc(list, func(a, b holder) int { return cmp.Compare(a.Owner, b.Owner) })
	return list
}
