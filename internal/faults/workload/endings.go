package workload

import (
	"context"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/client"
)

// take returns claims to end: of the client's own, one after the other, and now and
// then one that anybody has or had.
func (w *worker) take() (claims []*client.Claim) {
	n := 1
	if w.random.IntN(3) == 0 {
		n = 2
	}
	for ; n > 0 && len(w.mine) > 0; n-- {
		claims = append(claims, w.mine[0])
		w.mine = w.mine[1:]
	}
	if w.random.IntN(4) == 0 {
		if c := w.anyClaim(w.random); c != nil && !named(claims, c.GetUuid()) {
			claims = append(claims, c)
		}
	}
	return claims
}

// named reports whether one of the claims is on a job: a call may name it once.
func named(claims []*client.Claim, id string) bool {
	for _, c := range claims {
		if c.GetUuid() == id {
			return true
		}
	}
	return false
}

// end makes a call on claims by their tokens, and sometimes makes it again.
func (w *worker) end(call history.Call, claims []*client.Claim, more func(i int) history.Op, do func(...*client.Claim) error) {
	for range 1 + w.random.IntN(5)/4 {
		if len(claims) == 0 {
			return
		}
		from := w.Recorder.Now()
		err := do(claims...)
		ops := make([]history.Op, len(claims))
		for i, err := range client.Each(err, len(claims)) {
			ops[i] = more(i)
			ops[i].Client, ops[i].Call, ops[i].Board, ops[i].Retries = w.name, call, w.Board, w.retries
			ops[i].Job, ops[i].Token = claims[i].GetUuid(), claims[i].GetToken()
			answer(&ops[i], err)
			if ops[i].Outcome == history.Unknown && call != history.Extend && len(w.mine) < 8 {
				w.mine = append(w.mine, claims[i]) // to be ended again, perhaps in another way
			}
		}
		w.Recorder.Add(from, ops...)
	}
}

func (w *worker) extend(ctx context.Context) {
	claims := w.take()
	w.extendAll(ctx, claims)
	w.mine = append(w.mine, claims...)
}

func (w *worker) extendAll(ctx context.Context, claims []*client.Claim) {
	lease := w.lease()
	var given []*client.Extension
	w.end(history.Extend, claims, func(i int) history.Op {
		if i < len(given) {
			return history.Op{Lease: lease, Given: given[i].GetLease().AsDuration()}
		}
		return history.Op{Lease: lease}
	}, func(c ...*client.Claim) (err error) {
		given, err = w.board.Extend(ctx, lease, c...)
		return err
	})
}

func (w *worker) consume(ctx context.Context) { w.consumeAll(ctx, w.take()) }

func (w *worker) consumeAll(ctx context.Context, claims []*client.Claim) {
	w.end(history.Consume, claims, plain, func(c ...*client.Claim) error { return w.board.Consume(ctx, c...) })
}

// plain is an op of which nothing more is said.
func plain(int) history.Op { return history.Op{} }

func (w *worker) abandon(ctx context.Context) { w.abandonAll(ctx, w.take()) }

func (w *worker) abandonAll(ctx context.Context, claims []*client.Claim) {
	o := client.AbandonOptions{Reason: "to see what happens", RetryAfter: new(time.Duration), RefundAttempt: w.random.IntN(2) == 0}
	if w.random.IntN(4) == 0 {
		*o.RetryAfter = 200 * time.Millisecond
	}
	delay := func(int) history.Op { return history.Op{Delay: *o.RetryAfter} }
	w.end(history.Abandon, claims, delay, func(c ...*client.Claim) error { return w.board.Abandon(ctx, o, c...) })
}

func (w *worker) trash(ctx context.Context) { w.trashAll(ctx, w.take()) }

func (w *worker) trashAll(ctx context.Context, claims []*client.Claim) {
	w.end(history.Trash, claims, plain, func(c ...*client.Claim) error { return w.board.Trash(ctx, "to see what happens", c...) })
}

// work does what workers do meanwhile: operations and log. What comes of that is not
// judged; it is there to be in the way.
func (w *worker) work(ctx context.Context) {
	if len(w.mine) == 0 {
		return
	}
	c := w.mine[w.random.IntN(len(w.mine))]
	_, _ = w.board.AppendLog(ctx, c, 0, &client.NewLogEntry{Type: "note", Message: w.name})
	if n := len(c.GetJob().GetOperations()); n > 0 {
		i := w.random.Int32N(int32(n))
		_, _ = w.board.StartOperation(ctx, c, i, running)
		_, _ = w.board.FinishOperation(ctx, c, i, success, []byte(`"done"`))
	}
}
