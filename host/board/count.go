package board

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// Count says how many jobs the board has.
func (b *Board) Count(ctx context.Context) (Counts, error) {
	if _, err := b.serving(ctx); err != nil {
		return Counts{}, err
	}
	stored, err := b.stored(ctx)
	if err != nil {
		return Counts{}, err
	}
	c := b.index.Count()
	return Counts{
		Ready: c.Ready, Delayed: c.Delayed, Claimed: c.Claimed, OldestReadyAt: c.OldestReadyAt,
		Trashed: stored.Trashed, Complete: stored.Ended,
	}, nil
}

// tally keeps the store's last count: counting may cost a store much, so that
// it is asked at most twice a second in the long run.
type tally struct {
	mu     sync.Mutex
	counts driver.Counts
	spent  float64 // askings that were not yet made up for
	at     time.Time
}

const (
	tallyBurst = 20
	tallyRate  = 2 // a second
)

// stored asks the store for its counts, or gives the last answer again.
func (b *Board) stored(ctx context.Context) (driver.Counts, error) {
	t := &b.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.spent = max(0, t.spent-now.Sub(t.at).Seconds()*tallyRate)
	if t.at.IsZero() {
		t.spent = 0
	}
	if t.spent >= tallyBurst-1 {
		t.at = now
		return t.counts, nil
	}
	counts, err := b.driver.Count(ctx, b.spec.Key)
	if err != nil {
		return driver.Counts{}, err
	}
	t.counts, t.at, t.spent = counts, now, t.spent+1
	return counts, nil
}
