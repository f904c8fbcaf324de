package board

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// nine allows jobs in whose details n is 9.
type nine struct{}

func (nine) Manifest() policy.Manifest {
	return policy.Manifest{Name: "nine", Eligibility: true, Facts: []policy.FactSpec{{Name: "n", Path: "/n", Type: policy.IntFact}}}
}

func (nine) Eligible(_ context.Context, batch *policy.Batch, verdicts []policy.Verdict) error {
	for i := range batch.Jobs {
		if batch.Jobs[i].Facts[0] == policy.Fact(int64(9)) {
			verdicts[i].Decision = policy.Allow
		}
	}
	return nil
}

func (nine) Score(context.Context, *policy.Batch, []int64) error { return nil }

// What was known of a job's details is not believed of a later job with its id.
func TestFactsOfAnEarlierJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const window = time.Second
		d := openStore(t)
		spec := Spec{Window: window, Rules: Rules{Eligibility: []Rule{{Policy: nine{}}}}}
		a, b := start(t, d, spec), start(t, d, spec)
		id := job.ID{1}
		is := func(n int) job.Posting {
			return job.Posting{ID: id, Name: "x", Details: fmt.Appendf(nil, `{"n":%d}`, n)}
		}
		post(t, a, is(9))
		synctest.Wait()
		consume(t, b, refOf(b, claimOne(t, b, ClaimRequest{})))
		time.Sleep(2 * window)
		post(t, a, is(1))
		synctest.Wait()
		if c := claim(t, b, ClaimRequest{}); len(c) != 0 {
			t.Error("a job was claimed by what the details of an earlier one were")
		}
		r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{id}})
		if err != nil || len(r.Claims) != 0 {
			t.Errorf("chosen: %d claims, %v", len(r.Claims), err)
		}
	})
}
