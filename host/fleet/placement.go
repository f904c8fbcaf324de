package fleet

import (
	"cmp"
	"slices"
)

// Placement says which server serves which board: of those that live, take calls, reach
// the board's store and declare the same boards and policies, the first one in rendezvous
// order. Every server computes it by itself, and a server that comes or goes moves only
// the boards that become its own or were.
type Placement struct {
	servers []Seen
}

// Place returns the placement among the servers with a digest. A server of the ID self
// counts, whatever its state is, where joins says so: that is what it asks for before it
// takes calls.
func Place(servers []Seen, digest, self string, joins bool) Placement {
	var p Placement
	for _, s := range servers {
		if s.Live && s.Digest == digest && s.State == Serving || joins && s.ID == self {
			p.servers = append(p.servers, s)
		}
	}
	return p
}

// Order returns who is to serve a board of a tenant whose jobs lie in a store: the first
// one, and in what order the others do if it cannot.
func (p Placement) Order(store, tenant, board string) []Seen {
	if store == "" {
		return nil
	}
	type scored struct {
		score uint64
		seen  *Seen
	}
	order := make([]scored, 0, len(p.servers))
	for i := range p.servers {
		if s := &p.servers[i]; slices.Contains(s.Stores, store) {
			order = append(order, scored{score(s.Advertise, tenant, board), s})
		}
	}
	slices.SortFunc(order, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.seen.Advertise, b.seen.Advertise))
	})
	list := make([]Seen, len(order))
	for i, s := range order {
		list[i] = *s.seen
	}
	return list
}

// score is how much a server is the one for a board. It is the same in every version of
// the program, since all servers must agree: FNV-1a of the three names, each ended by a
// zero, and mixed as SplitMix64 does, without which names that end alike score alike.
func score(names ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * 1099511628211
		}
		h *= 1099511628211 // a zero
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
