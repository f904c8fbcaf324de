package workload

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/sleep"
)

// Webhooks is a client that has jobs end and go to the trash, one after the other, on a board
// whose webhooks a receiver is told by that is not always well. Nobody else knows of these jobs.
type Webhooks struct {
	recorder *history.Recorder
	board    *client.Board
	receiver *Receiver
	random   *rand.Rand

	lives []history.Life
}

// The webhooks of the board: one is told of everything, the other of little.
const (
	WebhookAll = "all"
	WebhookFew = "few"

	toldEnded, toldTrashed, toldExhausted = "job.ended", "job.trashed", "job.exhausted"

	webhookPause = 100 * time.Millisecond // between two jobs, on average
)

// NewWebhooks has nothing happen yet.
func NewWebhooks(recorder *history.Recorder, board *client.Board, receiver *Receiver, seed uint64) *Webhooks {
	return &Webhooks{
		recorder: recorder, board: board, receiver: receiver,
		random: rand.New(rand.NewPCG(seed, 0x3eb)), //nolint:gosec // a run that can be made again
	}
}

// Run has jobs live until ctx ends, and leaves none halfway.
func (w *Webhooks) Run(ctx context.Context) {
	swayed := make(chan struct{})
	moods := rand.New(rand.NewPCG(w.random.Uint64(), 0x300d)) //nolint:gosec // likewise
	go func() {
		defer close(swayed)
		w.receiver.sway(ctx, moods)
	}()
	for ctx.Err() == nil {
		l := history.Life{Job: client.NewUUID()}
		l.Unsure = !w.live(context.WithoutCancel(ctx), &l)
		w.lives = append(w.lives, l)
		_ = sleep.For(ctx, time.Duration(w.random.Int64N(int64(2*webhookPause)))) // its end is seen by the loop
	}
	<-swayed
}

// live leads a job's life, and reports whether it surely went as it says. Every step names its
// claim or cannot be taken twice, so that a call which comes late changes nothing.
func (w *Webhooks) live(ctx context.Context, l *history.Life) bool {
	posting := &client.NewJob{Uuid: l.Job, Name: "told"}
	way := w.random.IntN(5)
	if way == 0 {
		posting.MaxAttempts = 1
	}
	if !insist(ctx, func() error { _, err := w.board.Post(ctx, posting); return err }) {
		return false
	}
	const gone, trashed = boarddv1.State_COMPLETE, boarddv1.State_TRASHED
	ending := func(end func(*client.Claim) error) func() error {
		return func() error { return withClaim(ctx, w.board, l.Job, end) }
	}
	consume := func(c *client.Claim) error { return w.board.Consume(ctx, c) }
	switch way {
	case 0:
		l.Tells = []string{toldExhausted}
		return surely(ctx, w.board, l.Job, trashed, ending(func(c *client.Claim) error { return w.board.Abandon(ctx, client.AbandonOptions{}, c) })) &&
			surely(ctx, w.board, l.Job, gone, func() error { return w.board.Purge(ctx, l.Job) })
	case 1:
		l.Tells = []string{toldEnded + " CANCELED"}
		return surely(ctx, w.board, l.Job, gone, func() error { _, err := w.board.Cancel(ctx, true, l.Job); return err })
	case 2:
		l.Tells = []string{toldEnded + " CONSUMED"}
		return surely(ctx, w.board, l.Job, gone, ending(consume))
	}
	l.Tells = []string{toldTrashed, toldEnded + " CONSUMED"}
	return surely(ctx, w.board, l.Job, trashed, ending(func(c *client.Claim) error { return w.board.Trash(ctx, "by hand", c) })) &&
		surely(ctx, w.board, l.Job, boarddv1.State_UNCLAIMED, func() error { return w.board.Restore(ctx, l.Job) }) &&
		surely(ctx, w.board, l.Job, gone, ending(consume))
}

// Rest waits, when nothing is broken any more, until everything was told and no delivery is
// open, and writes down what came.
func (w *Webhooks) Rest(ctx context.Context, deliveries *client.Board, patience time.Duration) error {
	hooks := []*history.Webhook{
		{Name: WebhookAll, Types: []string{toldEnded, toldTrashed, toldExhausted}, Jobs: w.lives},
		{Name: WebhookFew, Types: []string{toldExhausted}, Jobs: w.lives},
	}
	r := &resting{patience: patience}
	err := r.until(ctx, func() (bool, error) {
		for _, h := range hooks {
			if h.Requests = w.receiver.got(h.Name); !told(h) {
				return false, nil
			}
		}
		count, err := deliveries.Count(ctx)
		return err == nil && count.GetUnclaimed()+count.GetClaimed() == 0, err
	})
	w.recorder.Change(func(h *history.History) {
		for _, hook := range hooks {
			hook.Requests = w.receiver.got(hook.Name)
			h.Webhooks = append(h.Webhooks, *hook)
		}
	})
	return err
}

// told reports whether so many events were taken of each job as there have been.
func told(h *history.Webhook) bool {
	taken := map[string]map[string]bool{}
	for _, q := range h.Requests {
		if taken[q.Job] == nil {
			taken[q.Job] = map[string]bool{}
		}
		if q.To > 0 {
			taken[q.Job][q.ID] = true
		}
	}
	for i := range h.Jobs {
		l := &h.Jobs[i]
		if !l.Unsure && len(taken[l.Job]) < len(h.Wanted(l)) {
			return false
		}
	}
	return true
}
