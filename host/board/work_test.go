package board

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func work(t testing.TB, b *Board, req WorkRequest) WorkResponse {
	t.Helper()
	if req.Claims.Owner == "" {
		req.Claims.Owner = "worker"
	}
	r, err := b.Work(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func endingOfClaim(b *Board, c job.Claim, how How) WorkEnding {
	return WorkEnding{Ref: refOf(b, c), Ending: Ending{How: how}}
}

func namesOf(claims []job.Claim) (names []string) {
	for _, c := range claims {
		names = append(names, c.Job.Name)
	}
	return names
}

func wants(most int, wait time.Duration) WorkRequest {
	return WorkRequest{Claims: ClaimRequest{Max: most, Wait: wait}}
}

func TestWorkRefuses(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	postN(t, b, 1)
	c := claimOne(t, b, ClaimRequest{})
	long := -time.Second
	for name, req := range map[string]WorkRequest{
		"no owner":       {},
		"negative max":   {Claims: ClaimRequest{Owner: "o", Max: -1}},
		"chosen jobs":    {Claims: ClaimRequest{Owner: "o", IDs: []job.ID{{1}}}},
		"negative ahead": {Claims: ClaimRequest{Owner: "o"}, Ahead: -1},
		"far ahead":      {Claims: ClaimRequest{Owner: "o"}, Ahead: MaxBatch + 1},
		"many endings":   {Claims: ClaimRequest{Owner: "o"}, Endings: make([]WorkEnding, MaxBatch+1)},
		"filter":         {Claims: ClaimRequest{Owner: "o", Filter: "x"}},
		"an ending":      {Claims: ClaimRequest{Owner: "o"}, Endings: []WorkEnding{{Ref: refOf(b, c), Ending: Ending{How: ToAbandon, AbandonOptions: AbandonOptions{RetryAfter: &long}}}}},
	} {
		req.Endings = append(req.Endings, endingOfClaim(b, c, ToConsume))
		if _, err := b.Work(t.Context(), req); job.KindOf(err) != job.Invalid {
			t.Errorf("%s: got %v, want INVALID", name, err)
		}
	}
	if j := get(t, b, c.ID); j.State != job.Claimed {
		t.Errorf("a refused call ended a claim: %v", j.State)
	}
}

// A call ends claims in each way and gives others; repeated, it answers the same.
func TestWorkEndsAndClaims(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	postN(t, b, 6)
	first := work(t, b, wants(4, 0))
	if got := namesOf(first.Claims); !slices.Equal(got, []string{"job-0", "job-1", "job-2", "job-3"}) || first.Idle != NotIdle {
		t.Fatalf("%v, %v", got, first.Idle)
	}
	later := time.Hour
	req := wants(3, time.Minute) // the wait is not for a call that ends something
	req.Claims.RequestID = "once"
	req.Endings = []WorkEnding{
		endingOfClaim(b, first.Claims[0], ToConsume),
		{Ref: refOf(b, first.Claims[1]), Ending: Ending{How: ToAbandon, AbandonOptions: AbandonOptions{Reason: "not now", RetryAfter: &later, RefundAttempt: true}}},
		{Ref: refOf(b, first.Claims[2]), Ending: Ending{How: ToTrash, Reason: "bad"}},
		{Ref: refOf(b, first.Claims[3]), Ending: Ending{How: ToConsume, Outcome: job.Canceled}},
		{Ref: Ref{ID: first.Claims[0].ID, Token: "x"}, Ending: Ending{How: ToConsume}},
	}
	var tokens []string
	for range 2 {
		r := work(t, b, req)
		for i, err := range r.Ended[:4] {
			if err != nil {
				t.Errorf("ending %d: %v", i, err)
			}
		}
		if r.Ended[4] == nil {
			t.Error("a wrong token ended a claim")
		}
		if got := namesOf(r.Claims); !slices.Equal(got, []string{"job-4", "job-5"}) {
			t.Errorf("claimed %v", got)
		}
		for _, c := range r.Claims {
			tokens = append(tokens, b.FormatToken(c.ID, c.Token))
		}
	}
	if len(tokens) != 4 || tokens[0] != tokens[2] || tokens[1] != tokens[3] {
		t.Errorf("the same request gave other claims: %v", tokens)
	}
	for i, want := range []string{"COMPLETE CONSUMED", "UNCLAIMED ", "TRASHED ", "COMPLETE CANCELED"} {
		j := get(t, b, first.Claims[i].ID)
		if got := fmt.Sprint(j.State, " ", j.Outcome); !strings.HasPrefix(got, want) {
			t.Errorf("job %d is %s, want %s", i, got, want)
		}
	}
	if r := work(t, b, wants(1, 0)); len(r.Claims) != 0 || r.Idle != IdleEmpty {
		t.Errorf("%+v", r)
	}
}

// A call may extend a claim and end it.
func TestWorkExtends(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Lease: 10 * time.Second})
		postN(t, b, 2)
		claims := work(t, b, wants(2, 0)).Claims
		var notices []Notice
		for range 5 {
			time.Sleep(8 * time.Second)
			r := work(t, b, WorkRequest{Extend: []WorkExtension{{Ref: refOf(b, claims[0])}}})
			if r.Extended[0].Err != nil || r.Extended[0].Lease != 10*time.Second {
				t.Fatalf("%+v", r.Extended[0])
			}
			notices = append(notices, r.Notices...)
		}
		r := work(t, b, WorkRequest{
			Extend:  []WorkExtension{{Ref: refOf(b, claims[0])}, {Ref: refOf(b, claims[1])}},
			Endings: []WorkEnding{endingOfClaim(b, claims[0], ToConsume)},
		})
		if r.Extended[0].Err != nil || job.KindOf(r.Extended[1].Err) != job.LeaseLost || r.Ended[0] != nil {
			t.Errorf("%+v", r)
		}
		if len(notices) != 1 || notices[0].What != NoticeLost || notices[0].Token != claims[1].Token {
			t.Errorf("notices %+v, want the loss of the second", notices)
		}
	})
}

// during calls Work while do happens, and returns the answer and how long it took.
func during(t *testing.T, b *Board, req WorkRequest, do func()) (r WorkResponse, took time.Duration) {
	t.Helper()
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		r, took = work(t, b, req), time.Since(began)
	}()
	time.Sleep(time.Second)
	synctest.Wait()
	do()
	<-done
	return r, took
}

// News of a claim ends a wait; what the worker does itself is none.
func TestWorkNotices(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 3} {
		bubble(t, func(t *testing.T) {
			b := start(t, openStore(t), Spec{Lease: time.Hour})
			postN(t, b, 5)
			claims := work(t, b, wants(5, 0)).Claims
			ids := func(i int) []job.ID { return []job.ID{claims[i].ID} }
			ask := WorkRequest{Claims: ClaimRequest{Max: most, Wait: 30 * time.Second, Names: []string{"none"}}}
			check := func(what What, i int, do func()) {
				t.Helper()
				r, took := during(t, b, ask, do)
				if took != time.Second || len(r.Notices) != 1 || r.Notices[0].What != what || r.Notices[0].Token != claims[i].Token {
					t.Errorf("after %v: %+v", took, r)
				}
			}
			check(NoticeLost, 0, func() { mustAll(t)(b.Release(t.Context(), ids(0), "", "by hand")) })
			check(NoticeCancel, 1, func() {
				if _, err := b.Cancel(t.Context(), ids(1), true); err != nil {
					t.Error(err)
				}
			})
			r, took := during(t, b, ask, func() {
				mustAll(t)(b.Consume(t.Context(), []Ref{refOf(b, claims[3])}))
				mustAll(t)(b.Trash(t.Context(), []Ref{refOf(b, claims[1])}, nil, ""))
				mustAll(t)(b.Abandon(t.Context(), []Ref{refOf(b, claims[2])}, AbandonOptions{}))
			})
			if took != 30*time.Second || len(r.Notices) > 0 {
				t.Errorf("the worker's own doing: after %v: %+v", took, r)
			}
			mustAll(t)(b.Release(t.Context(), ids(4), "", "between two calls"))
			synctest.Wait()
			if r, took := during(t, b, ask, func() {}); took != 0 || len(r.Notices) != 1 || r.Notices[0].Reason != "between two calls" {
				t.Errorf("after %v: %+v", took, r)
			}
		})
	}
}

func mustAll(t *testing.T) func(errs []error, err error) {
	return func(errs []error, err error) {
		t.Helper()
		for _, e := range append(errs, err) {
			if e != nil {
				t.Error(e)
			}
		}
	}
}

// A lease that runs out is told to its worker.
func TestWorkHearsOfExpiry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Lease: 5 * time.Second})
		postN(t, b, 1)
		c := work(t, b, wants(1, 0)).Claims[0]
		if r := work(t, b, WorkRequest{Claims: ClaimRequest{Wait: 30 * time.Second}}); len(r.Notices) != 1 || r.Notices[0].Token != c.Token {
			t.Errorf("%+v", r)
		}
	})
}

// A worker that asks another host than the one that gave it its claims hears of what
// cannot be its own doing.
func TestWorkHearsFromAnotherHost(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		b, other := start(t, d, Spec{Lease: 5 * time.Second}), start(t, d, Spec{Lease: 5 * time.Second})
		postN(t, b, 3)
		c := work(t, b, wants(3, 0)).Claims
		r, took := during(t, other, wants(0, 30*time.Second), func() {
			mustAll(t)(b.Consume(t.Context(), []Ref{refOf(b, c[0])}))
			if _, err := b.Cancel(t.Context(), []job.ID{c[1].ID}, true); err != nil {
				t.Error(err)
			}
		})
		if took != time.Second || len(r.Notices) != 1 || r.Notices[0].What != NoticeCancel || r.Notices[0].Token != c[1].Token {
			t.Errorf("after %v: %+v", took, r)
		}
		if r := work(t, other, wants(0, 30*time.Second)); len(r.Notices) != 1 || r.Notices[0].What != NoticeLost || r.Notices[0].ID != c[2].ID {
			t.Errorf("%+v", r)
		}
	})
}

// A worker that wants many jobs leaves some to the others who wait.
func TestWorkTakesItsShare(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		got := make(chan int, 4)
		for i, most := range []int{1000, 10, 10, 10} {
			go func() {
				r := work(t, b, WorkRequest{Claims: ClaimRequest{Owner: fmt.Sprint("w", i), Max: most, Wait: time.Minute}})
				got <- len(r.Claims)
			}()
			synctest.Wait()
		}
		postN(t, b, 8)
		sum := 0
		for range 4 {
			n := <-got
			if sum += n; n < 1 || n > 4 {
				t.Errorf("one of them has %d of 8", n)
			}
		}
		if sum != 8 {
			t.Errorf("%d jobs were given, want 8", sum)
		}
	})
}

// Why there is no claim.
func TestWorkIdles(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: atMost(1)}}})
		post(t, b, teams("aa")...)
		if err := b.Pause(t.Context(), "rest"); err != nil {
			t.Fatal(err)
		}
		if r := work(t, b, wants(1, 0)); r.Idle != IdlePaused || r.RetryAfter <= 0 {
			t.Errorf("paused: %+v", r)
		}
		if err := b.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := work(t, b, WorkRequest{Claims: ClaimRequest{Max: 2}, Ahead: 5}); len(r.Claims) != 1 {
			t.Errorf("limited: %d claims, want 1", len(r.Claims))
		}
		if r := work(t, b, wants(1, 0)); r.Idle != IdleLimit || r.RetryAfter <= 0 {
			t.Errorf("full: %+v", r)
		}
		if r := work(t, b, wants(0, 0)); r.Idle != NotIdle {
			t.Errorf("nothing was asked for: %+v", r)
		}
	})
}

// A store that refuses claims for a limit of the tenant is no reason to fail a call whose
// endings are done.
func TestWorkOverQuota(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		full := false
		d := &spy{Driver: openStore(t), t: t, apply: func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			if full && ops[0].Kind == driver.Claim {
				return []driver.Result{{Kind: job.QuotaExceeded, Message: "claims"}}
			}
			return next(ctx, ops)
		}}
		b := start(t, d, Spec{})
		postN(t, b, 3)
		c := work(t, b, wants(1, 0)).Claims[0]
		full = true
		req := wants(1, 0)
		req.Endings = []WorkEnding{endingOfClaim(b, c, ToConsume)}
		if r := work(t, b, req); r.Ended[0] != nil || r.Idle != IdleLimit || len(r.Claims) > 0 {
			t.Errorf("%+v", r)
		}
		began := time.Now()
		if r := work(t, b, wants(1, 30*time.Second)); r.Idle != IdleLimit || time.Since(began) != idleFor {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
	})
}

// TestWorkAhead: what is given beyond max is marked, in order, and never while somebody
// waits.
func TestWorkAhead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		postN(t, b, 20)
		r := work(t, b, WorkRequest{Claims: ClaimRequest{Max: 2, RequestID: "r"}, Ahead: 3})
		var marks []bool
		for _, c := range r.Claims {
			marks = append(marks, c.Ahead)
		}
		if got := namesOf(r.Claims); !slices.Equal(got, []string{"job-0", "job-1", "job-2", "job-3", "job-4"}) || !slices.Equal(marks, []bool{false, false, true, true, true}) {
			t.Fatalf("%v %v", got, marks)
		}
		if again := work(t, b, WorkRequest{Claims: ClaimRequest{RequestID: "r"}, Ahead: 3}); len(again.Claims) != 5 || !again.Claims[4].Ahead || again.Claims[1].Ahead {
			t.Errorf("repeated: %+v", again.Claims)
		}
		other := work(t, b, WorkRequest{Claims: ClaimRequest{Owner: "other", Max: 1}, Ahead: 100})
		if n := len(other.Claims); n != 7 {
			t.Errorf("one of two workers was given %d of 15, want its share, 7", n)
		}
		r, _ = during(t, b, WorkRequest{Claims: ClaimRequest{Owner: "third", Names: []string{"x"}, Max: 1, Wait: 3 * time.Second}}, func() {
			if r := work(t, b, WorkRequest{Claims: ClaimRequest{Max: 1}, Ahead: 5}); len(r.Claims) != 1 {
				t.Errorf("%d claims while somebody waits, want 1", len(r.Claims))
			}
		})
		if len(r.Claims) != 0 {
			t.Errorf("%v", r.Claims)
		}
	})
}

// A call that waits for news, and may be given nothing ahead, keeps no job from others.
func TestWorkAheadOfTimedJobs(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		post(t, b, slices.Repeat([]job.Posting{{Name: "timed", Timeout: time.Hour}}, 3)...)
		r, took := during(t, b, WorkRequest{Claims: ClaimRequest{Wait: 30 * time.Second}, Ahead: 5}, func() {
			if n := len(claim(t, b, ClaimRequest{Owner: "other", Max: 5})); n != 3 {
				t.Errorf("another worker got %d jobs, want 3", n)
			}
		})
		if len(r.Claims) != 0 || took != 30*time.Second {
			t.Errorf("%d claims after %v", len(r.Claims), took)
		}
	})
}

// A claim given ahead that lapses, or is given back, before it has begun uses up no
// attempt; but not more than twice running.
func TestWorkAheadAttempts(t *testing.T) {
	t.Parallel()
	attempts := func(end func(t *testing.T, b *Board, c job.Claim)) (got []int32) {
		bubble(t, func(t *testing.T) {
			b := start(t, openStore(t), Spec{Lease: 10 * time.Second, Retry: Retry{MaxAttempts: 9}})
			id := postN(t, b, 1)[0].ID
			for range 4 {
				r := work(t, b, WorkRequest{Ahead: 1})
				if len(r.Claims) != 1 || !r.Claims[0].Ahead {
					t.Fatalf("%+v", r)
				}
				end(t, b, r.Claims[0])
				time.Sleep(20 * time.Second)
				got = append(got, get(t, b, id).Attempt)
			}
		})
		return got
	}
	lapses := func(*testing.T, *Board, job.Claim) {}
	back := func(o AbandonOptions) func(*testing.T, *Board, job.Claim) {
		return func(t *testing.T, b *Board, c job.Claim) {
			t.Helper()
			mustAll(t)(b.Abandon(t.Context(), []Ref{refOf(b, c)}, o))
		}
	}
	begun := func(t *testing.T, b *Board, c job.Claim) {
		t.Helper()
		r := work(t, b, WorkRequest{Extend: []WorkExtension{{Ref: refOf(b, c), Begun: true}}})
		if r.Extended[0].Err != nil {
			t.Error(r.Extended[0].Err)
		}
	}
	released := func(t *testing.T, b *Board, c job.Claim) {
		t.Helper()
		mustAll(t)(b.Release(t.Context(), []job.ID{c.ID}, "", ""))
	}
	for name, test := range map[string]struct {
		end  func(*testing.T, *Board, job.Claim)
		want []int32
	}{
		"lapses":             {lapses, []int32{0, 0, 1, 2}},
		"given back":         {back(AbandonOptions{}), []int32{0, 0, 1, 2}},
		"refunded":           {back(AbandonOptions{RefundAttempt: true}), []int32{0, 0, 0, 0}},
		"failed":             {back(AbandonOptions{Begun: true}), []int32{1, 2, 3, 4}},
		"begun, then lapsed": {begun, []int32{1, 2, 3, 4}},
		"released":           {released, []int32{0, 0, 1, 2}},
	} {
		if got := attempts(test.end); !slices.Equal(got, test.want) {
			t.Errorf("%s: attempts %v, want %v", name, got, test.want)
		}
	}
}

// A worker that has to wait gets back what another one holds ahead, if it suits.
func TestWorkRecalls(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		postN(t, b, 4)
		held := work(t, b, WorkRequest{Claims: ClaimRequest{Max: 1}, Ahead: 3}).Claims
		work(t, b, WorkRequest{Extend: []WorkExtension{{Ref: refOf(b, held[3]), Begun: true}}})
		if r := work(t, b, WorkRequest{Claims: ClaimRequest{Owner: "picky", Names: []string{"x"}, Max: 1, Wait: time.Second}}); len(r.Claims) != 0 {
			t.Fatal(r.Claims)
		}
		answer := make(chan WorkResponse)
		go func() {
			answer <- work(t, b, WorkRequest{Claims: ClaimRequest{Owner: "idle", Max: 1, Wait: time.Minute}})
		}()
		r := work(t, b, wants(0, time.Minute))
		if len(r.Notices) != 1 || r.Notices[0].What != NoticeRecall || r.Notices[0].Token != held[2].Token {
			t.Fatalf("%+v", r.Notices)
		}
		work(t, b, WorkRequest{Endings: []WorkEnding{{Ref: refOf(b, held[2]), Ending: Ending{How: ToAbandon, AbandonOptions: AbandonOptions{RetryAfter: new(time.Duration)}}}}})
		if r := <-answer; len(r.Claims) != 1 || r.Claims[0].ID != held[2].ID || r.Claims[0].Attempt != 1 {
			t.Errorf("%+v", r.Claims)
		}
	})
}

// A caller that goes is given nothing, and what is kept of workers that went is dropped.
func TestWorkCallerGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := b.Work(ctx, WorkRequest{Claims: ClaimRequest{Owner: "gone", Max: 1, Wait: time.Minute}})
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; job.KindOf(err) != job.Interrupted {
			t.Errorf("%v", err)
		}
		postN(t, b, 1)
		if n := b.index.Count().Ready; n != 1 || b.Waiting() != 0 {
			t.Errorf("%d jobs ready, %d calls wait", n, b.Waiting())
		}
		time.Sleep(2 * keepHands)
		work(t, b, wants(0, 0))
		if n := len(b.hands.workers); n != 1 {
			t.Errorf("%d workers are remembered", n)
		}
	})
}
