package workload

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/client"
)

// outlasting is a claim that its worker does not end before the job's timeout is over.
type outlasting struct {
	claim *client.Claim
	until time.Time
}

// outlast takes a claim on a job with a timeout out of the client's hand, extends it as
// long as it is let, and tries to end it when the timeout is over.
func (w *worker) outlast(ctx context.Context) {
	if n := len(w.hung); n > 0 && time.Now().After(w.hung[0].until) {
		late := []*client.Claim{w.hung[0].claim}
		w.hung = w.hung[1:]
		endings := []func(*worker, context.Context, []*client.Claim){(*worker).extendAll, (*worker).consumeAll, (*worker).abandonAll, (*worker).trashAll}
		endings[w.random.IntN(len(endings))](w, ctx, late)
		return
	}
	if i := slices.IndexFunc(w.mine, func(c *client.Claim) bool { return w.timeout(c.GetUuid()) > 0 }); i >= 0 && len(w.hung) < 3 {
		c := w.mine[i]
		w.mine = slices.Delete(w.mine, i, i+1)
		over := w.timeout(c.GetUuid())
		w.hung = append(w.hung, outlasting{c, time.Now().Add(over + over/20)}) // it counts from before
	}
	if n := len(w.hung); n > 0 {
		w.extendAll(ctx, []*client.Claim{w.hung[w.random.IntN(n)].claim})
	}
}
