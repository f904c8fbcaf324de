package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// When a server is not ready.
const (
	// MaxStart is how long a server that starts waits for its boards before it says
	// that it is ready all the same.
	MaxStart = 2 * time.Minute
	// OpeningStart is how long it waits for boards of a store that opens one after the other: who
	// calls one of them has it opened before the rest.
	OpeningStart = 10 * time.Second
	// FailedAfter is how long a backend may fail before its server is not ready.
	FailedAfter = 10 * time.Second
)

// How often the stores are asked how they are, and how long one may take. A server
// that starts looks more often whether its boards are open.
const (
	healthEvery  = time.Second
	healthWithin = 2 * time.Second
	startEvery   = 20 * time.Millisecond
)

// Readiness says whether a server is to be sent callers.
type Readiness struct {
	Err   error    // why not, for the log; nil: it is
	Lines []string // what there is to say, ready or not: fit for strangers
}

// readiness is what a host knows of its start.
type readiness struct {
	began   time.Time
	started chan struct{} // closed when the start is over
	once    sync.Once

	mu    sync.Mutex // guards what follows
	left  []*Hosted  // boards that were not open when they were last looked at
	all   int        // of how many
	again time.Time  // when they are to be looked at again
	said  string     // what came of it; empty: none is waited for any more
	done  bool       // none is to be looked at any more
}

func newReadiness() readiness { return readiness{began: time.Now(), started: make(chan struct{})} }

// over reports whether the start is over.
func (r *readiness) over() bool {
	select {
	case <-r.started:
		return true
	default:
		return false
	}
}

// Readiness says whether the server is to be sent callers: at its start when every
// board is open that there was when it began, and later as long as no backend that
// is required has failed for some time. What is wrong with a board alone, or with the
// catalog, or that a store is full, is no reason to send callers elsewhere.
func (h *Host) Readiness() Readiness {
	var r Readiness
	var failures []error
	no := func(line string, err error) {
		r.Lines = append(r.Lines, line)
		failures = append(failures, err)
	}
	if h.draining.Load() {
		no("the server is shutting down", job.Errorf(job.Unavailable, "the server is shutting down"))
	}
	if m := h.Member(); m != nil && m.Drained() {
		no("the server is drained", job.Errorf(job.Unavailable, "an operator has the server drained"))
	}
	if waiting := h.starting(); waiting != "" {
		no(waiting, job.Errorf(job.Unavailable, "%s", waiting))
		failures = append(failures, h.stuck()...)
	}
	for _, b := range h.registry.allBackends() {
		since, err := b.ailment.look()
		switch {
		case err == nil:
		case !h.required(b):
			r.Lines = append(r.Lines, "the backend "+b.config.Name+" does not answer: its boards are not served")
		case time.Since(since) < FailedAfter:
			r.Lines = append(r.Lines, "the backend "+b.config.Name+" does not answer now")
		default:
			no("the backend "+b.config.Name+" does not answer", err)
		}
	}
	if h.Full() { // it goes on being ready: jobs are to be claimed and ended here
		r.Lines = append(r.Lines, "a store is full: no job can be posted there")
	}
	if h.lowDisk.Load() {
		r.Lines = append(r.Lines, "a disk has little room left")
	}
	if h.Doubt() != nil { // likewise: it serves what it remembers
		r.Lines = append(r.Lines, "the catalog is in doubt: nothing in it can be changed")
	}
	r.Err = errors.Join(failures...)
	return r
}

// Started waits until the start is over, or ctx ends, and returns why the server is
// not ready; nil: it is.
func (h *Host) Started(ctx context.Context) error {
	select {
	case <-h.ready.started:
	case <-ctx.Done():
	}
	return h.Readiness().Err
}

// required reports whether a server without the backend is of no use. One that is
// not in the configuration any more is not waited for.
func (h *Host) required(b *backend) bool {
	c, ok := h.Directory().Backend(b.config.Name)
	return ok && !c.Optional
}

// stuck returns why backends do not start.
func (h *Host) stuck() (failures []error) {
	for _, b := range h.registry.allBackends() {
		if p := b.problem.Load(); p != nil && b.running.Load() == nil {
			failures = append(failures, job.Errorf(job.Unavailable, "backend %s: %s", b.config.Name, *p))
		}
	}
	return failures
}

// starting says what a server that starts still waits for; "" when its start is over.
func (h *Host) starting() string {
	if h.ready.over() {
		return ""
	}
	waiting := h.unopened()
	if waiting == "" || time.Since(h.ready.began) >= MaxStart {
		h.ready.once.Do(func() {
			h.logger.Info("the start is over", "took", time.Since(h.ready.began).Round(time.Millisecond), "not_yet", waiting, "boards_not_open", h.ready.forget())
			close(h.ready.started)
		})
		return ""
	}
	return waiting
}

// unopened says which boards a server that starts has not opened yet; "" for none.
func (h *Host) unopened() string {
	if h.unreadCatalog() {
		return "the server starts: its catalog has not been read yet"
	}
	if h.fleet != nil && !h.fleet.reviewed.Load() {
		return "the server starts: it does not know the other servers yet"
	}
	h.ready.mu.Lock()
	defer h.ready.mu.Unlock()
	if began := time.Now(); !h.ready.done && !began.Before(h.ready.again) {
		h.ready.said = h.ready.look(h)
		h.ready.again = time.Now().Add(min(lookShare*time.Since(began), lookPause))
	}
	return h.ready.said
}

// Between two looks at the boards passes lookShare times what the first of them took, so that they
// take a small share of the time: with a hundred thousand boards a look takes as long as to open
// some. One that had to wait for its turn has the next wait no longer than lookPause.
const (
	lookShare = 20
	lookPause = 500 * time.Millisecond
)

// forget ends the looks, and returns how many boards were not open at the last one.
func (r *readiness) forget() (left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left, r.left, r.done = len(r.left), nil, true
	return left
}

// look says for which boards the start waits. It goes through those that were not open when it
// last did, and once these are, through all, since there may be others. It is called with mu held.
func (r *readiness) look(h *Host) string {
	waits := func(s *Hosted) bool { s = s.latest(); return !s.decided() && h.required(s.backend) }
	r.left = slices.DeleteFunc(r.left, func(s *Hosted) bool { return !waits(s) })
	if len(r.left) == 0 {
		r.left, r.all = nil, 0
		for _, s := range h.registry.allBoards() {
			if h.required(s.latest().backend) {
				r.all++
			}
			if waits(s) {
				r.left = append(r.left, s)
			}
		}
	}
	if len(r.left) == 0 || time.Since(r.began) >= OpeningStart && !slices.ContainsFunc(r.left, func(s *Hosted) bool { return !s.latest().comes() }) {
		return ""
	}
	return fmt.Sprintf("the server starts: %d of %d boards are open", r.all-len(r.left), r.all)
}

// unreadCatalog reports whether the catalog is to be waited for.
func (h *Host) unreadCatalog() bool { return h.catalog.unread() && h.required(h.catalog.backend) }

// decided reports whether the board is open, need not be, or cannot be opened for a reason that
// lies in the board and not in whether its store answers.
func (s *Hosted) decided() bool {
	if s.over() || s.refused.Load() || !s.asked() || s.resting.Load() != nil {
		return true
	}
	b := s.board.Load()
	return b != nil && (b.Status().Ready || b.Refused())
}

// comes reports whether the board's store opens one board after the other now, so that it is the
// board's turn soon, or at once if somebody calls it.
func (s *Hosted) comes() bool {
	return time.Since(s.host.ready.began)-time.Duration(s.backend.opened.Load()) < OpeningStart/2
}

// watchHealth asks every store how it is, again and again.
func (h *Host) watchHealth(ctx context.Context) {
	for h.starting() != "" && sleep.For(ctx, startEvery) == nil { // failures during the start are its boards'
	}
	for ctx.Err() == nil {
		h.watchDisks()
		h.askHealth(ctx)
		_ = sleep.For(ctx, healthEvery) // its end is the loop's
	}
}

// askHealth asks every store at once and waits for the answers, for a while.
func (h *Host) askHealth(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	var asking sync.WaitGroup
	for _, b := range h.registry.allBackends() {
		select {
		case <-b.tried:
			asking.Go(func() { _ = b.health(ctx) }) // it keeps the answer
		default: // it is being started
		}
	}
	asking.Wait()
}

// ailment is since when a backend has failed.
type ailment struct {
	mu    sync.Mutex
	since time.Time
	err   error
}

// answered takes an answer of the store.
func (a *ailment) answered(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil || isFull(err):
		a.since, a.err = time.Time{}, nil
	default:
		if a.err == nil {
			a.since = time.Now()
		}
		a.err = err
	}
}

// look returns what the store last failed with, and since when it has; nil: it
// answers.
func (a *ailment) look() (since time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since, a.err
}

// isFull reports whether a store answers and is full.
func isFull(err error) bool { return job.KindOf(err) == job.QuotaExceeded }

// away reports whether an error says that a store could not be reached, rather than
// what it found.
func away(err error) bool {
	return slices.Contains([]job.Kind{job.Unavailable, job.Interrupted, job.OutcomeUnknown}, job.KindOf(err))
}
