package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// PlaceInfo is a place in a backend's store, and whose it is.
type PlaceInfo struct {
	Location      string
	Key           string // where it stands in Places
	Tenant, Board string
	Servers       []string // that live and say that they serve the board there
}

// Places returns which board lies where on a backend: those places whose keys come after one,
// at most so many, by their keys; 0: all.
func (h *Host) Places(ctx context.Context, backend, after string, most int) ([]PlaceInfo, error) {
	on, docs, err := h.storeOf(ctx, backend)
	if err != nil {
		return nil, err
	}
	taken, err := on.placesIn(docs).List(ctx, after, most)
	if err != nil {
		return nil, err
	}
	return h.placeInfos(ctx, on, docs, taken)
}

// Place returns the place of a location as Places shows it, or NotFound where it is not taken.
func (h *Host) Place(ctx context.Context, backend, location string) (PlaceInfo, error) {
	on, docs, err := h.storeOf(ctx, backend)
	if err != nil {
		return PlaceInfo{}, err
	}
	taken, err := on.placesIn(docs).Find(ctx, location)
	if job.KindOf(err) == job.NotFound {
		err = job.Errorf(job.NotFound, "no board has the place %q on the backend %s: boardd backend places %s lists those that are taken", tenant.Clip(location), backend, backend)
	}
	if err != nil {
		return PlaceInfo{}, err
	}
	list, err := h.placeInfos(ctx, on, docs, []catalog.Taken{taken})
	if err != nil {
		return PlaceInfo{}, err
	}
	return list[0], nil
}

// placeInfos says of places who serves their boards there.
func (h *Host) placeInfos(ctx context.Context, on *backend, docs driver.Documents, taken []catalog.Taken) ([]PlaceInfo, error) {
	uses := make([]catalog.Use, len(taken))
	for i := range taken {
		uses[i] = taken[i].Use
	}
	servers, err := catalog.Servers(ctx, docs, uses)
	if err != nil {
		return nil, err
	}
	list := make([]PlaceInfo, len(taken))
	for i := range taken {
		list[i] = h.placeInfo(on, taken[i].Use, servers[i])
		list[i].Key = taken[i].Key
	}
	return list, nil
}

// placeInfo says of a place who serves its board there: those of which the store knows, and
// this host.
func (h *Host) placeInfo(on *backend, use catalog.Use, servers []string) PlaceInfo {
	info := PlaceInfo{Location: use.Location, Tenant: use.Tenant, Board: use.Board, Servers: servers}
	if b := h.registry.board(use.Tenant, use.Board); b != nil && b.config.Backend == on.config.Name && !b.config.Observe &&
		catalog.LocationOf(b.config.Settings, b.key()).String() == use.Location && !slices.Contains(info.Servers, h.id) {
		info.Servers = append(info.Servers, h.id) // which may have its store alone, and tell nobody
	}
	return info
}

// Vacate frees a place in a backend's store. What lies there is left as it is.
func (h *Host) Vacate(ctx context.Context, backend string, place PlaceInfo) error {
	on, docs, err := h.storeOf(ctx, backend)
	if err != nil {
		return err
	}
	return on.placesIn(docs).Vacate(ctx, catalog.LocationNamed(place.Location), place.Tenant, place.Board)
}

// storeOf returns a backend of the configuration that runs, and its documents.
func (h *Host) storeOf(ctx context.Context, name string) (*backend, driver.Documents, error) {
	on, r, err := h.declaredBackend(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return on, r.driver.Documents(), nil
}

// declaredBackend returns a backend of the configuration as soon as it runs.
func (h *Host) declaredBackend(ctx context.Context, name string) (*backend, *running, error) {
	var names []string
	for _, c := range h.Settings().Backends {
		names = append(names, c.Name)
	}
	if !slices.Contains(names, name) {
		return nil, nil, job.Errorf(job.NotFound, "there is no backend %q%s", tenant.Clip(name), nearest.Among(tenant.Clip(name), names))
	}
	return h.runningBackend(ctx, name)
}

// Prepare asks the backend's driver whether it takes the board's settings, makes
// them where they are missing, and occupies the place.
func (h *Host) Prepare(ctx context.Context, b *config.Board) error {
	on, r, err := h.runningBackend(ctx, b.Backend)
	if err != nil {
		return err
	}
	if !b.Given() {
		if b.Settings, err = catalog.MakeSettings(r.info.Board, on.config.Settings, b.Tenant, b.Name); err != nil {
			return err
		}
	}
	if problems := r.info.Board.Check(b.Settings); len(problems) > 0 {
		return job.Errorf(job.Invalid, "board.config.%v", problems[0])
	}
	compact := &bytes.Buffer{}
	if err := json.Compact(compact, b.Settings); err != nil {
		return job.Errorf(job.Invalid, "board.config: %v", err)
	}
	b.Settings = compact.Bytes()
	if b.Observe {
		return nil
	}
	if h.fleet != nil && on.config.Driver == config.Embedded { // which a server of another name for it, or of the same, has not
		if b.Store, err = fleet.StoreIdentity(ctx, r.driver.Documents(), true); err != nil {
			return err
		}
	}
	return on.place(ctx, h, r.driver.Documents(), *b)
}

// purgeAfter is how long other hosts may take to see that a board is gone, before
// its jobs are.
const purgeAfter = time.Second

// Purge takes away what boards have in their stores, once they are served no more.
func (h *Host) Purge(ctx context.Context, boards ...config.Board) error {
	shared := false
	for _, b := range boards {
		elsewhere, err := h.unserve(ctx, b)
		if err != nil {
			return err
		}
		shared = shared || elsewhere
	}
	if shared {
		select {
		case <-time.After(purgeAfter):
		case <-ctx.Done():
			return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
		}
	}
	for _, b := range boards {
		if err := h.purge(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// PurgeLeft takes away what a board has left in its store that was deleted with its jobs kept. A
// place that was freed since then is whoever's who has it now.
func (h *Host) PurgeLeft(ctx context.Context, b config.Board) error {
	on, r, err := h.runningBackend(ctx, b.Backend)
	if err == nil {
		err = h.Reaches(b)
	}
	if err != nil {
		return err
	}
	taken, err := on.placesIn(r.driver.Documents()).Find(ctx, catalog.LocationOf(b.Settings, b.Tenant+"/"+b.Name).String())
	if job.KindOf(err) == job.NotFound || err == nil && (taken.Tenant != b.Tenant || taken.Board != b.Name) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.Purge(ctx, b)
}

// unserve ends a board that is to be purged, and reports whether other hosts may serve it.
func (h *Host) unserve(ctx context.Context, b config.Board) (shared bool, err error) {
	if b.Observe {
		return false, nil
	}
	on, r, err := h.runningBackend(ctx, b.Backend)
	if err == nil {
		err = h.Reaches(b)
	}
	if err != nil {
		return false, err
	}
	if served := h.registry.board(b.Tenant, b.Name); served != nil { // of a tenant that is just being deleted
		h.registry.drop(served)
		served.stop(&Ended{NoBoard(b.Name)})
		<-served.done.done()
	}
	return on.present(h, r.driver.Documents()) != nil, nil
}

func (h *Host) purge(ctx context.Context, b config.Board) error {
	if b.Observe {
		return nil
	}
	on, r, err := h.runningBackend(ctx, b.Backend)
	if err != nil {
		return err
	}
	key := b.Tenant + "/" + b.Name
	spec := driver.BoardSpec{Name: key, Settings: b.Settings, Window: b.IdempotencyWindow}
	if _, err := r.driver.OpenBoard(ctx, spec); err != nil { // a driver that was restarted may not know it
		return err
	}
	if err := r.driver.DropBoard(ctx, key); err != nil {
		return err
	}
	if err := on.rests(h).rouse(ctx, key); err != nil { // or another board of the name would rest
		return err
	}
	return on.placesIn(r.driver.Documents()).Vacate(ctx, catalog.LocationOf(b.Settings, key), b.Tenant, b.Name)
}

// occupy registers the place in the store where the board's jobs lie as this board's,
// or returns why it cannot. An observed board writes nothing there.
func (s *Hosted) occupy(ctx context.Context, h *Host) error {
	if s.config.Observe {
		return nil
	}
	s.serves.Store(true)
	docs := s.backend.running.Load().driver.Documents()
	return s.backend.place(ctx, h, docs, *s.config)
}

// servesAlso returns what this host has in the place of this board, if that says by now that it
// serves the board there; else nil.
func (s *Hosted) servesAlso(h *Host) *Hosted {
	if b := h.registry.board(s.config.Tenant, s.config.Name); b != nil && b != s && b.backend == s.backend && b.serves.Load() && !b.over() {
		return b
	}
	return nil
}

// place occupies a board's place on the backend.
func (b *backend) place(ctx context.Context, h *Host, docs driver.Documents, c config.Board) error {
	key := c.Tenant + "/" + c.Name
	place := catalog.LocationOf(c.Settings, key)
	use := catalog.Use{Tenant: c.Tenant, Board: c.Name, Settings: effective(c)}
	var others map[string]map[string]string
	if p := b.present(h, docs); p != nil {
		var err error
		if others, err = p.Serve(ctx, place, use); err != nil {
			return err
		}
	}
	err := b.placesIn(docs).Occupy(ctx, place, use, others)
	if p := b.present(h, docs); err != nil && p != nil {
		_ = p.Leave(ctx, place, use) // or it is only believed for a while that this host serves the board
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
func (s *Hosted) leave(h *Host) {
	if s.config.Observe || h.running.Err() != nil {
		return // or the backend's presence ends as a whole
	}
	if next := s.next.Load(); next != nil && next.backend == s.backend || s.servesAlso(h) != nil {
		return // it is served there still
	}
	docs := s.backend.running.Load().driver.Documents()
	if p := s.backend.present(h, docs); p != nil {
		ctx, cancel := context.WithTimeout(h.running, openingTime)
		defer cancel()
		_ = p.Leave(ctx, catalog.LocationOf(s.config.Settings, s.key()), catalog.Use{Tenant: s.config.Tenant, Board: s.config.Name}) // else it is believed for a while
		if b := s.servesAlso(h); b != nil {
			_ = b.occupy(ctx, h) // it had just said so, which was taken back; what is wrong with its place it finds itself
		}
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

// effective returns, as text, the settings that must be the same on all hosts that serve
// a board.
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
