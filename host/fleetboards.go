package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// beginning is how a board begins to run: when it is served and to be opened. Until then it
// has no goroutine, since most boards of a fleet are another server's.
type beginning struct {
	mu     sync.Mutex
	wanted bool
	run    func() // begins it; nil: it is not served yet, has begun, or never does
	over   bool   // it has begun, or never does
}

// with says how the board begins.
func (b *beginning) with(run func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run = run
	b.start()
}

// want says that the board is to be opened, and reports whether it was not to be until now.
func (b *beginning) want() (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, b.wanted = !b.wanted, true
	b.start()
	return first
}

// start begins the board if it is time. b.mu is held.
func (b *beginning) start() {
	if b.wanted && b.run != nil && !b.over {
		b.over = true
		b.run()
		b.run = nil
	}
}

// never calls ended if the board has not begun, and never does now.
func (b *beginning) never(ended func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		ended()
	}
}

// ask has a board opened, and reports whether it was not to be until now.
func (s *Hosted) ask() (first bool) { return s.begin.want() }

// asked reports whether the board is open or being opened.
func (s *Hosted) asked() bool {
	s.begin.mu.Lock()
	defer s.begin.mu.Unlock()
	return s.begin.wanted
}

// use notes that somebody called the board. It is written once a second at most, since all
// calls of a board would write it.
func (s *Hosted) use(now time.Time) {
	if at := now.UnixNano(); at-s.used.Load() > int64(time.Second) {
		s.used.Store(at)
	}
}

// lastUsed returns when somebody last called the board. Whoever has a page of it open does so all
// the time.
func (s *Hosted) lastUsed(now time.Time) time.Time {
	if s.pages.Load() > 0 {
		return now
	}
	return time.Unix(0, s.used.Load())
}

// enter counts a call until release is called: a board rests only while there is none, since
// it may wait for something that another caller does.
func (s *Hosted) enter() (release func() bool) {
	s.calls.Add(1)
	return func() bool {
		s.use(time.Now())
		return s.calls.Add(-1) >= 0
	}
}

// open reports whether the board can serve.
func (s *Hosted) open() bool {
	b := s.board.Load()
	return b != nil && b.Status().Ready
}

// larger reports whether the board has more open jobs than so many.
func (s *Hosted) larger(than int64) bool {
	if b := s.board.Load(); b != nil {
		if c, ok := b.Depth(); ok {
			return c.Ready+c.Delayed+c.Claimed > than
		}
	}
	return false
}

// InFleet reports whether the host serves its boards together with others.
func (h *Host) InFleet() bool { return h.fleet != nil }

// SetPeers says how the other servers of the fleet are reached.
func (h *Host) SetPeers(p Peers) {
	if h.fleet != nil {
		h.fleet.peers.Store(&p)
	}
}

// Member returns what knows the fleet, or nil: there is none, or not yet.
func (h *Host) Member() *fleet.Member {
	if h.fleet == nil {
		return nil
	}
	return h.fleet.member.Load()
}

// ID is what the host is called among those of its stores.
func (h *Host) ID() string { return h.id }

// OpenBoards returns how many boards are open on this host.
func (h *Host) OpenBoards() int {
	n := 0
	for _, s := range h.registry.allBoards() {
		if s.asked() && s.board.Load() != nil {
			n++
		}
	}
	return n
}

// Moves returns how many boards this host has begun or ceased to serve because of the
// fleet, by why.
func (h *Host) Moves() map[string]int64 {
	if h.fleet == nil {
		return nil
	}
	m := &h.fleet.moves
	return map[string]int64{
		"taken": m.taken.Load(), "fallback": m.fallback.Load(), "warm": m.warm.Load(), "given": m.given.Load(), "drained": m.drained.Load(),
	}
}

// Route returns the servers that are to be asked for a board before this one, the best
// first. None: this one serves it.
func (h *Host) Route(ctx context.Context, at catalog.At) []fleet.Seen {
	if h.fleet == nil {
		return nil
	}
	s, err := h.Look(ctx, at)
	if err != nil || s == nil {
		return nil // there is none; whoever calls is told so
	}
	order := h.fleet.order(s)
	for i := range order {
		if order[i].ID == h.id {
			return order[:min(i, maxAsked)]
		}
	}
	return order[:min(len(order), maxAsked)]
}

// maxAsked is how many other servers are asked for a board before the one that was asked
// serves it itself.
const maxAsked = 2

// How long a server that is asked for a board by another one waits for it to open: one
// that has just become its owner, and one that is asked because the owner is away.
const (
	openSoon   = time.Second
	openAtLast = 8 * time.Second
)

// Takes reports whether this host serves a board for another server that asks it. must:
// the server that should have it open cannot be reached.
func (h *Host) Takes(ctx context.Context, at catalog.At, must bool) bool {
	s, err := h.Look(ctx, at)
	if err != nil || s == nil || h.fleet == nil || h.fleet.strange(s) || h.running.Err() != nil {
		return false
	}
	if s.open() {
		return true
	}
	if order := h.fleet.order(s); !must && (len(order) == 0 || order[0].ID != h.id) || h.fleet.draining() {
		return false
	}
	within := openSoon
	if must {
		within = openAtLast
	}
	if s.ask() && must {
		h.fleet.moves.fallback.Add(1)
	}
	s.call()
	h.hurry(s)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s.opened(ctx)
	return s.open()
}

// HasOpen has boards opened for another server, and returns which of them are open.
func (h *Host) HasOpen(ctx context.Context, boards []catalog.At, warm bool) []bool {
	open := make([]bool, len(boards))
	for i, at := range boards {
		s, err := h.Look(ctx, at)
		if err != nil || s == nil || h.fleet == nil || h.fleet.strange(s) || h.fleet.draining() {
			continue
		}
		order := h.fleet.order(s)
		if warm {
			s.warmUntil.Store(time.Now().Add(warmFor).UnixNano())
		} else if len(order) == 0 || order[0].ID != h.id {
			continue // the two disagree about who is to have it, and will agree in a moment
		}
		if !s.asked() && h.fleet.mayOpen() && s.ask() {
			if warm {
				h.fleet.moves.warm.Add(1)
			} else {
				h.fleet.moves.taken.Add(1)
			}
		}
		if warm {
			s.call()
		}
		open[i] = s.open() || s.resting.Load() != nil
	}
	return open
}

// servedHere reports whether it is this host that serves a board.
func (h *Host) servedHere(s *Hosted) bool {
	if h.fleet == nil {
		return true
	}
	_, here := h.server(s, h.firstIn(h.fleet.placement(), s))
	return here
}

// server returns who serves a board that first is to serve, and whether it is this host; nil: this host.
func (h *Host) server(s *Hosted, first *fleet.Seen) (advertise string, here bool) {
	switch {
	case h.fleet == nil:
		return "", true
	case first == nil || first.ID == h.id:
		return h.Settings().Advertise, !h.fleet.strange(s)
	}
	return first.Advertise, false
}

// Moved reports whether a call ended because its board is another server's now.
func Moved(err error) bool { _, ok := errors.AsType[*moved](err); return ok }

// HandedOver waits until the boards of a host that drains are other servers', for a while.
func (h *Host) HandedOver(ctx context.Context) { h.fleet.handedOver(ctx) }

// Fleet returns the servers that are known to this one.
func (h *Host) Fleet() ([]fleet.Seen, error) {
	m := h.Member()
	if m == nil {
		return nil, errNoFleet(h)
	}
	return m.Servers(), nil
}

func errNoFleet(h *Host) error {
	if h.fleet == nil {
		return job.Errorf(job.Precondition, "this server serves alone: set advertise in its configuration")
	}
	return job.Errorf(job.Unavailable, "the server has not looked at its fleet yet: try again in a moment")
}

// DrainServer has the server that advertises an address give its boards to the others, or
// serve again.
func (h *Host) DrainServer(ctx context.Context, advertise string, undo bool) (fleet.Seen, error) {
	servers, err := h.Fleet()
	if err != nil {
		return fleet.Seen{}, err
	}
	for _, s := range servers {
		if s.Advertise == advertise {
			return s, h.Member().Drain(ctx, s.Boot, undo)
		}
	}
	return fleet.Seen{}, job.Errorf(job.NotFound, "there is no server %q: boardd server list shows those that there are", tenant.Clip(advertise))
}

// PassedSession returns the session of a caller whom another server of the fleet has let
// in. Whoever calls it has seen that it was another server of the fleet.
func (h *Host) PassedSession(p tenant.Passed) *Session {
	return &Session{host: h, principal: p.Principal()}
}
