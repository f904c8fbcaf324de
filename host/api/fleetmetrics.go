package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/boardd/boardd/host"
)

// counted counts calls by the server that made them.
type counted struct{ vec *prometheus.CounterVec }

func (c *counted) add(to string) { c.vec.WithLabelValues(to).Inc() }

// newForwarded is for a server that is in a fleet.
func newForwarded(m *metrics) *counted {
	c := &counted{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "boardd_calls_forwarded_total", Help: "Calls that another server of the fleet made for callers of this one.",
	}, []string{"to"})}
	m.registry.MustRegister(c.vec)
	return c
}

// openBoards shows which boards a server has open, and how they came and went.
type openBoards struct{ host *host.Host }

var (
	descOpen  = newDesc("boardd_boards_open", "Boards that are open on this server: in a fleet, each board is open on one.")
	descMoves = newDesc("boardd_board_moves_total", "Boards that this server began or ceased to serve because of the fleet.", "reason")
)

// Describe names the metrics.
func (*openBoards) Describe(to chan<- *prometheus.Desc) {
	to <- descOpen
	to <- descMoves
}

// Collect reads them.
func (o *openBoards) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(o.host.OpenBoards()))
	for reason, n := range o.host.Moves() {
		to <- prometheus.MustNewConstMetric(descMoves, prometheus.CounterValue, float64(n), reason)
	}
}
