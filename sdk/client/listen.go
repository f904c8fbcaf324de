package client

import (
	"context"
	"time"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// listen hears at once, over one stream, when a job in hand is to be canceled or
// a claim ends that the worker did not end. What it hears is only a hint: the
// extension that it brings about decides. Without the stream the worker learns of
// it with the next extension.
func (r *run) listen(ctx context.Context) {
	w := &watch{board: r.Board, owner: r.owner, slowest: time.Minute, opened: r.held.checkAll}
	for event, err := range w.events(ctx) {
		if err != nil {
			if ctx.Err() == nil && job.KindOf(err) == job.Unauthenticated {
				r.held.refuse(err)
				return
			}
			if ctx.Err() == nil {
				r.log.Warn("this worker hears only with each extension of a lease that a job is to be canceled", "error", err)
			}
			return
		}
		r.held.hear(event)
	}
}

// hear takes note of an event about a job that may be in hand.
func (h *held) hear(event *Event) {
	if event.GetType() == boarddv1.EventType_RESYNC {
		h.checkAll()
		return
	}
	if !event.GetCancelRequested() && !endsClaim(event.GetType()) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.claims {
		if e.claim.GetUuid() != event.GetJob().GetUuid() {
			continue
		}
		if e.lease <= 0 && event.GetCancelRequested() {
			h.end(e) // there is nothing to extend
		}
		h.ask(e)
	}
}

func endsClaim(t boarddv1.EventType_Enum) bool {
	switch t {
	case boarddv1.EventType_ABANDONED, boarddv1.EventType_EXPIRED, boarddv1.EventType_CONSUMED, boarddv1.EventType_TRASHED,
		boarddv1.EventType_PURGED, boarddv1.EventType_CANCELED:
		return true
	}
	return false
}

// checkAll asks the server about every claim in hand: something may have been
// missed.
func (h *held) checkAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.claims {
		h.ask(e)
	}
}

// ask has a claim extended at once. One whose handler has returned is being ended
// by the worker itself. The caller holds h.mu.
func (h *held) ask(e *entry) {
	if e.done || e.ended || e.lease <= 0 {
		return
	}
	e.heard = time.Now()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// end tells a handler that its job is to be canceled. The caller holds h.mu.
func (h *held) end(e *entry) {
	e.ended = true
	e.cancel(ErrCancelRequested)
}

// finished notes that a claim's handler has returned.
func (h *held) finished(e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.done, e.heard = true, time.Time{}
}
