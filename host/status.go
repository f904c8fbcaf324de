package host

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/driver"
)

// newLatency counts how long batches of changes take.
func newLatency() *board.Histogram {
	return board.NewHistogram(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
}

// BackendStatus is how a backend stands, for whoever runs the server.
type BackendStatus struct {
	Name     string
	Driver   string
	Running  bool
	Answers  bool             // the store did, when it was asked last
	Full     bool             // the store answered last that what makes a board larger is refused
	Usage    driver.Usage     // what the store said last that it holds
	Restarts int64            // of the driver's process
	Apply    *board.Histogram // of batches of changes
}

// Backends returns the backends that a board or the catalog needs, by name.
func (h *Host) Backends() []BackendStatus {
	backends := h.registry.allBackends()
	all := make([]BackendStatus, 0, len(backends))
	for _, b := range backends {
		status := BackendStatus{Name: b.config.Name, Driver: b.config.Driver, Apply: b.latency, Full: b.full.Load()}
		if u := b.usage.Load(); u != nil {
			status.Usage = *u
		}
		if r := b.running.Load(); r != nil {
			_, err := b.ailment.look()
			status.Running, status.Answers = true, err == nil
			if r.restarts != nil {
				status.Restarts = r.restarts()
			}
		}
		all = append(all, status)
	}
	slices.SortFunc(all, func(a, b BackendStatus) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// IssuerKeys returns, for each identity provider by its name in the configuration,
// how old what is known of its keys is; less than 0 for nothing.
func (h *Host) IssuerKeys() map[string]time.Duration { return h.issuers.Ages() }

// Serves returns how many boards there are.
func (h *Host) Serves() int { return len(h.registry.allBoards()) }

// Use counts what a tenant uses.
func (h *Host) Use(ctx context.Context, tenant string) map[string]int64 {
	use := h.quotas.Use(ctx, tenant)
	use["boards"] = int64(len(h.registry.names(tenant)))
	view, size := h.catalog.view(), int64(0)
	for _, n := range view.Named(tenant) {
		size += n
	}
	use["policies"], use["policy_bytes"] = int64(len(catalog.Of(view.Policies, tenant))), size
	policies := h.policies.TenantUse(tenant)
	use["policy_processes"], use["policy_memory"] = policies.Processes, policies.Memory
	return use
}
