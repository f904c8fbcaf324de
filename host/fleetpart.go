package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Peers reaches the other servers of the fleet.
type Peers interface {
	// HasOpen asks a server to open boards, and returns which of them it has open. A warm
	// one is to stay open there for a while although it is another server's.
	HasOpen(ctx context.Context, of fleet.Seen, boards []catalog.At, warm bool) ([]bool, error)
}

// fleetPart is a host's part in a fleet. A nil one is that of a host that serves alone.
type fleetPart struct {
	host     *Host
	member   atomic.Pointer[fleet.Member] // nil until the catalog's backend runs
	peers    atomic.Pointer[Peers]
	reviewed atomic.Bool // it is known which boards are this host's, as long as it has not begun to serve
	looked   chan struct{}
	digest   atomic.Pointer[digested]
	moves    moves
	running  sync.WaitGroup

	mu     sync.Mutex // guards stores, for arithmetic only
	stores map[*backend]*storeName
}

// storeName is the identity of a backend's store, as it was last read.
type storeName struct {
	id   string
	read time.Time
}

// digested is the digest of a configuration's boards and policies.
type digested struct {
	of   *config.Config
	text string
}

// moves counts the boards that this host has begun or ceased to serve, by why.
type moves struct{ taken, fallback, warm, given, drained atomic.Int64 }

// identityFor is how long the identity of a store is believed without a look: a store may
// be emptied, or another one put in its place.
const identityFor = 30 * time.Second

// openFleet makes the host one of a fleet, if it is to be.
func (h *Host) openFleet() {
	if h.Settings().Advertise != "" {
		h.fleet = &fleetPart{host: h, looked: make(chan struct{}, 1), stores: map[*backend]*storeName{}}
	}
}

// checkFleet finds what is wrong with the fleet's key.
func checkFleet(c config.Fleet) error {
	if c.KeyFile == "" {
		return nil
	}
	_, err := fleetKey(c)
	return err
}

func fleetKey(c config.Fleet) (fleet.Key, error) {
	text, err := c.FleetKey()
	if err != nil {
		return fleet.Key{}, err
	}
	key, err := fleet.ParseKey(text)
	if err != nil {
		return fleet.Key{}, job.Errorf(job.Invalid, "fleet: key_file: %s: %v", c.KeyFile, err)
	}
	return key, nil
}

// begin has the host say that it lives, and look after its boards, until the host ends.
func (f *fleetPart) begin(k *catalogHandle) {
	if f == nil {
		return
	}
	f.running.Go(func() {
		select {
		case <-k.backend.started:
		case <-f.host.running.Done():
			return
		}
		o := fleet.Options{Documents: k.backend.running.Load().driver.Documents(), Logger: f.host.logger, Self: f.word, Looked: func() {
			select {
			case f.looked <- struct{}{}:
			default:
			}
		}}
		if c := f.host.Settings().Fleet; c.KeyFile != "" {
			o.Key = func() (fleet.Key, error) { return fleetKey(c) }
		}
		m := fleet.New(o)
		f.member.Store(m)
		f.running.Go(func() { f.review(f.host.running) })
		m.Run(f.host.running)
	})
}

func (f *fleetPart) wait() {
	if f != nil {
		f.running.Wait()
	}
}

// word is what the host says of itself.
func (f *fleetPart) word() fleet.Word {
	h := f.host
	c := h.Settings()
	w := fleet.Word{ID: h.id, Advertise: c.Advertise, Public: c.Fleet.Public, Version: h.Version(), State: f.state(), Digest: f.digestNow(), Boards: h.OpenBoards()}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.stores {
		if s.id != "" {
			w.Stores = append(w.Stores, s.id)
		}
	}
	slices.Sort(w.Stores)
	return w
}

func (f *fleetPart) state() fleet.State {
	switch {
	case f.draining():
		return fleet.Draining
	case !f.host.ready.over():
		return fleet.Joining
	}
	return fleet.Serving
}

// draining reports whether the host is to give its boards to others.
func (f *fleetPart) draining() bool {
	m := f.member.Load()
	return f.host.draining.Load() || m != nil && m.Drained()
}

// digestNow is the digest of what the configuration declares: servers that declare the
// same give each other their boards.
func (f *fleetPart) digestNow() string {
	c := f.host.Settings()
	if d := f.digest.Load(); d != nil && d.of == c {
		return d.text
	}
	type declared struct {
		Board     config.Board
		Schedules []board.Schedule
		Webhooks  []string
	}
	var all []any
	for _, b := range c.Boards {
		b.Tenant = directory.TenantOf(b)
		all = append(all, declared{b, b.Schedules, b.HookAddresses()})
	}
	for _, p := range c.Policies {
		all = append(all, [2]string{p.Name, p.Digest()})
	}
	text, _ := json.Marshal(all) // it has no value that could fail
	sum := sha256.Sum256(text)
	d := &digested{of: c, text: hex.EncodeToString(sum[:8])}
	f.digest.Store(d)
	return d.text
}

// identify reads the identities of the stores that the host reaches.
func (f *fleetPart) identify(ctx context.Context) {
	for _, b := range f.host.registry.allBackends() {
		r := b.running.Load()
		f.mu.Lock()
		s := f.stores[b]
		f.mu.Unlock()
		if r == nil || s != nil && s.id != "" && time.Since(s.read) < identityFor {
			continue
		}
		id, err := fleet.StoreIdentity(ctx, r.driver.Documents(), f.writes(b))
		if err != nil {
			continue // what was known stands
		}
		f.mu.Lock()
		f.stores[b] = &storeName{id, time.Now()}
		f.mu.Unlock()
	}
}

// writes reports whether the host writes to a backend's store: to one of which it only
// observes boards it does not.
func (f *fleetPart) writes(b *backend) bool {
	if b.config.Name == f.host.Settings().Catalog {
		return true
	}
	return slices.ContainsFunc(f.host.registry.allBoards(), func(s *Hosted) bool { return s.backend == b && !s.config.Observe })
}

// storeOf is the identity of the store in which a board's jobs lie; "": not known.
func (f *fleetPart) storeOf(s *Hosted) string {
	if s.config.Store != "" {
		return s.config.Store
	}
	return f.store(s.backend)
}

func (f *fleetPart) store(b *backend) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.stores[b]; s != nil {
		return s.id
	}
	return ""
}

// strange reports whether a board's jobs lie in a store that this host does not have,
// though it has a backend of that name.
func (f *fleetPart) strange(s *Hosted) bool {
	return f != nil && s.config.Store != "" && f.store(s.backend) != s.config.Store
}

// order returns who is to serve a board, the first one first; none: this host, since
// nobody else is known to.
func (f *fleetPart) order(s *Hosted) []fleet.Seen {
	m := f.member.Load()
	if m == nil {
		return nil
	}
	place := fleet.Place(m.Servers(), f.digestNow(), f.host.id, f.state() == fleet.Joining)
	return place.Order(f.storeOf(s), s.config.Tenant, s.config.Name)
}

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
			f.lookAfter(looking)
			f.reviewed.Store(true)
		}
		cancel()
	}
}

// reviewWithin bounds what one review may take, and handedFor is how long a board stays
// open after another server had it open, for the calls that are on their way.
const (
	reviewWithin = 5 * time.Second
	handedFor    = time.Second
	usedFor      = 10 * time.Second // a board that was called here, whose owner had not opened it, stays as long
	warmFor      = 30 * time.Second
)

// handing is boards that one other server is to have.
type handing struct {
	to     fleet.Seen
	warm   bool
	boards []*Hosted
}

// lookAfter opens the boards that are this host's, and gives those that are others' to
// them.
func (f *fleetPart) lookAfter(ctx context.Context) {
	others := map[string]*handing{}
	hand := func(to fleet.Seen, warm bool, s *Hosted) {
		key := to.ID
		if warm {
			key += " warm"
		}
		if others[key] == nil {
			others[key] = &handing{to: to, warm: warm}
		}
		others[key].boards = append(others[key].boards, s)
	}
	for _, s := range f.host.registry.allBoards() {
		if s = s.latest(); f.strange(s) {
			continue
		}
		order := f.order(s)
		mine := len(order) == 0 || order[0].ID == f.host.id
		switch {
		case mine && s.ask():
			if len(order) > 1 {
				f.moves.taken.Add(1)
			}
		case mine:
			s.handed.Store(0)
			if len(order) > 1 && s.open() && s.larger(f.host.Settings().Fleet.WarmFrom()) {
				hand(order[1], true, s)
			}
		case s.asked():
			hand(order[0], false, s)
		}
	}
	var all sync.WaitGroup
	for _, o := range others {
		all.Go(func() { f.hand(ctx, o) })
	}
	all.Wait()
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
		at[i] = directory.At(s.config)
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
		if now.Sub(time.Unix(0, since)) < handedFor || !draining && (now.Sub(time.Unix(0, s.used.Load())) < usedFor || now.UnixNano() < s.warmUntil.Load()) {
			continue
		}
		f.close(s, draining, o.to.Advertise)
	}
}

// close puts a board that is not open in the place of one that is.
func (f *fleetPart) close(s *Hosted, draining bool, to string) {
	h := f.host
	h.arranging.Lock()
	next := h.newServed(s.config)
	replaced := s.next.Load() == nil && h.registry.replace(s, next)
	if replaced {
		h.serve(next)
	} else {
		next.stop(errStopped)
		close(next.done)
	}
	h.arranging.Unlock()
	if !replaced {
		return // its settings change just now; the next review sees to it
	}
	s.logger.Debug("the board is another server's", "server", to)
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
	n := 0
	for _, s := range f.host.registry.allBoards() {
		if order := f.order(s); s.asked() && len(order) > 0 && order[0].ID != f.host.id && !f.strange(s) {
			n++
		}
	}
	return n
}
