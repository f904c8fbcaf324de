package check_test

import (
	"testing"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// A lease that is over ends nothing yet in a store that does not answer: a token is refused by then,
// and who would cancel the job is still told that somebody works on it. Once its claim was ended by
// anybody, that is impossible.
func TestCanceledWhenALeaseIsOver(t *testing.T) {
	t.Parallel()
	no := refused(job.Precondition, nil)
	for name, c := range map[string]struct {
		ops   []history.Op
		found bool
	}{
		"the lease is over": {[]history.Op{
			call(2600, "w", history.Abandon, a, refused(job.LeaseLost, by("t1"))), call(2601, "o", history.Cancel, a, no),
		}, false},
		"it was given up": {[]history.Op{call(3, "w", history.Abandon, a, by("t1")), call(4, "o", history.Cancel, a, no)}, true},
		"it was released when the lease was over": {[]history.Op{
			call(2600, "w", history.Abandon, a, refused(job.LeaseLost, by("t1"))), call(2601, "o", history.Release, a, nil), call(2602, "o", history.Cancel, a, no),
		}, true},
	} {
		h := &history.History{Ops: append([]history.Op{call(0, "p", history.Post, a, posting(1)), call(1, "w", history.Claim, a, claim("w", "t1", 1))}, c.ops...)}
		if found := finds(h, "linear"); found != c.found {
			t.Errorf("%s: found %v, want %v", name, found, c.found)
		}
	}
}
