package check_test

import (
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// What a move forgets is allowed while a board moves, and at no other time.
func TestForgottenByAMove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checker string
		make    func(*history.History)
	}{
		"a repeated claim gets another job": {"repetitions", change(4, "w1", history.Claim, func(op *history.Op) { op.Granted = "t2" })},
		"a posting has another number":      {"repetitions", change(2, "p", history.Post, func(op *history.Op) { op.Sequence = 7 })},
		"a later job has a lower number":    {"order", change(2506, "p", history.Post, func(op *history.Op) { op.Sequence = 1 })},
	} {
		for _, m := range []struct {
			begin, end time.Duration
			found      bool
		}{{0, 3 * time.Second, false}, {4 * time.Second, 5 * time.Second, true}} {
			h := good()
			c.make(h)
			h.Moves = []history.Move{{To: "there", Begin: m.begin, End: m.end, State: "MOVED"}}
			if found := finds(h, c.checker); found != m.found {
				t.Errorf("%s, and the board moved from %v to %v: found %v, want %v", name, m.begin, m.end, found, m.found)
			}
		}
	}
}

// A new store knows again who abandoned or trashed a claim, unless the job was purged since.
func TestEndedBeforeAMove(t *testing.T) {
	t.Parallel()
	for _, ending := range []history.Call{history.Abandon, history.Trash} {
		for _, c := range []struct{ purged, moves, found bool }{{false, false, true}, {false, true, true}, {true, false, true}, {true, true, false}} {
			h := &history.History{Ops: []history.Op{
				call(0, "p", history.Post, a, posting(1)),
				call(1, "w", history.Claim, a, claim("w", "t1", 1)),
				call(2, "w", ending, a, by("t1")),
				call(20, "w", ending, a, refused(job.LeaseLost, by("t1"))),
			}}
			if c.purged {
				h.Ops = slices.Insert(h.Ops, 3, call(3, "o", history.SetAside, a, nil), call(4, "o", history.Purge, a, nil), call(5, "p", history.Post, a, posting(1)))
				if ending == history.Trash {
					h.Ops = slices.Delete(h.Ops, 3, 4)
				}
			}
			if c.moves {
				h.Moves = []history.Move{{To: "there", Begin: 6 * time.Millisecond, End: 10 * time.Millisecond, State: "MOVED"}}
			}
			if found := finds(h, "linear"); found != c.found {
				t.Errorf("%s, and LEASE_LOST; the job was purged: %v, and its board moved: %v: found %v, want %v", ending, c.purged, c.moves, found, c.found)
			}
		}
	}
}
