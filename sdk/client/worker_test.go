package client_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// What the handler returns decides how the claim ends.
func TestWorkerEndsClaims(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler func(context.Context, *client.Claim) error
		backoff time.Duration // the board's
		want    string
	}{
		"done":            {func(context.Context, *client.Claim) error { return nil }, 0, "a consumed"},
		"trash":           {fails(fmt.Errorf("bad data: %w", client.ErrTrash)), 0, "a trashed: bad data: trash"},
		"again":           {fails(fmt.Errorf("busy: %w", client.ErrRetry)), 0, "a abandoned: busy: try again, after 1s, refunded"},
		"again in":        {fails(client.RetryAfter{Delay: time.Hour}), 0, "a abandoned: try again in 1h0m0s, after 1h0m0s, refunded"},
		"again too late":  {fails(client.RetryAfter{Delay: math.MaxInt64, Reason: "later"}), 0, "a abandoned: later, after 876600h0m0s, refunded"},
		"again before":    {fails(client.RetryAfter{Delay: -1, Reason: "now"}), 0, "a abandoned: now, after 0s, refunded"},
		"failed":          {fails(errors.New("oops")), 0, "a abandoned: oops, after 1s"},
		"board backs off": {fails(errors.New("oops")), time.Minute, "a abandoned: oops"},
		"not UTF-8":       {fails(errors.New("a\xffb")), time.Minute, "a abandoned: ab"},
		"ran for long":    {untilDone(errors.New("stopped")), 0, "a abandoned: timeout, after 1s"},
		"ran, bad data":   {untilDone(client.ErrTrash), 0, "a abandoned: timeout, after 1s"},
		"panic":           {func(context.Context, *client.Claim) error { panic("no") }, time.Minute, "a abandoned: the handler panicked: no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				fake.backoff = test.backoff
				board := fake.board(t, client.Config{})
				post(t, board, "a")
				w := client.Worker{Board: board, Handler: test.handler, UntilEmpty: true, Timeout: time.Hour}
				if err := w.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{test.want}, fake.endings()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// untilDone is a handler that stops when it is told to, with an error.
func untilDone(err error) func(context.Context, *client.Claim) error {
	return func(ctx context.Context, _ *client.Claim) error {
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), client.ErrTimeout) {
			return context.Cause(ctx)
		}
		return err
	}
}

func fails(err error) func(context.Context, *client.Claim) error {
	return func(context.Context, *client.Claim) error { return err }
}

func TestWorkerBacksOffByAttempt(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int32]string{1: "1s", 2: "2s", 3: "4s", 9: "4m16s", 10: "5m0s", 1000: "5m0s"} {
		synctest.Test(t, func(t *testing.T) {
			fake := newFake()
			board := fake.board(t, client.Config{})
			post(t, board, "a")
			fake.jobs[0].Attempt = attempt - 1
			w := client.Worker{Board: board, Handler: fails(errors.New("no")), UntilEmpty: true}
			if err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a abandoned: no, after " + want}, fake.endings()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every lease is extended while its handler runs, all in one call.
func TestWorkerExtendsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{})
		post(t, board, "a", "b", "c")
		w := client.Worker{Board: board, UntilEmpty: true, Concurrency: 3, Handler: func(ctx context.Context, _ *client.Claim) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(95 * time.Second):
				return nil
			}
		}}
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a consumed", "b consumed", "c consumed"}, slices.Sorted(slices.Values(fake.endings()))); diff != "" {
			t.Error(diff)
		}
		if n := len(fake.extends); n != 9 { // one each 10 s
			t.Errorf("%d calls to extend, want 9", n)
		}
		for _, names := range fake.extends {
			if len(names) != 3 {
				t.Errorf("a call extended %q, want all three", names)
			}
		}
	})
}

func TestWorkerLosesItsLease(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lose   func(*fakeBoard)
		before time.Duration // when the handler must have been told
	}{
		"taken away":    {func(f *fakeBoard) { f.steal("a") }, 10*time.Second + time.Millisecond},
		"not reachable": {func(f *fakeBoard) { f.refuseWith(func(string) error { return errUnavailable }) }, 28 * time.Second},
		"hangs": {func(f *fakeBoard) {
			f.refuseWith(func(op string) error {
				if op == "extend" {
					time.Sleep(time.Hour)
				}
				return nil
			})
		}, 28 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				board := fake.board(t, client.Config{})
				post(t, board, "a")
				defer time.Sleep(2 * time.Hour) // every hung call ends within the bubble
				var reports []client.Report
				w := client.Worker{
					Board: board, MaxJobs: 1,
					Handler: func(ctx context.Context, _ *client.Claim) error {
						start := time.Now()
						test.lose(fake)
						<-ctx.Done()
						if took := time.Since(start); took > test.before {
							t.Errorf("told after %v, want before %v", took, test.before)
						}
						return context.Cause(ctx)
					},
					Report: func(r client.Report) { reports = append(reports, r) },
				}
				if err := w.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(reports) != 1 || reports[0].Ending != client.Lost || !errors.Is(reports[0].Err, job.LeaseLost) {
					t.Errorf("reports %v, want one LOST for LEASE_LOST", reports)
				}
			})
		})
	}
}

func TestWorkerHearsOfCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{})
		if _, err := board.Post(t.Context(), &client.NewJob{Name: "a", Labels: map[string]string{"cancel": "yes"}}); err != nil {
			t.Fatal(err)
		}
		w := client.Worker{Board: board, MaxJobs: 1, Handler: func(ctx context.Context, _ *client.Claim) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a consumed as CANCELED"}, fake.endings()); diff != "" {
			t.Error(diff)
		}
	})
}

// A stopping worker gives back what is undone, and keeps what was done.
func TestWorkerStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{})
		post(t, board, "finishes", "gives up", "fails", "ignores it")
		ctx, cancel := context.WithCancel(t.Context())
		w := client.Worker{Board: board, Concurrency: 4, Handler: func(ctx context.Context, c *client.Claim) error {
			<-ctx.Done()
			switch c.Job.Name {
			case "finishes":
				return nil
			case "ignores it":
				time.Sleep(5 * time.Minute)
				return nil
			case "fails":
				return errors.New("half done")
			}
			return context.Cause(ctx)
		}}
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Second)
		post(t, board, "comes too late")
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := []string{
			"fails abandoned: half done, after 0s, refunded",
			"finishes consumed",
			"gives up abandoned: the worker stops, after 0s, refunded",
			"ignores it consumed",
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(fake.endings()))); diff != "" {
			t.Error(diff)
		}
	})
}

// A claim that waited long is used only as long as its lease surely holds.
func TestWorkerWaitsWithinTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		fake.lease = 6 * time.Second
		board := fake.board(t, client.Config{})
		var handled atomic.Int32
		w := client.Worker{Board: board, MaxJobs: 3, Handler: func(ctx context.Context, _ *client.Claim) error {
			handled.Add(1)
			return sleepFor(ctx, 20*time.Second)
		}}
		done := make(chan error)
		go func() { done <- w.Run(t.Context()) }()
		for range 3 {
			time.Sleep(time.Minute + 1900*time.Millisecond)
			post(t, board, "a")
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a consumed", "a consumed", "a consumed"}, fake.endings()); diff != "" {
			t.Error(diff)
		}
		if handled.Load() != 3 {
			t.Errorf("%d jobs handled, want 3", handled.Load())
		}
	})
}

func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// The end of a claim is repeated until the server has taken it.
func TestWorkerInsistsOnTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{RetryFor: -1})
		post(t, board, "a")
		w := client.Worker{Board: board, MaxJobs: 1, Handler: func(context.Context, *client.Claim) error {
			failing := 5
			fake.refuseWith(func(op string) error {
				if op == "consume" && failing > 0 {
					failing--
					return errUnavailable
				}
				return nil
			})
			return nil
		}}
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a consumed"}, fake.endings()); diff != "" {
			t.Error(diff)
		}
		if n := fake.count("consume"); n != 6 {
			t.Errorf("%d calls to consume, want 6", n)
		}
	})
}

func TestWorkerOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		fake.refuse = func(string) error { return errUnavailable }
		board := fake.board(t, client.Config{})
		w := client.Worker{Board: board, MaxJobs: 1, Handler: fails(nil)}
		done := make(chan error)
		go func() { done <- w.Run(t.Context()) }()
		time.Sleep(10 * time.Minute)
		fake.refuseWith(nil)
		post(t, board, "a")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestWorkerEndsWhenRefused(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"board", "claim"} {
		fake := newFake()
		fake.refuse = func(called string) error {
			if called == op {
				return connect.NewError(connect.CodeNotFound, errors.New("no such board"))
			}
			return nil
		}
		w := client.Worker{Board: fake.board(t, client.Config{}), Handler: fails(nil)}
		if err := w.Run(t.Context()); !errors.Is(err, job.NotFound) {
			t.Errorf("%s refused: %v, want NOT_FOUND", op, err)
		}
	}
	if err := new(client.Worker).Run(t.Context()); !errors.Is(err, job.Invalid) {
		t.Errorf("without a board: %v, want INVALID", err)
	}
}

// No more handlers run than were asked for, and every job runs.
func TestHammerWorker(t *testing.T) {
	t.Parallel()
	fake := newFake()
	board := fake.board(t, client.Config{})
	const jobs = 500
	for i := range jobs {
		post(t, board, fmt.Sprint("job-", i))
	}
	var running, most atomic.Int32
	var mu sync.Mutex
	seen := map[string]int{}
	w := client.Worker{Board: board, Concurrency: 16, UntilEmpty: true, Handler: func(_ context.Context, c *client.Claim) error {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		mu.Lock()
		defer mu.Unlock()
		seen[c.Job.Name]++
		return nil
	}}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if most.Load() > 16 {
		t.Errorf("%d handlers ran at once, want at most 16", most.Load())
	}
	consumed := 0
	for _, ending := range fake.endings() {
		if strings.HasSuffix(ending, " consumed") {
			consumed++
		}
	}
	if len(seen) != jobs || consumed != jobs {
		t.Errorf("%d jobs ran and %d were consumed, want %d", len(seen), consumed, jobs)
	}
}

// A worker whose token is revoked stops its handlers at the next word from the
// server, long before their leases end.
func TestWorkerWithRevokedToken(t *testing.T) {
	t.Parallel()
	for _, kind := range []connect.Code{connect.CodeUnauthenticated, connect.CodePermissionDenied, connect.CodeNotFound} {
		synctest.Test(t, func(t *testing.T) {
			fake := newFake()
			fake.lease = time.Hour
			board := fake.board(t, client.Config{})
			post(t, board, "a")
			began, stopped := time.Now(), time.Duration(0)
			var cause error
			w := client.Worker{Board: board, MaxJobs: 1, Handler: func(ctx context.Context, _ *client.Claim) error {
				fake.refuseWith(func(string) error { return connect.NewError(kind, errors.New("revoked")) })
				<-ctx.Done()
				stopped, cause = time.Since(began), context.Cause(ctx)
				return cause
			}}
			if err := w.Run(t.Context()); err != nil {
				t.Errorf("%v: Run: %v", kind, err)
			}
			if job.KindOf(cause) != job.LeaseLost || stopped > time.Hour/2 {
				t.Errorf("%v: the handler was stopped after %v with %v", kind, stopped, cause)
			}
			if endings := fake.endings(); len(endings) > 0 {
				t.Errorf("%v: the claim was ended: %v", kind, endings)
			}
		})
	}
}
