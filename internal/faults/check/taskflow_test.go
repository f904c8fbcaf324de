package check_test

import (
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// TaskFlow's calls on a job a, each by what changes it.
func outside(more func(*history.Op)) func(*history.Op) {
	return func(op *history.Op) {
		op.Outside = true
		if more != nil {
			more(op)
		}
	}
}

func theirClaim(op *history.Op) {
	op.Owner, op.Granted, op.Lease = "them", "taskflow: them", 2*time.Second
}

func TestBesideTaskFlow(t *testing.T) {
	t.Parallel()
	post := call(0, "taskflow", history.Post, a, outside(posting(0)))
	claimed := call(10, "taskflow", history.Claim, a, outside(theirClaim))
	consumed := call(20, "taskflow", history.Consume, a, outside(by("taskflow: them")))
	final := func(more func(*history.Op)) history.Op {
		return call(5000, "r", history.Get, a, func(op *history.Op) { more(op); op.Final = true })
	}
	for _, c := range []struct {
		name string
		want []string // checkers that find something
		ops  []history.Op
	}{
		{"all in its hands", nil, []history.Op{post, claimed, consumed, final(shows(job.Complete, ""))}},
		{"and nothing is left", nil, []history.Op{post, claimed, consumed, final(refused(job.NotFound, nil))}},
		{"seen late", nil, []history.Op{
			post, claimed, call(15, "r", history.Get, a, func(op *history.Op) { shows(job.Unclaimed, "")(op); op.Final = false }),
			call(16, "w", history.Claim, a, refused(job.NotFound, func(op *history.Op) { op.Owner = "w" })), consumed,
		}},
		{"its post is lost", []string{"posts"}, []history.Op{post, final(refused(job.NotFound, nil))}},
		{"its job comes back", []string{"linear", "posts"}, []history.Op{post, claimed, consumed, final(shows(job.Unclaimed, ""))}},
		{"its claim is not there", []string{"leases", "linear"}, []history.Op{post, claimed, call(15, "w", history.Claim, a, claim("w", "t1", 1))}},
		{"our claim is not there", []string{"leases", "linear"}, []history.Op{
			post, call(5, "w", history.Claim, a, claim("w", "t1", 1)), claimed,
		}},
		{"ours after its lease", nil, []history.Op{post, claimed, call(2500, "w", history.Claim, a, claim("w", "t1", 1))}},
		{"both have consumed it", []string{"consumption", "fencing", "linear"}, []history.Op{
			post, call(5, "w", history.Claim, a, func(op *history.Op) { claim("w", "t1", 1)(op); op.Lease = time.Millisecond }), claimed,
			call(15, "w", history.Consume, a, by("t1")), consumed,
		}},
	} {
		var found []string
		for _, p := range check.Run(&history.History{Store: "redis", Shared: true, Ops: c.ops}) {
			if !slices.Contains(found, p.Checker) {
				found = append(found, p.Checker)
			}
		}
		slices.Sort(found)
		if !slices.Equal(found, c.want) {
			t.Errorf("%s: found by %v, want %v", c.name, found, c.want)
		}
	}
}
