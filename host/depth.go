package host

import (
	"github.com/boardd/boardd/host/board"
)

// Depth is how full a board is, and what this host did on it since it started.
type Depth struct {
	Tenant, Board                   string
	Counts                          board.Counts // without Trashed and Complete
	Posted, Consumed, Lost, Trashed int64        // Lost: claims that expired or were abandoned
}

// Depths returns what is known of each board that is open, without asking a
// store, in no order.
func (h *Host) Depths() []Depth {
	var all []Depth
	for _, s := range h.registry.allBoards() {
		b := s.board.Load()
		if b == nil {
			continue
		}
		counts, ok := b.Depth()
		if !ok {
			continue
		}
		m := b.Metrics()
		all = append(all, Depth{
			Tenant: s.config.Tenant, Board: s.config.Name, Counts: counts,
			Posted: m.Posted.Load(), Consumed: m.Consumed.Load(),
			Lost: m.Expired.Load() + m.Abandoned.Load(), Trashed: m.Trashed.Load(),
		})
	}
	return all
}
