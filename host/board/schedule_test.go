package board

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// posts counts what is posted, by job, and takes most of it away for good at once.
type posts struct {
	driver.Driver
	times map[job.ID]int
}

func (p *posts) follow(ctx context.Context, key string) {
	for changes, err := range p.Watch(ctx, key, 0) {
		if err != nil {
			return
		}
		for _, c := range changes.List {
			if c.Event != job.Posted {
				continue
			}
			if p.times[c.Job]++; c.Job[15]%8 > 0 {
				p.Apply(ctx, key, []driver.Op{{Kind: driver.Remove, Job: c.Job, Event: job.ConsumedEvent}})
				p.Apply(ctx, key, []driver.Op{{Kind: driver.Purge, Job: c.Job, Event: job.PurgedEvent}})
			}
		}
	}
}

// TestEachTickOnce has 10,000 ticks of a schedule, and of one with jitter, on up to three
// hosts that come and go all the time, so that now and then there is none for a while. Their
// clocks are ahead, each by another time, and are put back. Each tick is posted once, and
// nothing else is.
func TestEachTickOnce(t *testing.T) {
	t.Parallel()
	const ticks, every = 10_000, time.Second
	bubble(t, func(t *testing.T) {
		p := &posts{openStore(t), map[job.ID]int{}}
		schedules := []Schedule{{Name: "plain", Every: every}, {Name: "late", Every: 10 * every, Jitter: 5 * every}}
		began := time.Now()
		var b *Board
		running(t, p, 1, func(hosts []*Board) {
			b = hosts[0]
			for _, s := range schedules {
				s.Job.Name = s.Name
				if _, err := b.PutSchedule(t.Context(), s, nil); err != nil {
					t.Fatal(err)
				}
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			p.follow(ctx, b.spec.Key)
		}()
		comeAndGo(t, p, began.Add(ticks*every))
		ended := time.Now()
		running(t, p, 2, func([]*Board) { _ = sleep.For(t.Context(), 10*every) }) // the last ones are late, too
		cancel()
		<-followed
		for _, s := range schedules {
			for tick := began.Add(s.Every); tick.Before(time.Now().Add(mostAhead)); tick = tick.Add(s.Every) {
				id := b.tickID(s.Name, tick)
				if n := p.times[id]; n > 1 || n == 0 && tick.Before(ended) {
					t.Fatalf("the tick of %s %v after the beginning was posted %d times", s.Name, tick.Sub(began), n)
				}
				delete(p.times, id)
			}
		}
		if len(p.times) > 0 {
			t.Errorf("%d jobs of no tick were posted", len(p.times))
		}
	})
}

// mostAhead is by how much the clock of a host is ahead at most.
const mostAhead = 20 * time.Second

// puttingBack is a clock for each host that is ahead by another time every 7 to 16 s, and so
// is put back again and again.
func puttingBack(host int) func() time.Time {
	every := time.Duration(7+host*3) * time.Second
	return func() time.Time {
		now := time.Now()
		turn := now.UnixNano() / int64(every)
		ahead := rand.New(rand.NewPCG(uint64(turn), uint64(host))).Int64N(int64(mostAhead)) //nolint:gosec // it only has to vary
		return now.Add(time.Duration(ahead))
	}
}

// running runs hosts of a board while do lasts.
func running(t *testing.T, d driver.Driver, n int, do func([]*Board)) {
	t.Helper()
	runningBy(t, d, n, func(int) func() time.Time { return nil }, do)
}

// runningBy runs hosts whose schedules go by other clocks.
func runningBy(t *testing.T, d driver.Driver, n int, clock func(host int) func() time.Time, do func([]*Board)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, n)
	hosts := make([]*Board, n)
	for i := range hosts {
		b := New(d, Spec{Name: "test", Logger: slog.New(slog.DiscardHandler)})
		hosts[i] = b
		b.scheduler.clock = clock(i)
		go func() { ended <- b.Run(ctx) }()
	}
	do(hosts)
	cancel()
	for range n {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// comeAndGo has one to three hosts for a while, and then none, again and again until end.
func comeAndGo(t *testing.T, d driver.Driver, end time.Time) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // it only has to vary
	pause := func(most int) { _ = sleep.For(t.Context(), time.Duration(random.IntN(most))*time.Millisecond) }
	for time.Now().Before(end) {
		runningBy(t, d, 1+random.IntN(3), puttingBack, func([]*Board) { pause(90_000) })
		pause(30_000)
	}
}

// TestTicksAreOnTime: the job of each tick is posted within a second of it, however many are due
// at once; and of those that a host finds due when it begins, within a second of that.
func TestTicksAreOnTime(t *testing.T) {
	t.Parallel()
	const schedules, ticks, outage = 100, 20, 7 * time.Second
	bubble(t, func(t *testing.T) {
		d, began := openStore(t), time.Now()
		running(t, d, 1, func(hosts []*Board) {
			for i := range schedules {
				if _, err := hosts[0].PutSchedule(t.Context(), Schedule{Name: strconv.Itoa(i), Every: time.Second, Job: job.Posting{Name: "tick"}}, nil); err != nil {
					t.Fatal(err)
				}
			}
			_ = sleep.For(t.Context(), ticks*time.Second+time.Second/2)
		})
		_ = sleep.For(t.Context(), outage)
		again := time.Now()
		running(t, d, 1, func(hosts []*Board) {
			_ = sleep.For(t.Context(), time.Second)
			posted := postedAt(t, hosts[0])
			for i := range schedules {
				for tick := began.Add(time.Second); !tick.After(again); tick = tick.Add(time.Second) {
					due := tick
					if tick.After(began.Add(ticks * time.Second)) {
						due = again
					}
					if at := posted[hosts[0].tickID(strconv.Itoa(i), tick)]; at.Before(due) || at.After(due.Add(time.Second)) {
						t.Fatalf("the tick of schedule %d after %v was posted at %v, due at %v", i, tick.Sub(began), at, due)
					}
				}
			}
		})
	})
}

// postedAt returns when each job of a board was posted.
func postedAt(t *testing.T, b *Board) map[job.ID]time.Time {
	t.Helper()
	posted := map[job.ID]time.Time{}
	for req := (ListRequest{PageSize: MaxPage}); ; {
		page, err := b.List(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range page.Jobs {
			posted[j.ID] = j.CreatedAt
		}
		if req.PageToken = page.Next; page.Next == "" {
			return posted
		}
	}
}

// TestSchedulesAtRest: schedules that are not due cost a host nothing, however many there are.
// For a day it asks the store for no more than without any, and looks at its clock no more
// often. BOARDD_TEST_SCHEDULES says how many there are.
func TestSchedulesAtRest(t *testing.T) {
	t.Parallel()
	schedules := 10_000
	if text := os.Getenv("BOARDD_TEST_SCHEDULES"); text != "" {
		var err error
		if schedules, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	at := func(n int) (calls, looks int64) {
		bubble(t, func(t *testing.T) {
			p := &asked{Driver: openStore(t)}
			space := driver.Space{Board: New(p, Spec{Name: "test"}).spec.Key, Name: driver.SettingSpace}
			data, err := json.Marshal(scheduleRecord{Cron: "@yearly", Job: job.Posting{Name: "report"}, Since: time.Now(), CatchUp: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if _, err := p.Driver.Documents().Put(t.Context(), space, driver.Document{Name: schedulePrefix + strconv.Itoa(i), Data: data}, 0); err != nil {
					t.Fatal(err)
				}
			}
			clock := func(int) func() time.Time {
				return func() time.Time {
					p.looks.Add(1)
					return time.Now()
				}
			}
			runningBy(t, p, 1, clock, func(hosts []*Board) {
				b := hosts[0]
				if err := b.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := b.scheduler.count(); got != n {
					t.Fatalf("the host knows %d schedules, want %d", got, n)
				}
				p.calls.Store(0)
				p.looks.Store(0)
				_ = sleep.For(t.Context(), 24*time.Hour)
				calls, looks = p.calls.Load(), p.looks.Load()
			})
		})
		return calls, looks
	}
	calls, looks := at(0)
	const early = 10 // looks at the clock while what the host has read settles
	const again = int64(2 * 24 * time.Hour / ClockLook)
	if more, often := at(schedules); more > calls || often > looks+early+again {
		t.Errorf("in a day without schedules the store was asked %d times, and the clock %d times; with %d schedules %d and %d times", calls, looks, schedules, more, often)
	}
}

// asked counts what a host asks its store and its clock.
type asked struct {
	driver.Driver
	calls, looks atomic.Int64
}

func (a *asked) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	a.calls.Add(1)
	return a.Driver.Apply(ctx, board, ops)
}

func (a *asked) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	a.calls.Add(1)
	return a.Driver.Read(ctx, board, ids, parts)
}

func (a *asked) Documents() driver.Documents {
	a.calls.Add(1)
	return a.Driver.Documents()
}

// TestLateTicksAreLeftOut: after an outage longer than the catch-up only what is within it
// is posted, and that is said.
func TestLateTicksAreLeftOut(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		running(t, d, 1, func(hosts []*Board) {
			s := Schedule{Name: "s", Every: time.Minute, CatchUp: 5 * time.Minute, Job: job.Posting{Name: "x"}}
			if _, err := hosts[0].PutSchedule(t.Context(), s, nil); err != nil {
				t.Fatal(err)
			}
			_ = sleep.For(t.Context(), 150*time.Second)
		})
		_ = sleep.For(t.Context(), time.Hour)
		again := start(t, d, Spec{})
		_ = sleep.For(t.Context(), time.Second)
		page, err := again.List(t.Context(), ListRequest{PageSize: 100})
		if err != nil || len(page.Jobs) != 2+5 {
			t.Errorf("%d jobs, %v; want the two before the outage and the last five", len(page.Jobs), err)
		}
		if n := again.Metrics().TicksMissed.Load(); n != 1 {
			t.Errorf("that ticks were left out was said %d times, want once", n)
		}
	})
}

// TestJitterBeyondCatchUp: a tick that the jitter makes later than the schedule's catch-up is posted
// when it is due, although a host begins to serve the board just before that or at that moment. The
// catch-up counts from the latest that the jitter may make a tick.
func TestJitterBeyondCatchUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		back   func(due, last time.Time) time.Time // when a host is there again; last is when the catch-up ends
		missed bool
	}{
		"a minute before it is due": {func(due, _ time.Time) time.Time { return due.Add(-time.Minute) }, false},
		"as it is due":              {func(due, _ time.Time) time.Time { return due }, false},
		"as the catch-up ends":      {func(_, last time.Time) time.Time { return last.Add(-time.Second) }, false},
		"after that":                {func(_, last time.Time) time.Time { return last.Add(time.Second) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				d := openStore(t)
				s := Schedule{Name: "s", Every: 3 * time.Hour, Jitter: MaxJitter, CatchUp: MinCatchUp, Job: job.Posting{Name: "x"}}
				first := time.Now().Add(s.Every)
				for jitter(s.Name, first, s.Jitter) < 10*time.Minute {
					s.Name += "s"
				}
				due, last := first.Add(jitter(s.Name, first, s.Jitter)), first.Add(s.Jitter+s.CatchUp)
				running(t, d, 1, func(hosts []*Board) {
					if _, err := hosts[0].PutSchedule(t.Context(), s, nil); err != nil {
						t.Fatal(err)
					}
					if r := rests(t, hosts[0]); !r.Due.Equal(due) {
						t.Errorf("the board rests until %v, want %v", r.Due, due)
					}
				})
				back := c.back(due, last)
				_ = sleep.For(t.Context(), time.Until(back))
				running(t, d, 1, func(hosts []*Board) {
					b := hosts[0]
					if shown, err := b.Schedule(t.Context(), s.Name); err != nil || back.Before(due) && !shown.NextAt.Equal(first) {
						t.Errorf("the next tick is said to be at %v, %v; want %v", shown.NextAt, err, first)
					}
					_ = sleep.For(t.Context(), time.Until(later(due, back))+time.Second)
					at, posted := postedAt(t, b)[b.tickID(s.Name, first)]
					if posted == c.missed || posted && (at.Before(due.Truncate(time.Microsecond)) || at.After(later(due, back).Add(time.Second))) {
						t.Errorf("it was posted: %v, at %v; it is due at %v, and the host is back at %v", posted, at, due, back)
					}
					if missed := b.Metrics().TicksMissed.Load() > 0; missed != c.missed {
						t.Errorf("that it was left out was said: %v", missed)
					}
				})
			})
		})
	}
}

// TestScheduleRecord holds the form of a schedule in the store.
func TestScheduleRecord(t *testing.T) {
	t.Parallel()
	const kept = `{"cron":"@daily","timezone":"Europe/Berlin","job":{"ID":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"Name":"report","Priority":0,` +
		`"Details":"e30=","Raw":null,"Labels":null,"Book":{"UUID":"","Name":""},"NotBefore":"0001-01-01T00:00:00Z","MaxAttempts":0,"Timeout":0,` +
		`"Unique":{"Key":"k","Window":0,"OnConflict":0},"Batch":"","Operations":null,"After":null},"catchUp":0,"anchor":"0001-01-01T00:00:00Z",` +
		`"since":"0001-01-01T00:00:00Z","revision":3}`
	r := scheduleRecord{Cron: "@daily", Timezone: "Europe/Berlin", Job: job.Posting{Name: "report", Details: []byte("{}"), Unique: job.Unique{Key: "k"}}, Revision: 3}
	data, err := json.Marshal(r)
	if err != nil || string(data) != kept {
		t.Fatalf("a schedule is kept as %s, %v; want %s", data, err, kept)
	}
	var back scheduleRecord
	if err := json.Unmarshal(data, &back); err != nil || back.Job.Name != "report" || string(back.Job.Details) != "{}" || back.Job.Unique.Key != "k" || back.Revision != 3 {
		t.Errorf("read back as %+v, %v", back, err)
	}
}

// TestTickIsOfTheScheduleBefore: a tick that is due is handled as the schedule was then,
// although that changes meanwhile.
func TestTickIsOfTheScheduleBefore(t *testing.T) {
	t.Parallel()
	s := scheduler{all: map[string]*scheduled{}, wake: make(chan struct{}, 1)}
	s.missed = func(string, time.Time, time.Time) {}
	began := time.Now().Truncate(time.Millisecond)
	before := &scheduleRecord{Every: time.Hour, Anchor: began, Since: began, CatchUp: time.Hour}
	s.learn("s", before, 1)
	s.sync(nil, time.Time{})
	tick, wait := s.take(began.Add(time.Hour))
	if tick == nil {
		t.Fatalf("nothing is due, for %v", wait)
	}
	s.learn("s", &scheduleRecord{Every: time.Minute, Anchor: began, Since: began, CatchUp: time.Hour}, 2)
	if !tick.at.Equal(began.Add(time.Hour)) || tick.record != before {
		t.Errorf("the tick is of %v, by %+v; want one hour after the beginning, by the schedule as it was", tick.at, tick.record)
	}
	if again, _ := s.take(began.Add(2 * time.Hour)); again != nil {
		t.Error("a second tick was given while the first is handled")
	}
	s.handled(tick, true)
	if next, _ := s.take(began.Add(time.Hour + time.Minute)); next == nil || !next.at.Equal(began.Add(time.Hour+time.Minute)) {
		t.Errorf("the tick after is %+v, want one a minute later", next)
	}
}

// TestDamagedSchedule: one that cannot be read is called so, hides no other, and is written
// anew by whoever does not ask for a version.
func TestDamagedSchedule(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), openStore(t)
	b := start(t, d, Spec{})
	good := Schedule{Name: "good", Every: time.Hour, Job: job.Posting{Name: "x"}}
	if _, err := b.PutSchedule(ctx, good, nil); err != nil {
		t.Fatal(err)
	}
	space := driver.Space{Board: b.spec.Key, Name: driver.SettingSpace}
	if _, err := d.Documents().Put(ctx, space, driver.Document{Name: schedulePrefix + "bad", Data: []byte("{")}, 0); err != nil {
		t.Fatal(err)
	}
	bad := good
	bad.Name = "bad"
	zero := uint64(0)
	for what, call := range map[string]func() error{
		"get":     func() error { _, err := b.Schedule(ctx, "bad"); return err },
		"pause":   func() error { _, err := b.PauseSchedule(ctx, "bad", true); return err },
		"trigger": func() error { _, err := b.TriggerSchedule(ctx, "bad", job.ID{}); return err },
		"put":     func() error { _, err := b.PutSchedule(ctx, bad, &zero); return err },
	} {
		if err := call(); job.KindOf(err) != job.Corrupt {
			t.Errorf("%s: %v, want that its record is corrupt", what, err)
		}
	}
	list, err := b.Schedules(ctx, "", 10)
	if err != nil || len(list) != 2 || list[0].Problem == "" || list[1].Name != "good" || list[1].Problem != "" {
		t.Errorf("listed as %+v, %v", list, err)
	}
	if s, err := b.PutSchedule(ctx, bad, nil); err != nil || s.Version != 1 {
		t.Errorf("written anew: %+v, %v", s, err)
	}
}

// TestTicksOfDeletedSchedules: what is left of schedules that were deleted does not hide how
// far the others are.
func TestTicksOfDeletedSchedules(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), openStore(t)
	b := start(t, d, Spec{})
	posted := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, name := range []string{"a", "b0", "b1", "b2", "b3", "b4", "c"} {
		b.ticked(ctx, name, func(r *tickRecord) { r.Posted = posted })
	}
	for _, name := range []string{"a", "c", "d"} {
		if _, err := b.PutSchedule(ctx, Schedule{Name: name, Every: time.Hour, Job: job.Posting{Name: "x"}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, most := range []int{2, 3} {
		list, err := b.Schedules(ctx, "", most)
		if err != nil || len(list) != most || !list[0].LastAt.Equal(posted) || !list[1].LastAt.Equal(posted) {
			t.Errorf("of %d: %+v, %v", most, list, err)
		}
	}
}

// TestTickPostedWhereLeftOut: two hosts try the same tick, the one just before the job of the
// tick before ends, the other one just after that: whoever writes first, the job that the
// second one posted is the schedule's last one.
func TestTickPostedWhereLeftOut(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, openStore(t), Spec{})
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	second, third := first.Add(time.Second), first.Add(2*time.Second)
	id := func(tick time.Time) job.ID { return b.tickID("s", tick) }
	posted := func(tick time.Time) func(string) {
		return func(name string) { b.ticked(ctx, name, func(r *tickRecord) { r.posted(tick, id(tick)) }) }
	}
	leftOut := func(tick time.Time) func(string) {
		return func(name string) { b.leftOut(ctx, name, tick, "job "+id(first).String()+" is open") }
	}
	for name, c := range map[string]struct {
		words   []func(string)
		at      time.Time
		last    time.Time
		problem bool
	}{
		"left out first":              {[]func(string){posted(first), leftOut(second), posted(second)}, second, second, false},
		"posted first":                {[]func(string){posted(first), posted(second), leftOut(second)}, second, second, false},
		"the next one was left out":   {[]func(string){posted(first), leftOut(third), posted(second)}, third, second, true},
		"the next one was posted":     {[]func(string){posted(first), posted(third), posted(second)}, third, third, false},
		"left out behind a later one": {[]func(string){posted(third), leftOut(second)}, third, third, false},
	} {
		for _, word := range c.words {
			word(name)
		}
		if r := b.readTick(ctx, name); !r.At.Equal(c.at) || !r.Posted.Equal(c.last) || r.ID != id(c.last) || (r.Problem != "") != c.problem {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestCancelsOnlyWhatCameBefore: of a schedule that cancels, the newest job is the one that is open,
// also where a host comes to a tick when others have posted it, or a later one.
func TestCancelsOnlyWhatCameBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps  string // ticks by their number, and t for one that is triggered, in the order in which hosts come to them
		newest int    // the step whose job is to be open
	}{
		"one after the other":                      {"1 2 3", 2},
		"a later tick was posted":                  {"1 3 2", 1},
		"the tick was posted":                      {"1 2 2", 1},
		"one was triggered":                        {"1 t", 1},
		"one was triggered before the tick":        {"1 t 2", 2},
		"one was triggered after the tick":         {"1 2 t 2", 2},
		"one was triggered before it and after it": {"1 t 2 t 2", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				ctx, b := t.Context(), start(t, openStore(t), Spec{})
				s := Schedule{Name: "s", Every: time.Minute, Overlap: OverlapCancel, Paused: true, Job: job.Posting{Name: "x"}}
				if _, err := b.PutSchedule(ctx, s, nil); err != nil {
					t.Fatal(err)
				}
				_, r, err := b.readSchedule(ctx, s.Name)
				if err != nil {
					t.Fatal(err)
				}
				tick := func(n int) time.Time { return time.Now().Add(time.Duration(n-10) * s.Every) }
				var jobs []job.ID
				for step := range strings.FieldsSeq(c.steps) {
					if n, err := strconv.Atoi(step); err == nil {
						if !b.tick(ctx, &dueTick{of: &scheduled{name: s.Name}, record: r, at: tick(n), last: tick(n - 1)}) {
							t.Fatalf("tick %d is to be tried again", n)
						}
						jobs = append(jobs, b.tickID(s.Name, tick(n)))
						continue
					}
					j, err := b.TriggerSchedule(ctx, s.Name, job.ID{})
					if err != nil {
						t.Fatal(err)
					}
					jobs = append(jobs, j.ID)
				}
				open := postedAt(t, b)
				if _, ok := open[jobs[c.newest]]; !ok || len(open) != 1 {
					t.Errorf("of the jobs %v those are open that were posted so: %v; want that of step %d", jobs, open, c.newest)
				}
			})
		})
	}
}

// TestHoldTicks: whoever freezes the board comes before the post of a tick's job or after the note of
// that, and never between.
func TestHoldTicks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		posting, on := make(chan struct{}), make(chan struct{})
		store := &spy{Driver: openStore(t), t: t}
		store.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			if len(ops[0].Keys) > 0 {
				posting <- struct{}{}
				<-on
			}
			return next(ctx, ops)
		}
		ctx, b := t.Context(), start(t, store, Spec{})
		if _, err := b.PutSchedule(ctx, Schedule{Name: "s", Every: time.Minute, Paused: true, Job: job.Posting{Name: "x"}}, nil); err != nil {
			t.Fatal(err)
		}
		_, r, err := b.readSchedule(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		due := &dueTick{of: &scheduled{name: "s"}, record: r, at: time.Now()}
		go b.tick(ctx, due)
		<-posting
		held := make(chan func())
		go func() { held <- b.HoldTicks(ctx) }()
		time.Sleep(time.Second)
		select {
		case <-held:
			t.Fatal("held between the post of a tick's job and the note of it")
		default:
		}
		close(on)
		release := <-held
		if at := b.readTick(ctx, "s").At; !at.Equal(due.at) {
			t.Errorf("held, and the tick that is noted is %v, want %v", at, due.at)
		}
		if b.tick(ctx, due) {
			t.Error("a tick is done while ticks are held")
		}
		release()
		late, cancel := context.WithCancel(ctx)
		cancel()
		b.scheduler.ticking.RLock()
		b.HoldTicks(late)() // nobody is waited for any longer
		b.scheduler.ticking.RUnlock()
	})
}
