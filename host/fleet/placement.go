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
	servers []placed
}

// placed is a server with the beginning of its scores.
type placed struct {
	Seen

	sum uint64
}

// Place returns the placement among the servers with a digest. Where joins says so, those
// that join count, too, and the server of the ID self whatever its state is: that is what a
// server asks for before it takes calls, so that servers which begin at the same time open a
// share each, and not all boards.
func Place(servers []Seen, digest, self string, joins bool) Placement {
	var p Placement
	for _, s := range servers {
		counts := s.State == Serving || joins && s.State == Joining
		if s.Live && s.Digest == digest && counts || joins && s.ID == self {
			p.servers = append(p.servers, placed{s, sum(basis, s.Advertise)})
		}
	}
	return p
}

// Servers returns those among which boards are placed.
func (p Placement) Servers() []Seen {
	list := make([]Seen, len(p.servers))
	for i := range p.servers {
		list[i] = p.servers[i].Seen
	}
	return list
}

// Same reports whether two placements are of the same runs of the same servers, so that they
// give each board to the same ones.
func (p Placement) Same(o Placement) bool {
	return slices.EqualFunc(p.servers, o.servers, func(a, b placed) bool {
		return a.ID == b.ID && a.Boot == b.Boot && a.Advertise == b.Advertise && slices.Equal(a.Stores, b.Stores)
	})
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
			order = append(order, scored{s.score(tenant, board), &s.Seen})
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

// First returns the first two of Order, nil where there are fewer. It is for whoever places
// all boards: it sorts and allocates nothing.
func (p Placement) First(store, tenant, board string) (first, second *Seen) {
	if store == "" {
		return nil, nil
	}
	var most, next uint64
	for i := range p.servers {
		s := &p.servers[i]
		if !slices.Contains(s.Stores, store) {
			continue
		}
		switch score := s.score(tenant, board); {
		case before(score, &s.Seen, most, first):
			first, most, second, next = &s.Seen, score, first, most
		case before(score, &s.Seen, next, second):
			second, next = &s.Seen, score
		}
	}
	return first, second
}

// before reports whether a server with a score comes before another one, which may be nil.
func before(score uint64, s *Seen, than uint64, other *Seen) bool {
	return other == nil || score > than || score == than && s.Advertise < other.Advertise
}

// score is how much a server is the one for a board. It is the same in every version of
// the program, since all servers must agree: FNV-1a of the three names, each ended by a
// zero, and mixed as SplitMix64 does, without which names that end alike score alike.
func (s *placed) score(tenant, board string) uint64 {
	h := sum(sum(s.sum, tenant), board)
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// basis is what FNV-1a begins with.
const basis uint64 = 14695981039346656037

func sum(h uint64, name string) uint64 {
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h * 1099511628211 // a zero
}
