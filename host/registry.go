package host

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
)

// registry is what a host serves now: boards, and the backends that they need.
type registry struct {
	mu       sync.RWMutex
	backends map[string]*backend
	boards   map[string]map[string]*hosted // by tenant and name
	leaving  sync.WaitGroup                // of boards that were taken away
	retired  sync.Map                      // of those, the *served that calls may go on at for a while
}

func newRegistry() *registry {
	return &registry{backends: map[string]*backend{}, boards: map[string]map[string]*hosted{}}
}

// board returns a board, or nil.
func (s *registry) board(tenant, name string) *hosted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.boards[tenant][name]
}

// names returns the names of a tenant's boards, sorted.
func (s *registry) names(tenant string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.boards[tenant]))
}

// of returns a tenant's boards.
func (s *registry) of(tenant string) []*hosted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.boards[tenant]))
}

func (s *registry) put(b *hosted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tenant := b.config.Tenant
	if s.boards[tenant] == nil {
		s.boards[tenant] = map[string]*hosted{}
	}
	s.boards[tenant][b.config.Name] = b
}

// replace puts a board in the place of another one that is still there.
func (s *registry) replace(old, b *hosted) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	boards := s.boards[old.config.Tenant]
	if boards[old.config.Name] != old {
		return false
	}
	boards[old.config.Name] = b
	return true
}

// drop takes a board out of the registry. It goes on until it is stopped.
func (s *registry) drop(b *hosted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	boards := s.boards[b.config.Tenant]
	if boards[b.config.Name] == b {
		delete(boards, b.config.Name)
	}
	if len(boards) == 0 {
		delete(s.boards, b.config.Tenant)
	}
}

// allBoards returns every board, in no order.
func (s *registry) allBoards() []*hosted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []*hosted
	for _, boards := range s.boards {
		all = slices.AppendSeq(all, maps.Values(boards))
	}
	return all
}

// allBackends returns every backend that was started, by name.
func (s *registry) allBackends() []*backend {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.backends), func(a, b *backend) int { return cmp.Compare(a.config.Name, b.config.Name) })
}

// stopBoards ends every board and waits for them.
func (s *registry) stopBoards() {
	for _, b := range s.allBoards() {
		b.stop(errStopped)
	}
	s.leaving.Wait()
}

// closeBackends closes every backend.
func (s *registry) closeBackends() error {
	var failures []error
	for _, b := range s.allBackends() {
		if err := b.close(); err != nil {
			failures = append(failures, fmt.Errorf("backend %s: %w", b.config.Name, err))
		}
	}
	return errors.Join(failures...)
}

// backendConfig returns what the configuration says of a backend.
func (h *Host) backendConfig(name string) (config.Backend, bool) {
	settings := h.Settings()
	if i := slices.IndexFunc(settings.Backends, func(c config.Backend) bool { return c.Name == name }); i >= 0 {
		return settings.Backends[i], true
	}
	if name == catalogBackend {
		return config.Backend{Name: catalogBackend, Driver: "embedded", Settings: []byte("{}")}, true
	}
	return config.Backend{}, false
}

// backend returns a backend, and starts it if nobody needed it before. One that
// the configuration does not have never starts.
func (h *Host) backend(name string) *backend {
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	if b := h.registry.backends[name]; b != nil {
		return b
	}
	c, ok := h.backendConfig(name)
	if !ok {
		c.Name = name
		b := newBackend(c, h.memory, h.logger)
		problem := fmt.Sprintf("the configuration has no backend %q", name)
		b.problem.Store(&problem)
		close(b.tried)
		return b
	}
	b := newBackend(c, h.memory, h.logger)
	h.registry.backends[name] = b
	b.wg.Go(func() { b.run(h.running, h) })
	return b
}

// desired returns the boards that are to be served: those of the configuration,
// and those of the catalog that belong to a tenant that there is.
func (h *Host) desired() map[At]config.Board { return h.desiredBy(h.catalog.view()) }

// desiredBy is desired with what a catalog says.
func (h *Host) desiredBy(view *catalog.View) map[At]config.Board {
	boards := map[At]config.Board{}
	for _, b := range h.Settings().Boards {
		b.Tenant = tenantOf(b)
		boards[At{b.Tenant, b.Name}] = b
	}
	for _, b := range view.Boards {
		at := At{b.Tenant, b.Name}
		if _, declared := boards[at]; declared || !view.Belongs(b.Tenant, b.Owner, h.declares(b.Tenant)) {
			continue
		}
		if b.Placed || h.grants(b.Backend, b.Tenant) {
			boards[at] = h.withModules(b.Board)
		}
	}
	return boards
}

// withModules notes which files a board's policies of the configuration are, so
// that another file is another rule.
func (h *Host) withModules(b config.Board) config.Board {
	name := func(r config.Rule) config.Rule {
		for _, p := range h.Settings().Policies {
			if p.Name == r.Policy && r.Module == "" {
				r.Module = p.Digest()
			}
		}
		return r
	}
	b.Eligibility = slices.Clone(b.Eligibility)
	for i := range b.Eligibility {
		b.Eligibility[i] = name(b.Eligibility[i])
	}
	if b.Ordering != nil {
		r := name(*b.Ordering)
		b.Ordering = &r
	}
	return b
}

// grants reports whether a backend is open to boards that a tenant makes.
func (h *Host) grants(backend, tenant string) bool {
	c, ok := h.backendConfig(backend)
	return ok && c.Grants(tenant)
}

// declares reports whether the configuration has a tenant.
func (h *Host) declares(tenant string) bool { return slices.Contains(h.tenantNames(), tenant) }

// arrange makes what is served be what is desired, and lets in whoever is to be
// let in. It waits for no board to open and for none to end.
func (h *Host) arrange() {
	h.arranging.Lock()
	defer h.arranging.Unlock()
	h.admit()
	desired := h.desired()
	for _, b := range h.registry.allBoards() {
		want, ok := desired[At{b.config.Tenant, b.config.Name}]
		switch present := b.latest(); {
		case !ok:
			h.registry.drop(b)
			b.stop(&Ended{noBoard(b.config.Name)})
			h.recordings.forget(At{b.config.Tenant, b.config.Name}) // another board of the name is not to have it
		case sameBoard(present.config, want):
			present.limits.Store(&want.Limits)
			if present.outdated(h) {
				h.registry.leaving.Go(func() { present.redeploy(h) }) // compiling takes its time
			}
		default:
			h.renew(b, want)
		}
		delete(desired, At{b.config.Tenant, b.config.Name})
	}
	for _, c := range desired {
		b := h.newServed(c)
		h.registry.put(b)
		h.serve(b)
	}
}

// sameBoard reports whether a board goes on as it is: its limits may change
// under way.
func sameBoard(a, b config.Board) bool {
	same := bytes.Equal(a.Settings, b.Settings)
	a.Settings, b.Settings, a.Limits, b.Limits = nil, nil, config.Limits{}, config.Limits{}
	return same && a.Name == b.Name && a.Tenant == b.Tenant && a.Backend == b.Backend && a.Observe == b.Observe &&
		a.FenceByOwner == b.FenceByOwner && a.Lease == b.Lease && a.MaxLease == b.MaxLease && a.AllowNoExpiry == b.AllowNoExpiry && a.HideDetails == b.HideDetails && a.Record == b.Record &&
		a.IdempotencyWindow == b.IdempotencyWindow && a.History == b.History && a.Retry == b.Retry && a.Books == b.Books &&
		config.SameRules(a, b)
}

// serve runs a board until it is stopped or the host is closed.
func (h *Host) serve(b *hosted) {
	h.registry.leaving.Go(func() {
		defer close(b.done)
		b.run(b.running, h)
	})
}

// renew lets a board with new settings take the place of one that is served. The
// old one takes calls until the new one can, and then ends those that are left
// after a while.
func (h *Host) renew(old *hosted, c config.Board) {
	next := h.newServed(c)
	last := old.latest()
	old.next.Store(next)
	last.next.Store(next)
	h.serve(next)
	h.registry.leaving.Go(func() {
		next.opened(old.running)
		if !h.registry.replace(old, next) && !h.registry.replace(last, next) {
			next.stop(&Ended{noBoard(c.Name)}) // it was taken away meanwhile
		}
		h.registry.retired.Store(last, true)
		last.retire(h.running)
		h.registry.retired.Delete(last)
	})
}
