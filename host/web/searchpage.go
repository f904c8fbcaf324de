package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/sdk/job"
)

// searchedFor is how long a search over all boards may take. What it leaves out is said.
const searchedFor = 3 * time.Second

// hits are what a search has found on one board.
type hits struct {
	Board string
	Jobs  []*job.Job
	More  string // a link to where there may be more; "": this is all
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
	what, query := wanted(text)
	view.What = what
	ctx, cancel := context.WithTimeout(r.Context(), searchedFor)
	defer cancel()
	for _, h := range v.session.Search(ctx, query) {
		found := hits{Board: h.Board, Jobs: h.Jobs}
		if h.More {
			found.More = asked{Filter: query.Filter}.link(h.Board)
		}
		switch {
		case job.KindOf(h.Err) == job.Invalid:
			view.Problem = plain(h.Err)
		case h.Err != nil:
			view.Left = append(view.Left, h.Board)
		case len(h.Jobs) > 0 || h.More:
			view.Hits, view.Found = append(view.Hits, found), view.Found+len(h.Jobs)
		}
	}
	u.show(w, r, http.StatusOK, "search", view)
}

// wanted says in words what a text asks for, and what boards are searched for.
func wanted(text string) (string, host.Query) {
	if id, err := job.ParseID(text); err == nil {
		return "the job " + id.String(), host.Query{ID: &id}
	}
	filter := "name >= " + quoted(text) + " AND name < " + quoted(text+"\U0010ffff")
	what := "jobs whose names begin with " + text
	if key, value, ok := strings.Cut(text, "="); ok && key != "" && !strings.ContainsAny(key, " \t<>!\"") {
		filter, what = "labels."+key+" = "+quoted(strings.TrimSpace(value)), "jobs with the label "+key+"="+strings.TrimSpace(value)
	}
	return what, host.Query{Filter: filter}
}

// quoted is a text as a value of a filter.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
