package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// tab is one set of jobs of a board's page.
type tab struct {
	Name   string
	States []job.State
	Count  int64
	Link   string
	Active bool
}

// pageJobs is how many jobs a page shows.
const pageJobs = 50

// asked is which jobs a page shows. It comes from a link or, where a filter looks
// into details, from a form: what is in details stays out of addresses, which
// are kept in histories and logs.
type asked struct {
	Tab    string
	Filter string
	After  string
	Names  string // "all": all names of jobs are shown
}

func (a asked) link(boardName string) string {
	q := url.Values{}
	for name, value := range map[string]string{"tab": a.Tab, "filter": a.Filter, "after": a.After, "names": a.Names} {
		if value != "" {
			q.Set(name, value)
		}
	}
	link := "/ui/boards/" + url.PathEscape(boardName)
	if len(q) > 0 {
		link += "?" + q.Encode()
	}
	return link
}

// Secret reports whether the filter looks into details.
func (a asked) Secret() bool { return strings.Contains(a.Filter, "details.") }

type boardView struct {
	page
	Board   string
	Served  host.Served
	Counts  board.Counts
	Graphs  host.Went // in the last hour, a point a minute
	Tabs    []tab
	Asked   asked
	Jobs    []*job.Job
	Corrupt []board.CorruptJob
	Problem string // with the filter
	Next    string // a link, or the page token of a secret filter
	Words   []string
	May     may

	Names      []nameRow
	NamesOf    string // the other server that has counted them; "": this one
	NamesSince time.Time
	NamesMore  bool   // there are more than are shown
	NamesLink  string // to all of them
	TrashCut   bool
}

// may says which changes the visitor's roles allow on a board.
type may struct {
	Post, Trash, Restore, Purge, Release, Cancel, Pause, AcknowledgeLoss bool
}

func (u *UI) may(v *visit, name string) may {
	allowed := func(call string) bool { return v.session.May(call, name) }
	return may{
		Post: allowed("PostJobs"), Trash: allowed("TrashJobs"), Restore: allowed("RestoreJobs"),
		Purge: allowed("PurgeJobs"), Release: allowed("ReleaseJobs"), Cancel: allowed("CancelJobs"), Pause: allowed("PauseBoard"),
		AcknowledgeLoss: allowed("AcknowledgeLoss"),
	}
}

// Any reports whether there is anything to do with chosen jobs.
func (m may) Any() bool { return m.Trash || m.Restore || m.Purge || m.Release || m.Cancel }

func (u *UI) boardPage(w http.ResponseWriter, r *http.Request, v *visit) {
	q := r.URL.Query()
	u.showBoard(w, r, v, asked{Tab: q.Get("tab"), Filter: q.Get("filter"), After: q.Get("after"), Names: q.Get("names")})
}

// search shows the jobs that a form asks for. What may stand in an address is
// sent there, so that it can be kept and passed on.
func (u *UI) search(w http.ResponseWriter, r *http.Request, v *visit) {
	a := asked{Tab: r.PostForm.Get("tab"), Filter: strings.TrimSpace(r.PostForm.Get("filter")), After: r.PostForm.Get("after")}
	if !a.Secret() {
		http.Redirect(w, r, a.link(r.PathValue("board")), http.StatusSeeOther)
		return
	}
	u.showBoard(w, r, v, a)
}

func (u *UI) showBoard(w http.ResponseWriter, r *http.Request, v *visit, a asked) {
	name := r.PathValue("board")
	view := boardView{page: u.boardsPage(r, v, "Board "+name, name), Board: name, Asked: a, May: u.may(v, name)}
	b, err := v.session.Board(r.Context(), name, "ListJobs")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	cursor, err := present(r.Context(), b) // before anything is read that is shown
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	if view.Served, err = v.session.DescribeWhere(r.Context(), name, "GetBoard"); err != nil { // now that it is open
		u.fail(w, r, v, err)
		return
	}
	went := view.Served.Went
	if went == nil {
		went = host.WentOf(r.Context(), b)
	}
	view.Graphs = *went
	if a.After == "" && !a.Secret() {
		view.Live = livePath(name, cursor)
	}
	if view.Counts, err = b.Count(r.Context()); err != nil {
		u.fail(w, r, v, err)
		return
	}
	if err := view.addNames(r.Context(), b); err != nil {
		u.fail(w, r, v, err)
		return
	}
	chosen := view.addTabs()
	list, err := b.List(r.Context(), board.ListRequest{States: chosen, Filter: a.Filter, PageSize: pageJobs, PageToken: a.After})
	switch {
	case job.KindOf(err) == job.Invalid || job.KindOf(err) == job.Aborted:
		view.Problem = plain(err)
	case err != nil:
		u.fail(w, r, v, err)
		return
	}
	view.Jobs, view.Corrupt, view.Words = list.Jobs, list.Corrupt, words(list.Jobs)
	if list.Next != "" {
		view.Next = list.Next
		if !a.Secret() {
			view.Next = asked{Tab: a.Tab, Filter: a.Filter, After: list.Next}.link(name)
		}
	}
	u.show(w, r, http.StatusOK, "board", view)
}

// addTabs makes the tabs and returns the states of the active one.
func (view *boardView) addTabs() []job.State {
	c := &view.Counts
	view.Tabs = []tab{
		{Name: "open", States: []job.State{job.Unclaimed, job.Claimed}, Count: c.Ready + c.Delayed + c.Claimed},
		{Name: "unclaimed", States: []job.State{job.Unclaimed}, Count: c.Ready + c.Delayed},
		{Name: "claimed", States: []job.State{job.Claimed}, Count: c.Claimed},
		{Name: "trashed", States: []job.State{job.Trashed}, Count: c.Trashed},
		{Name: "complete", States: []job.State{job.Complete}, Count: c.Complete},
	}
	i := max(0, slices.IndexFunc(view.Tabs, func(t tab) bool { return t.Name == view.Asked.Tab }))
	for n := range view.Tabs {
		t := &view.Tabs[n]
		t.Active = n == i
		t.Link = asked{Tab: t.Name, Filter: view.Asked.Filter}.link(view.Board)
		if view.Asked.Secret() {
			t.Link = asked{Tab: t.Name}.link(view.Board)
		}
	}
	view.Asked.Tab = view.Tabs[i].Name
	return view.Tabs[i].States
}

// words are what the filter's field offers to complete: the grammar's fields and
// the labels of the jobs in sight.
func words(jobs []*job.Job) []string {
	list := []string{"name = ", "owner = ", "priority = ", "attempt > ", "createdAt < "}
	for _, j := range jobs {
		for _, l := range j.Labels {
			list = append(list, "labels."+l.Key+" = "+l.Value)
		}
	}
	slices.Sort(list[5:])
	return slices.Compact(list)
}
