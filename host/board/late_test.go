package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// TestNobodyMissesAJob has a caller end just as a job comes: the next in line gets it.
func TestNobodyMissesAJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		for range 10 {
			postN(t, b, 1)
			held := b.index.Take(t.Context(), everyoneOf(t, b), 1)
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = b.Claim(ctx, ClaimRequest{Owner: "gone", Wait: time.Minute})
			}()
			synctest.Wait()
			got := make(chan int, 1)
			go func() {
				r, _ := b.Claim(t.Context(), ClaimRequest{Owner: "next", Wait: 30 * time.Second})
				got <- len(r.Claims)
			}()
			synctest.Wait()
			b.index.Return(held[0].ID) // the first is told
			cancel()                   // and goes
			<-gone
			if n := <-got; n != 1 {
				t.Fatal("the job lies there, and nobody was told")
			}
		}
	})
}

// TestTimedJobsAreNotSearchedThrough: a call that asks for jobs ahead, of which all have a timeout,
// keeps none of them from others while it goes on.
func TestTimedJobsAreNotSearchedThrough(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ begins, ahead int }{"one at once": {1, 5}, "none at once": {0, 5}, "many": {3, 200}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, openStore(t), Spec{})
			const jobs = 500
			post(t, b, slices.Repeat([]job.Posting{{Name: "timed", Timeout: time.Hour}}, jobs)...)
			c := claimerOn(t, b, tt.begins+tt.ahead, tt.begins)
			defer c.release()
			if err := c.grab(t.Context(), everyoneOf(t, b)); err != nil || len(c.claims) != tt.begins {
				t.Fatalf("%d claims, %v; want %d", len(c.claims), err, tt.begins)
			}
			if slices.ContainsFunc(c.claims, func(c job.Claim) bool { return c.Ahead }) {
				t.Error("a job with a timeout is given ahead")
			}
			if n := len(claim(t, b, ClaimRequest{Max: jobs})); n != jobs-tt.begins {
				t.Errorf("another call got %d jobs, want the other %d", n, jobs-tt.begins)
			}
		})
	}
}

// TestTimedJobsBehindOthers: what stands before the first job with a timeout is given ahead, and as
// many jobs as begin at once are given whatever another server took of them meanwhile.
func TestTimedJobsBehindOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		taken := 0
		s := &spy{Driver: openStore(t), t: t}
		s.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			if c := ops[0].Claim; c != nil && taken == 0 {
				taken = len(c.Candidates)
				for i := range c.Candidates {
					next(ctx, []driver.Op{{Kind: driver.Trash, Job: c.Candidates[i].Job, Precondition: driver.Free, Request: [16]byte{byte(i), 1}}})
				}
			}
			return next(ctx, ops)
		}
		b := start(t, s, Spec{})
		timed := job.Posting{Name: "timed", Timeout: time.Hour}
		post(t, b, timed, timed, timed, timed, timed, job.Posting{Name: "any"}, timed, timed)
		r := work(t, b, WorkRequest{Claims: ClaimRequest{Max: 2}, Ahead: 2})
		if got := namesOf(r.Claims); taken != 2 || !slices.Equal(got, []string{"timed", "timed"}) || r.Claims[1].Ahead {
			t.Errorf("%d were taken by another; given: %v", taken, got)
		}
		r = work(t, b, WorkRequest{Claims: ClaimRequest{Owner: "other", Max: 1}, Ahead: 2})
		if got := namesOf(r.Claims); !slices.Equal(got, []string{"timed", "any"}) || r.Claims[0].Ahead || !r.Claims[1].Ahead {
			t.Errorf("%v", got)
		}
	})
}

// claimerOn begins a claim of anything, of up to most jobs of which begins may begin.
func claimerOn(t *testing.T, b *Board, most, begins int) *claimer {
	t.Helper()
	w, err := b.selectorOf(nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	status, err := b.changing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &claimer{selector: w, owner: "w", most: most, begins: begins, lease: time.Minute, opened: status}
}

func everyoneOf(t *testing.T, b *Board) *index.Class {
	t.Helper()
	c, err := b.index.Class(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// alternating allows the jobs of the present tick: those whose name is its number.
type alternating struct{ tick time.Duration }

func (p alternating) Manifest() policy.Manifest {
	return policy.Manifest{Name: "alternating", Eligibility: true, ByTime: true, Tick: p.tick}
}

func (p alternating) Eligible(_ context.Context, batch *policy.Batch, verdicts []policy.Verdict) error {
	for i := range batch.Jobs {
		if batch.Jobs[i].Name == fmt.Sprint("even ", batch.Now.Unix()/int64(p.tick/time.Second)%2 == 0) {
			verdicts[i].Decision = policy.Allow
		}
	}
	return nil
}

func (alternating) Score(context.Context, *policy.Batch, []int64) error { return nil }

// TestTickTurnsWithinACall: what a call took before the tick turned, and may not have
// after it, is there for others at once, though the call goes on waiting.
func TestTickTurnsWithinACall(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const tick = time.Hour
		time.Sleep(time.Until(time.Now().Truncate(2 * tick).Add(3*tick - time.Second))) // a second before an odd tick
		p := alternating{tick}
		b := start(t, openStore(t), Spec{Rules: Rules{Eligibility: []Rule{{Policy: p}}}})
		if _, err := b.Post(t.Context(), []job.Posting{{Name: "even true"}}); err != nil {
			t.Fatal(err)
		}
		c := claimerOn(t, b, 1, 1)
		c.wait = 10 * time.Second
		defer c.release()
		class, err := c.classNow(t.Context()) // as the even tick has it
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := c.grab(t.Context(), class); err != nil || len(c.claims) != 0 || len(c.late) != 1 {
			t.Fatalf("%d claims, %d late: %v", len(c.claims), len(c.late), err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = c.stand(t.Context())
		}()
		synctest.Wait()
		if len(c.late) != 0 {
			t.Error("a call that waits keeps a job that it may not have")
		}
		<-ended
	})
}

// TestShortTicks: workers of many kinds, under a policy that sees each second, do not
// use up the places for classes.
func TestShortTicks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Rules: Rules{Eligibility: []Rule{{Policy: alternating{time.Second}}}}})
		for range 100 {
			for n := range 8 {
				claim(t, b, ClaimRequest{Names: []string{fmt.Sprint("n", n)}})
			}
			time.Sleep(time.Second)
		}
		if s := b.index.Stats(); s.Classes > 8 || s.Overflow != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// moody looks at the time, and allows everything as long as it works.
type moody struct {
	tick  time.Duration
	takes time.Duration // for each call
	fails atomic.Bool
}

func (p *moody) Manifest() policy.Manifest {
	return policy.Manifest{Name: "moody", Eligibility: true, ByTime: true, Tick: p.tick}
}

func (p *moody) Eligible(_ context.Context, _ *policy.Batch, verdicts []policy.Verdict) error {
	time.Sleep(p.takes)
	if p.fails.Load() {
		return errors.New("broken")
	}
	for i := range verdicts {
		verdicts[i].Decision = policy.Allow
	}
	return nil
}

func (*moody) Score(context.Context, *policy.Batch, []int64) error { return nil }

// TestPolicyFailsWithinACall: a call that found a policy broken, and waits, keeps no jobs from others
// once the policy works again.
func TestPolicyFailsWithinACall(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := &moody{tick: time.Hour}
		b := start(t, openStore(t), Spec{Rules: Rules{Eligibility: []Rule{{Policy: p}}}})
		postN(t, b, 3)
		claimOne(t, b, ClaimRequest{}) // the class is known
		p.fails.Store(true)
		waited := make(chan int, 1)
		go func() {
			r, _ := b.Claim(t.Context(), ClaimRequest{Owner: "first", Wait: time.Minute})
			waited <- len(r.Claims)
		}()
		time.Sleep(2 * time.Second)
		p.fails.Store(false)
		time.Sleep(2 * time.Second) // the policy is left alone for so long
		claimOne(t, b, ClaimRequest{})
		if n := <-waited; n != 1 {
			t.Errorf("who waited was given %d jobs", n)
		}
	})
}

// TestJudgingTakesLongerThanATick: a call is given jobs also where all of them cannot be judged
// within a tick.
func TestJudgingTakesLongerThanATick(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Rules: Rules{Eligibility: []Rule{{Policy: &moody{tick: time.Second, takes: 400 * time.Millisecond}}}}})
		for range 4 * policy.MaxBatch / MaxBatch {
			postN(t, b, MaxBatch)
		}
		for _, wait := range []time.Duration{0, time.Minute} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := b.Claim(ctx, ClaimRequest{Owner: "w", Wait: wait})
			if err != nil || len(r.Claims) != 1 {
				t.Fatalf("with a wait of %v: %d claims, %v", wait, len(r.Claims), err)
			}
		}
	})
}
