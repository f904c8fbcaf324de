package board

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// told is a history as lines, without the nonces in tokens, which are random each time.
// Two runs have the same if each client made the same calls at the same times of the
// bubble and got the same answers.
func told(h *history.History) (lines []string) {
	ops := slices.Clone(h.Ops)
	slices.SortStableFunc(ops, func(a, b history.Op) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Client, b.Client))
	})
	names := map[string]int{"": 0}
	name := func(token string) int {
		if _, known := names[token]; !known {
			names[token] = len(names)
		}
		return names[token]
	}
	for i := range ops {
		op := &ops[i]
		lines = append(lines, fmt.Sprintln(op.Client, op.Job, op.Call, name(op.Token), op.Lease, op.Begin, op.End, op.Kind, name(op.Granted), op.State))
	}
	return lines
}

// settled draws what goes wrong with an op from what it is and at what moment of the
// bubble it comes: so two ops of one moment may come in either order.
func settled(seed uint64, host int) applyHook {
	return func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
		sum := fnv.New64a()
		fmt.Fprint(sum, host, ops[0].Kind, ops[0].Precondition, opIDs(ops[:1]), time.Now().UnixNano())
		random := rand.New(rand.NewPCG(seed, sum.Sum64())) //nolint:gosec // a test that can be repeated
		answer := func(kind job.Kind) []driver.Result {
			return slices.Repeat([]driver.Result{{Kind: kind, Message: "a fault"}}, len(ops))
		}
		switch roll := random.IntN(100); {
		case roll < 12:
			next(ctx, ops)
			return answer(job.OutcomeUnknown)
		case roll < 18:
			return answer(job.OutcomeUnknown)
		case roll < 24:
			return answer(job.Unavailable)
		case roll < 30:
			if sleep.For(ctx, time.Duration(random.IntN(1000))*time.Millisecond) != nil {
				return answer(job.Interrupted)
			}
		}
		return next(ctx, ops)
	}
}

// TestReplays runs two hosts twice for one seed in a thousand of those that are asked
// for, and says how often the histories are the same. What goes another way is what
// both hosts do at one moment, such as to end a claim whose lease ran out, and select
// statements with two cases that are ready.
func TestReplays(t *testing.T) {
	first, count := simulation.Asked(t)
	first, count = first/1000, count/1000
	same, agreed, all := 0, 0, 0
	for seed := first; seed < first+count; seed++ {
		var lines [2][]string
		for i := range lines {
			h := runHosts(t, seed, 100*time.Microsecond, func(host int) applyHook { return settled(seed, host) })
			for _, p := range check.Linear(h) {
				t.Errorf("seed %d: %v", seed, p)
			}
			lines[i] = told(h)
		}
		if slices.Equal(lines[0], lines[1]) {
			same++
		}
		n := 0
		for n < len(lines[0]) && n < len(lines[1]) && lines[0][n] == lines[1][n] {
			n++
		}
		agreed += n
		all += len(lines[0])
	}
	t.Logf("%d of %d seeds have the same history twice; %d of %d calls come before the first that differs", same, count, agreed, all)
	if agreed < all/4 {
		t.Errorf("only %d of %d calls come before the first that differs", agreed, all)
	}
}
