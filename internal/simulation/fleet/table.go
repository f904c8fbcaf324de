package fleet

import (
	"fmt"
	"slices"

	"github.com/boardd/boardd/host/catalog"
	hostfleet "github.com/boardd/boardd/host/fleet"
)

// nobody is the number of no server.
const nobody int16 = -1

// storeName is the identity of the store in which all boards lie.
const storeName = "store"

// table is what a placement says of every board.
type table struct {
	members       []int16 // the servers of the placement, by number
	seen          []hostfleet.Seen
	first, second []int16 // by board: the server's number, or nobody
}

// tables makes each table once for all servers that see the same ones, and keeps the last
// few. A table that differs little from one that is kept is made of that: rendezvous
// hashing orders the servers for each board one by one, whichever others there are.
type tables struct {
	boards []catalog.At
	flaw   Flaw
	whole  bool // each is made from nothing
	kept   []*table
	moved  func(before, after *table, came, went []int16) error
	err    error
}

const keptTables = 16

func (t *tables) of(place hostfleet.Placement) *table {
	servers := place.Servers()
	members := make([]int16, len(servers))
	for i := range servers {
		members[i] = numberOf(servers[i].ID)
	}
	for i, known := range t.kept {
		if slices.Equal(known.members, members) {
			t.kept = append(slices.Delete(t.kept, i, i+1), known)
			return known
		}
	}
	made := &table{members: members, seen: servers, first: make([]int16, len(t.boards)), second: make([]int16, len(t.boards))}
	base := t.nearest(made)
	if base == nil || t.whole || t.flaw == PlacedByModulo {
		t.fill(made, place)
	} else {
		t.derive(made, base, place)
	}
	if base != nil {
		came, went := difference(members, base.members), difference(base.members, members)
		if err := t.moved(base, made, came, went); err != nil && t.err == nil {
			t.err = err
		}
	}
	if t.kept = append(t.kept, made); len(t.kept) > keptTables {
		t.kept = slices.Delete(t.kept, 0, 1)
	}
	return made
}

// numberOf is the number in a server's ID.
func numberOf(id string) (n int16) {
	for _, c := range id[1:] {
		n = 10*n + int16(c-'0')
	}
	return n
}

// difference returns those of a that are not of b.
func difference(a, b []int16) (list []int16) {
	for _, n := range a {
		if !slices.Contains(b, n) {
			list = append(list, n)
		}
	}
	return list
}

// nearest returns the table that differs least.
func (t *tables) nearest(from *table) (found *table) {
	least := len(from.members)
	for _, known := range t.kept {
		if n := len(difference(from.members, known.members)) + len(difference(known.members, from.members)); n <= least {
			found, least = known, n
		}
	}
	return found
}

func (t *tables) fill(made *table, place hostfleet.Placement) {
	for b := range t.boards {
		t.fillOne(made, place, b)
	}
}

func (t *tables) fillOne(made *table, place hostfleet.Placement, b int) {
	at := t.boards[b]
	first, second := place.First(storeName, at.Tenant, at.Name)
	made.first[b], made.second[b] = number(first), number(second)
	if n := len(made.members); t.flaw == PlacedByModulo && n > 0 {
		h := 0
		for _, c := range at.Tenant + at.Name {
			h = 31*h + int(c)
		}
		made.first[b], made.second[b] = made.members[uint(h)%uint(n)], made.members[uint(h+1)%uint(n)]
	}
}

func number(s *hostfleet.Seen) int16 {
	if s == nil {
		return nobody
	}
	return numberOf(s.ID)
}

// derive makes a table of another one.
func (t *tables) derive(made, base *table, place hostfleet.Placement) {
	copy(made.first, base.first)
	copy(made.second, base.second)
	if went := difference(base.members, made.members); len(went) > 0 {
		for b := range t.boards {
			if slices.Contains(went, made.first[b]) || slices.Contains(went, made.second[b]) || made.second[b] == nobody {
				t.fillOne(made, place, b)
			}
		}
	}
	for _, one := range difference(made.members, base.members) {
		t.add(made, one, place)
	}
}

// add gives a server the boards for which it comes before the first two of a table.
func (t *tables) add(made *table, one int16, place hostfleet.Placement) {
	pairs := map[int16]hostfleet.Placement{}
	for i, n := range made.members {
		pairs[n] = hostfleet.Place([]hostfleet.Seen{alike(made.seen[i]), alike(made.seen[slices.Index(made.members, one)])}, "", "", false)
	}
	wins := func(over int16, at catalog.At) bool {
		first, _ := pairs[over].First(storeName, at.Tenant, at.Name)
		return number(first) == one
	}
	for b, at := range t.boards {
		switch {
		case made.second[b] == nobody:
			t.fillOne(made, place, b)
		case made.first[b] == one || made.second[b] == one || !wins(made.second[b], at):
		case wins(made.first[b], at):
			made.first[b], made.second[b] = one, made.first[b]
		default:
			made.second[b] = one
		}
	}
}

// alike is a server as one that is placed, whatever its state is.
func alike(s hostfleet.Seen) hostfleet.Seen {
	s.Live, s.State, s.Digest = true, hostfleet.Serving, ""
	return s
}

// check compares some boards of a table with what the placement says of them.
func (t *tables) check(made *table, place hostfleet.Placement) error {
	for b := 0; b < len(t.boards) && t.flaw != PlacedByModulo; b += 1 + len(t.boards)/1000 {
		at := t.boards[b]
		first, second := place.First(storeName, at.Tenant, at.Name)
		if made.first[b] != number(first) || made.second[b] != number(second) {
			return fmt.Errorf("the table has the board %v on %d and %d, the placement says %d and %d", at, made.first[b], made.second[b], number(first), number(second))
		}
	}
	return nil
}
