package web

import (
	"net/http"
	"net/url"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
)

// overviewBoards is how many boards are on one page of the overview.
const overviewBoards = 200

// overviewPoll is how often the overview looks again, in seconds: it shows many
// boards, so it watches none.
const overviewPoll = 10

// boardCard is one board of the overview.
type boardCard struct {
	Name     string
	Status   board.Status
	Counts   *board.Counts // nil: not known now
	Graphs   host.Went
	Driver   string
	Observed bool
}

type overviewView struct {
	page
	Boards []boardCard
	First  bool   // of the pages
	Next   string // a link to the next one; "": this is the last one
}

// overview shows the boards of all servers of the fleet. It opens none.
func (u *UI) overview(w http.ResponseWriter, r *http.Request, v *visit) {
	view := overviewView{page: u.page(r, v, "Boards")}
	if err := v.session.Check("ListBoards"); err != nil {
		u.fail(w, r, v, err)
		return
	}
	after := r.URL.Query().Get("after")
	list, next := v.session.List(r.Context(), host.Listing{After: after, Most: overviewBoards, Counts: true, Went: true})
	for i := range list {
		view.Boards = append(view.Boards, cardOf(&list[i]))
	}
	if view.First = after == ""; next != "" {
		view.Next = "/?after=" + url.QueryEscape(next)
	}
	view.Poll = overviewPoll
	u.show(w, r, http.StatusOK, "overview", view)
}

func cardOf(served *host.Served) boardCard {
	c := boardCard{
		Name: served.Config.Name, Status: served.Status, Driver: served.Driver, Observed: served.Config.Observe, Counts: served.Counts,
	}
	if served.Went != nil {
		c.Graphs = *served.Went
	}
	return c
}
