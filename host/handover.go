package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// moves counts the boards that this host has begun or ceased to serve, by why.
type moves struct{ taken, fallback, warm, given, drained atomic.Int64 }

// review looks after the boards, after each look at the fleet.
func (f *fleetPart) review(ctx context.Context) {
	for {
		select {
		case <-f.looked:
		case <-ctx.Done():
			return
		}
		looking, cancel := context.WithTimeout(ctx, reviewWithin)
		f.identify(looking)
		if f.member.Load().Known() && !f.host.catalog.unread() {
			if f.lookAfter(looking) && f.ledger.Settled() {
				f.reviewed.Store(true)
			}
		}
		cancel()
	}
}

// reviewWithin bounds what one review may take, and warmFor is how long a large board stays
// open on the second server without another word of the first one.
const (
	reviewWithin = 5 * time.Second
	warmFor      = 30 * time.Second
)

// handing is boards that one other server is to have.
type handing struct {
	to     fleet.Seen
	warm   bool
	boards []*Hosted
}

// place returns who is to serve which board now. As long as the servers are the same it is
// the same placement, by which a board's place is still known.
func (f *fleetPart) place() *fleet.Placement {
	p := f.placement()
	if f.placed == nil || !p.Same(*f.placed) {
		f.placed = &p
	}
	return f.placed
}

// placing is who is to serve a board, as it was last computed.
type placing struct {
	by            *fleet.Placement
	store         string
	first, second *fleet.Seen
}

// among returns who is to serve the board.
func (p *placing) among(by *fleet.Placement, store string, s *Hosted) (first, second *fleet.Seen) {
	if p.by != by || p.store != store {
		p.by, p.store = by, store
		p.first, p.second = by.First(store, s.config.Tenant, s.config.Name)
	}
	return p.first, p.second
}

// lookAfter opens the boards that are this host's, and gives those that are others' to
// them. It reports whether it began to open all that it has to, as fast as it may.
func (f *fleetPart) lookAfter(ctx context.Context) (whole bool) {
	others := map[string]*handing{}
	hand := func(to *fleet.Seen, warm bool, s *Hosted) {
		key := to.ID
		if warm {
			key += " warm"
		}
		if others[key] == nil {
			others[key] = &handing{to: *to, warm: warm}
		}
		others[key].boards = append(others[key].boards, s)
	}
	whole = true
	f.reminders.begin()
	place, warmFrom := f.place(), f.host.Settings().Fleet.WarmFrom()
	for _, s := range f.host.registry.allBoards() {
		if s = s.latest(); f.strange(s) {
			continue
		}
		first, second := s.place.among(place, f.storeOf(s), s)
		switch do, other := fleet.DutyOf(f.host.id, first, second, s.asked()); do {
		case fleet.Take:
			if !f.mayOpen() {
				whole = false
			} else if s.ask() && other != nil {
				f.moves.taken.Add(1)
			}
		case fleet.Keep:
			s.handed.Store(0)
			if other == nil || !s.open() {
				break
			}
			if s.larger(warmFrom) {
				hand(other, true, s)
			}
			f.reminders.add(other, s)
		case fleet.Hand:
			hand(other, false, s)
		case fleet.Nothing:
		}
	}
	var all sync.WaitGroup
	for _, o := range others {
		all.Go(func() { f.hand(ctx, o) })
	}
	if peers := f.peers.Load(); peers != nil {
		for _, d := range f.reminders.due {
			all.Go(func() { d.tell(ctx, *peers, f.host) })
		}
	}
	all.Wait()
	f.reminders.end()
	return whole
}

// mayOpen reports whether a board may be opened now that nobody has called here.
func (f *fleetPart) mayOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pace.Take(time.Now())
}

// hand asks a server to open boards, and closes those here that it has had open for a
// moment.
func (f *fleetPart) hand(ctx context.Context, o *handing) {
	peers := f.peers.Load()
	if peers == nil {
		return
	}
	at := make([]catalog.At, len(o.boards))
	for i, s := range o.boards {
		at[i] = s.at()
	}
	open, err := (*peers).HasOpen(ctx, o.to, at, o.warm)
	if err != nil || o.warm {
		return // it is asked again with the next review
	}
	now := time.Now()
	for i, s := range o.boards {
		if i >= len(open) || !open[i] {
			s.handed.Store(0)
			continue
		}
		since := s.handed.Load()
		if since == 0 {
			s.handed.Store(now.UnixNano())
			since = now.UnixNano()
		}
		draining := f.draining()
		if fleet.MayClose(now, time.Unix(0, since), s.lastUsed(now), time.Unix(0, s.warmUntil.Load()), draining) {
			f.close(s, draining, o.to.Advertise)
		}
	}
}

// close puts a board that is not open in the place of one that is.
func (f *fleetPart) close(s *Hosted, draining bool, to string) {
	if !f.host.supersede(s, func(*Hosted) {}) {
		return // its settings change just now; the next review sees to it
	}
	s.logger().Debug("the board is another server's", "server", to)
	if draining {
		f.moves.drained.Add(1)
	} else {
		f.moves.given.Add(1)
	}
	s.stop(&Ended{&moved{job.Errorf(job.Unavailable, "the board %s has moved to another server: ask again", s.config.Name)}})
}

// moved is the error of a call that may be made again at another server.
type moved struct{ error }

// Unwrap returns the error for its caller.
func (m *moved) Unwrap() error { return m.error }

// handedOver waits until no board is open here that another server can have, for a while.
func (f *fleetPart) handedOver(ctx context.Context) {
	if f == nil || f.member.Load() == nil {
		return
	}
	for f.left() > 0 {
		if sleep.For(ctx, startEvery) != nil {
			return
		}
	}
}

// left counts the boards that are still open here and are to be another server's.
func (f *fleetPart) left() int {
	n, place := 0, f.placement()
	for _, s := range f.host.registry.allBoards() {
		if !s.asked() || f.strange(s) {
			continue
		}
		if first, _ := place.First(f.storeOf(s), s.config.Tenant, s.config.Name); first != nil && first.ID != f.host.id {
			n++
		}
	}
	return n
}
