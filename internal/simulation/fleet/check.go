package fleet

import (
	"fmt"
	"math"
	"slices"
	"time"

	hostfleet "github.com/boardd/boardd/host/fleet"
)

// Bounds of what is checked.
const (
	leastSilence = 2 * time.Second  // of a server that may be taken for gone, while the store answered
	servedWithin = 30 * time.Second // a board is open again after the last trouble
	fewToJudge   = 5000             // boards that a server takes, under which their number says little
)

// check is done after each slot.
func (w *world) check() error {
	for _, s := range w.servers {
		own, calls := 0, 0
		for i := range s.begun {
			own += s.begun[i]
			calls += s.calls[i]
		}
		w.mostOwn, w.mostCall = max(w.mostOwn, own), max(w.mostCall, calls)
		if own > hostfleet.MaxOpens {
			return fmt.Errorf("%s began to open %d boards in a second, which nobody called: want at most %d", s.id, own, hostfleet.MaxOpens)
		}
		if !w.store.silent {
			w.awake[s.id] += slot
		}
		if last := w.store.put["server/"+s.id]; last.Equal(w.now) {
			w.awake[s.id] = 0
		}
	}
	if w.number%slots != 0 {
		return nil
	}
	w.store.forget()
	if w.excused() {
		w.trouble = w.now
	}
	if w.now.Sub(w.trouble) < servedWithin {
		return nil
	}
	for b, n := range w.opens {
		if n == 0 && w.now.Sub(w.since[b]) >= servedWithin {
			return fmt.Errorf("nobody has the board %v open, for %s", w.boards[b], w.now.Sub(w.since[b]))
		}
	}
	return nil
}

// excused reports whether boards may have no server: the store is silent, nobody is well,
// somebody still starts, or so many servers are silent, more than one, that the view of who
// lives stands.
func (w *world) excused() bool {
	if w.store.silent {
		return true
	}
	some := false
	for _, s := range w.servers {
		if s.up && (!s.serving || s.slow || len(s.wanted)+len(s.queue) > 0 || w.now.Before(s.paused)) {
			return true
		}
		if !s.healthy() {
			continue
		}
		some = true
		live, silent := 0, 0
		for n, is := range s.live {
			if is {
				live++
				if w.awake[w.servers[n].id] > time.Second || !w.servers[n].healthy() {
					silent++
				}
			}
		}
		if silent > 1 && 2*silent >= live {
			return true
		}
	}
	return !some
}

// buried checks that a server which another one takes for gone was silent.
func (w *world) buried(by *server, n int16, seen *hostfleet.Seen) error {
	s := w.servers[n]
	if seen != nil && (seen.State == hostfleet.Left || seen.State == hostfleet.Draining) {
		return nil
	}
	if silent := w.awake[s.id]; silent < leastSilence {
		return fmt.Errorf("%s takes %s for gone, which has been silent for %s while the store answered", by.id, s.id, silent)
	}
	return nil
}

// moves checks what moves from one placement to the next: only boards of servers that came
// or went, and of one that came not more than its share.
func (w *world) moves(before, after *table, came, went []int16) error {
	moved := 0
	for b, is := range after.first {
		was := before.first[b]
		if was == is {
			continue
		}
		moved++
		if !has(came, is) && !has(went, was) {
			return fmt.Errorf("the board %v moved from server %d to %d, and neither of them came or went", w.boards[b], was, is)
		}
	}
	n := len(after.members)
	if len(came) != 1 || len(went) != 0 || n < 2 {
		return nil
	}
	w.joins = append(w.joins, join{n, moved})
	fair := float64(len(w.boards)) / float64(n)
	if most := 1.1*fair + chance(fair); float64(moved) > most {
		return fmt.Errorf("the server that came as number %d takes %d boards: want at most %.0f", n, moved, most)
	}
	return nil
}

func has(list []int16, n int16) bool {
	return n == nobody || slices.Contains(list, n)
}

// chance is what a number of boards that falls to a server may be above its share by
// chance alone: nothing where they are many.
func chance(fair float64) float64 {
	if fair >= fewToJudge {
		return 0
	}
	return 4 * math.Sqrt(fair)
}

// settled checks that a fleet with which nothing is wrong has each board open on the server
// whose it is, and large ones on the second one, too.
func (w *world) settled() error {
	for _, s := range w.servers {
		if !s.up {
			continue
		}
		if s.table == nil || !s.serving {
			return fmt.Errorf("%s does not serve yet", s.id)
		}
		for _, o := range w.servers {
			if s.live[o.number] != o.up {
				return fmt.Errorf("%s sees that %s lives: %v, and it is %v", s.id, o.id, s.live[o.number], o.up)
			}
		}
		for i := range s.held {
			h := &s.held[i]
			if first, second := s.table.first[h.board], s.table.second[h.board]; first != s.number && (second != s.number || !w.large(h.board)) {
				return fmt.Errorf("%s still has the board %v open, which is that of server %d", s.id, w.boards[h.board], first)
			}
		}
		for b, first := range s.table.first {
			if i, asked := s.at[int32(b)]; first == s.number && (!asked || !s.held[i].open) {
				return fmt.Errorf("%s has not opened its board %v", s.id, w.boards[b])
			}
		}
	}
	return nil
}
