package board

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"testing"
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
// hosts that come and go all the time, so that now and then there is none for a while. Each
// tick is posted once, and nothing else is.
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
			for tick := began.Add(s.Every); tick.Before(time.Now()); tick = tick.Add(s.Every) {
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

// running runs hosts of a board while do lasts.
func running(t *testing.T, d driver.Driver, n int, do func([]*Board)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, n)
	hosts := make([]*Board, n)
	for i := range hosts {
		b := New(d, Spec{Name: "test", Logger: slog.New(slog.DiscardHandler)})
		hosts[i] = b
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
		running(t, d, 1+random.IntN(3), func([]*Board) { pause(90_000) })
		pause(30_000)
	}
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
	s.sync(nil)
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
