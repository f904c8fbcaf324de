package quota

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// How long a post on one board waits for the counts of its tenant's other boards, and
// how long a store may take for them. A store that was late is not waited for again
// before it has answered: until then what it last said counts.
const (
	countPatience = 250 * time.Millisecond
	countWithin   = 10 * time.Second
)

// counting reads the counts of one board, once at a time for all who want them. No lock
// is held while the store is asked.
type counting struct {
	mu     sync.Mutex
	counts driver.Counts
	asked  time.Time     // when the store was asked for counts
	flight *pendingCount // nil: it is not asked now
	begun  uint64        // questions that were begun
	last   uint64        // number of the last one that was answered
	late   bool          // it did not answer the last time, or not in time
}

// pendingCount is one question to the store.
type pendingCount struct {
	number uint64
	begun  time.Time
	done   chan struct{}
	err    error // once done is closed
}

// now returns what was counted last.
func (c *counting) now() driver.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// known reports whether the store has said anything yet.
func (c *counting) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last > 0
}

// read returns counts that are not older than so long, or what was counted last if the
// store does not give any. patience is how long it is waited for; 0: until ctx ends.
func (c *counting) read(ctx context.Context, notOlder, patience time.Duration, ask func() (driver.Counts, error), run func(func())) driver.Counts {
	c.mu.Lock()
	before := c.begun // what was begun by now may know nothing of what has just happened
	c.mu.Unlock()
	var over <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	for {
		c.mu.Lock()
		if c.last > before || c.last > 0 && time.Since(c.asked) < notOlder {
			defer c.mu.Unlock()
			return c.counts
		}
		f := c.begin(ask, run)
		known, wait := c.counts, !c.late || patience == 0
		c.mu.Unlock()
		if !wait {
			return known
		}
		select {
		case <-f.done:
			if f.err != nil {
				return c.now()
			}
		case <-over:
			c.mu.Lock()
			c.late = c.flight == f
			c.mu.Unlock()
			return c.now()
		case <-ctx.Done():
			return c.now()
		}
	}
}

// begin asks the store, unless it is being asked. The caller has mu.
func (c *counting) begin(ask func() (driver.Counts, error), run func(func())) *pendingCount {
	if c.flight != nil {
		return c.flight
	}
	c.begun++
	f := &pendingCount{number: c.begun, begun: time.Now(), done: make(chan struct{})}
	c.flight = f
	run(func() {
		counts, err := ask()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flight, c.late, f.err = nil, err != nil, err; err == nil {
			c.counts, c.asked, c.last = counts, f.begun, f.number
		}
		close(f.done)
	})
	return f
}

// count returns the board's counts, not older than so long.
func (m *metered) count(ctx context.Context, notOlder, patience time.Duration) driver.Counts {
	ask := func() (driver.Counts, error) {
		ctx, cancel := context.WithTimeout(m.of.spec.Standing.Running(), countWithin)
		defer cancel()
		return m.Driver.Count(ctx, m.of.spec.Tenant+"/"+m.of.spec.Name)
	}
	return m.counted.read(ctx, notOlder, patience, ask, m.of.quotas.Go)
}

// countAll adds up what boards have. All of them are asked at once.
func countAll(ctx context.Context, boards []*Board, notOlder time.Duration) driver.Counts {
	all := make([]driver.Counts, len(boards))
	var asking sync.WaitGroup
	for i, b := range boards {
		if b.driver.Load() != nil {
			asking.Go(func() { all[i], _ = b.counts(ctx, notOlder) })
		} else if r := b.spec.Standing.Rests(); r != nil {
			all[i] = *r
		}
	}
	asking.Wait()
	sum := driver.Counts{Limits: map[string]int64{}}
	for i := range all {
		add(&sum, &all[i])
	}
	return sum
}
