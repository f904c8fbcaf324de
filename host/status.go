package host

import (
	"cmp"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board"
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
	Full     bool             // the store answered last that what makes a board larger is refused
	Restarts int64            // of the driver's process
	Apply    *board.Histogram // of batches of changes
}

// Backends returns the backends that a board or the catalog needs, by name.
func (h *Host) Backends() []BackendStatus {
	backends := h.registry.allBackends()
	all := make([]BackendStatus, 0, len(backends))
	for _, b := range backends {
		status := BackendStatus{Name: b.config.Name, Driver: b.config.Driver, Apply: b.latency, Full: b.full.Load()}
		if r := b.running.Load(); r != nil {
			status.Running = true
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
