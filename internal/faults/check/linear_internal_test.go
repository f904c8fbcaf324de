package check

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// TestLinearIsCheap: claims whose client was not told what it got may have been made at any
// later time, in any order. What they leave behind has to be the same states then, or a job of
// two dozen calls takes minutes to judge.
func TestLinearIsCheap(t *testing.T) {
	t.Parallel()
	ops := []history.Op{{Call: history.Post, To: 1, Outcome: history.Done}}
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	for i := range 8 {
		from := 10 * int64(i+1)
		op := history.Op{
			Call: history.Claim, Outcome: history.Done, Owner: "w", Granted: fmt.Sprint("token ", i), Lease: time.Second,
			From: from, To: from + 4, Begin: at(4 * i), End: at(4*i + 1),
		}
		ops = append(ops, unanswered(op), op)
		op.Call, op.Token, op.From, op.To, op.Begin, op.End = history.Abandon, op.Granted, from+5, from+6, at(4*i+2), at(4*i+3)
		ops = append(ops, op)
	}
	ops = append(ops, history.Op{Call: history.Get, Outcome: history.Done, State: job.Trashed, From: 200, To: 201, Begin: at(200), End: at(201)})
	m, steps := model(&history.History{}, ""), 0
	step := m.StepContext
	m.StepContext = func(ctx context.Context, s, in, out any) (bool, any) {
		steps++
		return step(ctx, s, in, out)
	}
	m.Step = nil
	if porcupine.CheckOperations(m, operations(ops)) { // which takes all orders to find out
		t.Error("a job is in the trash to which nobody brought it")
	}
	if steps > 20_000 {
		t.Errorf("%d steps for %d calls", steps, len(ops))
	}
}
