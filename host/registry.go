package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/sdk/job"
)

// registry is what a host serves now: boards, and the backends that they need.
type registry struct {
	mu       sync.RWMutex
	backends map[string]*backend
	boards   map[string]map[string]*Hosted // by tenant and name
	lie      map[string]int64              // how many of them lie on a backend, by its name
	leaving  sync.WaitGroup                // of boards that were taken away
	retired  sync.Map                      // of those, each *Hosted that calls may still be on
}

func newRegistry() *registry {
	return &registry{backends: map[string]*backend{}, boards: map[string]map[string]*Hosted{}, lie: map[string]int64{}}
}

// board returns a board, or nil.
func (s *registry) board(tenant, name string) *Hosted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.boards[tenant][name]
}

// started returns a backend that somebody needed, or nil.
func (s *registry) started(name string) *backend {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.backends[name]
}

// names returns the names of a tenant's boards, sorted.
func (s *registry) names(tenant string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.boards[tenant]))
}

// quotas returns what a tenant's boards use.
func (s *registry) quotas(tenant string) []*quota.Board {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*quota.Board, 0, len(s.boards[tenant]))
	for _, b := range s.boards[tenant] {
		list = append(list, b.quota)
	}
	return list
}

// quota returns what a board uses, or nil.
func (s *registry) quota(tenant, name string) *quota.Board {
	if b := s.board(tenant, name); b != nil {
		return b.quota
	}
	return nil
}

func (s *registry) put(b *Hosted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tenant := b.config.Tenant
	if s.boards[tenant] == nil {
		s.boards[tenant] = map[string]*Hosted{}
	}
	s.boards[tenant][b.config.Name] = b
	s.lies(b, 1)
}

// replace puts a board in the place of another one that is still there.
func (s *registry) replace(old, b *Hosted) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	boards := s.boards[old.config.Tenant]
	if boards[old.config.Name] != old {
		return false
	}
	boards[old.config.Name] = b
	s.lies(old, -1)
	s.lies(b, 1)
	return true
}

// drop takes a board out of the registry. It goes on until it is stopped.
func (s *registry) drop(b *Hosted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	boards := s.boards[b.config.Tenant]
	if boards[b.config.Name] == b {
		delete(boards, b.config.Name)
		s.lies(b, -1)
	}
	if len(boards) == 0 {
		delete(s.boards, b.config.Tenant)
	}
}

// allBoards returns every board, in no order.
func (s *registry) allBoards() []*Hosted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []*Hosted
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

// Directory returns what there is now, by the configuration and the catalog.
func (h *Host) Directory() directory.Directory {
	return directory.Directory{Settings: h.Settings(), View: h.catalog.view()}
}

// backend returns a backend, and starts it if nobody needed it before. One that
// the configuration does not have never starts.
func (h *Host) backend(name string) *backend {
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	if b := h.registry.backends[name]; b != nil {
		return b
	}
	c, ok := h.Directory().Backend(name)
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

// BoardNames returns the boards of a tenant that are served, by name.
func (h *Host) BoardNames(of string) []string { return h.registry.names(of) }

// Hosted returns a board that is served, or nil.
func (h *Host) Hosted(at catalog.At) *Hosted { return h.registry.board(at.Tenant, at.Name) }

// Await waits until a board can be called.
func (h *Host) Await(ctx context.Context, on *Hosted) error {
	if err := h.Reaches(*on.config); err != nil {
		return err
	}
	_, err := on.wait(ctx, h)
	return err
}

// Open waits until a board is open, and returns it. It does not rest before ctx ends.
func (h *Host) Open(ctx context.Context, on *Hosted) (*board.Board, error) {
	if err := h.Reaches(*on.config); err != nil {
		return nil, err
	}
	release := on.enter()
	context.AfterFunc(ctx, func() { release() })
	return on.wait(ctx, h)
}

// Redeploy has a board ask what the catalog has for it now, as it is served and as it is about
// to be: whoever asked for the board a moment ago may hold one that another took the place of.
func (h *Host) Redeploy(at catalog.At) {
	for on := h.registry.board(at.Tenant, at.Name); on != nil; on = on.next.Load() {
		on.redeploy(h)
	}
}

// arrange begins and ends boards, and replaces the tokens that are let in, so that they
// are those of the Directory. It waits for no board to open and for none to end. Where only
// some records of the catalog changed, it looks at what depends on those; nil: at everything.
func (h *Host) arrange(records []string) {
	h.arranging.Lock()
	defer h.arranging.Unlock()
	if records == nil {
		h.admit()
		desired := h.Directory().Boards()
		for _, b := range h.registry.allBoards() {
			at := b.at()
			want, ok := desired[at]
			h.arrangeBoard(b, want, ok)
			delete(desired, at)
		}
		for _, want := range desired {
			h.arrangeBoard(nil, want, true)
		}
	}
	for _, name := range records {
		switch kind, of, board := catalog.SplitKey(name); kind {
		case "tenant":
			h.admitTenant(of)
			h.arrangeBoardsOf(of)
		case "token":
			h.admitTenant(of)
		case "webhook":
			h.arrangeHook(of, board)
		case "board", "deployment":
			want, ok := h.Directory().Board(catalog.At{Tenant: of, Name: board})
			h.arrangeBoard(h.registry.board(of, board), want, ok)
		}
	}
}

// arrangeBoardsOf arranges all boards of a tenant.
func (h *Host) arrangeBoardsOf(of string) {
	d := h.Directory()
	names := h.registry.names(of)
	for _, b := range catalog.Of(d.View.Boards, of) {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		want, ok := d.Board(catalog.At{Tenant: of, Name: name})
		h.arrangeBoard(h.registry.board(of, name), want, ok)
	}
}

// arrangeBoard begins, ends or renews one board: b is served now, unless it is nil, and want
// is to be, if ok.
func (h *Host) arrangeBoard(b *Hosted, want config.Board, ok bool) {
	switch {
	case b == nil && !ok:
	case b == nil:
		next := h.newServed(want)
		h.registry.put(next)
		h.serve(next)
	case !ok:
		b.gone.Store(true)
		h.registry.drop(b)
		b.stop(&Ended{NoBoard(b.config.Name)})
		h.recordings.forget(b.at()) // another board of the name is not to have it
	default:
		present := b.latest()
		if !sameSchedules(*present.schedules.Load(), want.Schedules) {
			b.declare(want.Schedules) // which takes calls as long as another one opens
			present.declare(want.Schedules)
			present.call() // so that its store learns of them
		}
		b.hook(h.hooksOf(want))
		present.hook(h.hooksOf(want))
		if !sameBoard(*present.config, want) {
			h.renew(b, want)
			return
		}
		present.quota.SetLimits(want.Limits)
		if present.outdated(h) {
			h.registry.leaving.Go(func() { present.redeploy(h) }) // compiling takes its time
		}
	}
}

func sameSchedules(a, b []board.Schedule) bool {
	return slices.EqualFunc(a, b, func(x, y board.Schedule) bool { return reflect.DeepEqual(x, y) })
}

// sameBoard reports whether a board goes on as it is: its limits and schedules may change
// under way.
func sameBoard(a, b config.Board) bool {
	same := bytes.Equal(a.Settings, b.Settings)
	a.Settings, b.Settings, a.Limits, b.Limits = nil, nil, config.Limits{}, config.Limits{}
	return same && a.Name == b.Name && a.Tenant == b.Tenant && a.Backend == b.Backend && a.Observe == b.Observe &&
		a.FenceByOwner == b.FenceByOwner && a.Lease == b.Lease && a.MaxLease == b.MaxLease && a.AllowNoExpiry == b.AllowNoExpiry && a.HideDetails == b.HideDetails && a.Record == b.Record &&
		a.IdempotencyWindow == b.IdempotencyWindow && a.History == b.History && a.Retry == b.Retry && a.Books == b.Books &&
		config.SameRules(a, b)
}

// supersede puts one that is not open, and that prepare makes ready, in the place of a board
// that is. It reports whether it did: not where the board's settings change just now. Then the
// one before is to be stopped.
func (h *Host) supersede(s *Hosted, prepare func(next *Hosted)) bool {
	h.arranging.Lock()
	defer h.arranging.Unlock()
	c := *s.config
	c.Limits, c.Schedules = s.quota.Limits(), *s.schedules.Load() // these change under way
	next := h.newServed(c)
	prepare(next)
	if s.next.Load() != nil || !h.registry.replace(s, next) {
		next.stop(errStopped)
		return false
	}
	h.serve(next)
	return true
}

// serve runs a board, as soon as it is to be opened, until it is stopped or the host is
// closed.
func (h *Host) serve(b *Hosted) {
	b.begin.with(func() { h.registry.leaving.Go(func() { h.begun(b) }) })
}

// renew lets a board with new settings take the place of one that is served. The old one takes
// calls until the new one can, and then ends those that are left after a while. One that was
// about to take its place, with settings that hold no more, is dropped. It is called with
// h.arranging held.
func (h *Host) renew(old *Hosted, c config.Board) {
	next := h.newServed(c)
	if pending := old.next.Load(); pending != nil {
		pending.next.Store(next) // so that it does not say, as it ends, that the board is not served here
		pending.stop(settingsChanged(c.Name))
	} else if (!old.asked() || old.resting.Load() != nil) && h.registry.replace(old, next) { // nobody calls it here
		h.serve(next)
		old.stop(&Ended{NoBoard(c.Name)})
		if next.backend != old.backend {
			old.backend.known.Forget(old.key())
		}
		return
	}
	next.ask()
	if next.backend != old.backend {
		next.movedFrom.Store(old)
	}
	old.next.Store(next)
	h.serve(next)
	h.registry.leaving.Go(func() { h.takeOver(old, next) })
}

// takeOver has a board take calls in the place of another one, as soon as it can.
func (h *Host) takeOver(old, next *Hosted) {
	if old.board.Load() != nil {
		next.succeeds(old.running())
	} else {
		next.opened(old.running())
	}
	h.arranging.Lock()
	took := !next.over() && h.registry.replace(old, next)
	if took {
		next.replaced.Store(old) // so that it does not outlive that one
	}
	h.arranging.Unlock()
	if !took {
		next.stop(&Ended{NoBoard(next.config.Name)}) // it was taken away meanwhile, unless its settings changed once more
		return
	}
	h.registry.retired.Store(old, true)
	if next.backend != old.backend { // the board has moved: nothing can be changed there
		old.stop(&Ended{job.Errorf(job.Unavailable, "the board %s has moved to another store: ask again", old.config.Name)})
		<-old.done.done()
		old.backend.known.Forget(old.key()) // or its driver, started again, would take what is left for another board
	} else {
		old.retire(h.running)
	}
	h.registry.retired.Delete(old)
	next.replaced.CompareAndSwap(old, nil)
}
