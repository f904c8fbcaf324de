package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// damUp holds calls of one kind up: what is sent lets one of them through, and closing
// all.
func damUp(fake *fakeBoard, op string) chan<- struct{} {
	pass := make(chan struct{})
	fake.refuseWith(func(o string) error {
		if o == op {
			<-pass
		}
		return nil
	})
	return pass
}

// crowd has n goroutines do something, of which the last ones have to wait for the
// first two, and returns what became of each.
func crowd[T any](n int, do func(i int) (T, error), between func()) ([]T, []error) {
	results, errs := make([]T, n), make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { results[i], errs[i] = do(i) })
		synctest.Wait()
	}
	between()
	group.Wait()
	return results, errs
}

// Calls that come while two are under way share one, and each caller gets its own.
func TestCallsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 300 // more than two calls and a batch
		fake := newFake()
		board := fake.board(t, client.Config{})
		d := damUp(fake, "post")
		jobs, errs := crowd(n, func(i int) ([]*client.Job, error) {
			return board.Post(t.Context(), &client.NewJob{Name: fmt.Sprint("job-", i)})
		}, func() { close(d) })
		for i, posted := range jobs {
			if errs[i] != nil || len(posted) != 1 || posted[0].GetName() != fmt.Sprint("job-", i) {
				t.Fatal(i, posted, errs[i])
			}
		}
		if calls := fake.count("post"); calls != 4 {
			t.Errorf("%d calls, want one for each of the first two, and two for the others", calls)
		}
		d = damUp(fake, "claim")
		claims, errs := crowd(n, func(int) ([]*client.Claim, error) {
			return board.Claim(t.Context(), client.ClaimOptions{Owner: "w"})
		}, func() { close(d) })
		seen := map[string]bool{}
		for i, claimed := range claims {
			if errs[i] != nil || len(claimed) != 1 || seen[claimed[0].GetUuid()] {
				t.Fatal(i, claimed, errs[i])
			}
			seen[claimed[0].GetUuid()] = true
		}
		d = damUp(fake, "consume")
		_, errs = crowd(n, func(i int) (any, error) { return nil, board.Consume(t.Context(), claims[i]...) }, func() { close(d) })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if calls, ends := fake.count("claim")+fake.count("consume"), len(fake.endings()); calls != 8 || ends != n {
			t.Errorf("%d calls and %d endings, want 8 and %d", calls, ends, n)
		}
	})
}

// Who asks for something else does not share a call.
func TestClaimsOfOthersAreNotShared(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]client.ClaimOptions{
		"owner":  {Owner: "other"},
		"labels": {Owner: "w", Labels: map[string]string{"os": "linux"}},
		"lease":  {Owner: "w", Lease: time.Hour},
		"many":   {Owner: "w", Max: 2},
		"id":     {Owner: "w", RequestID: "mine"},
		"wait":   {Owner: "w", Wait: time.Second},
		"named":  {Owner: "w", UUIDs: []string{client.NewUUID()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				board := fake.board(t, client.Config{})
				d := damUp(fake, "claim")
				_, errs := crowd(6, func(i int) ([]*client.Claim, error) {
					if i == 5 {
						return board.Claim(t.Context(), other)
					}
					return board.Claim(t.Context(), client.ClaimOptions{Owner: "w"})
				}, func() {
					if calls := fake.count("claim"); calls != 3 {
						t.Errorf("%d calls are under way, want two and the one that is not like them", calls)
					}
					close(d)
				})
				if err := errors.Join(errs...); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Where one answer does not have as many claims as there are jobs, the others get
// theirs all the same, and who gets none hears so of an answer without any.
func TestSharedClaimsAreAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		fake.most = 3
		board := fake.board(t, client.Config{})
		const jobs, callers = 9, 12
		for i := range jobs {
			post(t, board, fmt.Sprint("job-", i))
		}
		d := damUp(fake, "claim")
		claims, errs := crowd(callers, func(int) ([]*client.Claim, error) {
			return board.Claim(t.Context(), client.ClaimOptions{Owner: "w"})
		}, func() { close(d) })
		got := 0
		for _, c := range claims {
			got += len(c)
		}
		if err := errors.Join(errs...); err != nil || got != jobs {
			t.Errorf("%d claims for %d jobs: %v", got, jobs, err)
		}
		if calls := fake.count("claim"); calls != 2+3+1 {
			t.Errorf("%d calls, want two at first, three for seven more jobs, and one that found none", calls)
		}
	})
}

// An item's failure is that of its caller.
func TestSharedCallFailsInPart(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]*client.NewJob{
		"the server refuses the item":         {},
		"no message can carry it":             {Name: "bad\xff"},
		"the server refuses the call with it": {Name: "poison"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				fake.poison = connect.NewError(connect.CodeInvalidArgument, errors.New("one of the jobs is wrong"))
				board := fake.board(t, client.Config{RetryFor: -1})
				d := damUp(fake, "post")
				jobs, errs := crowd(10, func(i int) ([]*client.Job, error) {
					if i == 7 {
						return board.Post(t.Context(), bad)
					}
					return board.Post(t.Context(), &client.NewJob{Name: "good"})
				}, func() { close(d) })
				for i, err := range errs {
					if (err != nil) != (i == 7) || i != 7 && jobs[i][0].GetName() != "good" {
						t.Errorf("%d: %v, %v", i, jobs[i], err)
					}
				}
				if bad.Name == "" {
					if f, ok := errors.AsType[client.Failures](errs[7]); !ok || len(f) != 1 || len(jobs[7]) != 1 {
						t.Errorf("got %v, %#v, want no job and Failures of one", jobs[7], errs[7])
					}
				}
			})
		})
	}
}

// What a whole call fails for is told to all, and asked once.
func TestSharedCallFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{RetryFor: -1})
		open := make(chan struct{})
		fake.refuseWith(func(string) error {
			<-open
			return connect.NewError(connect.CodeUnavailable, errors.New("going down"))
		})
		_, errs := crowd(10, func(int) ([]*client.Claim, error) {
			return board.Claim(t.Context(), client.ClaimOptions{Owner: "w"})
		}, func() { close(open) })
		for i, err := range errs {
			if !errors.Is(err, job.Unavailable) {
				t.Error(i, err)
			}
		}
		if calls := fake.count("claim"); calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}
	})
}

// A caller may give up by itself, before its call went and after. What was claimed for
// it goes back.
func TestSharedCallIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{})
		for i := range 10 {
			post(t, board, fmt.Sprint("job-", i))
		}
		pass := damUp(fake, "claim")
		ask := func() (cancel context.CancelFunc, answer func() (int, error)) {
			ctx, cancel := context.WithCancel(t.Context())
			var n int
			var err error
			var done sync.WaitGroup
			done.Go(func() {
				var claims []*client.Claim
				claims, err = board.Claim(ctx, client.ClaimOptions{Owner: "w"})
				n = len(claims)
			})
			synctest.Wait()
			return cancel, func() (int, error) { done.Wait(); return n, err }
		}
		wantLeft := func(what string, answer func() (int, error)) {
			t.Helper()
			if n, err := answer(); n != 0 || !errors.Is(err, job.Interrupted) || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %d claims and %v", what, n, err)
			}
		}
		wantClaim := func(what string, answer func() (int, error)) {
			t.Helper()
			if n, err := answer(); n != 1 || err != nil {
				t.Errorf("%s: %d claims and %v", what, n, err)
			}
		}
		_, first := ask()
		_, second := ask()
		leaveEarly, early := ask()
		leaveLate, late := ask()
		_, stays := ask()
		leaveEarly()
		wantLeft("before its call", early)
		pass <- struct{}{}
		wantClaim("first", first)
		synctest.Wait() // the shared call is under way
		leaveLate()
		wantLeft("during its call", late)
		pass <- struct{}{}
		pass <- struct{}{}
		wantClaim("second", second)
		wantClaim("who stays", stays)
		synctest.Wait()
		if got := strings.Join(fake.endings(), "; "); got != "job-3 abandoned: nobody waited for it any more, after 0s, refunded" && got != "job-2 abandoned: nobody waited for it any more, after 0s, refunded" {
			t.Errorf("endings: %q, want that of the claim for who left", got)
		}
		if calls := fake.count("claim"); calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}

		_, first = ask()
		_, second = ask()
		leaveA, a := ask()
		leaveB, b := ask()
		pass <- struct{}{}
		synctest.Wait()
		leaveA()
		leaveB()
		wantLeft("one of two", a)
		wantLeft("the other one", b)
		pass <- struct{}{}
		pass <- struct{}{} // of the call that nobody waits for
		wantClaim("first", first)
		wantClaim("second", second)
		_, again := ask()
		pass <- struct{}{}
		wantClaim("afterwards", again)
	})
}

// Calls that hang hold up nobody else for long.
func TestSharedCallsAreNotHeldUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		board := fake.board(t, client.Config{})
		var calls atomic.Int64
		hang := make(chan struct{})
		fake.refuseWith(func(string) error {
			if calls.Add(1) <= 2 {
				<-hang
			}
			return nil
		})
		for range 2 {
			go func() { _, _ = board.Post(t.Context(), &client.NewJob{Name: "hangs"}) }()
		}
		synctest.Wait()
		began := time.Now()
		if _, err := board.Post(t.Context(), &client.NewJob{Name: "goes"}); err != nil || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		close(hang)
	})
}

// Whatever is given up when, no claim is left over and no job is done twice.
func TestSharedCallsUnderStress(t *testing.T) {
	t.Parallel()
	fake := newFake()
	server := fake.serve()
	defer server.Close()
	c, err := client.New(client.Config{Addr: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	board := c.Board("default")
	const callers, each = 40, 30
	var group sync.WaitGroup
	for caller := range callers {
		random := rand.New(rand.NewPCG(1, uint64(caller)))
		group.Go(func() {
			for i := range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(3_000))*time.Microsecond)
				_, _ = board.Post(ctx, &client.NewJob{Name: fmt.Sprint(caller, "-", i)})
				if claims, err := board.Claim(ctx, client.ClaimOptions{Owner: "w"}); err == nil && len(claims) == 1 {
					if err := board.Consume(t.Context(), claims...); err != nil {
						t.Error(err)
					}
				}
				cancel()
			}
		})
	}
	group.Wait()
	endings := fake.endings()
	slices.Sort(endings)
	for i := 1; i < len(endings); i++ {
		if name := strings.Fields(endings[i])[0]; name == strings.Fields(endings[i-1])[0] {
			t.Errorf("%s ended twice", name)
		}
	}
	t.Logf("%d jobs ended, with %d, %d and %d calls", len(endings), fake.count("post"), fake.count("claim"), fake.count("consume"))
}
