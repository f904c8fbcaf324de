package host

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
)

// Whoever reads metrics waits for stores to count for gaugesWithin in all. A count that
// takes longer goes on for countWithin at most, and is there for the next reading.
const (
	gaugesWithin = time.Second
	countWithin  = 30 * time.Second
)

// counted is what a board's store counted last, for metrics. The store is asked one call at
// a time, beside whoever reads, so that nobody hangs on a store that is silent.
type counted struct {
	mu     sync.Mutex
	counts *board.Counts // nil: it has not counted yet
	at     time.Time     // when it was asked for them
	asking chan struct{} // closed at the end of the call that goes on; nil: there is none
}

// ask has the store count, unless it is at it, and waits for that until ctx ends.
func (c *counted) ask(ctx context.Context, h *Host, b *board.Board) {
	if ctx.Err() != nil || h.running.Err() != nil {
		return
	}
	c.mu.Lock()
	asking := c.asking
	if asking == nil {
		asking = make(chan struct{})
		c.asking = asking
		h.registry.leaving.Go(func() {
			defer close(asking)
			c.count(h.running, b)
		})
	}
	c.mu.Unlock()
	select {
	case <-asking:
	case <-ctx.Done():
	}
}

// count is one call of ask.
func (c *counted) count(ctx context.Context, b *board.Board) {
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	at := time.Now()
	counts, err := b.Count(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking = nil; err == nil {
		c.counts, c.at = &counts, at
	}
}

// last returns what is known of the board's jobs: of those that are open what the board
// knows by itself now, and of the others what the store counted last, and when. nil: it
// has not counted yet.
func (c *counted) last(b *board.Board) (*board.Counts, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		return nil, time.Time{}
	}
	counts := *c.counts
	if now, ok := b.Depth(); ok {
		counts.Ready, counts.Delayed, counts.Claimed, counts.OldestReadyAt = now.Ready, now.Delayed, now.Claimed, now.OldestReadyAt
	}
	return &counts, c.at
}

// when returns when the store was asked for what it counted last.
func (c *counted) when() time.Time {
	if c == nil {
		return time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}
