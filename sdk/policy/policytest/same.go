package policytest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/boardd/boardd/sdk/policy"
)

// Batch makes n usual jobs for a policy with this manifest.
func Batch(m policy.Manifest, n int, seed uint64) *policy.Batch {
	c := &checker{manifest: m, random: rand.New(rand.NewPCG(seed, 0x706f6c))} //nolint:gosec // repeatable
	b := &policy.Batch{Now: c.now(start), Worker: c.labels(m.WorkerLabels)}
	for i := range n {
		b.Jobs = append(b.Jobs, c.job(i))
	}
	return b
}

// Same checks that two policies answer alike: a function natively and as a
// module, or a policy in two languages.
func Same(t *testing.T, want, got policy.Policy) {
	t.Helper()
	m := want.Manifest()
	c := &checker{Policy: want, manifest: m, ctx: t.Context(), random: rand.New(rand.NewPCG(3, 0x706f6c))} //nolint:gosec // repeatable
	d := &checker{Policy: got, manifest: got.Manifest(), ctx: t.Context()}
	for _, batch := range c.batches() {
		wantA, ok := c.ask(batch, policy.MaxBatch)
		gotA, ok2 := d.ask(batch, policy.MaxBatch)
		if !ok || !ok2 {
			t.Fatal(append(c.found, d.found...))
		}
		for i, j := range batch.Jobs {
			wantV, wantS := wantA.at(i)
			gotV, gotS := gotA.at(i)
			if wantV != gotV || wantS != gotS {
				t.Fatalf("job %q gets %+v and %d from one, %+v and %d from the other", j.Name, wantV, wantS, gotV, gotS)
			}
		}
	}
	if m.Counts == "" {
		return
	}
	keys := c.keys()
	wantR, gotR := make([]policy.Rank, len(keys.Keys)), make([]policy.Rank, len(keys.Keys))
	if err := want.(policy.Ranker).RankKeys(t.Context(), keys, wantR); err != nil {
		t.Fatal(err)
	}
	if err := got.(policy.Ranker).RankKeys(t.Context(), keys, gotR); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(wantR, gotR) {
		t.Fatalf("ranks %v from one, %v from the other", wantR, gotR)
	}
}
