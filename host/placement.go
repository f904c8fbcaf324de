package host

import (
	"slices"
	"strings"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// Placement returns the backend on which a new board of a tenant is to lie that says nothing of
// it: of those that are open to the tenant and have room for a number of boards (placement)
// that for the most more, of equal ones the first. A store that was full or away when it was
// last asked gets none. It is not reserved, so that boards that are made at the same time may
// get the same last room. Without a backend that has a placement the name is empty.
func (h *Host) Placement(of string) (name string, err error) {
	var full, away []string
	most := int64(0)
	for _, c := range h.Settings().Backends {
		if c.Placement == 0 || !c.Grants(of) {
			continue
		}
		left := c.Placement - h.registry.lieOn(c.Name)
		if b := h.registry.started(c.Name); b != nil {
			_, ill := b.ailment.look()
			if b.problem.Load() != nil || ill != nil {
				away = append(away, c.Name)
				continue
			}
			if b.full.Load() {
				left = 0
			}
		}
		if left <= 0 {
			full = append(full, c.Name)
		} else if left > most {
			name, most = c.Name, left
		}
	}
	all := slices.Concat(full, away)
	switch {
	case name != "" || len(all) == 0:
		return name, nil
	case len(full) == 0:
		return "", job.Errorf(job.Unavailable, "board.backend: none is named, and no store that takes new boards of the tenant %q answers now: [%s]", tenant.Clip(of), strings.Join(all, ", "))
	}
	return "", job.Errorf(job.QuotaExceeded, "board.backend: none is named, and those that take new boards of the tenant %q have no room for one: [%s]", tenant.Clip(of), strings.Join(all, ", "))
}

// lieOn returns how many boards lie on a backend.
func (s *registry) lieOn(backend string) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lie[backend]
}

// lies notes that a board lies where it does, or did. The caller has mu.
func (s *registry) lies(b *Hosted, n int64) {
	if s.lie[b.config.Backend] += n; s.lie[b.config.Backend] == 0 {
		delete(s.lie, b.config.Backend)
	}
}
