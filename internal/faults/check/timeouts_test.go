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

// A job goes to the trash with its last attempt, and not before.
func TestLastAttempt(t *testing.T) {
	t.Parallel()
	for attempts, impossible := range map[int]bool{0: true, 1: false, 2: true} {
		for _, abandoned := range []bool{false, true} {
			h := &history.History{Store: "none", Ops: []history.Op{
				call(0, "p", history.Post, a, func(op *history.Op) {
					op.Posting, op.Timeout, op.Attempts = "as posted", 500*time.Millisecond, attempts
				}),
				call(1, "w", history.Claim, a, claim("w", "t1", 1)),
			}}
			if abandoned {
				h.Ops = append(h.Ops, call(2, "w", history.Abandon, a, by("t1")))
			}
			h.Ops = append(h.Ops, call(900, "r", history.Get, a, shows(job.Trashed, ""))) // the lease would run on
			if found := finds(h, "linear"); found != impossible {
				t.Errorf("one of %d attempts, abandoned: %v; that the job is in the trash is found: %v, want %v", attempts, abandoned, found, impossible)
			}
		}
	}
}
