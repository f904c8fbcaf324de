package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// catalogBackend is the embedded store in the data folder that keeps the catalog
// where the configuration names no other. No backend of a configuration can have
// this name.
const catalogBackend = "_catalog"

// catalogHandle is the host's catalog on its backend. A nil one is that of a host that
// keeps none.
type catalogHandle struct {
	backend *backend
	running sync.WaitGroup

	mu      sync.Mutex
	ready   chan struct{} // closed when there is a catalog
	catalog *catalog.Catalog
}

// openCatalog begins to read the catalog, if the host keeps one.
func (h *Host) openCatalog() {
	name := h.Settings().Catalog
	if name == "" {
		if h.Settings().DataDir == "" || !h.hasEmbedded() {
			return
		}
		name = catalogBackend
	}
	k := &catalogHandle{backend: h.backend(name), ready: make(chan struct{})}
	h.catalog = k
	k.running.Go(func() { k.run(h) })
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
	memory, err := catalog.OpenMemory(catalogMemory(h.Settings().DataDir), h.logger)
	if err != nil {
		h.logger.Error("what was known of the catalog cannot be read: its loss would not be noticed", "error", err)
		memory, _ = catalog.OpenMemory("", h.logger) // which cannot fail
	}
	defer func() { _ = memory.Close() }() // what could not be written was logged
	docs := k.backend.running.Load().driver.Documents()
	doubted := false
	c := catalog.New(docs, catalog.Options{Logger: k.backend.logger, Memory: memory, Changed: func(*catalog.View) {
		h.arrange()
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

// tenantNames returns the tenants of the configuration.
func (h *Host) tenantNames() []string {
	names := h.Settings().Tenants
	if !slices.Contains(names, tenant.Default) {
		names = append(slices.Clone(names), tenant.Default)
	}
	for _, b := range h.Settings().Boards {
		if of := tenantOf(b); !slices.Contains(names, of) {
			names = append(slices.Clone(names), of)
		}
	}
	return names
}

// admit lets in the tokens of the configuration and those of the catalog that
// belong to a tenant that there is.
func (h *Host) admit() {
	tokens := slices.Clone(h.Settings().Tokens)
	names, digests := map[[2]string]bool{}, map[tenant.Digest]bool{}
	for _, t := range tokens {
		if t.Tenant == "" {
			t.Tenant = tenant.Default
		}
		names[[2]string{t.Tenant, t.Name}], digests[t.Digest] = true, true
	}
	view := h.catalog.view()
	for _, t := range view.Tokens {
		access, ok := t.Access()
		name := [2]string{t.Tenant, t.Name}
		if !ok || names[name] || digests[access.Digest] || !view.Belongs(t.Tenant, t.Owner, h.declares(t.Tenant)) {
			continue
		}
		names[name], digests[access.Digest] = true, true
		tokens = append(tokens, access)
	}
	registry, err := tenant.NewRegistry(tokens)
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

// occupy makes the place in the store where the board's jobs lie this board's,
// or returns why it is not. An observed board writes nothing there.
func (s *hosted) occupy(ctx context.Context, h *Host) error {
	if s.config.Observe {
		return nil
	}
	docs := s.backend.running.Load().driver.Documents()
	return s.backend.place(ctx, h, docs, s.config)
}

// place occupies a board's place on the backend.
func (b *backend) place(ctx context.Context, h *Host, docs driver.Documents, c config.Board) error {
	key := c.Tenant + "/" + c.Name
	place := catalog.LocationOf(c.Settings, key)
	use := catalog.Use{Tenant: c.Tenant, Board: c.Name, Settings: effective(c)}
	var others map[string]map[string]string
	if p := b.present(h, docs); p != nil {
		var err error
		if others, err = p.Serve(ctx, place, use.Settings); err != nil {
			return err
		}
	}
	err := b.placesIn(docs).Occupy(ctx, place, use, others)
	if p := b.present(h, docs); err != nil && p != nil {
		_ = p.Leave(ctx, place) // or it is only believed for a while that this host serves the board
	}
	return err
}

// placesIn returns what says which board lies where on the backend's store.
func (b *backend) placesIn(docs driver.Documents) *catalog.Places {
	b.line.Lock()
	defer b.line.Unlock()
	if b.places == nil {
		b.places = catalog.NewPlaces(docs, b.config.Name)
	}
	return b.places
}

// leave says that the host no longer serves the board.
func (s *hosted) leave(h *Host) {
	if s.config.Observe || s.next.Load() != nil || h.running.Err() != nil {
		return // or the backend's presence ends as a whole
	}
	docs := s.backend.running.Load().driver.Documents()
	if p := s.backend.present(h, docs); p != nil {
		ctx, cancel := context.WithTimeout(h.running, openingTime)
		defer cancel()
		_ = p.Leave(ctx, catalog.LocationOf(s.config.Settings, s.key())) // else it is believed for a while
	}
}

// present returns this host's presence on the backend's store, nil for a store
// that has one host only.
func (b *backend) present(h *Host, docs driver.Documents) *catalog.Presence {
	if b.config.Driver == "embedded" {
		return nil
	}
	b.line.Lock()
	defer b.line.Unlock()
	if b.presence == nil {
		b.presence = catalog.NewPresence(docs, catalog.Host{ID: h.id, Version: h.Version()}, b.logger)
		b.wg.Go(func() {
			ctx, cancel := context.WithCancel(h.running)
			defer cancel()
			stop := context.AfterFunc(b.ending, cancel)
			defer stop()
			b.presence.Run(ctx)
		})
	}
	return b.presence
}

// effective returns the settings that every host must have alike which serves a
// board, in words.
func effective(c config.Board) map[string]string {
	fencing := "token"
	if c.FenceByOwner {
		fencing = "owner"
	}
	settings := map[string]string{
		"fencing": fencing, "lease": c.Lease.String(), "max_lease": c.MaxLease.String(),
		"allow_no_expiry": fmt.Sprint(c.AllowNoExpiry), "idempotency_window": c.IdempotencyWindow.String(), "history": c.History.String(),
		"max_attempts": fmt.Sprint(c.Retry.MaxAttempts), "backoff": c.Retry.Backoff.String(), "max_backoff": c.Retry.MaxBackoff.String(),
	}
	if c.Ordering != nil || len(c.Eligibility) > 0 {
		settings["policies"] = ruleText(c)
	}
	return settings
}

// ruleText names the policies of the configuration, with their parameters.
func ruleText(c config.Board) string {
	text, _ := json.Marshal(struct { // it has no value that could fail
		Eligibility []config.Rule `json:"eligibility,omitempty"`
		Ordering    *config.Rule  `json:"ordering,omitempty"`
	}{c.Eligibility, c.Ordering})
	return string(text)
}
