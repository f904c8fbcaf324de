package api

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// Bounds on the calls that go on at once, over all tenants. Calls beyond them are
// refused before they cost more than their headers.
const (
	MaxCalls       = 256    // calls that the server works on
	MaxTenantCalls = 192    // of these, one tenant's
	MaxQueued      = 1024   // calls that wait for one of these to end
	MaxLongCalls   = 20_000 // calls that only wait, for jobs, events or a slow store

	queuedFor = 5 * time.Second        // then a call that waits is refused
	longAfter = 100 * time.Millisecond // then a call counts as one that only waits, where others want its seat
	soonAfter = 20 * time.Millisecond  // likewise a call that asks to wait, whether others do or not
)

// admission lets calls in, a bounded number at a time. A free seat goes to the waiting
// tenant that has the fewest seats, so that a tenant with many calls does not keep
// others waiting. The zero value has every seat free.
type admission struct {
	mu      sync.Mutex
	taken   int
	long    int
	queued  int
	tenants map[string]*party // those with a call here

	oldest, newest *seat       // those that are taken, by when they were
	sweeping       *time.Timer // nil: nobody waits

	full, late int64 // calls that were refused: the queue was full, or they waited too long
}

// party is the calls of one tenant. It is guarded by admission.mu.
type party struct {
	tenant      string
	taken, long int
	queue       []*seat // oldest first
}

// seat is a call's. What changes of it, but for work, is guarded by admission.mu.
type seat struct {
	seats *admission
	party *party
	given chan error // in a queue: what comes of it
	taken bool       // otherwise it only waits, or has none yet
	since time.Time

	work atomic.Pointer[portion] // of a call with much of it

	before, after *seat // among those that are taken
}

// admit waits for a seat. leave must be called where there is no error.
func (s *admission) admit(ctx context.Context, tenant string) (*seat, error) {
	s.mu.Lock()
	p := s.tenants[tenant]
	if p == nil {
		if s.tenants == nil {
			s.tenants = map[string]*party{}
		}
		p = &party{tenant: tenant}
		s.tenants[tenant] = p
	}
	t := &seat{seats: s, party: p}
	if s.taken < MaxCalls && p.taken < MaxTenantCalls { // then nobody waits who could have it
		s.sit(t)
		s.mu.Unlock()
		return t, nil
	}
	err := s.queue(t)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return t, t.wait(ctx)
}

// wait waits in the queue.
func (t *seat) wait(ctx context.Context) error {
	timer := time.NewTimer(queuedFor)
	defer timer.Stop()
	var late bool
	select {
	case err := <-t.given:
		return err
	case <-ctx.Done():
	case <-timer.C:
		late = true
	}
	s, p := t.seats, t.party
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case err := <-t.given: // just now
		if err == nil && ctx.Err() != nil {
			t.end() // it may only wait by now
			return context.Cause(ctx)
		}
		return err
	default:
	}
	p.queue = slices.DeleteFunc(p.queue, func(other *seat) bool { return other == t })
	s.queued--
	s.forget(p)
	if !late {
		return context.Cause(ctx)
	}
	s.late++
	return errBusy
}

var errBusy = error(job.Errorf(job.Unavailable, "the server has more calls than it can answer in time; nothing was changed: ask again"))

// queue puts a call into its tenant's queue. Where all are full, the last one of
// the longest is refused. The caller holds s.mu.
func (s *admission) queue(t *seat) error {
	if s.queued >= MaxQueued {
		longest := t.party
		for _, p := range s.tenants {
			if len(p.queue) > len(longest.queue) {
				longest = p
			}
		}
		s.full++
		if len(longest.queue) <= len(t.party.queue)+1 {
			s.forget(t.party)
			return errBusy
		}
		last := len(longest.queue) - 1
		longest.queue[last].given <- errBusy
		longest.queue = longest.queue[:last]
		s.queued--
	}
	t.given = make(chan error, 1)
	t.party.queue = append(t.party.queue, t)
	s.queued++
	s.watch()
	return nil
}

// sit gives a call a seat that is free. The caller holds s.mu.
func (s *admission) sit(t *seat) {
	t.taken, t.since = true, time.Now()
	s.taken++
	t.party.taken++
	if t.before = s.newest; s.newest != nil {
		s.newest.after = t
	} else {
		s.oldest = t
	}
	s.newest = t
}

// stand frees a call's seat. The caller holds s.mu.
func (s *admission) stand(t *seat) {
	t.taken = false
	s.taken--
	t.party.taken--
	if t.before != nil {
		t.before.after = t.after
	} else {
		s.oldest = t.after
	}
	if t.after != nil {
		t.after.before = t.before
	} else {
		s.newest = t.before
	}
	t.before, t.after = nil, nil
}

// advance gives the seats that are free to those who wait: to the tenants with the
// fewest first. The caller holds s.mu.
func (s *admission) advance() {
	for s.taken < MaxCalls && s.queued > 0 {
		var next *party
		for _, p := range s.tenants {
			if len(p.queue) > 0 && p.taken < MaxTenantCalls && (next == nil || p.taken < next.taken) {
				next = p
			}
		}
		if next == nil {
			return
		}
		t := next.queue[0]
		next.queue = next.queue[1:]
		s.queued--
		s.sit(t)
		t.given <- nil
	}
}

// waits makes a call one that only waits, if there is room for it. The caller holds
// s.mu.
func (s *admission) waits(t *seat) bool {
	if !t.taken || s.long >= MaxLongCalls || t.party.long >= MaxLongCalls/2 {
		return false
	}
	s.stand(t)
	s.long++
	t.party.long++
	return true
}

// waiting frees the seat of a call that waits from now on. Where as many wait as may,
// it must not wait, and keeps its seat.
func (t *seat) waiting() error {
	t.idle()
	t.seats.mu.Lock()
	defer t.seats.mu.Unlock()
	if !t.taken {
		return nil // it has been found to wait already
	}
	if !t.seats.waits(t) {
		return errCrowded
	}
	t.seats.advance()
	return nil
}

// errCrowded ends calls that would wait where others do already. They would keep the
// seats of those that don't wait.
var errCrowded = error(job.Errorf(job.QuotaExceeded,
	"%d calls of this tenant or %d of all wait already, for jobs, events or a slow store: ask again later, or without waiting", MaxLongCalls/2, MaxLongCalls))

// idle gives back the call's part of the work.
func (t *seat) idle() {
	if p := t.work.Swap(nil); p != nil {
		p.shrink(0)
	}
}

// leave ends the call.
func (t *seat) leave() {
	t.idle()
	t.seats.mu.Lock()
	defer t.seats.mu.Unlock()
	t.end()
}

// end is leave for a caller that holds admission.mu.
func (t *seat) end() {
	s := t.seats
	if t.taken {
		s.stand(t)
		s.advance()
	} else {
		s.long--
		t.party.long--
	}
	s.forget(t.party)
}

// forget drops a tenant without calls. The caller holds s.mu.
func (s *admission) forget(p *party) {
	if p.taken == 0 && p.long == 0 && len(p.queue) == 0 {
		delete(s.tenants, p.tenant)
	}
}

// watch sees to it that calls which take long keep nobody waiting, as long as
// somebody waits. The caller holds s.mu.
func (s *admission) watch() {
	if s.sweeping == nil {
		s.sweeping = time.AfterFunc(longAfter, s.sweep)
	}
}

func (s *admission) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := s.oldest; t != nil && time.Since(t.since) >= longAfter; {
		after := t.after
		s.waits(t)
		t = after
	}
	s.advance()
	if s.sweeping = nil; s.queued > 0 {
		s.watch()
	}
}

// load is how many calls there are, for the metrics.
type load struct {
	working, waiting, queued int
	full, late               int64
}

func (s *admission) load() load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return load{s.taken, s.long, s.queued, s.full, s.late}
}

type seatKey struct{}

// waits says of the call of this context that it only waits from now on. After an error
// it must not.
func waits(ctx context.Context) error {
	if t, ok := ctx.Value(seatKey{}).(*seat); ok {
		return t.waiting()
	}
	return nil
}

// waitsSoon is waits for a call that may have something at once; after an error, the
// context that it returns ends with it. stop must be called when the call ends.
func waitsSoon(ctx context.Context) (_ context.Context, stop func()) {
	waiting, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(soonAfter, func() {
		if err := waits(ctx); err != nil {
			cancel(err)
		}
	})
	return waiting, func() {
		timer.Stop()
		cancel(nil)
	}
}

// works waits until a call with so many items may go on.
func works(ctx context.Context, work *budget, items int) error {
	t, ok := ctx.Value(seatKey{}).(*seat)
	if !ok {
		return nil
	}
	if p, ok := ctx.Value(portionKey{}).(*portion); ok {
		items += p.size / bytesOfWork
	}
	if items <= MaxLightWork {
		return nil
	}
	p := &portion{budget: work, tenant: t.party.tenant}
	if items = min(items, work.mostOfTenant); !p.try(items) {
		if err := t.waiting(); err != nil {
			return err
		}
		if err := p.reserve(ctx, items); err != nil {
			return err
		}
	}
	t.work.Store(p)
	time.AfterFunc(workWithin, func() { p.shrink(0) })
	return nil
}

// itemsOf returns how many items a request has, or asks for.
func itemsOf(message any) int {
	n := 0
	switch m := message.(type) {
	case interface{ GetJobs() []*boarddv1.NewJob }:
		n = len(m.GetJobs())
	case interface{ GetClaims() []*boarddv1.Claim }:
		n = len(m.GetClaims())
	case interface {
		GetEntries() []*boarddv1.NewLogEntry
	}:
		n = len(m.GetEntries())
	case *boarddv1.WorkRequest:
		return len(m.GetEndings()) + len(m.GetExtend()) + int(m.GetMax()) + int(m.GetAhead())
	case interface{ GetMax() int32 }:
		n = int(m.GetMax())
	case interface{ GetPageSize() int32 }:
		n = int(m.GetPageSize())
	}
	if m, ok := message.(interface{ GetUuids() []string }); ok {
		n += len(m.GetUuids())
	}
	return n
}
