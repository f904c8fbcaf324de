package board

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// Count says how many jobs the board has.
func (b *Board) Count(ctx context.Context) (Counts, error) {
	opened, err := b.serving(ctx)
	if err != nil {
		return Counts{}, err
	}
	stored, err := b.stored(ctx)
	if err != nil {
		return Counts{}, err
	}
	c := b.index.Count()
	return Counts{
		Ready: c.Ready, Delayed: c.Delayed, Claimed: c.Claimed, OldestReadyAt: c.OldestReadyAt,
		Trashed: stored.Trashed, Complete: stored.Ended, Corrupt: stored.Bad, History: b.historyOf(opened, &stored),
	}, nil
}

// historyOf says how full the history is.
func (b *Board) historyOf(opened *driver.BoardStatus, stored *driver.Counts) *HistoryCounts {
	if b.spec.History <= 0 {
		return nil
	}
	h := &HistoryCounts{Jobs: stored.Finals, Bytes: stored.FinalBytes, MaxJobs: b.spec.HistoryEntries, MaxBytes: b.spec.HistoryBytes}
	if opened.MaxFinals > 0 {
		h.MaxJobs = min(h.MaxJobs, opened.MaxFinals)
	}
	// Of bytes, there is always room for a part of a job.
	h.Full = h.Jobs >= h.MaxJobs || h.Jobs > 0 && h.Bytes+h.Bytes/h.Jobs > h.MaxBytes
	if full := b.tally.full.Swap(h.Full); h.Full && !full {
		b.log.Warn("the history is full: from now on the oldest of the jobs that ended is forgotten for each new one",
			"jobs", h.Jobs, "max_jobs", h.MaxJobs, "bytes", h.Bytes, "max_bytes", h.MaxBytes)
	}
	return h
}

// tally keeps the store's last count: counting may cost a store much, so that
// it is asked at most twice a second in the long run.
type tally struct {
	mu     sync.Mutex // held while the store counts
	counts driver.Counts
	spent  float64 // how often the store was asked of late; falls by tallyRate each second
	at     time.Time

	full atomic.Bool // not guarded by mu: the history, when it was last looked at
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

// OldestOpen returns when the oldest job was made that has not ended; zero: there is none, or
// that is not known yet. The store is not asked.
func (b *Board) OldestOpen() time.Time { return b.index.OldestOpen() }

// Depth is Count as far as it is known without asking the store: Trashed and
// Complete are 0. Before the board has been read, ok is false.
func (b *Board) Depth() (c Counts, ok bool) {
	if b.readiness.opened.Load() == nil {
		return Counts{}, false
	}
	n := b.index.Count()
	return Counts{Ready: n.Ready, Delayed: n.Delayed, Claimed: n.Claimed, OldestReadyAt: n.OldestReadyAt}, true
}
