package drivertest

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest/seeded"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

func openMemory(t T) driver.Driver {
	d, err := memdriver.Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatalf("memdriver: %v", err)
	}
	return d
}

// memory is the harness of memdriver.
func memory() Harness {
	return Harness{
		Open: openMemory,
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":` + strconv.Itoa(16) + `}`)}, 16
		},
	}
}

// TestRealTime runs the suite as for a driver with a store of its own: one
// driver for all checks, and real leases.
func TestRealTime(t *testing.T) {
	t.Parallel()
	Run(t, memory())
}

func TestCheck(t *testing.T) {
	t.Parallel()
	h := memory()
	h.Only = []string{"post", "claim/order"}
	var names []string
	summary := Check(t.Context(), h, func(f Finding) {
		names = append(names, f.Check)
		for _, p := range f.Problems {
			t.Errorf("%s: %s", f.Check, p)
		}
	})
	if want := len(postChecks) + 1; summary.Passed != want || len(names) != want || summary.Failed != 0 {
		t.Errorf("got %+v and reports on %q, want %d checks passed", summary, names, want)
	}
}

// TestCheckFails checks that failing, panicking and Fatalf are findings.
func TestCheckFails(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(T) driver.Driver{
		"fatal": func(t T) driver.Driver { t.Fatalf("no store"); return nil },
		"panic": func(T) driver.Driver { panic("no store") },
	} {
		var problems int
		summary := Check(t.Context(), Harness{Open: open}, func(f Finding) { problems += len(f.Problems) })
		if summary.Failed != 1 || problems != 1 {
			t.Errorf("%s in Open: got %+v and %d problems, want one finding", name, summary, problems)
		}
	}
}

// TestCheckEnds checks that the end of the context ends the run and that
// everything is closed.
func TestCheckEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var opened, closed atomic.Int64
	h := Harness{PerCheck: true, Open: func(t T) driver.Driver {
		opened.Add(1)
		t.Cleanup(func() { closed.Add(1) })
		return openMemory(t)
	}}
	reports := 0
	Check(ctx, h, func(Finding) {
		reports++
		cancel()
	})
	if reports == 0 || reports >= len(Names()) || opened.Load() != closed.Load() {
		t.Errorf("%d of %d checks were reported after the context ended; %d drivers opened, %d closed",
			reports, len(Names()), opened.Load(), closed.Load())
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range Names() {
		if seen[name] {
			t.Errorf("two checks are named %s", name)
		}
		seen[name] = true
	}
}

// FuzzPrograms runs programs made of the fuzzer's bytes: memdriver against
// itself, so that whatever depends on chance or on what was there before shows.
func FuzzPrograms(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Add([]byte{0, 1, 0, 0, 2, 0, 1, 3, 9, 9, 9, 5, 5, 5, 5, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := &suite{harness: memory(), bubble: true}
			e := &env{T: t, suite: s, driver: s.open(t), name: "fuzzed"}
			e.openBoard(nil)
			choose := func(n int) int {
				if len(data) == 0 {
					return 0
				}
				b := data[0]
				data = data[1:]
				return int(b) % n
			}
			if trouble := e.program(choose, min(len(data)/4+1, 200)); trouble != "" {
				t.Error(trouble)
			}
		})
	})
}

func BenchmarkMemory(b *testing.B) { Bench(b, memory()) }

// TestFaulty checks that the trouble that was asked for happens, and no other.
func TestFaulty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		faulty := &Faulty{Driver: openMemory(t)}
		s := &suite{harness: Harness{Open: func(T) driver.Driver { return faulty }}}
		e := &env{T: t, suite: s, driver: s.open(t), name: "faulty"}
		e.openBoard(nil)
		for _, c := range []struct {
			trouble Trouble
			kind    job.Kind
			state   job.State
		}{
			{FailBefore, job.Unavailable, job.Unknown},
			{FailAfter, job.OutcomeUnknown, job.Unclaimed},
			{LoseBefore, job.OutcomeUnknown, job.Unknown},
			{Delay, job.NoKind, job.Unclaimed},
			{Hang, job.OutcomeUnknown, job.Unknown},
		} {
			p, other := posting("in trouble"), posting("well")
			faulty.Fail(Fault{Trouble: c.trouble, Op: driver.Post, Job: p.ID, Times: 1, Delay: time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			r := faulty.Apply(ctx, e.name, []driver.Op{postOp(p), postOp(other)})
			cancel()
			if r[0].Kind != c.kind {
				t.Errorf("trouble %d: got %v, want %v", c.trouble, r[0].Kind, c.kind)
			}
			if c.trouble != Hang && r[1].Kind != job.NoKind {
				t.Errorf("trouble %d: the op beside it got %v, want it done", c.trouble, r[1].Kind)
			}
			e.state(p.ID, c.state, "after trouble "+strconv.Itoa(int(c.trouble)))
			if r := e.do(postOp(p)); r.Kind != job.NoKind {
				t.Errorf("trouble %d, once: the retry got %v", c.trouble, r.Kind)
			}
		}
		f := e.follow(e.status.Position)
		synctest.Wait()
		faulty.Down()
		<-f.done
		if job.KindOf(f.err) != job.Unavailable {
			t.Errorf("a watch while the store went down ended with %v, want UNAVAILABLE", f.err)
		}
		e.refused(postOp(posting("down")), job.Unavailable, "the store is down")
		faulty.Heal()
		e.post()
	})
}

// A stage is a test in a test, whose failures are looked at.
type stage struct{ *reporter }

func (s stage) Parallel() {}

func (s stage) Run(name string, part func(stage)) bool {
	sub := stage{newReporter(s.ctx, name)}
	sub.attempt(func() { part(sub) })
	sub.end()
	for _, p := range sub.problems {
		s.Errorf("%s: %s", name, p)
	}
	return !sub.failed()
}

// TestRunFails checks that Run passes on what its checks find, of those that
// wait as well.
func TestRunFails(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]string{"expires-early": "expiry/not-before", "forgets-order": "claim/order"} {
		synctest.Test(t, func(t *testing.T) {
			bug, ok := seeded.Find(name)
			if !ok {
				t.Fatalf("there is no bug %q", name)
			}
			s := stage{newReporter(t.Context(), "run")}
			s.attempt(func() {
				Run(s, Harness{Only: []string{check, "post"}, Open: func(t T) driver.Driver {
					d, err := bug.Open(t.Context(), driver.Config{})
					if err != nil {
						t.Fatalf("Open: %v", err)
					}
					return d
				}})
			})
			s.end()
			if len(s.problems) == 0 {
				t.Errorf("Run found nothing wrong with a driver that %s", bug.Doc)
			}
			for _, p := range s.problems {
				if !strings.HasPrefix(p, check+": ") {
					t.Errorf("found %q, want only what %s finds", p, check)
				}
			}
		})
	}
}

// TestCheckHangs checks that a driver that hangs does not keep the suite.
func TestCheckHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := Harness{Only: []string{"post/stands"}, Open: func(t T) driver.Driver {
			faulty := &Faulty{Driver: openMemory(t)}
			faulty.Fail(Fault{Trouble: Hang})
			return faulty
		}}
		summary := Check(t.Context(), h, func(f Finding) { t.Logf("%s: %q", f.Check, f.Problems) })
		if summary.Failed != 1 {
			t.Errorf("a driver that hangs: got %+v, want one failed check", summary)
		}
	})
}
