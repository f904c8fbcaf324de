package board

import (
	"context"
	"errors"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// standRetry is when a caller in line tries again after the store or a policy
// failed.
const standRetry = time.Second

// stand waits in line until a job can be claimed.
func (c *claimer) stand(ctx context.Context) (ClaimResponse, error) {
	defer c.waiters.Add(-1)
	if c.waiters.Add(1) > MaxWaiters {
		return ClaimResponse{}, job.Errorf(job.QuotaExceeded, "%d calls wait on this board already: try again later", MaxWaiters)
	}
	waiting, cancel := waitUntil(ctx, c.wait)
	defer cancel()
	c.order.awaited()
	for waiting.Err() == nil && len(c.claims) == 0 {
		if !c.rules.current() {
			c.rule(c.Board.rules.Load())
		}
		class, err := c.classNow(waiting)
		if err == nil {
			err = c.line(ctx, waiting, class)
		}
		if ctx.Err() == nil && err != nil && len(c.claims) == 0 {
			stop := idle(ctx)
			_ = sleep.For(waiting, standRetry)
			stop()
		}
	}
	return c.response(), c.over(ctx, nil)
}

// line stands in the line of the class until something was claimed, the wait is
// over, or a try failed.
func (c *claimer) line(ctx, waiting context.Context, class *index.Class) error {
	w := c.index.Waiter(class)
	defer w.Close()
	moved := c.rules.moved.C()
	stale, stop := c.fresh()
	defer func() { stop() }()
	for {
		paused, changed := c.pause.state()
		signal := w.C
		if paused {
			signal = nil // it stays for when the pause ends, or goes to the next in line
		}
		awake := idle(ctx)
		select {
		case <-waiting.Done():
			awake()
			return errWaited
		case <-stale:
			awake()
			return nil // for the same line under a new key
		case <-moved:
			awake()
			moved = c.rules.moved.C()
			stale, stop = c.fresh()
		case <-c.rules.retired:
			awake()
			return nil // likewise
		case <-changed:
			awake()
		case <-signal:
			awake()
			if ctx.Err() != nil {
				w.Decline() // or nobody would hear of the job
				return errWaited
			}
			c.order.fresh(ctx)
			c.decided = time.Now()
			entries := c.index.Take(ctx, class, c.most)
			if len(entries) == 0 {
				continue
			}
			w.Close() // the next job is for the next in line
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
