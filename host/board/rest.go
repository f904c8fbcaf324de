package board

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// A Rest says how a board stands on which nothing is to be done until somebody calls, so that
// it need not be open.
type Rest struct {
	Due    time.Time // when it is to be opened all the same
	Counts Counts    // without a History
	Limits map[string]int64
	Cursor string // where its changes end, as in Events
}

// MaxRest is how long a board rests at most: stores forget ended jobs only while their board is
// open.
const MaxRest = 6 * time.Hour

// restSpread is the part of MaxRest by which boards rest less, each by another one, so that
// those that began to rest together are not opened together.
const restSpread = 4

// MayRest reports whether nothing is to be done on the board until somebody calls, or until a
// time that is known: no job is claimed, nobody waits for one, and nobody but boardd writes to
// the board, or whoever closes it hears of the postings that others leave in its store
// (Spec.Wakes), and none waits there now. Jobs may wait, for a caller, for their time, or for
// others that only a caller can end. A board that has lost something, is paused, or tries a policy
// in the shadow does not rest, since operators look for it.
func (b *Board) MayRest(ctx context.Context) (r Rest, ok bool) {
	opened := b.atRest()
	if opened == nil {
		return Rest{}, false
	}
	due, ok := b.scheduler.first()
	if !ok {
		return Rest{}, false
	}
	batches, ok := b.batchesDue(ctx, opened)
	if !ok {
		return Rest{}, false
	}
	r.Cursor = b.hub.now().String() // before the jobs are counted: what happens meanwhile is after it
	stored, err := b.stored(ctx)
	if err != nil || stored.Bad > 0 {
		return Rest{}, false
	}
	if opened.Capabilities.Inbox { // after this they are heard of: the driver names no board before it shows them here
		page, err := b.inboxPage(ctx, driver.ScanRequest{Set: driver.InboxPostings, Limit: 1})
		if err != nil || len(page.Records) > 0 {
			return Rest{}, false
		}
	}
	c := b.index.Count()
	if c.Claimed > 0 || c.Ready+c.Delayed != stored.Open {
		return Rest{}, false // the one knows what the other has yet to hear of
	}
	r.Counts = Counts{Ready: c.Ready, Delayed: c.Delayed, OldestReadyAt: c.OldestReadyAt, Trashed: stored.Trashed, Complete: stored.Ended}
	r.Limits = stored.Limits
	ready, _ := b.index.NextDelayed()
	now := time.Now()
	r.Due = now.Add(MaxRest - rand.N(MaxRest/restSpread))
	if kept := max(b.spec.Window, b.spec.History); r.Counts.Complete > 0 {
		r.Due = earliest(r.Due, now.Add(kept)) // by then the store may forget all of them
	}
	r.Due = earliest(r.Due, due, batches, ready)
	return r, true
}

// atRest returns how the board was opened, if nobody waits on it for anything, and nothing
// happens there as far as is known without its store; else nil.
func (b *Board) atRest() *driver.BoardStatus {
	status, opened := b.Status(), b.readiness.opened.Load()
	switch {
	case opened == nil, !status.Ready, status.Paused, status.Loss != "", b.spec.Observe, b.spec.Recorder != nil, b.rules.Load().shadow != nil:
		return nil
	case opened.Capabilities.Shared && !opened.Capabilities.Alone, opened.Capabilities.Inbox && !b.spec.Wakes: // others write to it
		return nil
	case b.waiters.Load() > 0, b.metrics.Watchers.Load() > 0, b.logs.followed(), b.waiting.busy(), b.index.Count().Claimed > 0:
		return nil
	}
	return opened
}

// earliest returns the earliest of times, of which a zero one is none.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// first returns when the next tick is due; zero: there is none. ok is false as long as that
// is not known of each schedule, and while a tick is handled.
func (s *scheduler) first() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced || s.declared.pending || s.declared.busy {
		return time.Time{}, false
	}
	for _, k := range s.all {
		if k.running || k.held || k.failed > 0 {
			return time.Time{}, false
		}
	}
	if len(s.due) > 0 {
		at = s.due[0].at
	}
	return at, true
}

// batchesDue returns when the next batch is to be forgotten; zero: there is none. ok is false
// while there is something to do for a batch, now or soon.
func (b *Board) batchesDue(ctx context.Context, opened *driver.BoardStatus) (at time.Time, ok bool) {
	at, ending, ok := b.batches.rest()
	if !ok || len(ending) > MaxBatch {
		return time.Time{}, false
	}
	ops := make([]driver.Op, len(ending))
	for i, name := range ending {
		ops[i] = driver.Op{Kind: driver.Tally, Group: name}
	}
	for i, r := range b.send(ctx, opened, ops) {
		group, err := groupOf(&r)
		if err != nil || b.batches.due(ending[i], group) {
			return time.Time{}, false
		}
	}
	return at, true
}

// rest returns when the next batch is to be forgotten, and which batches end with their last
// job, or with a number of jobs. ok is false while one is looked at or waited for.
func (k *batchKeeper) rest() (at time.Time, ending []string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ears) > 0 || len(k.hinted) > 0 || k.looking {
		return time.Time{}, nil, false
	}
	for name, b := range k.all {
		switch {
		case b.failed > 0:
			return time.Time{}, nil, false
		case !b.done.IsZero():
			at = earliest(at, b.done.Add(BatchKept))
		case b.closed || b.expected > 0:
			ending = append(ending, name)
		}
	}
	return at, ending, true
}

// busy reports whether jobs that wait for others are looked at, or are to be.
func (d *dependents) busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.looking || len(d.due) > 0
}

// followed reports whether somebody follows a job's log.
func (l *logs) followed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.feeds) > 0
}
