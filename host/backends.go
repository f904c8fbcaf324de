package host

import (
	"context"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// runningBackend returns a backend as soon as it runs.
func (h *Host) runningBackend(ctx context.Context, name string) (*backend, *running, error) {
	b := h.backend(name)
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-b.tried:
	case <-ctx.Done():
	}
	r := b.running.Load()
	if r == nil {
		return nil, nil, job.Errorf(job.Unavailable, "the driver of the backend %s does not run; the server's log says why", name)
	}
	return b, r, nil
}

// BackendInfo is a backend as AdminService shows it.
type BackendInfo struct {
	Name, Driver string
	Tenants      []string
	Ready        bool
	Problem      string
	Restarts     int64
}

// ListBackends returns the backends on which a tenant may make boards; to an
// operator, all of them.
func (s *Session) ListBackends(ctx context.Context, of string) ([]BackendInfo, error) {
	t, err := s.about("ListBackends", of, "")
	if err != nil {
		return nil, err
	}
	operator := s.principal.Has(tenant.Operator)
	statuses := map[string]BackendStatus{}
	for _, status := range s.host.Backends() {
		statuses[status.Name] = status
	}
	list := []BackendInfo{}
	for _, c := range s.host.Settings().Backends {
		if !operator && !s.host.grants(c.Name, t.Name) {
			continue
		}
		info := BackendInfo{Name: c.Name, Driver: c.Driver}
		status, started := statuses[c.Name]
		info.Ready = started && status.Running
		if operator {
			info.Tenants, info.Restarts = c.Tenants, status.Restarts
			problem := s.host.trouble(ctx, c.Name, started)
			info.Ready = info.Ready && (problem == nil || isFull(problem))
			if problem != nil {
				info.Problem = problem.Error()
			}
		}
		list = append(list, info)
	}
	return list, nil
}

// trouble says what is the matter with a backend that was started.
func (h *Host) trouble(ctx context.Context, name string, started bool) error {
	if !started {
		return nil // no board needs it yet
	}
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	return h.backend(name).health(ctx)
}
