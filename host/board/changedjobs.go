package board

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// ErrForgotten is that a store no longer knows all that has changed since a copy was begun: it
// has to be begun anew.
var ErrForgotten = errors.New("the board's store no longer knows all changes since the copy was begun")

// changedJobs are the jobs of a board that a Copy has to bring (once more), as the changes of
// the first store tell, and those that somebody holds there.
type changedJobs struct {
	mu        sync.Mutex
	jobs      map[job.ID]job.Outcome // and how each has ended meanwhile, if it did
	held      map[job.ID]struct{}    // at least these; see heldKnown
	heldKnown bool                   // held has all
	position  driver.Position        // up to which changes were told
	brought   driver.Position        // up to which they were brought
	forgotten bool
	told      chan struct{} // closed when there is more to say
}

// begin begins after a position, up to which all changes were brought.
func (c *changedJobs) begin(after driver.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.init()
	c.position, c.brought, c.told = after, after, make(chan struct{})
}

// init makes the maps. The caller holds c.mu.
func (c *changedJobs) init() {
	if c.jobs == nil {
		c.jobs, c.held = map[job.ID]job.Outcome{}, map[job.ID]struct{}{}
	}
}

func (c *changedJobs) reached() driver.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.position
}

// add takes a step of a watch in.
func (c *changedJobs) add(changes *driver.Changes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range changes.List {
		one := &changes.List[i]
		how, _ := c.jobs[one.Job]
		delete(c.held, one.Job)
		if r := one.Record; r == nil || r.State == job.Claimed {
			c.held[one.Job] = struct{}{}
		} else if r.State == job.Complete && r.Outcome != job.Purged {
			how = r.Outcome
		}
		c.jobs[one.Job] = how
	}
	c.forgotten = c.forgotten || changes.Resync
	c.position = max(c.position, changes.Position)
	close(c.told)
	c.told = make(chan struct{})
}

// holds notes that somebody holds a job.
func (c *changedJobs) holds(id job.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[id] = struct{}{}
}

// knowsHeld notes that all jobs are about to be looked at.
func (c *changedJobs) knowsHeld() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.init()
	c.heldKnown = true
}

// again notes that a job has to be brought in the next round, whatever is told of it.
func (c *changedJobs) again(id job.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.jobs[id]; !there {
		c.jobs[id] = job.NoOutcome
	}
}

// take returns what is to be brought, and up to which position that is.
func (c *changedJobs) take() (jobs map[job.ID]job.Outcome, upTo driver.Position, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten {
		return nil, 0, ErrForgotten
	}
	jobs, c.jobs = c.jobs, map[job.ID]job.Outcome{}
	return jobs, c.position, nil
}

// Follow hears of what changes in the first store after a position, until stop is called or ctx
// ends. All that changed before has been brought, or is to be by Everything.
func (c *Copy) Follow(ctx context.Context, after driver.Position) (stop func()) {
	c.changed.begin(after)
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { c.follow(ctx) })
	return func() {
		cancel()
		following.Wait()
	}
}

func (c *Copy) follow(ctx context.Context) {
	for ctx.Err() == nil {
		for changes, err := range c.From.Watch(ctx, c.Key, c.changed.reached()) {
			if err != nil {
				break // it goes on from where it was
			}
			c.changed.add(&changes)
			if changes.Resync {
				return
			}
		}
		_ = sleep.For(ctx, followPause)
	}
}

// followPause is how long a copy waits before it follows a store anew that was away.
const followPause = 50 * time.Millisecond

// Changed returns how many jobs the next round brings.
func (c *Copy) Changed() int {
	c.changed.mu.Lock()
	defer c.changed.mu.Unlock()
	return len(c.changed.jobs)
}

// Brought returns the position in the first store up to which all changes were brought, but
// for claims.
func (c *Copy) Brought() driver.Position {
	c.changed.mu.Lock()
	defer c.changed.mu.Unlock()
	return c.changed.brought
}

// Heard waits until all is told that has changed up to a position.
func (c *Copy) Heard(ctx context.Context, position driver.Position) error {
	for {
		c.changed.mu.Lock()
		there, forgotten, told := c.changed.position >= position, c.changed.forgotten, c.changed.told
		c.changed.mu.Unlock()
		switch {
		case forgotten:
			return ErrForgotten
		case there:
			return nil
		}
		select {
		case <-told:
		case <-ctx.Done():
			return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
		}
	}
}
