package host_test

import (
	"context"
	"iter"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// withInbox is a store in which others leave postings, of which none waits. It names a board to
// whoever is told for which they do.
type withInbox struct {
	driver.Driver
	left chan string // "": the stream ends, and the driver does not tell any more
}

func (d withInbox) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := d.Driver.OpenBoard(ctx, spec)
	status.Capabilities.Inbox = true
	return status, err
}

func (d withInbox) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	if req.Set != driver.InboxPostings {
		return d.Driver.Scan(ctx, board, req)
	}
	return func(yield func(driver.Page, error) bool) { yield(driver.Page{}, nil) }
}

func (d withInbox) WatchInboxes(ctx context.Context) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for {
			select {
			case name := <-d.left:
				if name == "" {
					yield(nil, job.Errorf(job.Unsupported, "it is an older program"))
					return
				}
				if !yield([]string{name}, nil) {
					return
				}
			case <-ctx.Done():
				yield(nil, &job.Error{Kind: job.Interrupted, Err: ctx.Err()})
				return
			}
		}
	}
}

// TestRestWithAnInbox: a board that others leave postings for rests where the driver tells of
// them, and is opened then. A host whose driver does not tell, as one of before, opens it at once,
// and never has it rest.
func TestRestWithAnInbox(t *testing.T) {
	t.Parallel()
	program := oneStore(t, false)["memory"]
	left := make(chan string)
	tells := program.Wrapped(func(d driver.Driver) driver.Driver { return withInbox{d, left} })
	silent := program.Wrapped(func(d driver.Driver) driver.Driver { return withInbox{d, nil} })
	tells.Info.Wakes = true
	boards := []config.Board{board("idle", "store")}
	h, _ := open(t, resting(map[string]driver.Program{"memory": tells}, boards...))
	for range 3 {
		eventually(t, "the board rests", func() bool {
			return h.OpenBoards() == 0 && restsIn(t, map[string]driver.Program{"memory": program}, "idle")
		})
		left <- "default/stranger"
		left <- "default/idle"
		eventually(t, "the board is opened", func() bool { return h.OpenBoards() == 1 })
	}
	eventually(t, "the board rests", func() bool { return h.OpenBoards() == 0 })
	older, s := open(t, resting(map[string]driver.Program{"memory": silent}, boards...))
	eventually(t, "a host that is not told opens it", func() bool { return older.OpenBoards() == 1 })
	ready(t, s, "idle")
	eventually(t, "and so do both", func() bool { return older.OpenBoards() == 1 && h.OpenBoards() == 1 })
}

// TestLeftForABoardToCome: a host that is told of a posting before it has the board opens that as
// it gets it, though the board's store says that it rests.
func TestLeftForABoardToCome(t *testing.T) {
	t.Parallel()
	program := oneStore(t, false)["memory"]
	left := make(chan string)
	program = program.Wrapped(func(d driver.Driver) driver.Driver { return withInbox{d, left} })
	program.Info.Wakes = true
	drivers := map[string]driver.Program{"memory": program}
	first, err := host.Open(t.Context(), resting(drivers, board("idle", "store"), board("late", "store")))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the boards rest", func() bool { return restsIn(t, drivers, "idle") && restsIn(t, drivers, "late") })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c := resting(drivers, board("idle", "store"))
	next := c.Config
	c.Load = func() (*config.Config, error) { c := next; return &c, nil }
	second, _ := open(t, c)
	left <- "default/late"
	left <- "default/late" // so that the first one has been heard
	next.RestAfter = -1
	next.Boards = append(next.Boards, board("late", "store"))
	if _, err := second.Reload(within(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the board is opened for which a posting was left, and no other", func() bool { return second.OpenBoards() == 1 })
}

// lyingDown is a store that says when it is to be written that a board rests, and waits.
type lyingDown struct {
	driver.Driver
	down chan chan struct{} // closed by who receives it
}

func (d lyingDown) Documents() driver.Documents { return lyingDocuments{d.Driver.Documents(), d.down} }

type lyingDocuments struct {
	driver.Documents
	down chan chan struct{}
}

func (d lyingDocuments) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if space.Name == "rest" {
		goOn := make(chan struct{})
		d.down <- goOn
		<-goOn
	}
	return d.Documents.Put(ctx, space, doc, ifVersion)
}

// TestLeftAsItLiesDown: a posting that is left between the last look for one and the document that
// says that the board rests opens it, whether the host is told before the document is there or after.
func TestLeftAsItLiesDown(t *testing.T) {
	t.Parallel()
	program := oneStore(t, false)["memory"]
	left, down := make(chan string), make(chan chan struct{})
	program = program.Wrapped(func(d driver.Driver) driver.Driver { return withInbox{lyingDown{d, down}, left} })
	program.Info.Wakes = true
	drivers := map[string]driver.Program{"memory": program}
	open(t, resting(drivers, board("idle", "store")))
	looked := func() (goOn chan struct{}) {
		t.Helper()
		select {
		case goOn = <-down:
		case <-within(t).Done():
			t.Fatal("the board was not open, and does not lie down")
		}
		return goOn
	}
	for _, before := range []bool{true, false, true} {
		goOn := looked()
		if before {
			left <- "default/idle"
			left <- "default/stranger" // so that the first one has been heard
		}
		close(goOn)
		if !before {
			eventually(t, "the board rests", func() bool { return restsIn(t, drivers, "idle") })
			left <- "default/idle"
		}
	}
	close(looked()) // it was opened each time
}

// TestDeaf: where the driver does not tell of postings any more, boards that rest are opened, and
// none rests until it tells again.
func TestDeaf(t *testing.T) {
	t.Parallel()
	program := oneStore(t, false)["memory"]
	left := make(chan string)
	program = program.Wrapped(func(d driver.Driver) driver.Driver { return withInbox{d, left} })
	program.Info.Wakes = true
	drivers := map[string]driver.Program{"memory": program}
	h, _ := open(t, resting(drivers, board("idle", "store"), board("other", "store")))
	rest := func() bool { return h.OpenBoards() == 0 && restsIn(t, drivers, "idle") && restsIn(t, drivers, "other") }
	eventually(t, "the boards rest", rest)
	left <- ""
	eventually(t, "the boards are opened", func() bool { return h.OpenBoards() == 2 })
	left <- ""
	if n := h.OpenBoards(); n != 2 { // the stream was begun anew, long after they would rest
		t.Errorf("%d boards are open while nobody tells of postings, want 2", n)
	}
	left <- "default/other"
	eventually(t, "they rest again", rest)
}
