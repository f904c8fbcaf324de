// Package fleet plays a fleet of servers on a clock of its own: the words that they leave
// in a store (host/fleet.Member), who lives (View), who serves which board (Placement), what
// a server does with its boards (DutyOf, MayClose) and how fast (Pace) are the very code of
// the servers. What is around it is made up here: a store of a few documents, the ways to
// it and between the servers, and how long a board takes to open.
//
// A small fleet goes through random programs (Game), a large one through a day that is
// written down (Day).
package fleet

import (
	"fmt"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/sdk/driver"
)

// Size is how large a fleet is.
type Size struct {
	Servers int           // that serve at the beginning
	Spare   int           // that can join
	Tenants int           // among which the boards are divided
	Boards  int           // all in one catalog and one store
	Reads   time.Duration // for a server that starts to read the catalog
}

// largeEvery is how many boards there are for one that stays open on a second server.
const largeEvery = 1000

// world is the fleet at a moment.
type world struct {
	rec     *simulation.Recorder
	size    Size
	flaw    Flaw
	now     time.Time
	number  int64 // of the slot
	store   *store
	boards  []catalog.At
	tables  *tables
	servers []*server

	opens   []int8      // by board: how many servers have it open
	since   []time.Time // by board: when the last one closed it
	trouble time.Time   // when something was last done to the fleet, or half of it was silent

	awake    map[string]time.Duration // by server: for how long the store answered since its word
	joins    []join
	mostOwn  int // boards that a server began to open as its own in a second
	mostCall int // likewise, because they were called
}

// join is what moved when one server came.
type join struct{ servers, moved int }

// newWorld is a fleet whose servers begin all at once.
func newWorld(rec *simulation.Recorder, size Size, boards []catalog.At, flaw Flaw) *world {
	w := &world{
		rec: rec, size: size, flaw: flaw, now: time.Unix(1_800_000_000, 0), boards: boards,
		opens: make([]int8, len(boards)), since: make([]time.Time, len(boards)), awake: map[string]time.Duration{},
	}
	w.trouble = w.now
	w.store = newStore(func() time.Time { return w.now })
	w.tables = &tables{boards: boards, flaw: flaw, moved: w.moves}
	for i := range w.since {
		w.since[i] = w.now
	}
	w.servers = make([]*server, size.Servers+size.Spare)
	for i := range w.servers {
		s := &server{world: w, number: int16(i), id: fmt.Sprintf("s%d", i), speaks: int64(i) % slots, at: map[int32]int{}}
		s.way = way{store: w.store, believes: flaw == BelievesSilence, remembered: map[string]driver.Document{}}
		w.servers[i] = s
	}
	for _, s := range w.servers[:size.Servers] {
		s.start("one")
	}
	return w
}

// names are boards of tenants, by number.
func names(size Size) []catalog.At {
	list := make([]catalog.At, size.Boards)
	for i := range list {
		list[i] = catalog.At{Tenant: fmt.Sprintf("tenant-%d", i%size.Tenants), Name: fmt.Sprintf("board-%d", i/size.Tenants)}
	}
	return list
}

func (w *world) large(b int32) bool { return b%largeEvery == 0 }

func (w *world) opened(b int32) { w.opens[b]++ }

func (w *world) closed(b int32) {
	if w.opens[b]--; w.opens[b] == 0 {
		w.since[b] = w.now
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) error {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(slot)
		w.number++
		for _, s := range w.servers {
			if err := s.step(w.number); err != nil {
				return err
			}
		}
		if err := w.check(); err != nil {
			return err
		}
	}
	return nil
}
