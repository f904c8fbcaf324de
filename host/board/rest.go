package board

import (
	"context"
	"time"
)

// A Rest says how a board stands on which nothing is to be done, so that it need not be open.
type Rest struct {
	Due               time.Time // when it is to be opened all the same
	Trashed, Complete int64
}

// MaxRest is how long a board rests at most: stores forget ended jobs, and boards their
// batches, only while the board is open.
const MaxRest = 6 * time.Hour

// MayRest reports whether nothing is to be done on the board until somebody calls, or until
// the next tick of a schedule: it has no job that is not in the trash, nobody waits for one,
// and nobody but boardd puts any onto it. A board that has lost something, or is paused, does
// not rest, since operators look for it.
func (b *Board) MayRest(ctx context.Context) (r Rest, ok bool) {
	status := b.Status()
	opened := b.readiness.opened.Load()
	if opened == nil || !status.Ready || status.Paused || status.Loss != "" || b.spec.Observe || b.spec.Recorder != nil {
		return Rest{}, false
	}
	if c := &opened.Capabilities; c.Shared && !c.Alone || c.Inbox {
		return Rest{}, false
	}
	if b.waiters.Load() > 0 || b.metrics.Watchers.Load() > 0 || b.logs.followed() || b.batches.busy() {
		return Rest{}, false
	}
	if c := b.index.Count(); c.Ready+c.Delayed+c.Claimed > 0 { // or the store would be asked for nothing
		return Rest{}, false
	}
	counts, err := b.Count(ctx)
	if err != nil || counts.Ready+counts.Delayed+counts.Claimed+counts.Corrupt > 0 {
		return Rest{}, false
	}
	tick, ok := b.scheduler.first()
	if !ok {
		return Rest{}, false
	}
	r = Rest{Due: time.Now().Add(MaxRest), Trashed: counts.Trashed, Complete: counts.Complete}
	if !tick.IsZero() && tick.Before(r.Due) {
		r.Due = tick
	}
	return r, true
}

// first returns when the next tick is due; zero: there is none. ok is false as long as that
// is not known, and while a tick is handled.
func (s *scheduler) first() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced || s.declared.pending || s.declared.busy {
		return time.Time{}, false
	}
	for _, k := range s.all {
		if k.running || k.failed > 0 {
			return time.Time{}, false
		}
	}
	if len(s.due) > 0 {
		at = s.due[0].at
	}
	return at, true
}

// busy reports whether somebody waits for a batch, or there is something to do for one now
// or soon.
func (k *batchKeeper) busy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ears) > 0 || len(k.hinted) > 0 {
		return true
	}
	for _, b := range k.all {
		if b.open && (b.closed || b.failed > 0) {
			return true
		}
	}
	return false
}

// followed reports whether somebody follows a job's log.
func (l *logs) followed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.feeds) > 0
}
