package board

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// openStore opens a memory store that lives as long as the test.
func openStore(t testing.TB) driver.Driver {
	t.Helper()
	d, err := memdriver.Open(context.Background(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// start runs a board until the test ends.
func start(t testing.TB, d driver.Driver, spec Spec) *Board {
	t.Helper()
	if spec.Name == "" {
		spec.Name = "test"
	}
	if spec.Logger == nil {
		spec.Logger = slog.New(slog.DiscardHandler)
	}
	b := New(d, spec)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := b.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// bubble runs a test with a clock of its own.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func post(t testing.TB, b *Board, postings ...job.Posting) []*job.Job {
	t.Helper()
	results, err := b.Post(t.Context(), postings)
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]*job.Job, len(results))
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("posting %d: %v", i, r.Err)
		}
		jobs[i] = r.Job
	}
	return jobs
}

func postN(t testing.TB, b *Board, n int) []*job.Job {
	t.Helper()
	postings := make([]job.Posting, n)
	for i := range postings {
		postings[i] = job.Posting{Name: fmt.Sprintf("job-%d", i)}
	}
	return post(t, b, postings...)
}

func claim(t testing.TB, b *Board, req ClaimRequest) []job.Claim {
	t.Helper()
	if req.Owner == "" {
		req.Owner = "worker"
	}
	r, err := b.Claim(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) > 0 {
		t.Fatalf("claim: %v", r.Failures[0].Err)
	}
	return r.Claims
}

func claimOne(t testing.TB, b *Board, req ClaimRequest) job.Claim {
	t.Helper()
	claims := claim(t, b, req)
	if len(claims) != 1 {
		t.Fatalf("got %d claims, want 1", len(claims))
	}
	return claims[0]
}

func refOf(b *Board, c job.Claim) Ref {
	return Ref{ID: c.ID, Owner: c.Owner, Token: b.FormatToken(c.ID, c.Token)}
}

func get(t testing.TB, b *Board, id job.ID) *job.Job {
	t.Helper()
	results, err := b.Get(t.Context(), []job.ID{id}, GetOptions{Details: true})
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Err != nil {
		t.Fatal(results[0].Err)
	}
	return results[0].Job
}

// one returns the only item's error, or the call's.
func one(errs []error, err error) error {
	if err != nil {
		return err
	}
	return errs[0]
}

func wantKind(t testing.TB, err error, want job.Kind) {
	t.Helper()
	if got := job.KindOf(err); got != want {
		t.Fatalf("got %v (%v), want %v", got, err, want)
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	posted := post(t, b, job.Posting{Name: "resize", Details: []byte(`{"path":"/a.png"}`), Labels: []job.Label{{Key: "b", Value: "2"}, {Key: "a", Value: "1"}}})[0]
	if posted.State != job.Unclaimed || posted.Attempt != 0 || posted.CreatedAt.IsZero() {
		t.Fatalf("posted: %+v", posted)
	}
	c := claimOne(t, b, ClaimRequest{})
	if c.ID != posted.ID || string(c.Job.Details) != `{"path":"/a.png"}` || c.Attempt != 1 || c.Lease != job.DefaultLease {
		t.Fatalf("claim: %+v %+v", c, c.Job)
	}
	if got := get(t, b, c.ID); got.State != job.Claimed || got.Owner != "worker" || len(got.Labels) != 2 || got.Labels[0].Key != "a" {
		t.Fatalf("claimed: %+v", got)
	}
	wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
	wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind) // again
	if got := get(t, b, c.ID); got.State != job.Complete || got.Outcome != job.Consumed {
		t.Fatalf("consumed: %+v", got)
	}
	wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, c)}, AbandonOptions{})), job.LeaseLost)
}

func TestFirstClaimOrder(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	jobs := post(t, b, job.Posting{Name: "low", Priority: job.Low}, job.Posting{Name: "one"}, job.Posting{Name: "two"}, job.Posting{Name: "first", Priority: job.VeryHigh})
	var names []string
	for _, c := range claim(t, b, ClaimRequest{Max: len(jobs)}) {
		names = append(names, c.Job.Name)
	}
	if got := fmt.Sprint(names); got != "[first one two low]" {
		t.Fatal(got)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Retry: Retry{MaxAttempts: 2, Backoff: 10 * time.Second}})
		id := postN(t, b, 1)[0].ID
		first := claimOne(t, b, ClaimRequest{Lease: 5 * time.Second})
		time.Sleep(5*time.Second + 10*time.Millisecond)
		synctest.Wait()
		got := get(t, b, id)
		if got.State != job.Unclaimed || got.Attempt != 1 || len(got.Reasons) != 1 || got.NotBefore.IsZero() {
			t.Fatalf("after the lease: %+v", got)
		}
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, first)})), job.LeaseLost)
		if claims := claim(t, b, ClaimRequest{}); len(claims) != 0 {
			t.Fatal("claimed during the back-off")
		}
		second := claimOne(t, b, ClaimRequest{Wait: 20 * time.Second, Lease: 5 * time.Second})
		if second.Attempt != 2 {
			t.Fatalf("attempt %d, want 2", second.Attempt)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		got = get(t, b, id)
		if got.State != job.Trashed || len(got.Reasons) != 2 || b.Metrics().Expired.Load() != 2 {
			t.Fatalf("after the last attempt: %+v", got)
		}
	})
}
