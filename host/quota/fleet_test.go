package quota

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/host/ledger"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// way is one server's way to the catalog's store, which can be cut, or lose answers.
type way struct {
	driver.Documents

	cut  atomic.Bool
	lost atomic.Bool // what is written is written, and nobody is told
}

var errCut = &job.Error{Kind: job.Unavailable, Err: errors.New("cut")}

func (w *way) Get(ctx context.Context, s driver.Space, name string) (driver.Document, error) {
	if w.cut.Load() {
		return driver.Document{}, errCut
	}
	return w.Documents.Get(ctx, s, name)
}

func (w *way) Put(ctx context.Context, s driver.Space, doc driver.Document, v uint64) (uint64, error) {
	if w.cut.Load() {
		return 0, errCut
	}
	version, err := w.Documents.Put(ctx, s, doc, v)
	if w.lost.Load() && err == nil {
		return 0, errCut
	}
	return version, err
}

func (w *way) Delete(ctx context.Context, s driver.Space, name string, v uint64) error {
	if w.cut.Load() {
		return errCut
	}
	return w.Documents.Delete(ctx, s, name, v)
}

func (w *way) List(ctx context.Context, s driver.Space, after string, limit int) ([]driver.Document, error) {
	if w.cut.Load() {
		return nil, errCut
	}
	return w.Documents.List(ctx, s, after, limit)
}

// played is a server with what it has of limits, and nothing else.
type played struct {
	quotas *Quotas
	way    *way
	stop   context.CancelFunc
	done   sync.WaitGroup
	id     string
	boot   string
	let    int // calls that were let through in all

	mu     sync.Mutex
	boards []*Board
}

// open returns the boards that are open at the server.
func (s *played) open(string) []*Board {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.boards)
}

// world is a fleet on a simulated clock.
type world struct {
	t      *testing.T
	store  driver.Driver
	limits config.Limits
	old    bool // servers that start are of a version that divides limits evenly
	all    []*played
	posts  uint64 // jobs that were posted

	let         int     // calls that were let through
	above, most float64 // the sum of what was above the limit, and the most that it was over any period
}

func newWorld(t *testing.T, l config.Limits) *world {
	t.Helper()
	store, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, limits: l}
	t.Cleanup(func() {
		for _, s := range w.all {
			s.stop()
			s.done.Wait()
		}
		_ = store.Close()
	})
	return w
}

// start starts a server.
func (w *world) start() *played { return w.run(fmt.Sprint("s", len(w.all))) }

// again starts a server once more that has ended, which it knows.
func (w *world) again(before *played) *played { return w.run(before.id, before.boot) }

// run begins a run of a server, of which other ones have ended.
func (w *world) run(id string, ended ...string) *played {
	ctx, stop := context.WithCancel(w.t.Context())
	s := &played{way: &way{Documents: w.store.Documents()}, stop: stop, id: id}
	s.quotas = &Quotas{Limits: func(string) config.Limits { return w.limits }, Boards: s.open, Go: func(do func()) { s.done.Go(do) }}
	l := ledger.New(s.quotas, slog.New(slog.DiscardHandler))
	s.quotas.Ledger = l
	var member *fleet.Member
	old := w.old
	member = fleet.New(fleet.Options{
		Documents: s.way, Logger: slog.New(slog.DiscardHandler), Looked: func() { l.Look(member.Servers()) },
		Self: func() fleet.Word {
			word := fleet.Word{ID: id, Advertise: "http://" + id + ":1", State: fleet.Serving, Limits: l.Says()}
			if old {
				word.Limits = ""
			}
			return word
		},
	})
	s.boot = member.Boot()
	l.Begin(s.boot, ended, s.way)
	s.done.Go(func() { member.Run(ctx) })
	s.done.Go(func() { l.Run(ctx) })
	w.all = append(w.all, s)
	return s
}

// kill ends a server that can tell nobody.
func (s *played) kill() {
	s.way.cut.Store(true)
	s.stop()
}

// step is how often servers are called.
const step = 10 * time.Millisecond

// offer has servers be called so many times a second for so long, and returns how many
// calls each of them let through.
func (w *world) offer(d time.Duration, rates map[*played]int) map[*played]int {
	let, due := map[*played]int{}, map[*played]float64{}
	for range d / step {
		at := 0
		for _, s := range w.all {
			due[s] += float64(rates[s]) * step.Seconds()
			for ; due[s] >= 1; due[s]-- {
				if s.quotas.Admit(w.t.Context(), "t") == nil {
					let[s]++
					s.let++
					at++
				}
			}
		}
		w.let += at
		w.above = max(0, w.above+float64(at)-1.01*float64(w.limits.RequestsPerSecond)*step.Seconds())
		w.most = max(w.most, w.above)
		time.Sleep(step)
	}
	return let
}

// within fails the test if in any period more was let through than the limit and a hundredth
// of it, and what may come at once after a still second, or less than one call for each server.
func (w *world) within() {
	w.t.Helper()
	if bound := float64(w.limits.RequestsPerSecond) + float64(len(w.all)); w.most > bound {
		w.t.Errorf("there was a period in which %.0f calls more than the limit were let through, want at most %.0f", w.most, bound)
	}
}

// wantRate fails the test unless a number of calls is so many a second.
func (w *world) wantRate(what string, let int, d time.Duration, least, most float64) {
	w.t.Helper()
	if rate := float64(let) / d.Seconds(); rate < least || rate > most {
		w.t.Errorf("%s: %.1f calls a second were let through, want %.1f to %.1f", what, rate, least, most)
	}
}

// TestAShareFollowsUse: of three servers, whoever has all the calls has all of the limit,
// and a few seconds after the calls have moved, so has the next one. Where two are called
// for more than there is, each has what the other leaves.
func TestAShareFollowsUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 500
		w := newWorld(t, config.Limits{RequestsPerSecond: limit})
		a, b, c := w.start(), w.start(), w.start()
		w.offer(5*time.Second, nil)
		for _, s := range []*played{a, b, c, a} {
			first := w.offer(4*time.Second, map[*played]int{s: 2 * limit})
			w.wantRate("as its calls begin", first[s], 4*time.Second, limit/4, 1.5*limit)
			let := w.offer(10*time.Second, map[*played]int{s: 2 * limit})
			w.wantRate("with all the calls", let[s], 10*time.Second, 0.98*limit, 1.01*limit)
		}
		w.offer(4*time.Second, map[*played]int{a: 1000, b: 100, c: 300})
		let := w.offer(10*time.Second, map[*played]int{a: 1000, b: 100, c: 300})
		w.wantRate("who asks for little", let[b], 10*time.Second, 98, 101)
		w.wantRate("one of two who ask for more", let[a], 10*time.Second, 195, 205)
		w.wantRate("the other one", let[c], 10*time.Second, 195, 205)
		w.within()
	})
}

// TestAllIsWell: servers that are called for less than the limit together refuse nothing once
// they have met, however the calls are spread.
func TestAllIsWell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, config.Limits{RequestsPerSecond: 500})
		a, b, c := w.start(), w.start(), w.start()
		w.offer(5*time.Second, nil)
		rates := map[*played]int{a: 300, b: 50, c: 20}
		w.offer(3*time.Second, rates)
		for range 3 {
			let := w.offer(10*time.Second, rates)
			if let[a] != 3000 || let[b] != 500 || let[c] != 200 {
				t.Errorf("of 3000, 500 and 200 calls %d, %d and %d were let through", let[a], let[b], let[c])
			}
		}
		w.within()
	})
}

// TestAShareIsNotSpentTwice: what a server had that is killed, or cut off from the store while
// its callers go on, others have after a while, and not before it has lost it.
func TestAShareIsNotSpentTwice(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bool{"killed": false, "cut off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const limit = 500
				w := newWorld(t, config.Limits{RequestsPerSecond: limit})
				a, b, c := w.start(), w.start(), w.start()
				w.offer(5*time.Second, nil)
				w.offer(10*time.Second, map[*played]int{a: limit, b: 100})
				rates := map[*played]int{b: limit, c: limit}
				if cut {
					a.way.cut.Store(true)
					rates[a] = limit
				} else {
					a.kill()
				}
				early := w.offer(8*time.Second, rates)
				w.wantRate("at first", early[b]+early[c], 8*time.Second, 80, 250)
				w.offer(10*time.Second, rates)
				late := w.offer(10*time.Second, rates)
				w.wantRate("after a while", late[b]+late[c], 10*time.Second, 0.98*limit, 1.01*limit)
				w.wantRate("at the server that lost its share", late[a], 10*time.Second, 0, 0.01*limit)
				a.way.cut.Store(false)
				w.offer(5*time.Second, rates)
				back := w.offer(10*time.Second, rates)
				w.wantRate("in the end", back[a]+back[b]+back[c], 10*time.Second, 0.98*limit, 1.01*limit)
				w.within()
			})
		})
	}
}

// TestTheNextRunNeedNotWait: a server that was killed and comes back at once has its share
// again within seconds, and so have the others what it does not need of it; what it used before
// it was killed is not used once more.
func TestTheNextRunNeedNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 500
		w := newWorld(t, config.Limits{RequestsPerSecond: limit})
		a, b := w.start(), w.start()
		w.offer(5*time.Second, nil)
		w.offer(10*time.Second, map[*played]int{a: limit, b: 50})
		for range 3 {
			a.kill()
			a = w.again(a)
			w.offer(3*time.Second, map[*played]int{a: limit, b: 50})
			let := w.offer(5*time.Second, map[*played]int{a: limit, b: 50})
			if n := let[a] + let[b]; n < 5*limit*98/100 { // more, where the other one had saved something
				t.Errorf("three seconds after a server came back %d calls were let through in five seconds, want %d", n, 5*limit)
			}
		}
		w.within()
	})
}

// TestAServerAlone has the whole limit and nothing in the store, and gives of it to the next
// one that starts, without refusing anything meanwhile; and has it again when it is alone again.
func TestAServerAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 100
		w := newWorld(t, config.Limits{RequestsPerSecond: limit})
		a := w.start()
		time.Sleep(2500 * time.Millisecond)
		let := w.offer(10*time.Second, map[*played]int{a: limit})
		if let[a] != 10*limit {
			t.Errorf("%d of %d calls were let through", let[a], 10*limit)
		}
		accounts := func() int {
			docs, err := w.store.Documents().List(t.Context(), driver.Space{Name: "ledger"}, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			return len(docs)
		}
		if n := accounts(); n != 0 {
			t.Errorf("a server that is alone keeps %d accounts", n)
		}
		b := w.start()
		let = w.offer(4*time.Second, map[*played]int{a: limit / 2})
		if let[a] != 4*limit/2 {
			t.Errorf("as another one starts, %d of %d calls were let through", let[a], 4*limit/2)
		}
		let = w.offer(10*time.Second, map[*played]int{a: limit / 2, b: limit / 4})
		if let[a]+let[b] < 10*limit*3/4-limit/10 || accounts() != 1 {
			t.Errorf("%d and %d calls were let through, with %d accounts", let[a], let[b], accounts())
		}
		a.stop()
		w.offer(40*time.Second, map[*played]int{b: limit})
		let = w.offer(10*time.Second, map[*played]int{b: limit})
		if let[b] != 10*limit || accounts() != 0 {
			t.Errorf("%d of %d calls were let through by who is alone again, with %d accounts", let[b], 10*limit, accounts())
		}
		w.within()
	})
}

// TestTheNextServerWaits: a server that finds another one takes nothing before that one lets
// through no more than it has in an account, whatever it is called for.
func TestTheNextServerWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 100
		w := newWorld(t, config.Limits{RequestsPerSecond: limit})
		a := w.start()
		w.offer(5*time.Second, map[*played]int{a: 2 * limit})
		time.Sleep(500 * time.Millisecond) // between two looks of the first one
		b := w.start()
		let := w.offer(2*time.Second, map[*played]int{a: 2 * limit, b: 2 * limit})
		if most := 2*limit + limit/2 + 5; let[a]+let[b] > most { // what half a second had left
			t.Errorf("%d and %d calls were let through in two seconds, want at most %d", let[a], let[b], most)
		}
		w.offer(10*time.Second, map[*played]int{a: 2 * limit, b: 2 * limit})
		let = w.offer(10*time.Second, map[*played]int{a: 2 * limit, b: 2 * limit})
		w.wantRate("one of two", let[a], 10*time.Second, limit*0.48, limit*0.52)
		w.wantRate("the other one", let[b], 10*time.Second, limit*0.48, limit*0.52)
	})
}

// TestALessShareHoldsAtOnce: a server whose answer from the store is lost as it gives
// something back does not use that any more, since others may have it already.
func TestALessShareHoldsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 100
		w := newWorld(t, config.Limits{RequestsPerSecond: limit})
		a, b := w.start(), w.start()
		time.Sleep(4 * time.Second)
		w.offer(6*time.Second, map[*played]int{a: 2 * limit})
		rates := map[*played]int{a: 2 * limit, b: 2 * limit}
		w.offer(500*time.Millisecond, rates) // the other one says that it wants something
		a.way.lost.Store(true)
		w.offer(2*time.Second, rates)
		let := w.offer(5*time.Second, rates)
		w.wantRate("both", let[a]+let[b], 5*time.Second, 0.5*limit, 1.02*limit)
		if let[b] < limit {
			t.Errorf("the other one let through %d calls", let[b])
		}
	})
}

// TestServersOfTheVersionBefore: beside a server that divides rates evenly the others do so,
// too, and share them as soon as it is gone.
func TestServersOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 90
		w := newWorld(t, config.Limits{RequestsPerSecond: limit})
		a, b := w.start(), w.start()
		w.old = true
		before := w.start()
		for _, s := range w.all {
			s.quotas.SetHosts(3)
		}
		w.offer(5*time.Second, map[*played]int{a: limit})
		let := w.offer(10*time.Second, map[*played]int{a: limit, b: limit})
		if most := 10*limit/3 + limit/3; let[a] < 10*limit/3-1 || let[a] > most || let[b] < 10*limit/3-1 || let[b] > most {
			t.Errorf("%d and %d calls were let through, want %d each", let[a], let[b], 10*limit/3)
		}
		before.stop()
		w.offer(10*time.Second, map[*played]int{a: limit})
		let = w.offer(10*time.Second, map[*played]int{a: limit})
		w.wantRate("without it", let[a], 10*time.Second, 0.98*limit, 1.01*limit)
	})
}

// TestNobodyKeepsAnAccountThatIsNotUsed: who has not called for a while has no account, and
// a limit that is not there has none at all.
func TestNobodyKeepsAnAccountThatIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, config.Limits{RequestsPerSecond: 100})
		a, b := w.start(), w.start()
		w.offer(5*time.Second, nil)
		w.offer(5*time.Second, map[*played]int{a: 20, b: 20})
		time.Sleep(stillAfter + 5*time.Second)
		docs, err := w.store.Documents().List(t.Context(), driver.Space{Name: "ledger"}, "", 0)
		if err != nil || len(docs) != 0 {
			t.Errorf("%d accounts are left, %v", len(docs), err)
		}
		synctest.Wait()
		w.limits = config.Limits{}
		w.offer(time.Second, map[*played]int{a: 20, b: 20})
		if docs, _ := w.store.Documents().List(t.Context(), driver.Space{Name: "ledger"}, "", 0); len(docs) != 0 {
			t.Errorf("a tenant without limits has %d accounts", len(docs))
		}
	})
}

// watchUntilRefused has calls watch at a server until one is refused, or so many do.
func (w *world) watchUntilRefused(s *played, most int) (releases []func() bool) {
	b := s.quotas.NewBoard(Spec{Tenant: "t", Name: "b", Limits: &config.Limits{}, Standing: opened{w.t.Context()}})
	for len(releases) < most {
		release, err := b.Watch(w.t.Context())
		if err != nil {
			break
		}
		releases = append(releases, release)
	}
	return releases
}

// TestWatchersOfAFleet: as many watch as may, on whichever servers, and not one more; what
// ends on one server there is room for on the next one, and likewise what a server had that
// is killed.
func TestWatchersOfAFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 20
		w := newWorld(t, config.Limits{Watchers: most})
		a, b, c := w.start(), w.start(), w.start()
		time.Sleep(5 * time.Second)
		total := func() (n int64) {
			for _, s := range w.all {
				n += s.quotas.Tenant("t").meter.watchers.Load()
			}
			return n
		}
		some := func(s *played, seconds int) (n int64) { // they ask again and again
			for range seconds {
				n += int64(len(w.watchUntilRefused(s, 100)))
				time.Sleep(time.Second)
			}
			return n
		}
		atA := w.watchUntilRefused(a, 12)
		w.watchUntilRefused(b, 100)
		w.watchUntilRefused(c, 100)
		if n := total(); n > most || n < most-4 {
			t.Errorf("%d watch at first, want at most %d and nearly as many", n, most)
		}
		some(c, 5)
		if n := total(); n != most || len(atA) != 12 {
			t.Errorf("%d watch in the end, want %d; the first server let through %d", n, most, len(atA))
		}
		for _, release := range atA {
			release()
		}
		if n := some(b, 5); n != 12 {
			t.Errorf("%d more watch at the second server, want 12", n)
		}
		atB := b.quotas.Tenant("t").meter.watchers.Load()
		b.kill()
		if n := some(a, 8); n != 0 {
			t.Errorf("%d watch instead of those of a server that may live", n)
		}
		if n := some(a, 10); n != atB {
			t.Errorf("%d watch instead of those of a server that was killed, want %d", n, atB)
		}
	})
}

// TestFuelOfAFleet: what modules may use follows where they are asked, like calls.
func TestFuelOfAFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 1_000_000
		w := newWorld(t, config.Limits{PolicyFuelPerSecond: limit})
		a, b := w.start(), w.start()
		time.Sleep(5 * time.Second)
		spend := func(s *played, d time.Duration) (spent int64) {
			s.quotas.Board = func(string, string) *Board { return nil }
			g := s.quotas.Gauge("t", "b", FuelPatience)
			for end := time.Now().Add(d); time.Now().Before(end); {
				if g.Wait(t.Context()) == nil {
					g.Spend(limit / 50)
					spent += limit / 50
				}
				time.Sleep(time.Millisecond)
			}
			return spent
		}
		for _, s := range []*played{a, b} {
			spend(s, 20*time.Second)
			if spent := spend(s, 10*time.Second); spent < 9.5*limit || spent > 10.3*limit {
				t.Errorf("the modules of a server that is asked alone used %d in ten seconds, want %d", spent, 10*limit)
			}
		}
	})
}

// opened is how a board stands that is open.
type opened struct{ running context.Context }

func (o opened) Running() context.Context { return o.running }
func (opened) Ready() bool                { return true }
func (opened) Rests() *driver.Counts      { return nil }

// on opens a board of the tenant at a server, through what bounds it.
func (w *world) on(s *played, name string) driver.Driver {
	w.t.Helper()
	b := s.quotas.NewBoard(Spec{Tenant: "t", Name: name, Limits: &config.Limits{}, Standing: opened{w.t.Context()}})
	d := b.Through(w.store)
	s.mu.Lock()
	s.boards = append(s.boards, b)
	s.mu.Unlock()
	if _, err := d.OpenBoard(w.t.Context(), driver.BoardSpec{Name: "t/" + name, Settings: []byte("{}"), Window: time.Hour}); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// post posts so many jobs to a board, one after the other, and returns those that were taken.
func (w *world) post(d driver.Driver, name string, n int) (posted []job.ID) {
	w.t.Helper()
	for range n {
		var id job.ID
		w.posts++
		binary.BigEndian.PutUint64(id[:], w.posts)
		op := driver.Op{Kind: driver.Post, Job: id, Event: job.Posted, Posting: &driver.Posting{ID: id, Name: "x", Details: []byte("{}"), Priority: job.Normal}}
		copy(op.Request[:], id[:])
		switch r := d.Apply(w.t.Context(), "t/"+name, []driver.Op{op})[0]; r.Kind {
		case job.NoKind:
			posted = append(posted, id)
		case job.QuotaExceeded:
		default:
			w.t.Fatalf("post: %v %s", r.Kind, r.Message)
		}
	}
	return posted
}

// purge takes jobs away.
func (w *world) purge(d driver.Driver, name string, ids []job.ID) {
	w.t.Helper()
	for _, id := range ids {
		op := driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.Free, Event: job.PurgedEvent}
		copy(op.Request[:], id[:])
		op.Request[15] = 1
		if r := d.Apply(w.t.Context(), "t/"+name, []driver.Op{op})[0]; r.Kind != job.NoKind {
			w.t.Fatalf("purge: %v %s", r.Kind, r.Message)
		}
	}
}

// TestJobsOfAFleet: the boards of a tenant are on three servers, and have together as many
// jobs as it may have; what ends on one of them there is room for on the others. What is on
// the boards of a server that is killed counts on, whoever opens them.
func TestJobsOfAFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 300
		w := newWorld(t, config.Limits{OpenJobs: most})
		a, b, c := w.start(), w.start(), w.start()
		onA, onB, onC := w.on(a, "a"), w.on(b, "b"), w.on(c, "c")
		time.Sleep(5 * time.Second)
		total := func() int {
			n := int64(0)
			for _, name := range []string{"a", "b", "c"} {
				counts, err := w.store.Count(t.Context(), "t/"+name)
				if err != nil {
					t.Fatal(err)
				}
				n += counts.Open
			}
			if n > most+most/100 {
				t.Fatalf("there are %d jobs, want at most %d", n, most)
			}
			return int(n)
		}
		until := func(d driver.Driver, name string, seconds int) (ids []job.ID) { // they are posted again and again
			for range seconds {
				ids = append(ids, w.post(d, name, 40)...)
				total()
				time.Sleep(time.Second)
			}
			return ids
		}
		atA := until(onA, "a", 10)
		if n := total(); n < most*99/100 {
			t.Errorf("a server that is alone in posting has posted %d, want %d", n, most)
		}
		until(onB, "b", 5)
		w.purge(onA, "a", atA[:100])
		until(onB, "b", 8)
		if n := total(); n < most*99/100 {
			t.Errorf("when jobs have ended elsewhere there are %d, want %d", n, most)
		}
		time.Sleep(time.Minute) // all servers are at rest
		until(onC, "c", 5)
		total()
		a.kill()
		taken := w.on(b, "a")
		until(onC, "c", 20)
		until(taken, "a", 80)
		total()
		w.purge(taken, "a", atA[100:150])
		until(onC, "c", 10)
		if n := total(); n < most*99/100 {
			t.Errorf("when jobs of a server that was killed have ended there are %d, want %d", n, most)
		}
	})
}

// off closes a board at a server.
func (s *played) off(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boards = slices.DeleteFunc(s.boards, func(b *Board) bool { return b.spec.Name == name })
}

// atRandom plays something in virtual time with each of some seeds.
func atRandom(t *testing.T, seeds, stream uint64, play func(*testing.T, *rand.Rand)) {
	t.Helper()
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { play(t, rand.New(rand.NewPCG(seed, stream))) })
		})
	}
}

// TestBoardsThatMove: boards go from server to server, each open at both for a moment, while
// jobs are posted through all of them: what a server gives back with a board is the next one's,
// and nobody else has it meanwhile.
func TestBoardsThatMove(t *testing.T) {
	t.Parallel()
	atRandom(t, 8, 2, playMoves)
}

func playMoves(t *testing.T, r *rand.Rand) {
	t.Helper()
	const most = 300
	w := newWorld(t, config.Limits{OpenJobs: most})
	servers := []*played{w.start(), w.start(), w.start()}
	names := []string{"a", "b", "c", "d", "e", "f"}
	at, on := map[string]*played{}, map[string]driver.Driver{}
	for i, name := range names {
		at[name] = servers[i%len(servers)]
		on[name] = w.on(at[name], name)
	}
	time.Sleep(5 * time.Second)
	total := func() (n int64) {
		for _, name := range names {
			counts, err := w.store.Count(t.Context(), "t/"+name)
			if err != nil {
				t.Fatal(err)
			}
			n += counts.Open
		}
		if n > most+most/100 {
			t.Fatalf("there are %d jobs, want at most %d", n, most)
		}
		return n
	}
	posted := map[string][]job.ID{}
	during := func(d time.Duration) { // they are posted again and again
		for range d / (100 * time.Millisecond) {
			name := names[r.IntN(len(names))]
			posted[name] = append(posted[name], w.post(on[name], name, 4)...)
			total()
			time.Sleep(100 * time.Millisecond)
		}
	}
	during(20 * time.Second)
	for range 12 {
		name, next := names[r.IntN(len(names))], servers[r.IntN(len(servers))]
		if before := at[name]; next != before {
			on[name] = w.on(next, name)
			at[name] = next
			during(time.Second + time.Duration(r.IntN(2000))*time.Millisecond)
			before.off(name)
		}
		some := names[r.IntN(len(names))]
		ended := r.IntN(1 + len(posted[some]))
		w.purge(on[some], some, posted[some][:ended])
		posted[some] = posted[some][ended:]
		during(time.Duration(r.IntN(5000)) * time.Millisecond)
	}
	during(30 * time.Second)
	if n := total(); n < most*99/100 {
		t.Errorf("when nothing moves any more there are %d jobs, want %d", n, most)
	}
}

// TestSharesAtRandom plays fleets in which servers start, are killed, stopped, cut off and
// lose answers, while callers move: in no period is more let through than may be.
func TestSharesAtRandom(t *testing.T) {
	t.Parallel()
	atRandom(t, 12, 1, playShares)
}

func playShares(t *testing.T, r *rand.Rand) {
	t.Helper()
	w := newWorld(t, config.Limits{RequestsPerSecond: 200})
	alive := []*played{w.start()}
	one := func() *played { return alive[r.IntN(len(alive))] }
	rates := map[*played]int{}
	for range 60 {
		switch n := r.IntN(10); {
		case n < 2 && len(alive) < 4:
			alive = append(alive, w.start())
		case n < 4 && len(alive) > 1:
			i := r.IntN(len(alive))
			if s := alive[i]; n == 2 {
				s.kill()
			} else {
				s.stop()
				s.done.Wait()
			}
			ended := alive[i]
			delete(rates, ended)
			alive = append(alive[:i], alive[i+1:]...)
			if r.IntN(2) == 0 {
				ended.done.Wait() // a process that lives has its data folder
				alive = append(alive, w.again(ended))
			}
		case n < 6:
			s := one()
			s.way.cut.Store(!s.way.cut.Load())
		case n == 6:
			s := one()
			s.way.lost.Store(!s.way.lost.Load())
		default:
			rates[one()] = r.IntN(3) * 150
		}
		w.offer(time.Duration(r.IntN(6000))*time.Millisecond, rates)
	}
	w.within()
	for _, s := range alive {
		s.way.cut.Store(false)
		s.way.lost.Store(false)
		rates[s] = 200
	}
	w.offer(time.Minute, rates)
	let := w.let
	w.offer(10*time.Second, rates)
	w.wantRate("when all is well again", w.let-let, 10*time.Second, 195, 202)
	w.within()
}
