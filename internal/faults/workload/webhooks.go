package workload

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Webhooks is a client that has jobs end and go to the trash, one after the other, on a board
// whose webhooks a receiver is told by that is not always well. Nobody else knows of these jobs.
type Webhooks struct {
	recorder *history.Recorder
	board    *client.Board
	receiver *Receiver
	random   *rand.Rand
	moves    bool // the board does

	lives []history.Life
}

// The webhooks of the board: one is told of everything, the other of little.
const (
	WebhookAll = "all"
	WebhookFew = "few"

	toldEnded, toldTrashed, toldExhausted = "job.ended", "job.trashed", "job.exhausted"

	webhookPause = 100 * time.Millisecond // between two jobs, on average
	beginWithin  = 30 * time.Second
)

// What becomes of a job.
const (
	exhausts = iota
	isCanceled
	isConsumed
	comesBack
	comesBackToo // so that it is as often as it has steps
	ways
)

// NewWebhooks has nothing happen yet, on a board that moves or does not.
func NewWebhooks(recorder *history.Recorder, board *client.Board, receiver *Receiver, moves bool, seed uint64) *Webhooks {
	return &Webhooks{
		recorder: recorder, board: board, receiver: receiver, moves: moves,
		random: rand.New(rand.NewPCG(seed, 0x3eb)), //nolint:gosec // a run that can be made again
	}
}

// Begin returns when the webhooks are told of what happens. One that is new is so from some moment
// on, of which its server says nothing: so jobs live until each has been told of one. It is called
// while nothing is broken.
func (w *Webhooks) Begin(ctx context.Context) error {
	r := &resting{recorder: w.recorder, patience: beginWithin}
	return r.until(ctx, func() (bool, error) {
		l := history.Life{Job: client.NewUUID(), Unsure: true} // whether it is told of
		l.Begin = w.recorder.Now().At
		if !w.lead(ctx, &l, exhausts) {
			return false, job.Errorf(job.Unavailable, "the job %s could not be posted and given up", l.Job)
		}
		w.lives = append(w.lives, l)
		return len(w.receiver.got(WebhookAll)) > 0 && len(w.receiver.got(WebhookFew)) > 0, nil
	})
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
		l := history.Life{Job: client.NewUUID(), Begin: w.recorder.Now().At}
		l.Unsure = !w.lead(context.WithoutCancel(ctx), &l, w.random.IntN(ways))
		w.lives = append(w.lives, l)
		_ = sleep.For(ctx, time.Duration(w.random.Int64N(int64(2*webhookPause)))) // its end is seen by the loop
	}
	<-swayed
}

// lead leads a job's life in one of the ways there are, and reports whether it surely went as it
// says. Every step names its claim or cannot be taken twice, so that a call which comes late
// changes nothing. Of the jobs that go to the trash some stay there.
func (w *Webhooks) lead(ctx context.Context, l *history.Life, way int) bool {
	posting := &client.NewJob{Uuid: l.Job, Name: "told"}
	if way == exhausts {
		posting.MaxAttempts = 1
	}
	stays := w.random.IntN(3) == 0
	if !insist(ctx, func() error { _, err := w.board.Post(ctx, posting); return err }) {
		return false
	}
	const gone, trashed = boarddv1.State_COMPLETE, boarddv1.State_TRASHED
	ending := func(end func(*client.Claim) error) func() error {
		return func() error { return withClaim(ctx, w.board, l.Job, end) }
	}
	consume := func(c *client.Claim) error { return w.board.Consume(ctx, c) }
	switch way {
	case exhausts:
		l.Tells, l.Left = []string{toldExhausted}, !stays
		return surely(ctx, w.board, l.Job, trashed, ending(func(c *client.Claim) error { return w.board.Abandon(ctx, client.AbandonOptions{}, c) })) &&
			(stays || surely(ctx, w.board, l.Job, gone, func() error { return w.board.Purge(ctx, l.Job) }))
	case isCanceled:
		l.Tells = []string{toldEnded + " CANCELED"}
		return surely(ctx, w.board, l.Job, gone, func() error { _, err := w.board.Cancel(ctx, true, l.Job); return err })
	case isConsumed:
		l.Tells = []string{toldEnded + " CONSUMED"}
		return surely(ctx, w.board, l.Job, gone, ending(consume))
	}
	trash := func() bool {
		return surely(ctx, w.board, l.Job, trashed, ending(func(c *client.Claim) error { return w.board.Trash(ctx, "by hand", c) }))
	}
	if stays {
		l.Tells = []string{toldTrashed}
		return trash()
	}
	l.Tells, l.Left = []string{toldTrashed, toldEnded + " CONSUMED"}, true
	return trash() &&
		surely(ctx, w.board, l.Job, boarddv1.State_UNCLAIMED, func() error { return w.board.Restore(ctx, l.Job) }) &&
		surely(ctx, w.board, l.Job, gone, ending(consume))
}

// Rest waits, when nothing is broken any more, until everything was told and no delivery is
// open, and writes down what came.
func (w *Webhooks) Rest(ctx context.Context, deliveries *client.Board, patience time.Duration) error {
	hooks := []*history.Webhook{
		{Name: WebhookAll, Board: w.board.Name(), Types: []string{toldEnded, toldTrashed, toldExhausted}, Jobs: w.lives},
		{Name: WebhookFew, Board: w.board.Name(), Types: []string{toldExhausted}, Jobs: w.lives},
	}
	r := &resting{recorder: w.recorder, patience: patience}
	err := r.until(ctx, func() (bool, error) {
		for _, h := range hooks {
			if h.Requests = w.receiver.got(h.Name); !w.told(h) {
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

// told reports whether a webhook has taken what it surely is to be told of each job.
func (w *Webhooks) told(h *history.Webhook) bool {
	type event struct{ job, tells string }
	taken := map[event]bool{}
	for _, q := range h.Requests {
		taken[event{q.Job, q.Tells}] = taken[event{q.Job, q.Tells}] || q.To > 0
	}
	for i := range h.Jobs {
		l := &h.Jobs[i]
		wanted := h.Wanted(l)
		if !w.moves {
			wanted = append(wanted, h.Passing(l)...)
		}
		for _, tells := range wanted {
			if !l.Unsure && !taken[event{l.Job, tells}] {
				return false
			}
		}
	}
	return true
}
