package board

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// standRetry is how long a waiting call rests before it tries again after the store
// or a policy failed.
const standRetry = time.Second

// stand waits until a job was claimed, the wait is over or ctx ends.
func (c *claimer) stand(ctx context.Context) (ClaimResponse, error) {
	defer c.board.waiters.Add(-1)
	if c.board.waiters.Add(1) > MaxWaiters {
		return ClaimResponse{}, job.Errorf(job.QuotaExceeded, "%d calls wait on this board already: try again later", MaxWaiters)
	}
	waiting, cancel := waitUntil(ctx, c.wait)
	defer cancel()
	if c.news {
		defer c.board.hands.await(c.owner, cancel)()
	}
	if c.most = c.begins; c.most == 0 {
		defer idle(ctx)()
		<-waiting.Done() // for news alone
		return c.response(), c.over(ctx, nil)
	}
	c.board.order.awaited()
	c.recall(waiting)
	for waiting.Err() == nil && len(c.claims) == 0 {
		if !c.rules.current() {
			c.selector = c.by(c.board.rules.Load())
		}
		class, err := c.classNow(waiting)
		if err == nil {
			err = c.waitInLine(ctx, waiting, class)
		}
		if ctx.Err() == nil && err != nil && len(c.claims) == 0 {
			stop := idle(ctx)
			_ = sleep.For(waiting, standRetry)
			stop()
		}
	}
	if c.doubt != nil && len(c.claims) == 0 && ctx.Err() == nil {
		return c.settle(ctx)
	}
	return c.response(), c.over(ctx, nil)
}

// settle ends a wait in which the store did not say what came of a try: it is asked once more
// where it remembers that, and else nobody can say that there was no job.
func (c *claimer) settle(ctx context.Context) (ClaimResponse, error) {
	if c.remember && c.send(ctx, nil, 0) == nil {
		return c.response(), nil
	}
	return ClaimResponse{}, c.doubt
}

// waitInLine waits among the index's waiters of the class until something was claimed, the
// wait is over, a try failed, or the class or the rules have been replaced.
func (c *claimer) waitInLine(ctx, waiting context.Context, class *index.Class) error {
	w := c.board.index.Waiter(class)
	defer w.Close()
	moved := c.rules.moved.C()
	stale, stop := c.fresh()
	defer func() { stop() }()
	for {
		paused, changed := c.board.pause.state()
		signal := w.C
		if paused {
			signal = nil // it stays for when the pause ends, or goes to the next waiter
		}
		awake := idle(ctx)
		select {
		case <-waiting.Done():
			awake()
			return errWaited
		case <-stale:
			awake()
			return nil // to wait again under the class's new key
		case <-moved:
			awake()
			moved = c.rules.moved.C()
			stale, stop = c.fresh()
		case <-c.rules.retired:
			awake()
			return nil // to wait again under the new rules
		case <-changed:
			awake()
		case <-signal:
			awake()
			if ctx.Err() != nil {
				w.Decline() // or no other waiter would hear of the job
				return errWaited
			}
			c.board.order.fresh(ctx)
			c.decided = time.Now()
			c.most = min(c.begins, c.board.index.Share())
			entries := c.board.index.Take(ctx, class, c.most)
			switch {
			case len(entries) == 0 && ctx.Err() != nil: // they may be there, and nobody looked
				w.Decline()
				return errWaited
			case len(entries) == 0:
				continue
			}
			w.Close() // the next job is for the next waiter
			if err := c.send(ctx, entries, len(entries)); err != nil {
				return err
			}
			if len(c.claims) > 0 && len(c.claims) < c.most && !c.ended {
				if err := c.grab(ctx, class); err != nil && !errors.Is(err, errStore) {
					return err
				}
			}
			return nil
		}
	}
}

// Idle is how long a call waited for something to happen, without the time of its own
// work.
type Idle struct{ nanos atomic.Int64 }

// Time returns how long the call has waited so far.
func (i *Idle) Time() time.Duration { return time.Duration(i.nanos.Load()) }

type idleKey struct{}

// WithIdle returns a context whose calls count into an Idle.
func WithIdle(ctx context.Context) (context.Context, *Idle) {
	i := new(Idle)
	return context.WithValue(ctx, idleKey{}, i), i
}

// idle counts from now on until stop is called.
func idle(ctx context.Context) (stop func()) {
	i, ok := ctx.Value(idleKey{}).(*Idle)
	if !ok {
		return func() {}
	}
	begun := time.Now()
	return func() { i.nanos.Add(int64(time.Since(begun))) }
}
