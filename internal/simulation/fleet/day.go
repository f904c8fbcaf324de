package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/simulation"
)

// Row is what came of one thing that happened to a large fleet.
type Row struct {
	What     string
	Boards   int             // of the servers that it happened to
	Called   []time.Duration // until a client that calls such a board is served, sorted
	Uncalled []time.Duration // until such a board is open again that nobody calls, sorted
	Never    int             // of those, not open again while it was watched
	Keeps    bool            // they stay open where they were
	Made     int             // calls that clients made at random servers, of any boards
	Failed   int             // of those, at five servers
	Own      int             // boards that a server began to open as its own in one second, at most
	Calls    int             // because they were called, likewise
}

// Report is what came of a day.
type Report struct {
	Rows      []Row
	Joins     []Join
	Calls     int // that clients made at random servers
	Forwarded int
	Again     int // made again at another server, since the first one had ended or did not serve yet
	Failed    int // at five servers
	Upgraded  time.Duration
	Lasted    time.Duration
}

// Join is how many boards moved when a server came as one of Servers.
type Join struct{ Servers, Moved int }

// day is a large fleet and what is measured of it.
type day struct {
	*world

	random *rand.Rand
	report Report
}

// Watched is how many boards of a server that fails are called, and how many others are
// watched.
const (
	watchedCalled   = 500
	watchedUncalled = 20_000
	callsASecond    = 200
)

// Day plays what happens to a large fleet, in the order of the report's rows, and checks
// after each slot what the Game checks. told hears how far it is.
func Day(size Size, told func(format string, args ...any)) (Report, error) {
	w := newWorld(&simulation.Recorder{}, size, names(size), NoFlaw)
	d := &day{world: w, random: rand.New(rand.NewPCG(20, 8))}
	began := w.now
	one := func(n int) []*server { return w.servers[n : n+1] }
	tenth, all := size.Servers/10, w.servers[:size.Servers]
	for _, part := range []struct {
		what    string
		servers []*server
		lasts   time.Duration
		begins  func(*server)
		ends    func(*server)
	}{
		{"all start at once", nil, 100 * time.Second, nil, nil},
		{"one joins", w.servers[size.Servers : size.Servers+1], 80 * time.Second, func(s *server) { s.start("one") }, nil},
		{"one is killed", one(1), 20 * time.Second, (*server).end, func(s *server) { s.start("one") }},
		{"one stops for 20 s", one(2), 40 * time.Second, func(s *server) { s.paused = w.now.Add(20 * time.Second) }, nil},
		{"one is cut off from the store", one(3), 20 * time.Second, func(s *server) { s.way.cut = true }, w.heal},
		{"one is cut off from the others", one(4), 20 * time.Second, func(s *server) { s.dumb, s.unheard = true, true }, w.heal},
		{"the others do not reach one", one(5), 20 * time.Second, func(s *server) { s.unheard = true }, w.heal},
		{"one can read and not write", one(6), 20 * time.Second, func(s *server) { s.way.mute = true }, w.heal},
		{"one is slow", one(7), 20 * time.Second, func(s *server) { s.slow = true }, w.heal},
		{"one is drained and ends", one(8), 60 * time.Second, w.stop, nil},
		{"the store is silent for 30 s", nil, 60 * time.Second, nil, nil},
		{"three in ten are killed", all[:3*tenth], 30 * time.Second, (*server).end, func(s *server) { s.start("one") }},
		{"they come back", nil, 80 * time.Second, nil, nil},
		{"six in ten are killed", all[4*tenth:], 30 * time.Second, (*server).end, func(s *server) { s.start("one") }},
		{"they come back", nil, 100 * time.Second, nil, nil},
	} {
		w.mostOwn, w.mostCall, w.trouble = 0, 0, w.now
		if part.what == "the store is silent for 30 s" {
			w.store.silent = true
		}
		row, err := d.watch(part.servers, part.lasts, part.begins)
		if err != nil {
			return d.report, fmt.Errorf("%s, %s after the beginning: %w", part.what, w.now.Sub(began), err)
		}
		row.What = part.what
		if row.Keeps = part.what == "one is slow" || strings.HasPrefix(part.what, "one is cut off from the o") || strings.HasPrefix(part.what, "the others"); row.Keeps {
			row.Uncalled, row.Never = nil, 0
		}
		if part.what == "six in ten are killed" && len(row.Uncalled) > 0 {
			return d.report, fmt.Errorf("%s, and %d boards of theirs are opened, the first one after %s: the view of who lives should stand", part.what, len(row.Uncalled), row.Uncalled[0])
		}
		d.report.Rows = append(d.report.Rows, row)
		for _, s := range part.servers {
			if part.ends != nil {
				part.ends(s)
			}
		}
		told("%s: after %s", part.what, w.now.Sub(began))
	}
	err := d.upgrade(tenth)
	for _, j := range w.joins {
		d.report.Joins = append(d.report.Joins, Join{j.servers, j.moved})
	}
	d.report.Lasted = w.now.Sub(began)
	return d.report, err
}

// watch lets something happen to servers, and watches their boards.
func (d *day) watch(servers []*server, lasts time.Duration, begins func(*server)) (Row, error) {
	w := d.world
	began, row := w.now, Row{}
	made, failed := d.report.Calls, d.report.Failed
	var called, uncalled []int32
	affected := map[*server]bool{}
	for _, s := range servers {
		for i := range s.held {
			if b := s.held[i].board; s.table != nil && s.table.first[b] == s.number { // and it is not open for another reason
				uncalled = append(uncalled, b)
			}
		}
		affected[s] = true
	}
	d.random.Shuffle(len(uncalled), func(i, j int) { uncalled[i], uncalled[j] = uncalled[j], uncalled[i] })
	row.Boards = len(uncalled)
	n := min(watchedCalled, len(uncalled)/2)
	called, uncalled = uncalled[:n], uncalled[n:min(len(uncalled), n+watchedUncalled)]
	for _, s := range servers {
		begins(s)
	}
	for w.now.Sub(began) < lasts {
		if w.now.Sub(began) >= 30*time.Second {
			w.store.silent = false
		}
		called = slices.DeleteFunc(called, func(b int32) bool {
			a := d.from(affected).call(b)
			if a.err == "" {
				row.Called = append(row.Called, w.now.Sub(began)+a.took)
			}
			return a.err == ""
		})
		for range 3 { // a client calls again after 300 ms
			if err := w.pass(slot); err != nil {
				return row, err
			}
			uncalled = slices.DeleteFunc(uncalled, func(b int32) bool {
				open := d.reopened(b, affected)
				if open {
					row.Uncalled = append(row.Uncalled, w.now.Sub(began))
				}
				return open
			})
		}
		d.calls(callsASecond * 3 / int(slots))
	}
	row.Never, row.Made, row.Failed = len(uncalled)+len(called), d.report.Calls-made, d.report.Failed-failed
	row.Own, row.Calls = w.mostOwn, w.mostCall
	slices.Sort(row.Called)
	slices.Sort(row.Uncalled)
	return row, nil
}

// from is a server that is well, at random.
func (d *day) from(not map[*server]bool) *server {
	for {
		if s := d.servers[d.random.IntN(len(d.servers))]; s.healthy() && s.table != nil && !not[s] {
			return s
		}
	}
}

// reopened reports whether the server whose a board is by now, as one that is well sees it,
// has it open.
func (d *day) reopened(b int32, not map[*server]bool) bool {
	for _, s := range d.servers {
		if s.healthy() && s.table != nil && !not[s] {
			n := s.table.first[b]
			if n == nobody || not[d.servers[n]] {
				return false
			}
			i, asked := d.servers[n].at[b]
			return asked && d.servers[n].held[i].open
		}
	}
	return false
}

// calls are of clients that know all addresses and choose at random.
func (d *day) calls(count int) {
	for range count {
		b := int32(d.random.IntN(len(d.boards)))
		served := false
		for try := 0; try < 5 && !served; try++ {
			s := d.servers[d.random.IntN(d.size.Servers)]
			if try > 0 {
				d.report.Again++
			}
			if s.works() && s.table != nil {
				a := s.call(b)
				if served = a.err == ""; served && a.forwarded {
					d.report.Forwarded++
				}
			}
		}
		if d.report.Calls++; !served {
			d.report.Failed++
		}
	}
}

// upgrade restarts all servers, a tenth after the other.
func (d *day) upgrade(tenth int) error {
	w := d.world
	began := w.now
	w.mostOwn, w.mostCall = 0, 0
	made, failed := d.report.Calls, d.report.Failed
	row := Row{What: "all are upgraded, a tenth after the other"}
	for from := 0; from < d.size.Servers; from += tenth {
		part := w.servers[from:min(from+tenth, d.size.Servers)]
		for _, s := range part {
			w.stop(s)
		}
		restarted := false
		for limit := w.now.Add(4 * time.Minute); ; {
			if err := w.pass(3 * slot); err != nil {
				return err
			}
			d.calls(callsASecond * 3 / int(slots))
			done := true
			for _, s := range part {
				done = done && (!s.up && !restarted || restarted && s.serving)
			}
			switch {
			case done && restarted:
			case done:
				for _, s := range part {
					s.start("two")
				}
				restarted = true
				continue
			case w.now.After(limit):
				return fmt.Errorf("the servers from %d on were not upgraded within four minutes", from)
			default:
				continue
			}
			break
		}
	}
	row.Own, row.Calls, row.Made, row.Failed = w.mostOwn, w.mostCall, d.report.Calls-made, d.report.Failed-failed
	d.report.Rows = append(d.report.Rows, row)
	d.report.Upgraded = w.now.Sub(began)
	if err := w.pass(2 * time.Minute); err != nil {
		return err
	}
	return w.settled()
}
