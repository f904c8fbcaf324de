package board

import (
	"context"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/policy"
)

// classOf returns the worker class, judged.
func (w *selector) classOf(ctx context.Context) (*index.Class, error) {
	return w.classBy(ctx, w.class())
}

func (w *selector) classBy(ctx context.Context, key index.Key) (*index.Class, error) {
	return w.index.ClassOf(ctx, key, w.judge, w.own)
}

// scoreOwn writes the scores that jobs have for this worker. Where the policy
// fails they keep those of the board's order until it is tried again.
func (w *selector) scoreOwn(ctx context.Context, entries []*index.Entry, left []int) {
	if !w.own || len(left) == 0 || !w.rules.current() {
		return
	}
	mine := make([]*index.Entry, len(left))
	for i, at := range left {
		mine[i] = entries[at]
	}
	for from := 0; from < len(mine); from += policy.MaxBatch {
		part := mine[from:min(from+policy.MaxBatch, len(mine))]
		if err := w.scoreWith(ctx, w.rules, w.rules.ordering, w.worker, part); err != nil && ctx.Err() == nil {
			w.order.failed(w.rules, "jobs", len(part), err)
		}
	}
}
