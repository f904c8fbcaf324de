package client

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// The causes with which a Worker ends a handler's context, besides the loss of
// the lease.
var (
	ErrStopping        = errors.New("the worker stops")
	ErrCancelRequested = errors.New("the job is to be canceled")
	ErrTimeout         = errors.New("timeout")
)

// held is the claims that a worker has in hand. It extends their leases and ends
// the contexts of those that it can't be sure of any longer.
type held struct {
	send  func(ctx context.Context, lease time.Duration, entries []*entry) ([]*Extension, error)
	lease time.Duration // asked for; 0: the board's
	most  time.Duration // for which the worker lets a handler run; 0: for any time
	log   *slog.Logger
	wake  chan struct{} // a claim was added

	mu      sync.Mutex
	claims  map[*entry]struct{}
	changed chan struct{} // closed when a claim leaves
}

// entry is one claim in hand. Its times are of this machine's monotonic clock.
type entry struct {
	claim  *Claim
	cancel context.CancelCauseFunc
	timer  *time.Timer // ends the handler's context; nil where there is no lease
	limit  *time.Timer // likewise, when it has run for long enough; nil where it may run for any time

	// Guarded by held.mu.
	lease time.Duration // 0: the claim does not expire
	since time.Time     // from when the lease counts
	fate  fate
	stop  bool      // the worker stops
	late  bool      // the handler has run for as long as it may, and knows
	ended bool      // the job is to be canceled, and the handler knows
	heard time.Time // something that may have ended the claim; zero: the server was asked since
	done  bool      // the handler has returned
	begun bool      // it has started
	said  bool      // and the server knows
}

// fate is what is known of a claim.
type fate uint8

const (
	inHand  fate = iota
	doubted      // the lease may have run out: nothing was heard in time
	gone         // the server said so
)

func newHeld(lease, most time.Duration, log *slog.Logger) *held {
	return &held{
		lease: lease, most: most, log: log,
		wake: make(chan struct{}, 1), claims: make(map[*entry]struct{}), changed: make(chan struct{}),
	}
}

// trust is the part of a lease during which its holder may act: the rest is for
// what a clock gains, and for the handler to stop.
func trust(lease time.Duration) time.Duration { return lease - lease/10 }

// add takes a claim in hand that was asked for at the given time, and returns
// the context of its handler.
func (h *held) add(ctx context.Context, c *Claim, sent time.Time) (context.Context, *entry) {
	ctx, cancel := context.WithCancelCause(ctx)
	e := &entry{claim: c, cancel: cancel, lease: c.GetLease().AsDuration(), since: sent}
	h.mu.Lock()
	if e.lease > 0 {
		left := time.Until(e.since.Add(trust(e.lease)))
		if left <= 0 {
			h.lose(e, doubted, "the claim was granted too late to be used")
		} else {
			e.timer = time.AfterFunc(left, func() { h.expire(e) })
		}
	}
	h.claims[e] = struct{}{}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return ctx, e
}

// remove lets go of a claim that was ended.
func (h *held) remove(e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.claims, e)
	for _, timer := range []*time.Timer{e.timer, e.limit} {
		if timer != nil {
			timer.Stop()
		}
	}
	e.cancel(nil)
	close(h.changed)
	h.changed = make(chan struct{})
}

// begin notes that the handler of a claim starts. If the claim was given ahead, that is
// soon told to the server: until it knows, the attempt does not count.
func (h *held) begin(e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.begun = true
	if left, ok := h.mayRun(e); ok {
		e.limit = time.AfterFunc(left, func() { h.timeout(e) })
	}
	if e.claim.GetAhead() {
		time.AfterFunc(tellBegun, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ask(e)
		})
	}
}

// mayRun returns for how much longer a handler may run, or false: for any time. The job's
// timeout counts from the claim; at its end the server takes the claim away, so that the
// handler has to have stopped by then.
func (h *held) mayRun(e *entry) (left time.Duration, ok bool) {
	left, ok = h.most, h.most > 0
	if whole := e.claim.GetJob().GetTimeout().AsDuration(); whole > 0 {
		until := time.Until(e.since.Add(whole - min(whole/8, timeToStop)))
		if !ok || until < left {
			left, ok = until, true
		}
	}
	return left, ok
}

// timeToStop is how long before the end of a job's timeout its handler is told to stop, or
// an eighth of the timeout, if that is less: before a lease that is cut to the timeout counts
// as lost, see trust.
const timeToStop = 15 * time.Second

// timeout tells a handler that it has run for as long as it may.
func (h *held) timeout(e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.fate == inHand {
		e.late = true
		e.cancel(ErrTimeout)
	}
}

// isLate reports whether the claim's handler was told that its time is over.
func (h *held) isLate(e *entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return e.late
}

// tellBegun is after how long the server is told that a handler has started. Most have
// ended by then, which tells it as well.
const tellBegun = time.Second

// untold reports whether the server does not know that a claim has begun.
func (h *held) untold(e *entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return e.claim.GetAhead() && e.begun && !e.said
}

// toldBegun notes that the server knows.
func (h *held) toldBegun(e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.said = true
}

// notice takes note of what the server says of a claim in hand.
func (h *held) notice(n *WorkNotice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.claims {
		known := e.claim.GetToken() == n.GetToken()
		switch {
		case e.done || e.claim.GetUuid() != n.GetUuid() || !known && n.GetToken() != "":
		case known && n.GetWhat() == boarddv1.What_CANCEL:
			h.end(e)
		case known && n.GetWhat() == boarddv1.What_LOST:
			h.lose(e, gone, "the claim ended: "+n.GetReason())
		default:
			h.ask(e) // a hint: the extension decides
		}
	}
}

// count returns how many claims are in hand, and a channel that is closed when
// one of them leaves.
func (h *held) count() (int, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.claims), h.changed
}

// stopAll tells every handler that the worker stops.
func (h *held) stopAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.claims {
		e.stop = true
		e.cancel(ErrStopping)
	}
}

// expire is called when a lease could not be extended in time.
func (h *held) expire(e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.lease <= 0 {
		return // it was extended for good
	}
	if left := time.Until(e.since.Add(trust(e.lease))); left > 0 {
		e.timer.Reset(left) // extended at the last moment
		return
	}
	h.lose(e, doubted, "the lease could not be extended in time")
}

// lose ends a claim that is not ours any longer, or may not be. The caller holds h.mu.
func (h *held) lose(e *entry, f fate, why string) {
	if e.fate != inHand {
		return
	}
	e.fate = f
	id, _ := job.ParseID(e.claim.GetUuid())
	e.cancel(&job.Error{Op: "extend", Job: id, Kind: job.LeaseLost, Message: why})
}

func (h *held) fateOf(e *entry) fate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return e.fate
}

// isStopping reports whether the claim's handler was told that the worker stops.
func (h *held) isStopping(e *entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return e.stop
}

// isCanceled reports whether the claim's handler was told that the job is to be
// canceled.
func (h *held) isCanceled(e *entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return e.ended
}

// left returns how much of the lease is left, or false for a claim without one.
func (h *held) left(e *entry) (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(e.since.Add(e.lease)), e.lease > 0
}

// keep extends leases until ctx ends.
func (h *held) keep(ctx context.Context) {
	failed, again := 0, time.Time{}
	for ctx.Err() == nil {
		next, waiting := h.next()
		if !h.wait(ctx, max(next, time.Until(again)), waiting) {
			continue
		}
		if h.extend(ctx) {
			failed, again = 0, time.Time{}
			continue
		}
		again = time.Now().Add(backoff(failed, 100*time.Millisecond, time.Second))
		failed++
	}
}

// wait reports whether it is time to extend: after next, if waiting says that there is a
// lease to extend. If one is due already it returns at once: endless wake-ups would
// otherwise put it off for good.
func (h *held) wait(ctx context.Context, next time.Duration, waiting bool) bool {
	if waiting && next <= 0 {
		return true
	}
	var due <-chan time.Time
	if waiting {
		timer := time.NewTimer(next)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return true
	case <-h.wake:
	case <-ctx.Done():
	}
	return false
}

// next returns the time until the next lease has used a third of itself.
func (h *held) next() (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var first time.Time
	for e := range h.claims {
		if e.lease <= 0 || e.fate != inHand {
			continue
		}
		if !e.heard.IsZero() {
			return 0, true
		}
		if due := e.since.Add(e.lease / 3); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return max(0, time.Until(first)), !first.IsZero()
}

// extend extends every lease that is due, and those that soon will be, in as few
// calls as there may be. It reports false when a call failed.
func (h *held) extend(ctx context.Context) bool {
	entries, within := h.due()
	ok := true
	for batch := range slices.Chunk(entries, batchSize) {
		// A call that hangs must leave time for another one.
		limited, cancel := context.WithTimeout(ctx, within)
		sent := time.Now()
		extensions, err := h.send(limited, h.lease, batch)
		cancel()
		if extensions == nil {
			if ctx.Err() == nil && forGood(err) {
				h.refuse(err)
				return true
			}
			if ctx.Err() == nil && !job.KindOf(err).Retryable() { // otherwise the server was away, which is told once
				h.log.Warn("extending leases failed", "claims", len(batch), "error", err)
			}
			ok = false
			continue
		}
		for i, err := range Each(err, len(batch)) {
			ok = h.extended(batch[i], sent, extensions[i], err) && ok
		}
	}
	return ok
}

// forGood reports whether the error of a whole call says that the worker may not
// extend its claims any longer: its token was revoked, its role taken away, or its
// board deleted.
func forGood(err error) bool {
	switch job.KindOf(err) {
	case job.Unauthenticated, job.PermissionDenied, job.NotFound:
		return true
	}
	return false
}

// refuse ends the contexts of all handlers: the server no longer accepts anything from
// the worker, so its claims are useless although their leases last.
func (h *held) refuse(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.claims {
		h.lose(e, gone, "the server refuses this worker: "+err.Error())
	}
}

// due returns the claims to extend and how long that may take.
func (h *held) due() (entries []*entry, within time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	within = time.Minute
	for e := range h.claims {
		if e.lease > 0 && e.fate == inHand && (!e.heard.IsZero() || time.Since(e.since) >= e.lease/6) {
			entries = append(entries, e)
			within = min(within, e.lease/4)
		}
	}
	return entries, within
}

// extended takes note of what extending one claim gave. It reports false where
// another try is due.
func (h *held) extended(e *entry, sent time.Time, x *Extension, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch job.KindOf(err) {
	case job.NoKind:
		if !e.heard.After(sent) {
			e.heard = time.Time{}
		}
		e.since, e.lease = sent, x.GetLease().AsDuration()
		if e.timer != nil && e.lease > 0 && e.fate == inHand {
			e.timer.Reset(max(0, time.Until(sent.Add(trust(e.lease)))))
		}
		if x.GetCancelRequested() {
			h.end(e)
		}
	case job.LeaseLost, job.NotFound, job.NotOwner, job.NotClaimed:
		h.lose(e, gone, "the claim ended: "+err.Error())
	default:
		// The lease stands as it was: there is time for another try.
		if !job.KindOf(err).Retryable() {
			h.log.Warn("extending a lease failed", "job", e.claim.GetUuid(), "error", err)
		}
		return false
	}
	return true
}
