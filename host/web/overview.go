package web

import (
	"context"
	"net/http"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
)

// countWithin is how long the overview waits for the counts of all its boards
// together; a board that is not counted by then shows none.
const countWithin = 2 * time.Second

// overviewPoll is how often the overview looks again, in seconds: it shows many
// boards, so it watches none.
const overviewPoll = 10

// boardCard is one board of the overview.
type boardCard struct {
	Name     string
	Status   board.Status
	Counts   *board.Counts // nil: not known now
	Graphs   graphs
	Driver   string
	Observed bool
}

type overviewView struct {
	page
	Boards []boardCard
}

func (u *UI) overview(w http.ResponseWriter, r *http.Request, v *visit) {
	view := overviewView{page: u.page(r, v, "Boards")}
	if err := v.session.Check("ListBoards"); err != nil {
		u.fail(w, r, v, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), countWithin)
	defer cancel()
	for _, served := range v.session.Boards() {
		view.Boards = append(view.Boards, u.card(ctx, v, &served))
	}
	view.Poll = overviewPoll
	u.show(w, r, http.StatusOK, "overview", view)
}

func (u *UI) card(ctx context.Context, v *visit, served *host.Served) boardCard {
	c := boardCard{
		Name: served.Config.Name, Status: served.Status, Driver: served.Driver, Observed: served.Config.Observe,
	}
	if c.Counts = served.Rests; c.Counts != nil || !served.Status.Ready || ctx.Err() != nil {
		return c // one that rests is not opened for those who only look at all of them
	}
	if b, err := v.session.Board(ctx, c.Name, "CountJobs"); err == nil {
		c.Graphs = graphsOf(ctx, b)
		if counts, err := b.Count(ctx); err == nil {
			c.Counts = &counts
		}
	}
	return c
}
