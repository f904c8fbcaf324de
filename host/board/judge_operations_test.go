package board

import (
	"testing"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// Policies see both priorities as they are now, not as they were posted.
func TestPoliciesSeePriorities(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	id := post(t, b, job.Posting{Name: "a", Operations: []job.NewOperation{{Name: "x", Priority: 3}}})[0].ID
	see := func() policy.Job {
		e, ok := b.index.Get(id)
		if !ok {
			t.Fatal("the job is not in the index")
		}
		return policyJob(&policy.Manifest{}, e)
	}
	if p := see(); p.OperationPriority != 3 || p.Priority != job.Normal {
		t.Fatalf("posted: %+v", p)
	}
	if _, err := b.SetOperationPriority(t.Context(), []job.ID{id}, -4); err != nil {
		t.Fatal(err)
	}
	if _, err := b.SetPriority(t.Context(), []job.ID{id}, job.VeryLow); err != nil {
		t.Fatal(err)
	}
	if p := see(); p.OperationPriority != -4 || p.Priority != job.VeryLow {
		t.Fatalf("changed: %+v", p)
	}
}
