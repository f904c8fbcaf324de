package fleet

import (
	"fmt"
	"slices"
	"time"

	hostfleet "github.com/boardd/boardd/host/fleet"
)

// hand is host.fleetPart.hand: it asks another server to open boards, and closes those
// that it has had open for a moment.
func (s *server) hand(to *server, boards []int32) error {
	open := make([]bool, len(boards))
	if s.world.flaw == ClosesFirst {
		for i := range open {
			open[i] = true
		}
	}
	if s.reaches(to) {
		for i, b := range boards[:min(len(boards), maxHasOpen)] {
			open[i] = to.hasOpen(b, false) || open[i]
		}
	} else if s.world.flaw != ClosesFirst {
		return nil
	}
	var gone []int32
	for i, b := range boards {
		h := &s.held[s.at[b]]
		if !open[i] {
			h.handed = time.Time{}
			continue
		}
		if h.handed.IsZero() {
			h.handed = s.world.now
		}
		if hostfleet.MayClose(s.world.now, h.handed, h.used, h.warm, s.drains()) {
			gone = append(gone, b)
		}
	}
	for _, b := range gone {
		if err := s.close(b); err != nil {
			return err
		}
	}
	return nil
}

// close closes a board that another server has open.
func (s *server) close(b int32) error {
	i := s.at[b]
	if s.held[i].open {
		s.world.closed(b)
	}
	last := len(s.held) - 1
	s.held[i] = s.held[last]
	s.at[s.held[i].board] = i
	s.held = s.held[:last]
	delete(s.at, b)
	if s.table.first[b] == s.number { // as it sees it by now
		s.wanted = append(s.wanted, b)
	}
	for _, o := range s.world.servers {
		if j, asked := o.at[b]; asked && o.up && o.held[j].open {
			return nil
		}
	}
	return fmt.Errorf("%s closed the board %v, and nobody else has it open", s.id, s.world.boards[b])
}

// hasOpen is host.Host.HasOpen: another server asks this one to open a board.
func (s *server) hasOpen(b int32, warm bool) bool {
	if s.world.now.Before(s.knows) || s.drains() {
		return false
	}
	if !warm && (s.table == nil || s.table.first[b] != s.number) {
		return false
	}
	i, asked := s.at[b]
	if !asked && s.mayOpen() {
		s.ask(b, false)
		i, asked = s.at[b]
	}
	if !asked {
		return false
	}
	if warm {
		s.held[i].warm = s.world.now.Add(warmFor)
	}
	return s.held[i].open
}

// warm has the second server keep a large board open.
func (s *server) warm(b int32, second int16) {
	if to := s.world.servers[second]; s.reaches(to) {
		to.hasOpen(b, true)
	}
}

// reaches reports whether a server can ask another one now.
func (s *server) reaches(to *server) bool {
	return to.works() && !s.dumb && !to.unheard && s.works()
}

// What becomes of a call, and how long that takes.
const (
	hangs    = 2 * time.Second // until a server that is silent is taken for away
	openLast = 8 * time.Second // for which a server that takes a board for another one waits
)

// answer is what came of a call.
type answer struct {
	took      time.Duration
	forwarded bool
	err       string
}

// call is a call of a board that comes to this server: host.Host.Route and Takes, as package
// host/api asks them.
func (s *server) call(b int32) (a answer) {
	if s.table == nil {
		return answer{err: "the server starts"}
	}
	must := false
	for _, n := range []int16{s.table.first[b], s.table.second[b]} {
		if n == s.number || n == nobody {
			break
		}
		to := s.world.servers[n]
		if !s.reaches(to) {
			if to.up && !s.away[n] {
				a.took += hangs
			}
			s.away[n], must = true, true
			continue
		}
		s.away[n] = false
		if took, takes := to.takes(b, must); takes {
			a.took += took
			if a.forwarded = true; !to.way.reaches() {
				a.err = "the server that has the board does not reach its store"
			}
			return a
		}
	}
	h := s.ask(b, true)
	h.used = s.world.now
	if !s.way.reaches() {
		a.err = "the server does not reach its store"
	}
	if !h.open {
		a.took += s.wait(b)
	}
	return a
}

// takes reports whether the server serves a board for another one that asks.
func (s *server) takes(b int32, must bool) (took time.Duration, takes bool) {
	i, asked := s.at[b]
	if asked && s.held[i].open {
		return 0, true
	}
	if s.table == nil || !must && s.table.first[b] != s.number || s.drains() {
		return 0, false
	}
	if !asked {
		s.ask(b, true)
	} else if j := slices.Index(s.queue, b); j >= 0 { // it goes to the front
		s.queue = slices.Delete(s.queue, j, j+1)
		s.called = append(s.called, b)
	}
	if took = s.wait(b); took > openLast || !must && took > time.Second {
		return 0, false
	}
	return took, true
}

// wait is how long a board that is called still takes to open.
func (s *server) wait(b int32) time.Duration {
	ahead := max(0, slices.Index(s.called, b))
	took := openTime * time.Duration(1+ahead/openAtOnce)
	if s.slow {
		took *= 10
	}
	return took
}
