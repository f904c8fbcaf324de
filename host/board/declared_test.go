package board

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// someDeclared are schedules as a configuration has them.
func someDeclared() []Schedule {
	return []Schedule{
		{Name: "nightly", Cron: "0 3 * * *", Timezone: "Europe/Berlin", Overlap: OverlapSkip, Job: job.Posting{
			Name: "report", Details: []byte(`{"n":1}`), Labels: []job.Label{{Key: "a", Value: "b"}}, Timeout: time.Hour,
			Unique: job.Unique{Key: "k", Window: time.Hour, OnConflict: job.Reject},
		}},
		{Name: "often", Every: time.Minute, CatchUp: time.Hour, Jitter: time.Second, Job: job.Posting{Name: "poll"}},
	}
}

// written counts what is written to the documents of a store, and refuses it while it is away.
type written struct {
	driver.Driver

	times atomic.Int64
	away  atomic.Bool
	pause atomic.Int64 // before each
}

func (w *written) Documents() driver.Documents { return &writtenDocuments{w.Driver.Documents(), w} }

type writtenDocuments struct {
	driver.Documents

	w *written
}

// counts leaves out how the board went, which is written while there are ticks.
func (d *writtenDocuments) counts(space driver.Space) {
	if space.Name != sampleSpace {
		d.w.times.Add(1)
	}
}

func (d *writtenDocuments) Put(ctx context.Context, space driver.Space, doc driver.Document, version uint64) (uint64, error) {
	if d.w.away.Load() {
		return 0, job.Errorf(job.Unavailable, "the store is away")
	}
	time.Sleep(time.Duration(d.w.pause.Load()))
	d.counts(space)
	return d.Documents.Put(ctx, space, doc, version)
}

func (d *writtenDocuments) Delete(ctx context.Context, space driver.Space, name string, version uint64) error {
	if d.w.away.Load() {
		return job.Errorf(job.Unavailable, "the store is away")
	}
	d.counts(space)
	return d.Documents.Delete(ctx, space, name, version)
}

// versions returns the versions of a board's schedules by name, once all is quiet.
func versions(t *testing.T, b *Board) map[string]uint64 {
	t.Helper()
	synctest.Wait()
	list, err := b.Schedules(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]uint64{}
	for i := range list {
		found[list[i].Name] = list[i].Version
	}
	return found
}

func wantVersions(t *testing.T, when string, got, want map[string]uint64) {
	t.Helper()
	same := len(got) == len(want)
	for name, v := range want {
		same = same && got[name] == v
	}
	if !same {
		t.Errorf("%s: %v, want %v", when, got, want)
	}
}

// TestDeclaredSchedules: what is declared is written if it differs, and deleted if it is
// declared no more; what was made otherwise stays.
func TestDeclaredSchedules(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		ctx := t.Context()
		d := &written{Driver: openStore(t)}
		running(t, d, 1, func(hosts []*Board) {
			b := hosts[0]
			for _, s := range []Schedule{{Name: "own", Every: time.Hour}, {Name: "often", Every: time.Hour}} {
				s.Job.Name = "x"
				if _, err := b.PutSchedule(ctx, s, nil); err != nil {
					t.Fatal(err)
				}
			}
			b.SetSchedules(someDeclared())
			wantVersions(t, "at first", versions(t, b), map[string]uint64{"own": 1, "often": 2, "nightly": 1})
			got, err := b.Schedule(ctx, "nightly")
			if err != nil || got.Cron != "0 3 * * *" || got.Job.Name != "report" || got.CatchUp != DefaultCatchUp || got.Overlap != OverlapSkip || got.NextAt.IsZero() {
				t.Errorf("%+v, %v", got, err)
			}

			_, err = b.PutSchedule(ctx, Schedule{Name: "nightly", Every: time.Hour, Job: job.Posting{Name: "x"}}, nil)
			wantKind(t, err, job.Precondition)
			wantKind(t, b.DeleteSchedule(ctx, "nightly"), job.Precondition)
			if _, err := b.PauseSchedule(ctx, "nightly", true); err != nil {
				t.Error(err)
			}
			if _, err := b.TriggerSchedule(ctx, "nightly", job.ID{}); err != nil {
				t.Error(err)
			}
		})
		before := d.times.Load()
		running(t, d, 1, func(hosts []*Board) { // a restart, and a reload: nothing differs
			hosts[0].SetSchedules(someDeclared())
			_ = versions(t, hosts[0])
			hosts[0].SetSchedules(someDeclared())
			wantVersions(t, "again", versions(t, hosts[0]), map[string]uint64{"own": 1, "often": 2, "nightly": 2})
		})
		if n := d.times.Load() - before; n != 0 {
			t.Errorf("%d documents were written though nothing differed", n)
		}
		running(t, d, 1, func(hosts []*Board) {
			b, next := hosts[0], someDeclared()[:1]
			next[0].Timezone = ""
			b.SetSchedules(next)
			wantVersions(t, "with another file", versions(t, b), map[string]uint64{"own": 1, "nightly": 3})
			if got, err := b.Schedule(ctx, "nightly"); err != nil || got.Timezone != "" || !got.Paused {
				t.Errorf("a pause is no matter of the configuration: %+v, %v", got, err)
			}
		})
		running(t, d, 1, func(hosts []*Board) { // which does not know yet that its file declares nothing
			b := hosts[0]
			_, err := b.PutSchedule(ctx, Schedule{Name: "nightly", Every: time.Hour, Job: job.Posting{Name: "x"}}, nil)
			wantKind(t, err, job.Precondition)
			wantKind(t, b.DeleteSchedule(ctx, "nightly"), job.Precondition)
			b.SetSchedules(nil)
			wantVersions(t, "without a declaration", versions(t, b), map[string]uint64{"own": 1})
			if _, err := b.PutSchedule(ctx, Schedule{Name: "nightly", Every: time.Hour, Job: job.Posting{Name: "x"}}, nil); err != nil {
				t.Error(err)
			}
			b.SetSchedules(nil)
			wantVersions(t, "made by a call", versions(t, b), map[string]uint64{"own": 1, "nightly": 1})
		})
	})
}

// TestDeclaredOnManyHosts: hosts that begin at the same time write what they declare once,
// and post each tick once.
func TestDeclaredOnManyHosts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d, before := openStore(t), int64(0)
		for round := range 5 {
			running(t, d, 3, func(hosts []*Board) {
				for _, b := range hosts {
					b.SetSchedules(someDeclared())
				}
				_ = sleep.For(t.Context(), 10*time.Minute)
				for _, b := range hosts {
					wantVersions(t, "on many hosts", versions(t, b), map[string]uint64{"often": 1, "nightly": 1})
				}
				ticks := int64(0)
				for _, b := range hosts {
					ticks += b.Metrics().Ticks.Load()
				}
				c, err := hosts[0].Count(t.Context())
				if err != nil || ticks < 9 || ticks > 10 || c.Ready != before+ticks {
					t.Errorf("round %d: %d ticks, %d jobs after %d, %v", round, ticks, c.Ready, before, err)
				}
				before = c.Ready
			})
		}
	})
}

// TestDeclaredWhileTheStoreIsAway: it is tried until the store takes it. What the store cannot
// keep is not tried again.
func TestDeclaredWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &written{Driver: openStore(t)}
		d.away.Store(true)
		running(t, d, 1, func(hosts []*Board) {
			b, list := hosts[0], someDeclared()
			list = append(list, Schedule{Name: "never", Every: time.Hour, Job: job.Posting{Name: "x", NotBefore: time.Now()}})
			b.SetSchedules(list)
			wantVersions(t, "while the store is away", versions(t, b), nil)
			time.Sleep(time.Minute)
			d.away.Store(false)
			time.Sleep(2 * declareAgain)
			wantVersions(t, "once it is there", versions(t, b), map[string]uint64{"often": 1, "nightly": 1})
			wantNothingDue(t, b)

			d.away.Store(true)
			b.SetSchedules(nil)
			time.Sleep(time.Minute)
			wantVersions(t, "away again", versions(t, b), map[string]uint64{"often": 1, "nightly": 1})
			d.away.Store(false)
			time.Sleep(2 * declareAgain)
			wantVersions(t, "at last", versions(t, b), nil)
		})
	})
}

func wantNothingDue(t *testing.T, b *Board) {
	t.Helper()
	if _, ok, wait := b.scheduler.declaring(time.Now()); ok || wait != time.Hour {
		t.Errorf("what cannot be written is tried again in %v", wait)
	}
}

// logged starts a host of a board, and returns what it logs, once all is quiet.
func logged(t *testing.T, d driver.Driver) (b *Board, told func() string) {
	t.Helper()
	var log bytes.Buffer
	b = start(t, d, Spec{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	return b, func() string {
		synctest.Wait()
		defer log.Reset()
		return log.String()
	}
}

// TestDeclaredOtherwiseElsewhere: of hosts that declare different things the one that was told
// last has it as it says, the other one says so in its log, and neither writes any more.
func TestDeclaredOtherwiseElsewhere(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &written{Driver: openStore(t)}
		one, oneTold := logged(t, d)
		other, otherTold := logged(t, d)
		mine, theirs := someDeclared(), someDeclared()[:1]
		theirs[0].Timezone = ""
		const disputed = "another server"
		tell := func(when, log string, want int) {
			t.Helper()
			if got := strings.Count(log, disputed); got != want {
				t.Errorf("%s the log tells of %d schedules, want %d:\n%s", when, got, want, log)
			}
		}
		one.SetSchedules(mine)
		tell("when it stands alone", oneTold(), 0)
		other.SetSchedules(theirs)
		tell("after another one", oneTold(), 2)
		tell("where it holds", otherTold(), 0)
		wantVersions(t, "of the other one", versions(t, one), map[string]uint64{"nightly": 2})
		one.SetSchedules(mine)
		tell("where it holds again", oneTold(), 0)
		tell("where it held", otherTold(), 1) // which declares only one of them
		before := d.times.Load()
		if _, err := one.PauseSchedule(t.Context(), "often", true); err != nil { // or it ticks, and that is written
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		tell("later", oneTold()+otherTold(), 0)
		if n := d.times.Load() - before; n != 1 {
			t.Errorf("%d documents were written in an hour, want that of a pause", n)
		}

		d.pause.Store(int64(10 * time.Second))
		for i := range mine {
			mine[i].Overlap = OverlapCancel
		}
		one.SetSchedules(mine)
		time.Sleep(15 * time.Second) // it has written one of two
		d.pause.Store(0)
		other.SetSchedules(theirs)
		time.Sleep(10 * time.Second)
		tell("written meanwhile", oneTold(), 1)

		one.SetSchedules(mine) // nothing differs
		other.SetSchedules(theirs)
		one.SetSchedules(mine) // at the same time
		synctest.Wait()
		before = d.times.Load()
		time.Sleep(time.Hour)
		log := oneTold() + otherTold()
		if n := d.times.Load() - before; n > 61 || !strings.Contains(log, disputed) { // but for ticks
			t.Errorf("%d documents were written in an hour\n%s", n, log)
		}
	})
}

// TestDeclaredInAStoreThatIsLost: what is declared is written to the store that comes in its
// place.
func TestDeclaredInAStoreThatIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d, lose := losing(t, "")
		b, told := logged(t, d)
		b.SetSchedules(someDeclared()[:1])
		wantVersions(t, "at first", versions(t, b), map[string]uint64{"nightly": 1})
		if _, err := b.PauseSchedule(t.Context(), "nightly", true); err != nil {
			t.Fatal(err)
		}
		_ = told()
		lose()
		time.Sleep(time.Minute)
		wantVersions(t, "in the new store", versions(t, b), map[string]uint64{"nightly": 1})
		if log := told(); strings.Contains(log, "another server") {
			t.Error(log)
		}
	})
}

// TestDeclaredBeyondTheStore: what a store cannot keep is said of each schedule, once, and the
// others are written.
func TestDeclaredBeyondTheStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: openStore(t), t: t, open: func(_ driver.BoardSpec, s driver.BoardStatus) (driver.BoardStatus, error) {
			s.Capabilities.Timeouts = false
			return s, nil
		}}
		b, told := logged(t, d)
		list := someDeclared()
		list = append(list, list[0])
		list[2].Name = "weekly"
		b.SetSchedules(list)
		time.Sleep(time.Hour)
		log := told()
		if strings.Count(log, "could not be changed") != 2 || !strings.Contains(log, "schedule=nightly deleted=false error=") || !strings.Contains(log, "schedule=weekly deleted=false error=") {
			t.Error(log)
		}
		wantVersions(t, "of what it can keep", versions(t, b), map[string]uint64{"often": 1})
	})
}

// TestCheckSchedule: what the store would refuse is refused before.
func TestCheckSchedule(t *testing.T) {
	t.Parallel()
	for i, s := range someDeclared() {
		if err := CheckSchedule(s); err != nil {
			t.Errorf("schedule %d: %v", i, err)
		}
	}
	large := someDeclared()[0]
	large.Job.Details = []byte(`{"a":"` + strings.Repeat("x", 900_000) + `"}`) // which the document has in base64
	wantKind(t, CheckSchedule(large), job.Invalid)
	wantKind(t, CheckSchedule(Schedule{Name: "none"}), job.Invalid)
}
