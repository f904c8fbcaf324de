package host

import (
	"cmp"
	"context"
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
	backends := h.shelf.allBackends()
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
func (h *Host) Serves() int { return len(h.shelf.allBoards()) }

// Gauge is a board with its contents, for whoever runs the server.
type Gauge struct {
	Tenant, Board string
	Ready         bool
	Counts        *board.Counts    // nil if they cannot be had
	Waiting       int64            // claim calls that wait now
	Events        map[string]int64 // what this host did, by the name of the event
	Waits, Runs   *board.Histogram // of the jobs; nil as long as the board is not open
}

// Gauges counts at most so many boards, by tenant and name, until ctx ends. If
// there are more, each tenant has as many as the others, as far as it has them.
func (h *Host) Gauges(ctx context.Context, most int) []Gauge {
	all := inTurns(h.shelf.allBoards(), most)
	gauges := make([]Gauge, 0, len(all))
	for _, s := range all {
		g := Gauge{Tenant: s.config.Tenant, Board: s.config.Name}
		if b := s.board.Load(); b != nil {
			g.read(ctx, b)
		}
		gauges = append(gauges, g)
	}
	return gauges
}

// inTurns returns at most so many boards, sorted by tenant and name: the first of
// each tenant, then the second of each, and so on.
func inTurns(all []*served, most int) []*served {
	byName := func(a, b *served) int {
		return cmp.Or(cmp.Compare(a.config.Tenant, b.config.Tenant), cmp.Compare(a.config.Name, b.config.Name))
	}
	slices.SortFunc(all, byName)
	if len(all) <= most {
		return all
	}
	turn, taken := make(map[*served]int, len(all)), map[string]int{}
	for _, s := range all {
		turn[s] = taken[s.config.Tenant]
		taken[s.config.Tenant]++
	}
	slices.SortStableFunc(all, func(a, b *served) int { return cmp.Compare(turn[a], turn[b]) })
	all = all[:most]
	slices.SortFunc(all, byName)
	return all
}

func (g *Gauge) read(ctx context.Context, b *board.Board) {
	g.Ready, g.Waiting = b.Status().Ready, b.Waiting()
	if g.Ready && ctx.Err() == nil {
		if counts, err := b.Count(ctx); err == nil {
			g.Counts = &counts
		}
	}
	m := b.Metrics()
	g.Waits, g.Runs = m.Waits, m.Runs
	g.Events = map[string]int64{
		"policy_error": m.PolicyErrors.Load(), "unrecorded": m.Unrecorded.Load(), "posted": m.Posted.Load(), "posted_again": m.PostedAgain.Load(), "claimed": m.Claimed.Load(),
		"claim_asked": m.Asked.Load(), "passed_over": m.Passed.Load(), "extended": m.Extended.Load(),
		"consumed": m.Consumed.Load(), "canceled": m.Canceled.Load(), "operations": m.Operations.Load(), "log_entries": m.LogEntries.Load(),
		"abandoned": m.Abandoned.Load(), "expired": m.Expired.Load(), "exhausted": m.Exhausted.Load(),
		"trashed": m.Trashed.Load(), "restored": m.Restored.Load(), "purged": m.Purged.Load(), "released": m.Released.Load(),
		"stale_token": m.StaleTokens.Load(), "unknown_outcome": m.Unknown.Load(), "bad_record": m.BadRecords.Load(),
	}
}
