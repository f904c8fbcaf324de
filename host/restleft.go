package host

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// A board that others leave postings for in its store, such as boardd.post of PostgreSQL, rests
// where the driver tells for which boards they do (driver.Waker). Every server hears it, and the
// one opens the board whose it is. The others note it: should that one die first, whoever gets the
// board opens it. A note stands until the board is closed here, so that a board may be opened once
// in vain, and none waits in vain.

// followInboxes calls left with each board for which others left postings, until ctx ends. A stream
// that begins anew names all for which any wait. Where the driver was started anew from an older
// program, which names none, all boards that rest are opened, and none rests until one names any.
func (d *restDocs) followInboxes(ctx context.Context, left func(key string)) {
	for ctx.Err() == nil {
		for boards, err := range d.waker.WatchInboxes(ctx) {
			switch {
			case err == nil:
				d.deaf.Store(false)
			case job.KindOf(err) == job.Unsupported:
				d.deaf.Store(true)
				boards = d.resting()
			}
			for _, key := range boards {
				left(key)
			}
		}
		_ = sleep.For(ctx, time.Second) // then it is begun anew; the pause's end is the loop's
	}
}

// leftFor has a board opened for which a posting was left, unless it is open: then it hears of the
// posting itself, and does not rest before it has looked for one.
func (h *Host) leftFor(b *backend, d *restDocs, key string) {
	s := h.registry.keyed(b, key)
	if s != nil && s.board.Load() != nil {
		return
	}
	d.note(key)
	h.callLeft(s)
}

// callLeft has a board opened that rests, if it is this host's.
func (h *Host) callLeft(s *Hosted) {
	if s != nil && s.resting.Load() != nil && h.servedHere(s) {
		s.call()
	}
}

// callAllLeft does so with all boards that are noted: one may have become this host's that it knew
// to rest before.
func (h *Host) callAllLeft() {
	for _, b := range h.registry.allBackends() {
		b.line.Lock()
		d := b.resting
		b.line.Unlock()
		if d == nil {
			continue
		}
		for _, key := range d.noted() {
			h.callLeft(h.registry.keyed(b, key))
		}
	}
}

// resting returns the boards that are known to rest.
func (d *restDocs) resting() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.known))
}

// note notes that a posting was left for a board.
func (d *restDocs) note(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left[key] = true
}

// settle forgets that: whoever calls it has the board open, and closes it only where nothing waits.
func (d *restDocs) settle(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.left, key)
}

// leftWaits reports whether a posting may wait for a board.
func (d *restDocs) leftWaits(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left[key]
}

// noted returns the boards that are noted.
func (d *restDocs) noted() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.left))
}
