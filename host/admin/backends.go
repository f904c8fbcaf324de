package admin

import (
	"context"
	"io"
	"strings"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// BackendInfo is a backend as AdminService shows it.
type BackendInfo struct {
	Name, Driver string
	Tenants      []string
	Ready        bool
	Problem      string
	Restarts     int64
	Used, Limit  int64 // bytes, as its store says; 0: not known
}

// ListBackends returns the backends on which a tenant may make boards; to an
// operator, all of them.
func (s *Session) ListBackends(ctx context.Context, of string) ([]BackendInfo, error) {
	t, err := s.about("ListBackends", of, "")
	if err != nil {
		return nil, err
	}
	operator := s.principal.Has(tenant.Operator)
	statuses := map[string]host.BackendStatus{}
	for _, status := range s.host.Backends() {
		statuses[status.Name] = status
	}
	list := []BackendInfo{}
	for _, c := range s.host.Settings().Backends {
		if !operator && !s.host.Directory().Grants(c.Name, t.Name) {
			continue
		}
		info := BackendInfo{Name: c.Name, Driver: c.Driver}
		status, started := statuses[c.Name]
		info.Ready = started && status.Running
		if operator {
			info.Tenants, info.Restarts = c.Tenants, status.Restarts
			problem := s.host.BackendProblem(ctx, c.Name, started)
			usage := s.host.BackendUsage(c.Name, started)
			info.Used, info.Limit = usage.Used, usage.Limit
			info.Ready = info.Ready && (problem == nil || job.KindOf(problem) == job.QuotaExceeded)
			if problem != nil {
				info.Problem = problem.Error()
			}
		}
		list = append(list, info)
	}
	return list, nil
}

// Reload reads the configuration anew and puts it in place of the present one. It
// returns what changed. If it returns an error, nothing was changed.
func (s *Session) Reload(ctx context.Context) ([]string, error) {
	if err := s.principal.Check("ReloadConfig", ""); err != nil {
		return nil, err
	}
	return s.host.Reload(ctx)
}

// Backup writes a copy of a backend's store to w: at most rate bytes a second.
func (s *Session) Backup(ctx context.Context, backend string, rate int64, w io.Writer) error {
	if err := s.principal.Check("BackupBackend", ""); err != nil {
		return err
	}
	return s.host.Backup(ctx, backend, rate, w)
}

// ListPlaces returns which board lies where on a backend: those places whose keys come after
// one, at most so many, by their keys; 0: all.
func (s *Session) ListPlaces(ctx context.Context, backend, after string, most int) ([]host.PlaceInfo, error) {
	if err := s.principal.Check("ListPlaces", ""); err != nil {
		return nil, err
	}
	if after != "" && !catalog.IsKey(after) {
		return nil, job.Errorf(job.Invalid, "pageToken: want one that a page of these places gave, got %q", tenant.Clip(after))
	}
	return s.host.Places(ctx, backend, after, most)
}

// ListServers returns the servers of the fleet, by what they advertise.
func (s *Session) ListServers() ([]fleet.Seen, error) {
	if err := s.principal.Check("ListServers", ""); err != nil {
		return nil, err
	}
	return s.host.Fleet()
}

// DrainServer has a server of the fleet give its boards to the others, or serve again.
func (s *Session) DrainServer(ctx context.Context, advertise string, undo bool) (fleet.Seen, error) {
	if err := s.principal.Check("DrainServer", ""); err != nil {
		return fleet.Seen{}, err
	}
	return s.host.DrainServer(ctx, advertise, undo)
}

// ReleasePlace frees a place in a backend's store, which another board may have
// then. What lies there is left as it is. A place whose board is served there is only
// freed by force: two boards would have its jobs.
func (s *Session) ReleasePlace(ctx context.Context, backend, location string, force bool) (host.PlaceInfo, error) {
	if err := s.principal.Check("ReleasePlace", ""); err != nil {
		return host.PlaceInfo{}, err
	}
	place, err := s.host.Place(ctx, backend, strings.TrimSpace(location))
	if err != nil {
		return host.PlaceInfo{}, err
	}
	if len(place.Servers) > 0 && !force {
		return host.PlaceInfo{}, job.Errorf(job.Precondition, "the board %s/%s is served at %s by %s: stop serving it there first, or release the place with force",
			place.Tenant, place.Board, place.Location, strings.Join(place.Servers, ", "))
	}
	if err := s.host.Vacate(ctx, backend, place); err != nil {
		return host.PlaceInfo{}, err
	}
	s.host.Logger().Info("a place in a store was freed", "backend", backend, "place", place.Location, "tenant", place.Tenant, "board", place.Board, "force", force)
	return place, nil
}
