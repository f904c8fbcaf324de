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

// A move has watchers read everything anew; before that and after it each is shown all.
func TestWatchersOfAMove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resync int // before which event both were told to read everything anew
		moved  bool
	}{{6, true}, {6, false}, {1, true}} {
		h := good()
		for i := range h.Watchers {
			w := &h.Watchers[i]
			e := w.Events[slices.IndexFunc(w.Events, func(e history.Event) bool { return e.Position == 5 })+c.resync]
			w.Events = slices.Insert(w.Events, slices.Index(w.Events, e), history.Event{Type: job.Resync, Position: e.Position - 1})
		}
		late := &h.Watchers[1]
		late.Events = slices.DeleteFunc(late.Events, func(e history.Event) bool { return e.Position == 8 })
		if c.moved {
			h.Moves = []history.Move{{To: "there", Begin: 1, End: 3 * time.Second, State: "MOVED"}}
		}
		if !finds(h, "watchers") {
			t.Errorf("an event is missing, and before the %dth one watchers were told to read anew; the board moved: %v: it was not found", c.resync, c.moved)
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

// A claim whose answer was lost is made once more by a new store: between the two, somebody may
// have broken the first.
func TestClaimedBeforeAMove(t *testing.T) {
	t.Parallel()
	for _, moves := range []bool{false, true} {
		h := &history.History{Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "w", history.Claim, a, unknown(claim("w", "", 0))),
			call(4, "o", history.Release, a, nil),
			call(12, "w", history.Claim, a, claim("w", "t1", 1)),
			call(14, "w", history.Consume, a, by("t1")),
		}}
		nothing := &history.History{Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "w", history.Claim, "", func(op *history.Op) {
				op.Owner, op.Request, op.Best, op.End, op.To = "w", "r", true, 12*time.Millisecond, 25
			}),
			call(14, "o", history.SetAside, a, refused(job.AlreadyClaimed, nil)),
			call(15, "r", history.Get, a, func(op *history.Op) { op.State, op.Holder = job.Claimed, "w" }),
		}}
		itself := &history.History{Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "w", history.Claim, a, refused(job.AlreadyClaimed, func(op *history.Op) { op.Owner, op.Request, op.End, op.To = "w", "r", 12*time.Millisecond, 25 })),
		}}
		if moves {
			h.Moves = []history.Move{{To: "there", Begin: 6 * time.Millisecond, End: 10 * time.Millisecond, State: "MOVED"}}
			nothing.Moves, itself.Moves = h.Moves, h.Moves
		}
		if found := finds(itself, "linear"); found == moves {
			t.Errorf("a call is told that its job is claimed, which nobody else did, its board moved meanwhile: %v: found %v", moves, found)
		}
		if found := finds(nothing, "linear"); found == moves {
			t.Errorf("a call got nothing, and a job is claimed by it, its board moved meanwhile: %v: found %v", moves, found)
		}
		if found := finds(h, "linear"); found == moves {
			t.Errorf("a claim was released and its call made again, its board moved between them: %v: found %v", moves, found)
		}
	}
}

// A new store does not know who consumed a job that was purged and posted anew before the move,
// and does know who consumed one that was not.
func TestConsumedBeforeAMove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ anew, moves, found bool }{{false, false, true}, {false, true, true}, {true, false, true}, {true, true, false}} {
		h := &history.History{Ops: []history.Op{
			call(0, "p", history.Post, a, posting(1)),
			call(1, "w", history.Claim, a, claim("w", "t1", 1)),
			call(2, "w", history.Consume, a, by("t1")),
			call(3, "o", history.Purge, a, nil),
		}}
		if c.anew {
			h.Ops = append(h.Ops, call(4, "p", history.Post, a, posting(1)))
		}
		h.Ops = append(h.Ops, call(20, "w", history.Consume, a, refused(job.LeaseLost, by("t1"))))
		if c.moves {
			h.Moves = []history.Move{{To: "there", Begin: 6 * time.Millisecond, End: 10 * time.Millisecond, State: "MOVED"}}
		}
		if found := finds(h, "linear"); found != c.found {
			t.Errorf("consumed, and then LEASE_LOST; the job was posted anew: %v, and its board moved: %v: found %v, want %v", c.anew, c.moves, found, c.found)
		}
	}
}

// Jobs keep their age when their board moves, and not their numbers.
func TestOrderAfterAMove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ moves, younger, found bool }{{false, false, true}, {true, false, false}, {true, true, true}} {
		first := history.Listed{Job: a, Priority: 3, Sequence: 9, Created: 1000}
		if c.younger {
			first.Created = 3000
		}
		h := &history.History{Lists: []history.List{{
			Server: "s", State: job.Unclaimed, Final: true, Jobs: []history.Listed{first, {Job: b, Priority: 3, Sequence: 2, Created: 2000}},
		}}}
		if c.moves {
			h.Moves = []history.Move{{To: "there", Begin: time.Millisecond, End: 2 * time.Millisecond, State: "MOVED"}}
		}
		if found := finds(h, "order"); found != c.found {
			t.Errorf("a job with a higher number comes first, the board has moved: %v, it is younger: %v: found %v, want %v", c.moves, c.younger, found, c.found)
		}
	}
}
