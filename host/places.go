package host

import (
	"context"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// PlaceInfo is a place in a backend's store, and whose it is.
type PlaceInfo struct {
	Location      string
	Tenant, Board string
	Servers       []string // that live and say that they serve the board there
}

// ListPlaces returns which board lies where on a backend.
func (s *Session) ListPlaces(ctx context.Context, backend string) ([]PlaceInfo, error) {
	if err := s.principal.Check("ListPlaces", ""); err != nil {
		return nil, err
	}
	on, docs, err := s.host.storeOf(ctx, backend)
	if err != nil {
		return nil, err
	}
	uses, err := on.placesIn(docs).List(ctx)
	if err != nil {
		return nil, err
	}
	hosts, err := catalog.Hosts(ctx, docs)
	if err != nil {
		return nil, err
	}
	list := make([]PlaceInfo, len(uses))
	for i, use := range uses {
		list[i] = s.host.placeInfo(on, use, hosts)
	}
	return list, nil
}

// placeInfo says of a place who serves its board there.
func (h *Host) placeInfo(on *backend, use catalog.Use, hosts []catalog.Host) PlaceInfo {
	info := PlaceInfo{Location: use.Location, Tenant: use.Tenant, Board: use.Board}
	for _, other := range hosts {
		if other.Serves(use) {
			info.Servers = append(info.Servers, other.ID)
		}
	}
	if b := h.registry.board(use.Tenant, use.Board); b != nil && b.config.Backend == on.config.Name && !b.config.Observe &&
		catalog.LocationOf(b.config.Settings, b.key()).String() == use.Location && !slices.Contains(info.Servers, h.id) {
		info.Servers = append(info.Servers, h.id) // which may have its store alone, and tell nobody
	}
	return info
}

// ReleasePlace frees a place in a backend's store, which another board may have
// then. What lies there is left as it is. A place whose board is served there is only
// freed by force: two boards would have its jobs.
func (s *Session) ReleasePlace(ctx context.Context, backend, location string, force bool) (PlaceInfo, error) {
	if err := s.principal.Check("ReleasePlace", ""); err != nil {
		return PlaceInfo{}, err
	}
	list, err := s.ListPlaces(ctx, backend)
	if err != nil {
		return PlaceInfo{}, err
	}
	location = strings.TrimSpace(location)
	n := slices.IndexFunc(list, func(p PlaceInfo) bool { return p.Location == location })
	if n < 0 {
		return PlaceInfo{}, job.Errorf(job.NotFound, "no board has the place %q on the backend %s: boardd backend places %s lists those that are taken", tenant.Clip(location), backend, backend)
	}
	place := list[n]
	if len(place.Servers) > 0 && !force {
		return PlaceInfo{}, job.Errorf(job.Precondition, "the board %s/%s is served at %s by %s: stop serving it there first, or release the place with force",
			place.Tenant, place.Board, place.Location, strings.Join(place.Servers, ", "))
	}
	on, docs, err := s.host.storeOf(ctx, backend)
	if err != nil {
		return PlaceInfo{}, err
	}
	if err := on.placesIn(docs).Vacate(ctx, catalog.LocationNamed(place.Location), place.Tenant, place.Board); err != nil {
		return PlaceInfo{}, err
	}
	s.host.logger.Info("a place in a store was freed", "backend", backend, "place", place.Location, "tenant", place.Tenant, "board", place.Board, "force", force)
	return place, nil
}

// storeOf returns a backend of the configuration that runs, and its documents.
func (h *Host) storeOf(ctx context.Context, name string) (*backend, driver.Documents, error) {
	if !slices.ContainsFunc(h.Settings().Backends, func(c config.Backend) bool { return c.Name == name }) {
		return nil, nil, job.Errorf(job.NotFound, "there is no backend %q", tenant.Clip(name))
	}
	on, r, err := h.runningBackend(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return on, r.driver.Documents(), nil
}
