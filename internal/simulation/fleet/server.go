package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	hostfleet "github.com/boardd/boardd/host/fleet"
)

// What a server does in the simulation, besides what package fleet says. slot is the step
// of the clock; each server has one in a second in which it speaks, unless it is slow.
const (
	slot       = 100 * time.Millisecond
	slots      = int64(time.Second / slot)
	slowEvery  = 3 * slots             // slots between two words of a slow server
	openTime   = 20 * time.Millisecond // for a board to open: an assumption
	openAtOnce = 8                     // boards at a time
	openASlot  = int(openAtOnce * slot / openTime)
	maxStart   = 2 * time.Minute  // after which a server serves, whatever is not open yet
	drainFor   = 20 * time.Second // for which a server that ends waits until its boards are others'
	maxHasOpen = 5000             // boards of one question to another server
	warmFor    = 30 * time.Second
)

// held is a board that is open on a server or being opened.
type held struct {
	board              int32
	open               bool
	handed, used, warm time.Time
}

// server is a server of the fleet: the part of it that knows the others and looks after
// boards.
type server struct {
	world   *world
	number  int16
	id      string
	member  *hostfleet.Member
	way     way
	version string

	up, draining, serving, slow bool
	dumb, unheard               bool // it reaches no other server, no other reaches it
	paused, knows, began, ends  time.Time
	speaks                      int64 // its slot
	looked                      bool

	table *table
	seen  []*hostfleet.Seen // by number: those that are known
	live  []bool            // by number, as they were last seen
	pace  hostfleet.Pace
	away  map[int16]bool

	held   []held
	at     map[int32]int // in held
	wanted []int32       // its own that are not being opened yet
	called []int32       // waiting to be opened for a call
	queue  []int32       // likewise, for nobody
	begun  [10]int       // boards that it began to open as its own, in the last slots
	calls  [10]int       // likewise, because they were called
}

// start begins a run of the server.
func (s *server) start(version string) {
	w := s.world
	s.up, s.draining, s.serving, s.version = true, false, false, version
	s.paused, s.ends, s.began, s.knows = time.Time{}, time.Time{}, w.now, w.now.Add(w.size.Reads)
	s.table, s.seen, s.live, s.away = nil, make([]*hostfleet.Seen, len(w.servers)), make([]bool, len(w.servers)), map[int16]bool{}
	s.pace, s.held, s.at, s.wanted, s.called, s.queue = hostfleet.Pace{}, nil, map[int32]int{}, nil, nil, nil
	s.member = hostfleet.New(hostfleet.Options{
		Documents: &s.way, Logger: slog.New(slog.DiscardHandler), Self: s.word,
		Looked: func() { s.looked = true }, Now: func() time.Time { return w.now },
	})
}

func (s *server) word() hostfleet.Word {
	state := hostfleet.Serving
	switch {
	case !s.ends.IsZero() && !s.world.now.Before(s.ends):
		state = hostfleet.Left
	case s.drains():
		state = hostfleet.Draining
	case !s.serving:
		state = hostfleet.Joining
	}
	return hostfleet.Word{
		ID: s.id, Advertise: address(s.number), Version: s.version, State: state, Stores: []string{storeName}, Boards: len(s.held),
	}
}

func address(n int16) string { return fmt.Sprintf("https://boards-%d.example.org:7422", n) }

// drains reports whether the server is to give its boards to others.
func (s *server) drains() bool { return s.draining || s.member.Drained() }

// works reports whether the server does anything now.
func (s *server) works() bool { return s.up && !s.world.now.Before(s.paused) }

// healthy reports whether nothing is wrong with the server and its ways.
func (s *server) healthy() bool {
	return s.works() && !s.slow && !s.dumb && !s.unheard && s.way.reaches() && !s.way.deaf && !s.way.mute
}

// end is the end of the process, by whatever.
func (s *server) end() {
	for i := range s.held {
		if s.held[i].open {
			s.world.closed(s.held[i].board)
		}
	}
	s.up, s.held, s.at, s.wanted, s.called, s.queue, s.table = false, nil, map[int32]int{}, nil, nil, nil, nil
}

// step is a slot of the clock.
func (s *server) step(number int64) error {
	s.begun[number%slots], s.calls[number%slots] = 0, 0
	if !s.works() {
		return nil
	}
	every := slots
	if s.slow {
		every = slowEvery
	}
	if number%every == s.speaks {
		if err := s.speak(); err != nil {
			return err
		}
	}
	s.open()
	s.begin()
	return s.leave()
}

// speak says a word, looks at those of the others, and after the boards.
func (s *server) speak() error {
	s.looked = false
	s.member.Tick(context.Background())
	if !s.looked || s.world.now.Before(s.knows) {
		return nil
	}
	if err := s.look(); err != nil || !s.member.Known() {
		return err
	}
	return s.review()
}

// look takes over who is known, and checks that nobody was taken for gone who was not.
func (s *server) look() error {
	clear(s.seen)
	known := s.member.Servers()
	for i := range known {
		n := numberOf(known[i].ID)
		s.seen[n] = &known[i]
	}
	for n, seen := range s.seen {
		live := seen != nil && seen.Live
		if s.live[n] && !live {
			if err := s.world.buried(s, int16(n), seen); err != nil {
				return err
			}
		}
		s.live[n] = live
	}
	return nil
}

// review is what host.fleetPart does with the boards after a look.
func (s *server) review() error {
	place := hostfleet.Place(s.member.Servers(), "", s.id, s.word().State == hostfleet.Joining)
	t := s.world.tables.of(place)
	if err := s.world.tables.err; err != nil {
		return err
	}
	if t != s.table {
		if err := s.world.tables.check(t, place); err != nil {
			return err
		}
		s.table, s.wanted = t, s.wanted[:0]
		for b, first := range t.first {
			if first == s.number || first == nobody {
				if _, asked := s.at[int32(b)]; !asked {
					s.wanted = append(s.wanted, int32(b))
				}
			}
		}
	}
	s.take()
	others := map[int16][]int32{}
	for i := range s.held {
		h := &s.held[i]
		do, other := hostfleet.DutyOf(s.id, s.seenOf(t.first[h.board]), s.seenOf(t.second[h.board]), true)
		switch do {
		case hostfleet.Keep:
			h.handed = time.Time{}
			if other != nil && h.open && s.world.large(h.board) {
				s.warm(h.board, numberOf(other.ID))
			}
		case hostfleet.Hand:
			n := numberOf(other.ID)
			others[n] = append(others[n], h.board)
		case hostfleet.Take, hostfleet.Nothing:
		}
	}
	for n := range s.world.servers { // in their order
		if list := others[int16(n)]; len(list) > 0 {
			if err := s.hand(s.world.servers[n], list); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *server) seenOf(n int16) *hostfleet.Seen {
	if n == nobody {
		return nil
	}
	return s.seen[n]
}

// take begins to open what has become the server's own, as far as it may.
func (s *server) take() {
	for i, b := range s.wanted {
		if _, asked := s.at[b]; asked {
			continue
		}
		if !s.mayOpen() {
			s.wanted = s.wanted[i:]
			if s.world.flaw == ForgetsRest {
				s.wanted = nil
			}
			return
		}
		s.ask(b, false)
	}
	s.wanted = s.wanted[:0]
}

func (s *server) mayOpen() bool {
	if s.world.flaw != OpensAtOnce && !s.pace.Take(s.world.now) {
		return false
	}
	s.begun[s.world.number%slots]++
	return true
}

// ask has a board opened.
func (s *server) ask(b int32, called bool) *held {
	i, asked := s.at[b]
	if !asked {
		i = len(s.held)
		s.held, s.at[b] = append(s.held, held{board: b}), i
		if called {
			s.calls[s.world.number%slots]++
			s.called = append(s.called, b)
		} else {
			s.queue = append(s.queue, b)
		}
	}
	return &s.held[i]
}

// open opens boards that wait for it, those that are called first.
func (s *server) open() {
	room := openASlot
	if s.slow {
		room /= 10
	}
	if !s.way.reaches() {
		return
	}
	for _, line := range []*[]int32{&s.called, &s.queue} {
		for ; room > 0 && len(*line) > 0; *line = (*line)[1:] {
			if i, asked := s.at[(*line)[0]]; asked && !s.held[i].open {
				s.held[i].open = true
				s.world.opened((*line)[0])
				room--
			}
		}
	}
}

// begin ends the start of a server that has all its boards open.
func (s *server) begin() {
	if s.serving || s.table == nil {
		return
	}
	if s.world.now.Sub(s.began) >= maxStart || len(s.wanted)+len(s.called)+len(s.queue) == 0 {
		s.serving = true
	}
}

// leave ends a server that was told to end, as soon as its boards are others'.
func (s *server) leave() error {
	if !s.draining || s.world.now.Before(s.ends.Add(-drainFor)) {
		return nil
	}
	left := 0
	for i := range s.held {
		if s.table != nil && s.table.first[s.held[i].board] != s.number {
			left++
		}
	}
	alone := s.table != nil && len(s.table.members) == 0
	if (left > 0 || s.table == nil || slices.Contains(s.table.members, s.number)) && !alone && s.world.now.Before(s.ends) {
		return nil
	}
	s.ends = s.world.now
	s.member.Tick(context.Background()) // its last word
	s.end()
	return nil
}
