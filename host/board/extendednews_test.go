package board

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Another server changes a claimed job, and before this one hears of it, the claim is
// extended here: the change must still come to be known.
func TestExtendedBeforeNews(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		slow := make(chan struct{}, 1)
		slow <- struct{}{}
		here := start(t, &spy{Driver: d, t: t, watch: func(ctx context.Context, _ driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				for c, err := range next {
					select {
					case gate := <-slow:
						slow <- gate
					case <-ctx.Done():
					}
					if !yield(c, err) {
						return
					}
				}
			}
		}}, Spec{})
		there := start(t, d, Spec{})
		id := post(t, here, job.Posting{Name: "n"})[0].ID
		claims, err := here.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{id}, Lease: time.Minute})
		if err != nil || len(claims.Claims) != 1 {
			t.Fatalf("claim: %+v, %v", claims, err)
		}
		synctest.Wait()
		<-slow // from here on the watch brings nothing
		if _, err := there.SetPriority(t.Context(), []job.ID{id}, job.VeryHigh); err != nil {
			t.Fatal(err)
		}
		ref := Ref{ID: id, Token: here.FormatToken(id, claims.Claims[0].Token)}
		if r, err := here.Extend(t.Context(), []Ref{ref}, time.Hour); err != nil || r[0].Err != nil {
			t.Fatalf("extend: %+v, %v", r, err)
		}
		slow <- struct{}{}
		synctest.Wait()
		got, known := here.index.Get(id)
		if !known || got.Priority != job.VeryHigh {
			t.Errorf("the job is known as %+v, want it with the priority %v", got, job.VeryHigh)
		}
		if left := time.Until(got.Claim.Ends); left < 30*time.Minute {
			t.Errorf("the claim is known to end in %v, want an hour", left)
		}
	})
}
