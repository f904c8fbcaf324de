package host

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/host/acknowledged"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// catalogHandle is the host's catalog on its backend. A nil one is that of a host that
// keeps none.
type catalogHandle struct {
	backend *backend
	running sync.WaitGroup

	mu      sync.Mutex
	ready   chan struct{} // closed when there is a catalog; may be waited for without mu
	catalog *catalog.Catalog
}

// openCatalog begins to read the catalog, if the host keeps one.
func (h *Host) openCatalog() {
	name := h.Settings().Catalog
	if name == "" {
		if h.Settings().DataDir == "" || !h.hasEmbedded() {
			return
		}
		name = directory.CatalogBackend
	}
	k := &catalogHandle{backend: h.backend(name), ready: make(chan struct{})}
	h.catalog = k
	k.running.Go(func() { k.run(h) })
	h.fleet.begin(k)
}

func (h *Host) hasEmbedded() bool {
	_, inProcess := h.config.Drivers["embedded"]
	_, builtin := h.config.Builtin["embedded"]
	return inProcess || builtin
}

// run follows the catalog as soon as its backend runs.
func (k *catalogHandle) run(h *Host) {
	select {
	case <-k.backend.started:
	case <-h.running.Done():
		return
	}
	memory, err := catalog.OpenMemory(acknowledged.CatalogFolder(h.Settings().DataDir), h.memory.Alone(), h.logger)
	if err != nil {
		h.logger.Error("what was known of the catalog cannot be read: its loss would not be noticed", "error", err)
		memory, _ = catalog.OpenMemory("", true, h.logger) // which cannot fail
	}
	defer func() { _ = memory.Close() }() // what could not be written was logged
	docs := k.backend.running.Load().driver.Documents()
	doubted := false
	c := catalog.New(docs, catalog.Options{Logger: k.backend.logger, Memory: memory, Changed: func(names []string) {
		h.arrange(names)
		h.mover.noted(names)
		before := doubted
		if doubted = h.Doubt() != nil; before && !doubted {
			h.resettle()
		}
	}})
	k.mu.Lock()
	k.catalog = c
	close(k.ready)
	k.mu.Unlock()
	k.running.Go(func() { h.countHosts(h.running) })
	_ = c.Run(h.running) // it ends with the host only
}

// wait waits until nothing runs any more, after the host's end.
func (k *catalogHandle) wait() {
	if k != nil {
		k.running.Wait()
	}
}

// open returns the catalog, or nil while there is none.
func (k *catalogHandle) open() *catalog.Catalog {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.catalog
}

var nothing = catalog.New(nil, catalog.Options{}).View()

// view returns what the catalog says.
func (k *catalogHandle) view() *catalog.View {
	if c := k.open(); c != nil {
		return c.View()
	}
	return nothing
}

// unread reports whether there is a catalog that was never read.
func (k *catalogHandle) unread() bool {
	if k == nil {
		return false
	}
	c := k.open()
	if c == nil {
		return true
	}
	select {
	case <-c.Synced():
		return false
	default:
		return true
	}
}

// current returns nil if what the catalog says of tokens holds.
func (k *catalogHandle) current() error {
	c := k.open()
	if c == nil {
		return job.Errorf(job.Unavailable, "the server has not read its catalog of tokens yet: try again in a moment")
	}
	return c.Current()
}

// forChange returns the catalog for a change, when it is there.
func (k *catalogHandle) forChange(ctx context.Context) (*catalog.Catalog, error) {
	if k == nil {
		return nil, job.Errorf(job.Precondition, "this server keeps no catalog: set data_dir, or catalog { backend = ... }, in its configuration")
	}
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-k.ready:
	case <-ctx.Done():
		return nil, job.Errorf(job.Unavailable, "the catalog's store cannot be reached now; nothing was changed")
	}
	c := k.open()
	select {
	case <-c.Synced():
		return c, c.Current()
	case <-ctx.Done():
		if err := c.Current(); err != nil {
			return nil, err
		}
		return nil, job.Errorf(job.Unavailable, "the call ended before the server's catalog was at hand; nothing was changed")
	}
}

// await waits for the catalog, which says what a board was given, for a while.
// Where it cannot be read, the board goes on without granting claims: whoever a
// policy keeps away is not let in by a restart.
func (k *catalogHandle) await(ctx context.Context) {
	if k == nil {
		return
	}
	late := time.NewTimer(openingTime) // a context of each board would have all wait for their one parent
	defer late.Stop()
	select {
	case <-k.ready:
	case <-ctx.Done():
		return
	case <-late.C:
		return
	}
	select {
	case <-k.open().Synced():
	case <-ctx.Done():
	case <-late.C:
	}
}

// countHosts tells the quotas, again and again, how many hosts share the limits on rates.
func (h *Host) countHosts(ctx context.Context) {
	for {
		if c := h.catalog.open(); c != nil {
			b := h.catalog.backend
			if p := b.present(h, b.running.Load().driver.Documents()); p != nil {
				if hosts, err := p.Hosts(ctx); err == nil {
					h.quotas.SetHosts(len(hosts))
				}
			}
		}
		if sleep.For(ctx, countHostsEvery) != nil {
			return
		}
	}
}

const countHostsEvery = 5 * time.Second

// admit lets in the tokens of the configuration and those of the catalog that
// belong to a tenant that there is.
func (h *Host) admit() {
	registry, err := tenant.NewRegistry(h.Directory().Credentials())
	if err != nil { // both sources were checked before
		h.logger.Error("the tokens were not changed", "error", err)
		return
	}
	h.access.Replace(registry)
	if err := h.issuers.Replace(h.Settings().Issuers); err != nil { // it was checked before
		h.logger.Error("the identity providers were not changed", "error", err)
	}
	h.issuers.Recheck()
}

// admitTenant does so for one tenant, of which something changed in the catalog.
func (h *Host) admitTenant(of string) {
	if err := h.access.Amend(of, h.Directory().CredentialsOf(of)); err != nil {
		h.logger.Error("a token is not let in", "tenant", of, "error", err)
	}
	h.issuers.Recheck()
}

// Catalog returns the catalog for a change, as soon as it is there.
func (h *Host) Catalog(ctx context.Context) (*catalog.Catalog, error) {
	return h.catalog.forChange(ctx)
}

// tenantID returns the id that tells a tenant from an earlier one of its name; "" for a
// tenant of the configuration. The error says why nobody is let in for the tenant.
func (h *Host) tenantID(name string) (string, error) {
	known := h.Known() // before the directory is looked at
	t, err := h.Directory().Tenant(name)
	switch {
	case err != nil && known != nil:
		return "", known
	case err != nil:
		return "", err
	case !t.Deleted.IsZero():
		return "", tenant.NoTenant(name)
	}
	return t.ID, nil
}

// Doubt returns how the store's catalog contradicts what this host remembers of it, or
// nil.
func (h *Host) Doubt() *catalog.Doubt {
	if c := h.catalog.open(); c != nil {
		return c.Doubt()
	}
	return nil
}

// CatalogRecords returns how many records of the catalog this host knows, and how many
// of them the store has lost.
func (h *Host) CatalogRecords() (known, lost int) {
	c := h.catalog.open()
	if c == nil {
		return 0, 0
	}
	known, _ = c.Records()
	switch d := c.Doubt(); {
	case d == nil:
	case d.Foreign:
		lost = known
	default:
		lost = d.Missing + d.Older + d.Returned
	}
	return known, lost
}

// CatalogAge returns how long ago the catalog's store last answered, less than 0 if it has
// not yet; ok is false for a host that keeps no catalog.
func (h *Host) CatalogAge() (age time.Duration, ok bool) {
	if c := h.catalog.open(); c != nil {
		return c.Age(), true
	}
	return -1, h.catalog != nil
}

// resettle takes the places of all boards again, after a store has lost something: what
// says whose they are may be gone too.
func (h *Host) resettle() {
	for _, b := range h.registry.allBoards() {
		if b.board.Load() == nil {
			continue // it takes its place when it is opened
		}
		h.registry.leaving.Go(func() {
			ctx, cancel := context.WithTimeout(b.running(), openingTime)
			defer cancel()
			if err := b.occupy(ctx, h); err != nil && !b.over() {
				b.logger().Warn("the board's place in the store could not be taken again", "error", err)
			}
		})
	}
}

// What is not in this host's view of the catalog may have been made on another one a
// moment ago: then the store is asked.
const (
	lookupsAtOnce = 16
	lookupWithin  = 2 * time.Second
)

// Look returns a board that is served, or nil if there is none. Before the catalog was
// read, it is Unavailable for a board that is not served yet.
func (h *Host) Look(ctx context.Context, at catalog.At) (*Hosted, error) {
	known := h.Known() // before the registry is looked at, which is filled before the catalog counts as read
	if found := h.registry.board(at.Tenant, at.Name); found != nil {
		return found, nil
	}
	if known != nil {
		return nil, known
	}
	if err := h.Lookup(ctx, catalog.Key("board", at.Tenant, at.Name)); err != nil {
		return nil, err
	}
	return h.registry.board(at.Tenant, at.Name), nil
}

var errUnread = error(job.Errorf(job.Unavailable, "the server has not read its catalog yet: try again in a moment"))

// Known returns nil once the catalog was read, or if the host keeps none. Until then a list
// of what it keeps would be taken for the whole, and what is not found may well be there.
func (h *Host) Known() error {
	if h.catalog.unread() {
		return errUnread
	}
	return nil
}

// Lookup asks the store whether it has a record that this host has not seen yet, and
// waits until this host has seen it.
func (h *Host) Lookup(ctx context.Context, key string) error {
	c := h.catalog.open()
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	select {
	case h.lookups <- struct{}{}:
		defer func() { <-h.lookups }()
	case <-ctx.Done():
		return errUnread
	}
	if err := c.Refresh(ctx, key); err != nil {
		h.logger.Debug("the catalog could not be asked for a record", "record", key, "error", err)
		return &job.Error{Kind: job.Unavailable, Message: "this server does not know of it, and its catalog's store does not answer or tells it late: try again in a moment", Err: err}
	}
	return nil
}
