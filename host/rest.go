package host

import (
	"context"
	"hash/crc32"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/bounded"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// A board on which nothing is to be done until somebody calls rests: it is closed on every
// host, and a document in its store says so, how it stands, and when it is to be opened all the
// same: until then it is one of the host's sleepers. The document is there only while no host
// has the board open: whoever opens it deletes the document first. So a board that was open on
// a host which died is opened by the next one, whoever calls.

// restSpace is where the documents are, under the boards' keys.
const restSpace = "rest"

// The time between two looks at all boards, at least and at most.
const (
	restLook     = 10 * time.Millisecond
	restLookMost = 10 * time.Second
)

// restAtOnce is how many boards are asked at the same time whether they may rest, each of its
// store: boards that a caller makes one after the other are to be closed as fast as they are made.
const restAtOnce = 16

// restGrace is how long calls that have found an open board may take to end before it rests.
const restGrace = 250 * time.Millisecond

// rested is how a resting board stands.
type rested struct {
	Since    time.Time        `json:"since,omitzero"`
	Due      time.Time        `json:"due"`
	Ready    int64            `json:"ready,omitempty"`
	Delayed  int64            `json:"delayed,omitempty"`
	Oldest   time.Time        `json:"oldest,omitzero"` // since when the ready job waits that waits for the longest time
	Trashed  int64            `json:"trashed,omitempty"`
	Complete int64            `json:"complete,omitempty"`
	Limits   map[string]int64 `json:"limits,omitempty"`   // what the store counts for limits
	Declared string           `json:"declared,omitempty"` // a digest of the schedules of the configuration that the store has
	Told     string           `json:"told,omitempty"`     // a digest of the webhooks that have been told of it

	Generation uint64            `json:"generation,omitempty"`
	Window     time.Duration     `json:"window,omitempty"` // in nanoseconds
	Durability driver.Durability `json:"durability"`
	Place      uint32            `json:"place,omitempty"` // a checksum of where in the store the board lay; 0: a server of before closed it
}

// restedAs is how a board rests that is open now.
func (s *Hosted) restedAs(r *board.Rest, status board.Status) rested {
	c := &r.Counts
	return rested{
		Since: time.Now().UTC(), Due: r.Due.UTC(),
		Ready: c.Ready, Delayed: c.Delayed, Oldest: c.OldestReadyAt, Trashed: c.Trashed, Complete: c.Complete, Limits: r.Limits,
		Declared: declaredBy(*s.schedules.Load()), Told: s.hooks.Load().told(),
		Generation: status.Generation, Window: status.Window, Durability: status.Durability, Place: s.placeSum(),
	}
}

// counts are those of the board as it rests: nobody has claimed anything.
func (r *rested) counts() *board.Counts {
	return &board.Counts{Ready: r.Ready, Delayed: r.Delayed, OldestReadyAt: r.Oldest, Trashed: r.Trashed, Complete: r.Complete}
}

// used is what the board uses of the limits of its tenant.
func (r *rested) used() *driver.Counts {
	return &driver.Counts{Open: r.Ready + r.Delayed, Limits: r.Limits}
}

// declaredBy names what a configuration declares of a board's schedules.
func declaredBy(schedules []board.Schedule) string {
	if len(schedules) == 0 {
		return ""
	}
	return digestOf(schedules)
}

// keyed returns the board of a key, if it lies on the backend; else nil.
func (s *registry) keyed(on *backend, key string) *Hosted {
	tenant, name, _ := strings.Cut(key, "/")
	if b := s.board(tenant, name); b != nil && b.backend == on {
		return b
	}
	return nil
}

// call has the board opened, if it rests.
func (s *Hosted) call() {
	s.called.close()
	s.wake.want()
}

// rests returns how the board rests; nil: it is to be opened at once. One whose settings have
// changed since it was closed is: its store is to learn of that, or a webhook begins.
func (s *Hosted) rests(h *Host) *rested {
	if s.before != nil {
		select {
		case <-s.before:
		case <-s.running().Done():
			return nil
		}
	}
	if s.config.Observe {
		return nil
	}
	r := s.backend.rests(h).of(h.running, s.key()) // for a while; the board's own context is made if it opens
	if r == nil {
		return nil
	}
	s.slept.Store(r)
	h.catalog.await(h.running) // which knows webhooks
	if !s.goesOnAs(r) {
		return nil
	}
	s.resting.Store(r)
	if !s.goesOnAs(r) { // what changes it looks for one that rests
		return nil
	}
	return r
}

// begun has a board open when it is to be: at once, unless it rests. While it rests it has no
// goroutine, but a place among the sleepers.
func (h *Host) begun(s *Hosted) {
	select {
	case <-s.backend.started:
	default:
		select {
		case <-s.backend.started:
		case <-s.running().Done():
		}
	}
	if !s.over() {
		if r := s.rests(h); r != nil {
			h.sleepers.add(s, r.Due)
			if s.backend.rests(h).leftWaits(s.key()) {
				h.callLeft(s)
			}
		} else {
			s.wake.want()
		}
	}
	s.wake.with(func() {
		h.sleepers.remove(s)
		h.registry.leaving.Go(func() {
			defer s.done.close()
			s.run(s.running(), h)
			if s.gone.Load() && h.registry.board(s.config.Tenant, s.config.Name) == nil {
				s.forgotten()
			}
		})
	})
	if s.over() { // it may have been stopped before it lay down
		h.sleepers.remove(s)
	}
}

// forgotten has nothing be known of a board that is gone: another one of the name is another one.
func (s *Hosted) forgotten() {
	s.backend.known.Gone(s.key())
	if r := s.backend.running.Load(); r != nil && r.forget != nil {
		r.forget(s.key())
	}
}

// placeSum is a checksum of where in the store the board lies.
func (s *Hosted) placeSum() uint32 {
	return crc32.ChecksumIEEE([]byte(catalog.LocationOf(s.config.Settings, s.key()).String()))
}

// goesOnAs reports whether schedules, webhooks and place are as they were when the board began to
// rest.
func (s *Hosted) goesOnAs(r *rested) bool {
	return (r.Place == 0 || r.Place == s.placeSum()) && r.Declared == declaredBy(*s.schedules.Load()) && r.Told == s.hooks.Load().told()
}

// rouse says that the board is open, if it is said to rest.
func (s *Hosted) rouse(ctx context.Context, h *Host) error {
	if s.config.Observe {
		return nil
	}
	d := s.backend.rests(h)
	if d.of(ctx, s.key()) == nil {
		return nil
	}
	return d.rouse(ctx, s.key())
}

// restForever closes boards on which nothing is to be done, until ctx ends.
func (h *Host) restForever(ctx context.Context) {
	for {
		after := h.restAfter()
		every := restLookMost
		if after >= 0 {
			every = min(max(after/10, restLook), every)
		}
		if sleep.For(ctx, every) != nil {
			return
		}
		h.callAllLeft()
		working := bounded.New(restAtOnce)
		for _, s := range h.registry.allBoards() {
			b := s.board.Load()
			if b == nil || s.config.Observe || s.over() || s.next.Load() != nil {
				continue
			}
			if (after < 0 || !s.quiet(after)) && !s.backend.rests(h).knows(s.key()) {
				continue
			}
			working.Go(func() { h.restOrRouse(ctx, s, b, after) })
		}
		working.Wait()
	}
}

// restOrRouse closes an open board if it may rest. If it may not, and is said to rest, it takes
// that back.
func (h *Host) restOrRouse(ctx context.Context, s *Hosted, b *board.Board, after time.Duration) {
	if r, ok := h.mayRest(ctx, s, b, after); ok && time.Until(r.Due) >= after {
		h.toRest(s, s.restedAs(&r, b.Status()))
	} else if s.backend.rests(h).knows(s.key()) { // another host closed it and took it for nobody's
		_ = s.rouse(ctx, h) // or the next time
	}
}

// restAfter is how long nobody has called a board that rests; less than 0: none does.
func (h *Host) restAfter() time.Duration {
	if after := h.Settings().RestAfter; after != 0 {
		return after
	}
	return config.DefaultRestAfter
}

// quiet reports whether nobody calls an open board, and nobody has for a time.
func (s *Hosted) quiet(after time.Duration) bool {
	last := time.Unix(0, max(s.used.Load(), s.since.Load()))
	return s.calls.Load() == 0 && time.Since(last) >= after
}

// mayRest reports whether an open board may rest that nobody has called for a time, and how.
func (h *Host) mayRest(ctx context.Context, s *Hosted, b *board.Board, after time.Duration) (board.Rest, bool) {
	if after < 0 || !s.quiet(after) || s.config.Record > 0 || len(s.hooks.Load().sends) > 0 {
		return board.Rest{}, false
	}
	if !h.servedHere(s) {
		return board.Rest{}, false // it goes to its owner first
	}
	if h.fleet != nil && s.larger(h.Settings().Fleet.WarmFrom()) {
		return board.Rest{}, false // another server has it open as well, so that it need not be read
	}
	if kept, ok := h.catalog.view().Boards.Get(s.at()); ok && kept.Move.Active() {
		return board.Rest{}, false
	}
	return s.nothingToDo(ctx, b)
}

// nothingToDo reports whether nothing is to be done on an open board, for its webhooks either,
// and how it rests then.
func (s *Hosted) nothingToDo(ctx context.Context, b *board.Board) (r board.Rest, ok bool) {
	c := s.courier.Load()
	if c == nil || s.backend.rests(s.host).deaf.Load() {
		return r, false
	}
	if r, ok = b.MayRest(ctx); !ok {
		return r, false
	}
	due, ok := c.Rest(r.Cursor, &r.Counts)
	if ok && !due.IsZero() && due.Before(r.Due) {
		r.Due = due
	}
	return r, ok
}

// toRest puts a resting board in the place of an open one.
func (h *Host) toRest(s *Hosted, as rested) {
	s.backend.rests(h).settle(s.key()) // what is left from now on is noted once it is not open any more
	var next *Hosted
	if !h.supersede(s, func(n *Hosted) {
		next, n.before = n, make(chan struct{})
		n.resting.Store(&as)
		n.slept.Store(&as)
		n.ask()
	}) {
		return // its settings change just now
	}
	h.registry.leaving.Go(func() {
		h.lieDown(s, next)
		s.stop(&Ended{&moved{job.Errorf(job.Unavailable, "the board %s is opened anew: ask again", s.config.Name)}})
	})
}

// lieDown says in its store that a board rests, once the calls that had found it open have
// ended. If there is something to do by then, or somebody calls, next is opened.
func (h *Host) lieDown(s, next *Hosted) {
	grace := time.NewTimer(restGrace)
	defer grace.Stop()
	select {
	case <-grace.C:
	case <-next.called.done():
	case <-s.running().Done(): // which is seen below
	}
	ctx, cancel := context.WithTimeout(s.running(), openingTime)
	defer cancel()
	if b := s.board.Load(); b != nil && next.idle() && s.calls.Load() == 0 {
		if r, ok := s.nothingToDo(ctx, b); ok {
			err := s.backend.rests(h).put(ctx, s.key(), s.restedAs(&r, b.Status()))
			if err == nil || job.KindOf(err) == job.Aborted { // another host was first
				close(next.before)
				return
			}
		}
	}
	next.call()
	close(next.before)
	next.opened(s.running())
}

// idle reports whether nobody has called the board.
func (s *Hosted) idle() bool { return !s.called.closed() }
