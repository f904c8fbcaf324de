// Package poll makes the streams of a driver whose store answers questions, and
// tells nothing by itself: its watchers look again whenever a bell rings. A driver
// rings after each commit of its own, and where it learns that somebody else changed
// the store, or every so often.
package poll

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/job"
)

// A Bell wakes everybody who waits for a change. Its zero value is ready.
type Bell struct {
	mu     sync.Mutex
	rung   chan struct{} // closed at the next ring; nil: nobody waits
	closed bool
}

// Ring makes every watcher look again. It must be called after the change can be read.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ring()
}

func (b *Bell) ring() {
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// Close ends every watch as Unavailable.
func (b *Bell) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.ring()
}

// next returns a channel that the next ring closes. Call it before looking, so that a
// change during the look is not missed.
func (b *Bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return over // kept nowhere: the next ring must not close it
	}
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

// over is what whoever waits for a closed bell gets.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wait returns nil when it is time to look again: after a ring, or at the given time,
// if that is not zero.
func (b *Bell) wait(ctx context.Context, rung <-chan struct{}, at time.Time) error {
	due, stop := document.Alarm(at, time.Now())
	defer stop()
	select {
	case <-rung:
	case <-due:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return job.Errorf(job.Unavailable, "the store was closed")
	}
	return nil
}

// Changes implements Watch for a board whose store keeps the last changes. since
// returns a step of those after a position. A step need not reach the last change; an
// empty one with neither Resync nor Inbox says that there is nothing more for now.
func Changes(ctx context.Context, bell *Bell, after driver.Position,
	since func(ctx context.Context, after driver.Position) (driver.Changes, error),
) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		for {
			rung := bell.next()
			step, err := since(ctx, after)
			switch {
			case err != nil:
			case len(step.List) > 0 || step.Resync || step.Inbox:
				if !yield(step, nil) {
					return
				}
				after = step.Position
			default:
				err = bell.wait(ctx, rung, time.Time{})
			}
			if err != nil {
				yield(driver.Changes{}, err)
				return
			}
		}
	}
}

// Inboxes implements driver.Waker. look returns the boards that have not been named yet; none says
// that there are no more for now.
func Inboxes(ctx context.Context, bell *Bell, look func(ctx context.Context) ([]string, error)) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for {
			rung := bell.next()
			boards, err := look(ctx)
			switch {
			case err != nil:
			case len(boards) > 0:
				if !yield(boards, nil) {
					return
				}
			default:
				err = bell.wait(ctx, rung, time.Time{})
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Documents implements Watch for a space whose store keeps no changes of it: at each
// ring it compares what is there with what it has sent. list returns every document
// that is there; it may leave out Data where fresh returns false.
func Documents(ctx context.Context, bell *Bell,
	list func(ctx context.Context, fresh func(*driver.Document) bool) ([]driver.Document, error),
) iter.Seq2[driver.DocumentChange, error] {
	return Space(ctx, bell, func(ctx context.Context, t *document.Told) error {
		now, err := list(ctx, func(d *driver.Document) bool { return !t.Knows(d) })
		if err == nil {
			t.All(now)
		}
		return err
	})
}

// dueAgain is how soon at the earliest there is a look for a document that has expired: on
// the store's clock it may be a little later than on this machine's.
const dueAgain = 50 * time.Millisecond

// Space implements Watch for a space whose store tells which documents were changed. look
// is that of document.Watch, and is called again after each ring.
func Space(ctx context.Context, bell *Bell, look func(ctx context.Context, t *document.Told) error) iter.Seq2[driver.DocumentChange, error] {
	var rung <-chan struct{}
	return document.Watch(func(t *document.Told) error {
		rung = bell.next()
		return look(ctx, t)
	}, func(until time.Time) error {
		if soonest := time.Now().Add(dueAgain); !until.IsZero() && until.Before(soonest) {
			until = soonest
		}
		return bell.wait(ctx, rung, until)
	})
}
