package board

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// TestEveryEndIsCounted: what becomes of a job is counted by what became of it, whether a
// call or a clock did it.
func TestEveryEndIsCounted(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Retry: Retry{MaxAttempts: 1}})
		zero := time.Duration(0)
		postN(t, b, 6)
		claims := claim(t, b, ClaimRequest{Max: 6, Lease: 5 * time.Second})
		time.Sleep(2 * time.Second)
		wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, claims[0])}, AbandonOptions{RetryAfter: &zero})), job.NoKind)
		wantKind(t, one(b.Trash(t.Context(), []Ref{refOf(b, claims[1])}, nil, "bad")), job.NoKind)
		wantKind(t, one(b.Trash(t.Context(), []Ref{refOf(b, claims[1])}, nil, "bad")), job.NoKind) // again
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, claims[2])})), job.NoKind)
		wantKind(t, one(b.ConsumeAs(t.Context(), []Ref{refOf(b, claims[3])}, job.Canceled)), job.NoKind)
		canceled, err := b.Cancel(t.Context(), []job.ID{claims[4].ID}, true)
		if err != nil || canceled[0].Err != nil {
			t.Fatal(err, canceled)
		}
		time.Sleep(4 * time.Second) // and the lease of the last two ends
		synctest.Wait()
		m := b.Metrics()
		for name, c := range map[string]struct{ got, want int64 }{
			"abandoned": {m.Abandoned.Load(), 1},
			"expired":   {m.Expired.Load(), 2},
			"exhausted": {m.Exhausted.Load(), 2}, // the abandoned one and one that expired
			"trashed":   {m.Trashed.Load(), 3},
			"consumed":  {m.Consumed.Load(), 2},
			"canceled":  {m.Canceled.Load(), 2}, // by its holder, and when its lease ended
		} {
			if c.got != c.want {
				t.Errorf("%s: %d, want %d", name, c.got, c.want)
			}
		}
		if n, sum, within := m.Runs.Totals(); n != 6 || sum < 17 || sum > 21 || within[1] != 0 || within[5] != 6 {
			t.Errorf("%d jobs were run for %v s: %v", n, sum, within)
		}
	})
}

// TestWaitsAreCounted from when a job could be claimed: after its time, and anew after
// each claim that came to nothing.
func TestWaitsAreCounted(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		zero := time.Duration(0)
		post(t, b, job.Posting{Name: "later", NotBefore: time.Now().Add(time.Hour)})
		time.Sleep(time.Hour + 20*time.Second)
		c := claimOne(t, b, ClaimRequest{})
		if n, sum, _ := b.Metrics().Waits.Totals(); n != 1 || sum < 19 || sum > 21 {
			t.Errorf("%d jobs waited %v s, want 20", n, sum)
		}
		time.Sleep(10 * time.Second)
		wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, c)}, AbandonOptions{RetryAfter: &zero})), job.NoKind)
		time.Sleep(3 * time.Second)
		claimOne(t, b, ClaimRequest{})
		if n, sum, within := b.Metrics().Waits.Totals(); n != 2 || sum < 22 || sum > 24 || within[5] != 1 || within[30] != 2 {
			t.Errorf("%d jobs waited %v s, want 23: %v", n, sum, within)
		}
	})
}

// TestIdleTime: a call that waits knows how long it did.
func TestIdleTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		calls := map[string]func(wait time.Duration){
			"claim": func(wait time.Duration) {
				ctx, idle := WithIdle(t.Context())
				if _, err := b.Claim(ctx, ClaimRequest{Owner: "w", Wait: wait}); err != nil || idle.Time() < wait-time.Second {
					t.Errorf("a claim waited %v of %v, %v", idle.Time(), wait, err)
				}
			},
			"events": func(wait time.Duration) {
				ctx, idle := WithIdle(t.Context())
				if _, _, err := b.Events(ctx, "", 1, wait); err != nil || idle.Time() < wait-time.Second {
					t.Errorf("a call for events waited %v of %v, %v", idle.Time(), wait, err)
				}
			},
			"list": func(wait time.Duration) {
				ctx, idle := WithIdle(t.Context())
				if _, err := b.List(ctx, ListRequest{Wait: wait}); err != nil || idle.Time() < wait-time.Second {
					t.Errorf("a listing waited %v of %v, %v", idle.Time(), wait, err)
				}
			},
		}
		for _, call := range calls {
			call(30 * time.Second)
		}
		jobs := postN(t, b, 1)
		ctx, idle := WithIdle(t.Context())
		if _, err := b.Get(ctx, []job.ID{jobs[0].ID}, GetOptions{Wait: 30 * time.Second}); err != nil || idle.Time() < 29*time.Second {
			t.Errorf("a call for the end of jobs waited %v, %v", idle.Time(), err)
		}
	})
}
