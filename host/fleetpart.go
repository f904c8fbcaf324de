package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/host/ledger"
	"github.com/boardd/boardd/sdk/job"
)

// Peers reaches the other servers of the fleet.
type Peers interface {
	// HasOpen asks a server to open boards, and returns which of them it has open. A warm
	// one is to stay open there for a while although it is another server's.
	HasOpen(ctx context.Context, of fleet.Seen, boards []catalog.At, warm bool) ([]bool, error)

	// Remember tells a server what this one remembers of boards that are open here.
	Remember(ctx context.Context, to fleet.Seen, boards []Remembered) error

	// Stand asks a server how boards stand that it has open, or that rest there.
	Stand(ctx context.Context, of fleet.Seen, look Look) ([]*Standing, error)

	// Find has a server search boards that are its own.
	Find(ctx context.Context, of fleet.Seen, f Find) ([]Found, error)
}

// fleetPart is a host's part in a fleet. A nil one is that of a host that serves alone.
type fleetPart struct {
	host     *Host
	member   atomic.Pointer[fleet.Member] // nil until the catalog's backend runs
	ledger   *ledger.Ledger
	peers    atomic.Pointer[Peers]
	reviewed atomic.Bool // it is known which boards are this host's, as long as it has not begun to serve
	looked   chan struct{}
	digest   atomic.Pointer[digested]
	moves    moves
	running  sync.WaitGroup

	placed    *fleet.Placement // of the last review, whose alone it is
	reminders reminders        // likewise

	mu     sync.Mutex // guards what follows, for arithmetic only
	stores map[*backend]*storeName
	pace   fleet.Pace
}

// digested is the digest of a configuration's boards and policies.
type digested struct {
	of   *config.Config
	text string
}

// openFleet makes the host one of a fleet, if it is to be.
func (h *Host) openFleet() {
	if h.Settings().Advertise != "" {
		h.fleet = &fleetPart{host: h, ledger: h.quotas.Ledger, looked: make(chan struct{}, 1), stores: map[*backend]*storeName{}}
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
		docs := k.backend.running.Load().driver.Documents()
		o := fleet.Options{Documents: docs, Logger: f.host.logger, Self: f.word, Looked: func() {
			f.ledger.Look(f.member.Load().Servers())
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
		f.ledger.Begin(m.Boot(), earlierRuns(f.host.memory, m.Boot()), docs)
		f.running.Go(func() { f.ledger.Run(f.host.running) })
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
	w := fleet.Word{ID: h.id, Advertise: c.Advertise, Public: c.Fleet.Public, Version: h.Version(), State: f.state(), Limits: f.ledger.Says(), Digest: f.digestNow(), Boards: h.OpenBoards()}
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
	d := &digested{of: c, text: digestOf(all)}
	f.digest.Store(d)
	return d.text
}

// digestOf names a value that can be written as JSON.
func digestOf(v any) string {
	text, _ := json.Marshal(v) // whoever asks has no value that could fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// order returns who is to serve a board, the first one first; none: this host, since
// nobody else is known to.
func (f *fleetPart) order(s *Hosted) []fleet.Seen {
	return f.placement().Order(f.storeOf(s), s.config.Tenant, s.config.Name)
}

// placement says who is to serve which board; nobody, as long as the fleet is not known.
func (f *fleetPart) placement() fleet.Placement {
	m := f.member.Load()
	if m == nil {
		return fleet.Placement{}
	}
	return fleet.Place(m.Servers(), f.digestNow(), f.host.id, f.state() == fleet.Joining)
}
