package check_test

import (
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

func finds(h *history.History, checker string) bool {
	return slices.ContainsFunc(check.Run(h), func(p check.Problem) bool { return p.Checker == checker })
}

// A claim may stand longer than its job's timeout where the store counts leases anew.
func TestTimeoutCountsAnew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		store, fault string
		found        bool
	}{
		{"postgres", "store killed", false},
		{"postgres", "store stopped", true},
		{"embedded", "store killed", true},
		{"zookeeper", "server stopped", false},
	} {
		h := good()
		h.Store = c.store
		h.Faults = []history.Fault{{Name: c.fault, Begin: time.Second, End: 1100 * time.Millisecond}}
		h.Ops = append(h.Ops, call(2400, "w1", history.Abandon, a, by("t1")))
		if found := finds(h, "timeouts"); found != c.found {
			t.Errorf("%s, %s: an ending 200 ms after the timeout was found: %v, want %v", c.store, c.fault, found, c.found)
		}
	}
}

// While PostgreSQL is away, and until somebody changes something, no lease runs.
func TestTimeoutRunsOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		back  time.Duration // when the server was there again
		found bool
	}{{1100 * time.Millisecond, true}, {2500 * time.Millisecond, false}} {
		h := good()
		h.Store = "postgres"
		h.Faults = []history.Fault{{Name: "store killed", Begin: time.Second, End: c.back}}
		h.Ops = append(h.Ops, call(1200, "p2", history.Post, "c", posting(3)), call(4800, "w1", history.Abandon, a, by("t1")))
		if found := finds(h, "timeouts"); found != c.found {
			t.Errorf("away for %v: an ending 2.6 s after the timeout was found: %v, want %v", c.back-time.Second, found, c.found)
		}
	}
}

// A job goes to the trash with its last attempt, and not before: at once where it was given up, and
// when a server sees to it where its time was over.
func TestLastAttempt(t *testing.T) {
	t.Parallel()
	for attempts, impossible := range map[int]bool{0: true, 1: false, 2: true} {
		for how, given := range map[string][]history.Op{
			"its time was over":   nil,
			"it was abandoned":    {call(2, "w", history.Abandon, a, by("t1"))},
			"its token came late": {call(600, "w", history.Abandon, a, refused(job.LeaseLost, by("t1"))), call(601, "r", history.Restore, a, refused(job.AlreadyExists, nil))},
		} {
			h := &history.History{Store: "none", Ops: []history.Op{
				call(0, "p", history.Post, a, func(op *history.Op) {
					op.Posting, op.Timeout, op.Attempts = "as posted", 500*time.Millisecond, attempts
				}),
				call(1, "w", history.Claim, a, claim("w", "t1", 1)),
			}}
			h.Ops = append(h.Ops, given...)
			h.Ops = append(h.Ops, call(900, "r", history.Get, a, shows(job.Trashed, ""))) // the lease would run on
			if found := finds(h, "linear"); found != impossible {
				t.Errorf("one of %d attempts, %s; that the job is in the trash is found: %v, want %v", attempts, how, found, impossible)
			}
		}
	}
}

// Who gave up the last attempt at a job, which trashed it, did not trash it, and the other way
// round: at once, and when others have had the job.
func TestOtherEnding(t *testing.T) {
	t.Parallel()
	for first, other := range map[history.Call]history.Call{history.Abandon: history.Trash, history.Trash: history.Abandon} {
		for _, call2 := range []history.Call{first, other} {
			for _, answer := range []func(*history.Op){by("t1"), refused(job.LeaseLost, by("t1"))} {
				for _, later := range []bool{false, true} {
					h := &history.History{Store: "none", Ops: []history.Op{
						call(0, "p", history.Post, a, func(op *history.Op) { op.Posting, op.Timeout, op.Attempts = "as posted", time.Second, 1 }),
						call(1, "w", history.Claim, a, claim("w", "t1", 1)),
						call(2, "w", first, a, by("t1")),
					}}
					if later {
						h.Ops = append(h.Ops, call(3, "r", history.Restore, a, nil), call(4, "w2", history.Claim, a, claim("w2", "t2", 2)),
							call(5, "w2", history.Abandon, a, by("t2")))
					}
					last := call(6, "w", call2, a, answer)
					h.Ops = append(h.Ops, last)
					done := last.Outcome == history.Done
					if found, want := finds(h, "linear"), done != (call2 == first); found != want {
						t.Errorf("%s, and then %s, by the same token, others had it: %v: %s; found: %v, want %v", first, call2, later, last.Outcome, found, want)
					}
					if found, want := finds(h, "fencing"), later && done && call2 == other; found != want {
						t.Errorf("%s, and then %s, by the token of an earlier claim: %v: %s; found: %v, want %v", first, call2, later, last.Outcome, found, want)
					}
				}
			}
		}
	}
}

// What ended a claim is told.
func TestReasons(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what            string
		timeout, given  time.Duration
		timedOut, found bool
		more            history.Op
	}{
		{"a timeout", time.Second, time.Second, true, false, history.Op{}},
		{"another reason for one", time.Second, time.Second, false, true, history.Op{}},
		{"a timeout of none", 0, time.Second, true, true, history.Op{}},
		{"a lease that is over", 1500 * time.Millisecond, time.Second, false, false, history.Op{}},
		{"an end by hand", time.Second, time.Second, false, false, call(500, "p", history.Release, a, nil)},
		{"an end by the token", time.Second, time.Second, false, false, call(500, "w", history.Abandon, a, by("t1"))},
		{"an extension that was cut", time.Second, time.Second, false, true, call(500, "w", history.Extend, a, func(op *history.Op) {
			op.Token, op.Lease, op.Given = "t1", time.Second, 490*time.Millisecond
		})},
	} {
		h := &history.History{Store: "none", Ops: []history.Op{
			call(0, "p", history.Post, a, func(op *history.Op) { op.Posting, op.Timeout = "as posted", c.timeout }),
			call(1, "w", history.Claim, a, func(op *history.Op) { claim("w", "t1", 1)(op); op.Given = c.given }),
			call(2000, "r", history.Get, a, func(op *history.Op) {
				shows(job.Unclaimed, "")(op)
				op.Owners = []string{"w"}
				if c.timedOut {
					op.TimedOut = op.Owners
				}
			}),
		}}
		if c.more.Call != "" {
			h.Ops = append(h.Ops, c.more)
		}
		if found := finds(h, "timeouts"); found != c.found {
			t.Errorf("%s: found %v, want %v: %v", c.what, found, c.found, check.Run(h))
		}
	}
}
