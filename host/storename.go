package host

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/sdk/job"
)

// storeName is the identity of a backend's store, as it was last read.
type storeName struct {
	id   string
	read time.Time
}

// identityFor is how long the identity of a store is believed without a look: a store may
// be emptied, or another one put in its place.
const identityFor = 30 * time.Second

// identify reads the identities of the stores that the host reaches.
func (f *fleetPart) identify(ctx context.Context) {
	all := f.host.registry.allBackends()
	f.mu.Lock()
	maps.DeleteFunc(f.stores, func(b *backend, _ *storeName) bool { return !slices.Contains(all, b) }) // a reload replaced it
	f.mu.Unlock()
	for _, b := range all {
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
func (f *fleetPart) strange(s *Hosted) bool { return f.lacks(s.backend, s.config.Store) }

// lacks reports whether a backend has another store here than the one with the identity.
func (f *fleetPart) lacks(b *backend, store string) bool {
	return f != nil && store != "" && f.store(b) != store
}

// Reaches returns nil if this host has the store in which a board's jobs lie: what is done to
// them elsewhere would be done to another board.
func (h *Host) Reaches(b config.Board) error {
	if !h.fleet.lacks(h.backend(b.Backend), b.Store) {
		return nil
	}
	return job.Errorf(job.Unavailable, "the board %s lies in a store that only another server has%s", b.Name, h.whose(b))
}

// whose says which server is to serve a board, as far as that is known.
func (h *Host) whose(b config.Board) string {
	first, _ := h.fleet.placement().First(b.Store, b.Tenant, b.Name)
	if first == nil || first.ID == h.id {
		return ""
	}
	return ": ask " + first.Advertise
}
