package plugin

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// watchPace is the time between two messages of one watch, at least. What changes
// meanwhile travels together: on a busy board each message would otherwise wake both
// processes for one change. A change that comes after a still moment is sent at once.
const watchPace = 10 * time.Millisecond

// maxGathered is how many changes wait for the next message. With more the message goes at
// once, so that a watch is never slower than its driver.
const maxGathered = 4096

// gathered yields what a watch yields, at most once in watchPace, with the steps that came
// in between as one. A driver may make a step of each change: the pace is no bound on how
// many steps it makes.
func (s *server) gathered(ctx context.Context, watch func(context.Context) iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		steps, ended := make(chan driver.Changes), make(chan error, 1)
		defer func() {
			stop()
			for range steps { // until the driver has seen it
				continue
			}
		}()
		go func() {
			defer close(steps)
			ended <- s.pour(ctx, watch, steps)
		}()
		g := &gatherer{steps: steps}
		for next := g.wait(); next != nil; next = g.wait() {
			if !yield(*next, nil) {
				return
			}
			g.gather()
		}
		if err := <-ended; err != nil {
			yield(driver.Changes{}, err)
		}
	}
}

// pour sends the steps of a watch until it ends, and returns with which error it did. The
// driver runs here in a goroutine that is no call's, so that its panics are caught here.
func (s *server) pour(ctx context.Context, watch func(context.Context) iter.Seq2[driver.Changes, error], steps chan<- driver.Changes) (err error) {
	defer s.guard("Watch", &err)
	for c, err := range watch(ctx) {
		if err != nil {
			return err
		}
		select {
		case steps <- c:
		case <-ctx.Done():
			return nil // nobody listens any more
		}
	}
	return nil
}

// gatherer joins the steps of a watch.
type gatherer struct {
	steps <-chan driver.Changes
	next  *driver.Changes // begun, and not sent
	after *driver.Changes // came then, and cannot be joined to it
}

// wait returns what is to be sent next, and nil when the watch has ended.
func (g *gatherer) wait() (next *driver.Changes) {
	next, g.next, g.after = g.next, g.after, nil
	if next != nil {
		return next
	}
	if c, more := <-g.steps; more {
		return &c
	}
	return nil
}

// gather joins the steps that come within watchPace. It returns earlier with a step that
// cannot be joined to those before it, with enough, and when the watch has ended. A step
// that says that changes are not known any more goes alone: it tells from where the watch
// goes on.
func (g *gatherer) gather() {
	pace := time.NewTimer(watchPace)
	defer pace.Stop()
	for g.next == nil || len(g.next.List) < maxGathered && !g.next.Resync {
		select {
		case c, more := <-g.steps:
			switch {
			case !more:
				return
			case g.next == nil:
				c.List = slices.Clip(c.List) // what is appended goes to a list of its own: the driver's is not ours to change
				g.next = &c
			case c.Resync:
				g.after = &c
				return
			default:
				g.next.List = append(g.next.List, c.List...)
				g.next.Position, g.next.Inbox = c.Position, g.next.Inbox || c.Inbox
			}
		case <-pace.C:
			return
		}
	}
}
