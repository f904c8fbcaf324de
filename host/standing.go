package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/bounded"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/chart"
	"github.com/boardd/boardd/host/fleet"
)

// Bounds of a look at many boards. What is not known by then is left out.
const (
	lookWithin = 2 * time.Second
	lookAtOnce = 8 // boards whose stores are asked for counts
)

// Standing is how a board stands at the server that has it. No board is opened for it.
type Standing struct {
	Status board.Status  `json:"status"`
	Rests  *board.Counts `json:"rests,omitempty"`  // of a board that is closed, and need not be open
	Counts *board.Counts `json:"counts,omitempty"` // of one that is open, where they were asked for
	Went   *Went         `json:"went,omitempty"`   // likewise

	Names *board.NameReport `json:"names,omitempty"` // likewise
}

// Went is how a board's numbers went in the last hour, minute by minute.
type Went struct {
	Waiting  []int64 `json:"waiting"`
	Consumed []int64 `json:"consumed"`
	Failed   []int64 `json:"failed"`
}

// WentOf returns what is known here of how a board went, without asking its store.
func WentOf(ctx context.Context, b *board.Board) *Went {
	ring, err := b.Samples(ctx, false)
	if err != nil {
		return &Went{}
	}
	w := ring.Window(chart.Spans()[0], time.Now())
	went := &Went{Waiting: w.Values(chart.Waiting), Consumed: w.Values(chart.Consumed), Failed: w.Values(chart.Failed)}
	for i, delayed := range w.Values(chart.Delayed) {
		went.Waiting[i] += max(delayed, 0)
	}
	return went
}

// Look is what is asked of many boards.
type Look struct {
	Boards []catalog.At `json:"boards"`
	Counts bool         `json:"counts,omitempty"` // how many jobs they have
	Went   bool         `json:"went,omitempty"`   // how that went
	Names  bool         `json:"names,omitempty"`  // how many by their names, and what became of those
}

// Stand says how boards stand that this host has open, or that rest here; nil: it has not.
func (h *Host) Stand(ctx context.Context, look Look) []*Standing {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	list := make([]*Standing, len(look.Boards))
	counting := bounded.New(lookAtOnce)
	for i, at := range look.Boards {
		b := h.registry.board(at.Tenant, at.Name)
		if b == nil || !b.asked() {
			continue
		}
		d := b.describe()
		s := &Standing{Status: d.Status, Rests: d.Rests}
		list[i] = s
		open := b.board.Load()
		if d.Rests != nil || !d.Status.Ready || open == nil {
			continue
		}
		if look.Went {
			s.Went = WentOf(ctx, open)
		}
		if look.Counts && ctx.Err() == nil {
			counting.Go(func() {
				if counts, err := open.Count(ctx); err == nil {
					s.Counts = &counts
				}
			})
		}
		if look.Names && ctx.Err() == nil {
			counting.Go(func() {
				if names, err := open.ByNames(ctx); err == nil {
					s.Names = &names
				}
			})
		}
	}
	counting.Wait()
	return list
}

// Listing is which boards are listed, and what is said of each.
type Listing struct {
	After  string // the name of a board: those after it, whether there still is one of that name
	Most   int    // of them; 0: all
	Counts bool
	Went   bool
	Names  bool
}

// List returns the boards that the session may see, by name, each as it stands at the server
// that has it; none is opened. Every other server is asked once at most. What one that does
// not answer in time has is shown as far as it is known here. next is what the boards that
// were left out come after; "": there are none. Before the catalog was read (see Known) they
// are those of the configuration.
func (s *Session) List(ctx context.Context, l Listing) (list []Served, next string) {
	names := s.names()
	i, found := slices.BinarySearch(names, l.After)
	if found {
		i++
	}
	if names = names[i:]; l.Most > 0 && len(names) > l.Most {
		names = names[:l.Most]
		next = names[l.Most-1]
	}
	looks := newLooks(s.host, l)
	for _, name := range names {
		if b := s.host.registry.board(s.principal.Tenant, name); b != nil {
			first := looks.add(b, len(list))
			list = append(list, s.describeAt(b, first))
		}
	}
	looks.take(ctx, list)
	return list, next
}

// DescribeWhere is Describe of a board as it stands at the server that has it, with what that
// counted of it. Where that does not answer in time, it is as it is known here.
func (s *Session) DescribeWhere(ctx context.Context, name, call string) (Served, error) {
	found, err := s.find(ctx, name, call)
	if err != nil {
		return Served{}, err
	}
	looks := newLooks(s.host, Listing{Went: true, Names: true})
	list := []Served{s.describeAt(found, looks.add(found, 0))}
	here := list[0]
	if looks.take(ctx, list); !list[0].Status.Ready && here.Status.Ready {
		return here, nil // which has the board open, too
	}
	return list[0], nil
}

// looks is whom boards of a list are asked for.
type looks struct {
	host  *Host
	ask   Listing
	place fleet.Placement
	by    map[string]*lookAt // by runs of servers; "" is this one
}

// lookAt is boards of one server.
type lookAt struct {
	seen fleet.Seen
	look Look
	at   []int // in the list
}

func newLooks(h *Host, l Listing) *looks {
	k := &looks{host: h, ask: l, by: map[string]*lookAt{}}
	if h.fleet != nil {
		k.place = h.fleet.placement()
	}
	return k
}

// add notes whom to ask for a board, which stands in the list at i, and returns who serves
// it; nil: this host, as far as is known.
func (k *looks) add(b *Hosted, i int) *fleet.Seen {
	first := k.host.firstIn(k.place, b)
	boot, seen := "", fleet.Seen{}
	if first != nil && first.ID != k.host.id {
		boot, seen = first.Boot, *first
	}
	if k.by[boot] == nil {
		k.by[boot] = &lookAt{seen: seen, look: Look{Counts: k.ask.Counts, Went: k.ask.Went, Names: k.ask.Names}}
	}
	o := k.by[boot]
	o.look.Boards, o.at = append(o.look.Boards, b.at()), append(o.at, i)
	return first
}

// take asks all servers at the same time, and puts what they say into the list.
func (k *looks) take(ctx context.Context, list []Served) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin+lookWithin/4)
	defer cancel()
	var asking sync.WaitGroup
	for boot, o := range k.by {
		asking.Go(func() {
			var said []*Standing
			if boot == "" {
				said = k.host.Stand(ctx, o.look)
			} else if peers := k.host.fleet.peers.Load(); peers != nil {
				said, _ = (*peers).Stand(ctx, o.seen, o.look) // who does not answer says nothing
			}
			for i, s := range said {
				if s == nil || i >= len(o.at) {
					continue
				}
				d := &list[o.at[i]]
				d.Counts, d.Went, d.Names = s.Counts, s.Went, s.Names
				if boot != "" {
					d.Status, d.Rests, d.Told = s.Status, s.Rests, o.seen.Advertise
				}
				if d.Rests != nil {
					d.Counts = d.Rests
				}
			}
		})
	}
	asking.Wait()
}

// firstIn returns who is to serve a board, or nil if that is not known.
func (h *Host) firstIn(place fleet.Placement, s *Hosted) *fleet.Seen {
	if h.fleet == nil {
		return nil
	}
	first, _ := place.First(h.fleet.storeOf(s), s.config.Tenant, s.config.Name)
	return first
}
