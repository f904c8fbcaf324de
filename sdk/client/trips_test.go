package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// asModern, in the environment, says that the fake board knows Work.
const asModern = "BOARDD_TEST_CLIENT_WORK"

var modern = os.Getenv(asModern) != ""

// TestWorkersOnWork runs the tests of workers once more, against a board that knows Work:
// what a worker promises holds with each server. Left out is what is about the stream of
// events that a worker listens to where the server does not know Work.
func TestWorkersOnWork(t *testing.T) {
	t.Parallel()
	if modern {
		return // this is that run
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), program, "-test.run=Worker", "-test.skip=HearsAtOnce|IgnoresItsOwn", "-test.timeout=5m", "-test.v")
	again.Env = append(os.Environ(), asModern+"=1")
	text, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if n := strings.Count(string(text), "--- PASS: TestWorker"); n < 15 {
		t.Errorf("%d tests ran, want at least 15:\n%s", n, text)
	}
}

func newModern() *fakeBoard {
	fake := newFake()
	fake.modern, fake.notices = true, make(chan *boarddv1.WorkNotice)
	return fake
}

// modernWorker runs a worker on a board that knows Work until it stops by itself.
func modernWorker(t *testing.T, fake *fakeBoard, w client.Worker, jobs ...string) {
	t.Helper()
	w.Board = fake.board(t, client.Config{})
	post(t, w.Board, jobs...)
	if err := w.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// An ending for which the server refuses a whole trip takes no other one with it.
func TestTripsWithARefusedEnding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newModern()
		var lost atomic.Int32
		modernWorker(t, fake, client.Worker{
			UntilEmpty: true, Concurrency: 8,
			Handler: func(_ context.Context, c *client.Claim) error {
				time.Sleep(time.Second) // all of them end at once
				if c.GetJob().GetName() == "3" {
					return errors.New("poison")
				}
				return nil
			},
			Report: func(r client.Report) {
				if r.Ending == client.Lost {
					lost.Add(1)
				}
			},
		}, "0", "1", "2", "3", "4", "5", "6", "7")
		ends := fake.endings()
		slices.Sort(ends)
		want := []string{"0 consumed", "1 consumed", "2 consumed", "3 abandoned: poison, after 1s", "4 consumed", "5 consumed", "6 consumed", "7 consumed"}
		if diff := cmp.Diff(want, ends); diff != "" || lost.Load() != 0 {
			t.Errorf("%d are lost; %s", lost.Load(), diff)
		}
	})
}

// A worker on Work makes no other call but to learn of its board and to be listed, and
// brings endings together.
func TestTripsBringEndings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newModern()
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprint("job-", i))
		}
		modernWorker(t, fake, client.Worker{UntilEmpty: true, Concurrency: 4, Handler: fails(nil)}, names...)
		if n := len(fake.endings()); n != len(names) {
			t.Errorf("%d jobs ended, want %d", n, len(names))
		}
		if n := fake.count("listen"); n != 0 {
			t.Errorf("%d streams, want none", n)
		}
	})
}

// A notice ends the handler that it is about, at once; one of an earlier claim does not.
func TestTripsHearNotices(t *testing.T) {
	t.Parallel()
	for what, test := range map[boarddv1.What_Enum]struct {
		want   error
		ending client.Ending
	}{
		boarddv1.What_CANCEL: {client.ErrCancelRequested, client.Canceled},
		boarddv1.What_LOST:   {job.LeaseLost, client.Lost},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := newModern()
			fake.lease = time.Hour
			var reports []client.Report
			modernWorker(t, fake, client.Worker{
				MaxJobs: 1,
				Handler: func(ctx context.Context, c *client.Claim) error {
					fake.notices <- &boarddv1.WorkNotice{Uuid: c.Uuid, Token: "an earlier one", What: what}
					time.Sleep(time.Minute)
					if ctx.Err() != nil {
						t.Errorf("%v of an earlier claim ended the handler", what)
					}
					sent := time.Now()
					fake.notices <- &boarddv1.WorkNotice{Uuid: c.Uuid, Token: c.Token, What: what}
					<-ctx.Done()
					if took := time.Since(sent); took > time.Second || !errors.Is(context.Cause(ctx), test.want) {
						t.Errorf("%v: %v after %v", what, context.Cause(ctx), took)
					}
					return context.Cause(ctx)
				},
				Report: func(r client.Report) { reports = append(reports, r) },
			}, "a")
			if len(reports) != 1 || reports[0].Ending != test.ending {
				t.Errorf("%v: %+v", what, reports)
			}
		})
	}
}

// After calls that failed, notices may have been missed: every claim is asked about.
func TestTripsAskAfterACut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newModern()
		fake.lease = time.Hour
		modernWorker(t, fake, client.Worker{MaxJobs: 1, Handler: func(ctx context.Context, _ *client.Claim) error {
			time.Sleep(time.Second) // until it waits for notices
			fake.mu.Lock()
			fake.jobs[0].Labels = map[string]string{"cancel": "yes"}
			fake.mu.Unlock()
			fake.refuseWith(func(string) error { return errUnavailable })
			fake.notices <- nil
			time.Sleep(time.Minute)
			fake.refuseWith(nil)
			fake.notices <- &boarddv1.WorkNotice{Uuid: "another's"}
			cut := time.Now()
			<-ctx.Done()
			if took := time.Since(cut); took > time.Minute {
				t.Errorf("it learned of it %v after the cut", took)
			}
			return context.Cause(ctx)
		}}, "a")
		if diff := cmp.Diff([]string{"a consumed as CANCELED"}, fake.endings()); diff != "" {
			t.Error(diff)
		}
	})
}

// A notice may be lost with the first answer to a trip that brings an ending, and with that to a
// wait that the worker called off, here as a handler came free.
func TestTripsAskAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		worker client.Worker
		lost   bool // the first answer to the trip
	}{
		"trip": {client.Worker{MaxJobs: 2}, true},
		"wait": {client.Worker{UntilEmpty: true}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := newModern()
			fake.lease = time.Hour
			var cut atomic.Bool
			cut.Store(test.lost)
			fake.refuse = func(op string) error {
				if op == "consume" && cut.CompareAndSwap(true, false) {
					return errUnavailable
				}
				return nil
			}
			test.worker.Concurrency = 2
			test.worker.Handler = func(ctx context.Context, c *client.Claim) error {
				if c.Job.Name == "short" {
					time.Sleep(time.Second) // until it waits for notices
					fake.mu.Lock()
					defer fake.mu.Unlock()
					fake.jobs[0].Labels = map[string]string{"cancel": "yes"}
					return nil
				}
				begun := time.Now()
				<-ctx.Done()
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("%s: the handler learned of its cancellation after %v", name, took)
				}
				return context.Cause(ctx)
			}
			modernWorker(t, fake, test.worker, "long", "short")
			if diff := cmp.Diff([]string{"short consumed", "long consumed as CANCELED"}, fake.endings()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}

// What was given ahead goes back after a lost answer: that another worker waits may have been in it.
func TestTripsGiveBackAfterALostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newModern()
		aheadOf(t, fake, 5, func(*client.Board, func()) {
			held := fake.claimed()
			fake.notices <- nil
			synctest.Wait()
			time.Sleep(time.Minute)
			synctest.Wait()
			if now := fake.claimed(); len(held) != 6 || len(now) != 1 {
				t.Errorf("it held %q, and after the cut %q", held, now)
			}
		})
	})
}

// aheadOf is a worker that has one handler running, and the jobs that it holds ahead.
func aheadOf(t *testing.T, fake *fakeBoard, ahead int, meanwhile func(board *client.Board, stop func())) {
	t.Helper()
	board := fake.board(t, client.Config{})
	for i := range 30 {
		post(t, board, fmt.Sprint("job-", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int32
	w := client.Worker{Board: board, Ahead: ahead, Handler: func(ctx context.Context, _ *client.Claim) error {
		if n.Add(1) < 3 {
			time.Sleep(time.Millisecond)
			return nil
		}
		<-ctx.Done()
		return nil
	}}
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	time.Sleep(time.Second)
	synctest.Wait()
	meanwhile(board, cancel)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// claimed returns the names of the jobs that somebody holds.
func (f *fakeBoard) claimed() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.jobs {
		if j.State == boarddv1.State_CLAIMED {
			names = append(names, j.Name)
		}
	}
	return names
}

// No more jobs are ahead than the worker says, and none that it began later comes before
// more than these in the board's order; what has not begun is given back at a stop, and a
// recalled one at once, with the attempt refunded.
func TestTripsAhead(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{-1, 1, 5} {
		synctest.Test(t, func(t *testing.T) {
			fake := newModern()
			var back []string
			aheadOf(t, fake, ahead, func(*client.Board, func()) {
				held := fake.claimed()
				if n := len(held); n > 1+max(ahead, 0) || ahead > 0 && n != 1+ahead {
					t.Errorf("ahead %d: the worker holds %q", ahead, held)
				}
				back = held[1:]
				if ahead < 5 {
					return
				}
				fake.mu.Lock()
				last := fake.jobs[slices.IndexFunc(fake.jobs, func(j *boarddv1.Job) bool { return j.Name == held[len(held)-1] })]
				n := &boarddv1.WorkNotice{Uuid: last.Uuid, Token: fake.tokens[last.Uuid], What: boarddv1.What_RECALL}
				fake.mu.Unlock()
				fake.notices <- n
				synctest.Wait()
				if slices.Contains(fake.claimed(), last.Name) || len(fake.claimed()) != len(held)-1 {
					t.Errorf("a recalled job is not given back: %q", fake.claimed())
				}
			})
			for _, name := range back {
				if !slices.ContainsFunc(fake.endings(), func(e string) bool {
					return strings.HasPrefix(e, name+" abandoned: ") && strings.HasSuffix(e, ", after 0s, refunded")
				}) {
					t.Errorf("ahead %d: %s was not given back: %q", ahead, name, fake.endings())
				}
			}
			if left := fake.claimed(); len(left) > 0 {
				t.Errorf("ahead %d: at the end it holds %q", ahead, left)
			}
		})
	}
}

// A worker whose handlers take their time holds nothing ahead.
func TestTripsAheadOfLongHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newModern()
		board := fake.board(t, client.Config{})
		for i := range 30 {
			post(t, board, fmt.Sprint("job-", i))
		}
		var most atomic.Int32
		w := client.Worker{Board: board, UntilEmpty: true, Concurrency: 3, Handler: func(context.Context, *client.Claim) error {
			time.Sleep(time.Second)
			if n := int32(len(fake.claimed())); n > most.Load() {
				most.Store(n)
			}
			return nil
		}}
		if err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if most.Load() > 3 {
			t.Errorf("it held %d jobs at once, want 3", most.Load())
		}
	})
}

// The server is put back to an older version while a worker runs: it goes on.
func TestTripsOnAnOlderServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newModern()
		var n atomic.Int32
		modernWorker(t, fake, client.Worker{MaxJobs: 6, Handler: func(context.Context, *client.Claim) error {
			if n.Add(1) == 3 {
				fake.mu.Lock()
				fake.modern = false
				fake.mu.Unlock()
			}
			return nil
		}}, "a", "b", "c", "d", "e", "f", "g")
		if got := fake.endings(); len(got) != 6 || slices.ContainsFunc(got, func(e string) bool { return !strings.HasSuffix(e, " consumed") }) {
			t.Errorf("%q", got)
		}
	})
}

// A trip that hangs keeps no lease from being extended.
func TestTripsHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newModern()
		fake.lease = 6 * time.Second
		defer time.Sleep(time.Hour)
		var hung atomic.Bool
		fake.refuse = func(op string) error {
			if op == "consume" && hung.CompareAndSwap(false, true) {
				time.Sleep(15 * time.Second)
				return connect.NewError(connect.CodeUnavailable, errors.New("too late"))
			}
			return nil
		}
		modernWorker(t, fake, client.Worker{UntilEmpty: true, Concurrency: 2, Handler: func(ctx context.Context, c *client.Claim) error {
			if c.Job.Name == "long" {
				return sleepFor(ctx, 20*time.Second)
			}
			return nil
		}}, "long", "short")
		if diff := cmp.Diff([]string{"long consumed", "short consumed"}, slices.Sorted(slices.Values(fake.endings()))); diff != "" {
			t.Error(diff)
		}
	})
}
