package host

import (
	"bytes"
	"context"

	"github.com/boardd/boardd/host/acknowledged"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/sdk/driver"
)

// Remembered is what a server remembers of a board that it has open. Within a second of each change
// of it, it tells the server that is to serve the board next: if this one is killed then, and the
// store is put back to an earlier state, the other one finds what was lost.
type Remembered struct {
	At       catalog.At      `json:"at"`
	ID       string          `json:"id,omitempty"`   // of the catalog's record; empty: the configuration's board
	Move     string          `json:"move,omitempty"` // that brought the board to its store
	Position driver.Position `json:"position"`
	Witness  []byte          `json:"witness"`
}

// maxRemembered is how many boards one server tells another one of at once; of more it tells after
// the next look at the fleet.
const maxRemembered = 5000

// reminder is what one server was told of a board, or is to be told.
type reminder struct {
	board *Hosted
	to    string // the run of the server
	known acknowledged.Board
}

// same reports whether two are, by the board of which both are.
func (r reminder) same(o reminder) bool {
	return r.to == o.to && r.known.Position == o.known.Position && bytes.Equal(r.known.Witness, o.known.Witness)
}

// reminding is what one server is to be told.
type reminding struct {
	to   fleet.Seen
	list []reminder
	told bool
}

// reminders are what the other servers are told of boards that are open here. Only the review of
// the fleet uses them.
type reminders struct {
	told map[*Hosted]reminder // as of the last review
	kept map[*Hosted]reminder // those of them that hold still
	due  map[string]*reminding
}

// begin begins a review.
func (r *reminders) begin() {
	r.kept, r.due = make(map[*Hosted]reminder, len(r.told)), map[string]*reminding{}
}

// add has a server told of a board that is open here, if it has not been told yet.
func (r *reminders) add(to *fleet.Seen, s *Hosted) {
	now := reminder{s, to.Boot, s.backend.known.Known(s.key())}
	if now.known.Witness == nil {
		return // the driver has nothing that a host is to remember
	}
	if before, ok := r.told[s]; ok && before.same(now) {
		r.kept[s] = before
		return
	}
	d := r.due[to.Boot]
	if d == nil {
		d = &reminding{to: *to}
		r.due[to.Boot] = d
	}
	if len(d.list) < maxRemembered {
		d.list = append(d.list, now)
	}
}

// tell tells one server. What does not arrive is told again after the next review.
func (d *reminding) tell(ctx context.Context, peers Peers, h *Host) {
	boards := make([]Remembered, len(d.list))
	for i, r := range d.list {
		id, move := r.board.identity(h)
		boards[i] = Remembered{At: r.board.at(), ID: id, Move: move, Position: r.known.Position, Witness: r.known.Witness}
	}
	d.told = peers.Remember(ctx, d.to, boards) == nil
}

// end ends a review.
func (r *reminders) end() {
	for _, d := range r.due {
		for _, now := range d.list {
			if d.told {
				r.kept[now.board] = now
			}
		}
	}
	r.told = r.kept
}

// Remember takes in what another server remembers of boards that it has open.
func (h *Host) Remember(boards []Remembered) {
	for i := range boards {
		r := &boards[i]
		s := h.Hosted(r.At)
		if s == nil || h.fleet == nil || h.fleet.strange(s) {
			continue
		}
		if id, move := s.identity(h); id != r.ID || move != r.Move {
			continue // one of the two has yet to hear of a change
		}
		s.identify(h)
		s.backend.known.Learn(s.key(), acknowledged.Board{Position: r.Position, Witness: r.Witness})
	}
}
