package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func TestClaimRefuses(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{MaxLease: time.Hour})
	for name, req := range map[string]ClaimRequest{
		"no owner":      {},
		"long owner":    {Owner: strings.Repeat("o", job.MaxOwner+1)},
		"negative max":  {Owner: "o", Max: -1},
		"large max":     {Owner: "o", Max: MaxBatch + 1},
		"short lease":   {Owner: "o", Lease: time.Millisecond},
		"negative":      {Owner: "o", Lease: -time.Second},
		"a century":     {Owner: "o", Lease: 100 * 366 * 24 * time.Hour},
		"no expiry":     {Owner: "o", NoExpiry: true},
		"filter":        {Owner: "o", Filter: "x"},
		"many names":    {Owner: "o", Names: make([]string, MaxClaimNames+1)},
		"worker labels": {Owner: "o", WorkerLabels: []job.Label{{Key: "a"}, {Key: "a"}}},
		"request id":    {Owner: "o", RequestID: strings.Repeat("r", MaxRequestID+1)},
	} {
		_, err := b.Claim(t.Context(), req)
		if job.KindOf(err) != job.Invalid {
			t.Errorf("%s: got %v, want INVALID", name, err)
		}
	}
	_, err := b.Claim(t.Context(), ClaimRequest{Owner: "o", Lease: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "want 1s to 1h") {
		t.Fatalf("the message does not name the limits: %v", err)
	}
	post(t, b, job.Posting{Name: "n"})
	if c := claimOne(t, b, ClaimRequest{Lease: 2 * time.Hour}); c.Lease != time.Hour {
		t.Fatalf("lease %v, want it cut to 1h", c.Lease)
	}
}

func TestClaimNoExpiry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{AllowNoExpiry: true})
		postN(t, b, 1)
		c := claimOne(t, b, ClaimRequest{NoExpiry: true})
		if c.Lease != 0 || !c.LeaseExpiresAt.IsZero() {
			t.Fatalf("%+v", c)
		}
		time.Sleep(48 * time.Hour)
		results, err := b.Extend(t.Context(), []Ref{refOf(b, c)}, 0)
		if err != nil || results[0].Err != nil || results[0].Lease != 0 || !results[0].LeaseExpiresAt.IsZero() {
			t.Fatal(results, err)
		}
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
	})
}

func TestClaimSelects(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	post(
		t, b,
		job.Posting{Name: "a", Details: []byte(`{"n":1}`), Labels: []job.Label{{Key: "zone", Value: "x"}}},
		job.Posting{Name: "b", Details: []byte(`{"n":2}`), Labels: []job.Label{{Key: "zone", Value: "y"}}},
		job.Posting{Name: "c", Details: []byte(`{"n":3}`), Labels: []job.Label{{Key: "zone", Value: "x"}}},
		job.Posting{Name: "d", Details: []byte(`{"n":4}`)},
	)
	tests := []struct {
		names  []string
		filter string
		want   string
	}{
		{[]string{"c", "a", "a"}, "", "a c"},
		{nil, "labels.zone = x", "a c"},
		{nil, "labels.zone != x", "b d"},
		{[]string{"b", "c", "d"}, "details.n >= 3", "c d"},
		{[]string{"nothing"}, "", ""},
		{nil, "", "a b c d"},
	}
	for _, tt := range tests {
		var names []string
		var refs []Ref
		for _, c := range claim(t, b, ClaimRequest{Max: 10, Names: tt.names, Filter: tt.filter}) {
			names, refs = append(names, c.Job.Name), append(refs, refOf(b, c))
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%v %q: got %q, want %q", tt.names, tt.filter, got, tt.want)
		}
		zero := time.Duration(0)
		if _, err := b.Abandon(t.Context(), refs, AbandonOptions{RetryAfter: &zero, RefundAttempt: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClaimChosen(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		jobs := postN(t, b, 6)
		delayed := post(t, b, job.Posting{Name: "later", NotBefore: time.Now().Add(time.Hour)})[0]
		taken := claimOne(t, b, ClaimRequest{IDs: []job.ID{jobs[0].ID}, Owner: "other"})
		ended := claimOne(t, b, ClaimRequest{IDs: []job.ID{jobs[1].ID}})
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, ended)})), job.NoKind)
		wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{jobs[2].ID}, "")), job.NoKind)
		short := claimOne(t, b, ClaimRequest{IDs: []job.ID{jobs[3].ID}, Lease: time.Second})
		time.Sleep(time.Second) // exactly the lease: nobody need have noticed
		ids := []job.ID{jobs[0].ID, jobs[1].ID, jobs[2].ID, jobs[3].ID, jobs[4].ID, delayed.ID, {99}, jobs[4].ID}
		r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: ids})
		if err != nil {
			t.Fatal(err)
		}
		var got []job.ID
		for _, c := range r.Claims {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, []job.ID{jobs[3].ID, jobs[4].ID}) {
			t.Fatalf("claimed %v", got)
		}
		if r.Claims[0].Attempt != 2 || len(r.Claims[0].Job.Reasons) != 1 {
			t.Fatalf("the lapsed one: %+v", r.Claims[0].Job)
		}
		want := []struct {
			id   job.ID
			kind job.Kind
		}{
			{jobs[0].ID, job.AlreadyClaimed},
			{jobs[1].ID, job.NotFound},
			{jobs[2].ID, job.NotEligible},
			{delayed.ID, job.NotEligible},
			{job.ID{99}, job.NotFound},
			{jobs[4].ID, job.AlreadyClaimed}, // twice in one call
		}
		if len(r.Failures) != len(want) {
			t.Fatalf("%d failures: %+v", len(r.Failures), r.Failures)
		}
		for i, f := range r.Failures {
			if f.ID != want[i].id || job.KindOf(f.Err) != want[i].kind {
				t.Errorf("failure %d: %v %v, want %v", i, f.ID, f.Err, want[i])
			}
		}
		var e *job.Error
		if !errors.As(r.Failures[0].Err, &e) || e.Owner != "other" {
			t.Errorf("the failure does not name the holder: %v", r.Failures[0].Err)
		}
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, short)})), job.LeaseLost)
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, taken)})), job.NoKind)
		if err := b.Pause(t.Context(), "lunch"); err != nil {
			t.Fatal(err)
		}
		r, err = b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{jobs[5].ID}})
		if err != nil || len(r.Failures) != 1 || !errors.Is(r.Failures[0].Err, job.NotEligible) || !strings.Contains(r.Failures[0].Err.Error(), "lunch") {
			t.Fatalf("%+v %v", r, err)
		}
	})
}

func TestClaimRequestID(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	postN(t, b, 5)
	req := ClaimRequest{Owner: "w", Max: 2, RequestID: "r1"}
	first, again := claim(t, b, req), claim(t, b, req)
	if len(first) != 2 || len(again) != 2 || first[0].Token != again[0].Token || first[1].Token != again[1].Token || again[0].Job == nil || string(again[0].Job.Details) != "{}" {
		t.Fatalf("first %+v, again %+v", first, again)
	}
	other := req
	other.Owner = "v"
	if c := claim(t, b, other); len(c) != 2 || c[0].ID == first[0].ID {
		t.Fatalf("another owner's request: %+v", c)
	}
	// An empty answer is not kept: nothing was given.
	late := ClaimRequest{Owner: "w", Max: 2, RequestID: "r2", Names: []string{"late"}}
	if c := claim(t, b, late); len(c) != 0 {
		t.Fatal(c)
	}
	post(t, b, job.Posting{Name: "late"})
	given := claimOne(t, b, late)
	post(t, b, job.Posting{Name: "late"})
	if again := claimOne(t, b, late); again.Token != given.Token {
		t.Fatal("the repeated request was given another job")
	}
	// Chosen ones too.
	rest := claim(t, b, ClaimRequest{Names: []string{"job-4"}})
	wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, rest[0])}, AbandonOptions{})), job.NoKind)
	chosen := ClaimRequest{Owner: "w", IDs: []job.ID{rest[0].ID}, RequestID: "r3"}
	if a, again := claimOne(t, b, chosen), claimOne(t, b, chosen); a.Token != again.Token {
		t.Fatal("the repeated request has another token")
	}
	// The answer stands as well for a job that could not be claimed then, and could be by now.
	jobs := postN(t, b, 2)
	held := claimOne(t, b, ClaimRequest{Owner: "v", IDs: []job.ID{jobs[1].ID}})
	both := ClaimRequest{Owner: "w", IDs: []job.ID{jobs[0].ID, jobs[1].ID}, RequestID: "r4"}
	for _, want := range []job.Kind{job.AlreadyClaimed, job.NotEligible} {
		r, err := b.Claim(t.Context(), both)
		if err != nil || len(r.Claims) != 1 || r.Claims[0].ID != jobs[0].ID || len(r.Failures) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		wantKind(t, r.Failures[0].Err, want)
		if want == job.AlreadyClaimed {
			wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, held)}, AbandonOptions{})), job.NoKind)
		}
	}
}

func TestClaimWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		began := time.Now()
		if c := claim(t, b, ClaimRequest{Wait: 7 * time.Second}); len(c) != 0 || time.Since(began) != 7*time.Second {
			t.Fatal(c, time.Since(began))
		}
		began = time.Now()
		if c := claim(t, b, ClaimRequest{Wait: time.Hour}); len(c) != 0 || time.Since(began) != MaxWait {
			t.Fatal(c, time.Since(began))
		}
		// The wait ends before the call's deadline, with an empty answer.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began = time.Now()
		r, err := b.Claim(ctx, ClaimRequest{Owner: "w", Wait: time.Minute})
		if waited := time.Since(began); err != nil || len(r.Claims) != 0 || waited >= 10*time.Second || waited < 9*time.Second {
			t.Fatal(r, err, waited)
		}
		// A post ends it.
		go func() {
			time.Sleep(3 * time.Second)
			postN(t, b, 1)
		}()
		began = time.Now()
		if claimOne(t, b, ClaimRequest{Wait: time.Minute}); time.Since(began) != 3*time.Second {
			t.Fatal(time.Since(began))
		}
	})
}

// One post wakes one waiter, and those who wait longest are first.
func TestThousandWaiters(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var applies int
		d := &spy{Driver: openStore(t), t: t}
		d.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			d.mu.Lock()
			if ops[0].Kind == driver.Claim {
				applies++
			}
			d.mu.Unlock()
			return next(ctx, ops)
		}
		b := start(t, d, Spec{})
		const waiters = 1000
		var mu sync.Mutex
		var order []int
		var group sync.WaitGroup
		for i := range waiters {
			group.Go(func() {
				r, err := b.Claim(t.Context(), ClaimRequest{Owner: fmt.Sprint(i), Wait: time.Minute})
				if err != nil {
					t.Error(err)
				}
				if len(r.Claims) == 1 {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		if got := b.Waiting(); got != waiters {
			t.Fatalf("%d wait, want %d", got, waiters)
		}
		for i := range 50 {
			postN(t, b, 1)
			synctest.Wait()
			mu.Lock()
			wrong := len(order) != i+1 || order[i] != i
			mu.Unlock()
			if wrong {
				t.Errorf("after post %d: %v", i, order)
				break
			}
		}
		d.mu.Lock()
		if applies != 50 {
			t.Errorf("%d claims were sent for 50 posts", applies)
		}
		d.mu.Unlock()
		postN(t, b, MaxBatch-len(order))
		group.Wait()
		if len(order) != waiters {
			t.Fatalf("%d of %d were given a job", len(order), waiters)
		}
	})
}

func TestClaimWhilePaused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		b, other := start(t, d, Spec{}), start(t, d, Spec{})
		if err := other.Pause(t.Context(), "maintenance"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !b.Status().Paused {
			t.Fatal("the pause was not seen on the other host")
		}
		postN(t, b, 2)
		if c := claim(t, b, ClaimRequest{}); len(c) != 0 {
			t.Fatal("a paused board granted a claim")
		}
		began := time.Now()
		go func() {
			time.Sleep(20 * time.Second)
			if err := other.Resume(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		if claimOne(t, b, ClaimRequest{Wait: time.Minute}); time.Since(began) != 20*time.Second {
			t.Fatalf("claimed after %v", time.Since(began))
		}
	})
}

// A caller that has gone is given no claim: it is as if nothing had happened.
func TestClaimOfCallerThatHasGone(t *testing.T) {
	t.Parallel()
	for _, chosen := range []bool{false, true} {
		t.Run(fmt.Sprintf("chosen=%v", chosen), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				d := &spy{Driver: openStore(t), t: t}
				d.apply = func(inner context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
					if ops[0].Kind == driver.Claim {
						cancel() // while the store decides
					}
					return next(inner, ops)
				}
				b := start(t, d, Spec{Retry: Retry{Backoff: time.Hour, MaxAttempts: 1}})
				id := postN(t, b, 1)[0].ID
				req := ClaimRequest{Owner: "w", Wait: time.Minute}
				if chosen {
					req.IDs = []job.ID{id}
				}
				r, err := b.Claim(ctx, req)
				if len(r.Claims) != 0 {
					t.Fatal("it was given a claim")
				}
				wantKind(t, err, job.Interrupted)
				got := get(t, b, id)
				if got.State != job.Unclaimed || got.Attempt != 0 || !got.NotBefore.IsZero() || len(got.Reasons) != 0 {
					t.Fatalf("%+v", got)
				}
				if c, _ := b.Count(t.Context()); c.Ready != 1 {
					t.Fatalf("%+v", c)
				}
			})
		})
	}
}

// A waiter whose caller goes away passes its turn on.
func TestWaiterThatHasGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := b.Claim(ctx, ClaimRequest{Owner: "first", Wait: time.Minute})
			first <- err
		}()
		synctest.Wait()
		second := make(chan ClaimResponse, 1)
		go func() {
			r, _ := b.Claim(t.Context(), ClaimRequest{Owner: "second", Wait: time.Minute})
			second <- r
		}()
		synctest.Wait()
		cancel()
		wantKind(t, <-first, job.Interrupted)
		postN(t, b, 1)
		if r := <-second; len(r.Claims) != 1 {
			t.Fatal("the next in line was not woken")
		}
	})
}

// A job that another server puts into the trash while a claim of it is on its way is in
// the trash, and not gone.
func TestClaimOfTrashedMeanwhile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		there := start(t, d, Spec{})
		id := post(t, there, job.Posting{Name: "n"})[0].ID
		here := start(t, &spy{Driver: d, t: t, apply: func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			if ops[0].Kind == driver.Claim {
				c, err := there.Claim(ctx, ClaimRequest{Owner: "other", IDs: []job.ID{id}, Lease: time.Minute})
				if err == nil && len(c.Claims) == 1 {
					err = one(there.Trash(ctx, []Ref{{ID: id, Token: there.FormatToken(id, c.Claims[0].Token)}}, nil, ""))
				}
				if err != nil {
					t.Errorf("the other server: %+v, %v", c, err)
				}
			}
			return next(ctx, ops)
		}}, Spec{})
		r, err := here.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{id}, Lease: time.Minute})
		if err != nil || len(r.Failures) != 1 || !errors.Is(r.Failures[0].Err, job.NotEligible) {
			t.Errorf("the claim: %+v, %v; want it NOT_ELIGIBLE", r, err)
		}
	})
}
