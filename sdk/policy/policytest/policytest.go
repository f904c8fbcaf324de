// Package policytest checks that a policy behaves as a board relies on: its
// answers depend on what its manifest declares and on nothing else, not on which
// jobs share a batch, in what order, or how often it was asked. It knows policies
// only by the contract, so it checks compiled-in ones and modules alike.
package policytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/policy"
)

// Run reports every problem of a policy as an error of the test.
func Run(t *testing.T, p policy.Policy) {
	t.Helper()
	for _, problem := range Problems(t.Context(), p, 1) {
		t.Error(problem)
	}
}

// Problems checks a policy with jobs, workers and keys made from a seed. No
// problems: nil.
func Problems(ctx context.Context, p policy.Policy, seed uint64) []string {
	c := &checker{
		Policy: p, manifest: p.Manifest(), ctx: ctx,
		random: rand.New(rand.NewPCG(seed, 0x706f6c)), //nolint:gosec // repeatable
	}
	if c.manifest.Eligibility || c.manifest.Ordering {
		for _, batch := range c.batches() {
			c.batch(batch)
		}
	}
	if c.manifest.Counts != "" {
		c.ranks()
	}
	slices.Sort(c.found)
	return slices.Compact(c.found)
}

// checker is one run of the checks.
type checker struct {
	policy.Policy

	manifest policy.Manifest
	ctx      context.Context //nolint:containedctx // of this run alone
	random   *rand.Rand
	found    []string
}

func (c *checker) problem(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// answers are what a policy says of the jobs of a batch.
type answers struct {
	verdicts []policy.Verdict
	scores   []int64
}

func (a *answers) at(i int) (policy.Verdict, int64) { return a.verdicts[i], a.scores[i] }

// ask asks about all jobs of a batch, in parts of the given size.
func (c *checker) ask(batch *policy.Batch, size int) (*answers, bool) {
	n := len(batch.Jobs)
	a := &answers{verdicts: make([]policy.Verdict, n), scores: make([]int64, n)}
	for from := 0; from < n; from += size {
		to := min(from+size, n)
		part := *batch
		part.Jobs = batch.Jobs[from:to]
		if c.manifest.Eligibility {
			if err := c.Eligible(c.ctx, &part, a.verdicts[from:to]); err != nil {
				c.problem("Eligible fails: %v", err)
				return nil, false
			}
		}
		if c.manifest.Ordering {
			if err := c.Score(c.ctx, &part, a.scores[from:to]); err != nil {
				c.problem("Score fails: %v", err)
				return nil, false
			}
		}
	}
	return a, true
}

// batch checks one batch in every way.
func (c *checker) batch(batch *policy.Batch) {
	want, ok := c.ask(batch, policy.MaxBatch)
	if !ok {
		return
	}
	c.valid(batch, want)
	same := func(how string, changed *policy.Batch, size int, place func(i int) int) {
		got, ok := c.ask(changed, size)
		for i := range batch.Jobs {
			if !ok {
				return
			}
			wantV, wantS := want.at(i)
			gotV, gotS := got.at(place(i))
			if gotV != wantV || gotS != wantS {
				c.problem("%s: job %q gets %+v and %d, and got %+v and %d", how, batch.Jobs[i].Name, gotV, gotS, wantV, wantS)
				return
			}
		}
	}
	in := func(i int) int { return i }
	same("asked again", batch, policy.MaxBatch, in)
	for _, size := range []int{1, 7} {
		same(fmt.Sprintf("in batches of %d", size), batch, size, in)
	}
	order := c.random.Perm(len(batch.Jobs))
	shuffled := *batch
	shuffled.Jobs = make([]policy.Job, len(batch.Jobs))
	for i, to := range order {
		shuffled.Jobs[to] = batch.Jobs[i]
	}
	same("in another order", &shuffled, policy.MaxBatch, func(i int) int { return order[i] })
	same("with other values of what it does not declare", c.poison(batch), policy.MaxBatch, in)
	if c.manifest.ByTime && c.manifest.Eligibility {
		c.stands(batch, want)
	}
}

// stands checks that verdicts stand for as long as they say: the board asks about all jobs anew
// whenever the verdict on one of them ends within the tick.
func (c *checker) stands(batch *policy.Batch, want *answers) {
	tickEnds := batch.Now.Truncate(c.tick()).Add(c.tick())
	ends := func(v policy.Verdict) time.Time {
		if v.Until.IsZero() || v.Until.After(tickEnds) {
			return tickEnds
		}
		return v.Until.Add(policy.MinTick - 1).Truncate(policy.MinTick)
	}
	var asked []time.Time
	for _, v := range want.verdicts {
		if at := ends(v); at.Before(tickEnds) && len(asked) < mostEnds && !slices.ContainsFunc(asked, at.Equal) {
			asked = append(asked, at)
		}
	}
	for _, at := range asked {
		later := *batch
		later.Now = at
		got, ok := c.ask(&later, policy.MaxBatch)
		for i, v := range want.verdicts {
			if ok && ends(v).After(at) && got.verdicts[i].Decision != v.Decision {
				c.problem("job %q gets %+v at %s, and before a verdict that stands until %s: %+v", batch.Jobs[i].Name, got.verdicts[i], at, ends(v), v)
				break
			}
		}
	}
}

// mostEnds bounds the times within a tick at which the policy is asked anew.
const mostEnds = 4

// valid checks answers by themselves.
func (c *checker) valid(batch *policy.Batch, a *answers) {
	if !c.manifest.Eligibility {
		return
	}
	for i, v := range a.verdicts {
		switch {
		case v.Decision > policy.Defer:
			c.problem("job %q: the decision %d is none", batch.Jobs[i].Name, v.Decision)
		case v.Decision != policy.Allow && (v.Reason < 0 || v.Reason >= max(1, len(c.manifest.Reasons))):
			c.problem("job %q: reason %d of %d", batch.Jobs[i].Name, v.Reason, len(c.manifest.Reasons))
		case v.Decision == policy.Defer && !c.manifest.ByTime:
			c.problem("job %q is deferred by a policy that does not declare time", batch.Jobs[i].Name)
		case !v.Until.IsZero() && c.manifest.ByTime && !v.Until.After(batch.Now):
			c.problem("job %q: a verdict until %s, which is past at %s", batch.Jobs[i].Name, v.Until, batch.Now)
		}
	}
}

// ranks checks RankKeys.
func (c *checker) ranks() {
	r, ok := c.Policy.(policy.Ranker)
	if !ok {
		c.problem("the manifest has counts, and the policy does not rank")
		return
	}
	keys := c.keys()
	rank := func(keys *policy.Keys, size int) []policy.Rank {
		ranks := make([]policy.Rank, len(keys.Keys))
		for from := 0; from < len(keys.Keys); from += size {
			to := min(from+size, len(keys.Keys))
			if err := r.RankKeys(c.ctx, &policy.Keys{Now: keys.Now, Keys: keys.Keys[from:to]}, ranks[from:to]); err != nil {
				c.problem("RankKeys fails: %v", err)
				return nil
			}
		}
		return ranks
	}
	want := rank(keys, policy.MaxBatch)
	for _, size := range []int{policy.MaxBatch, 1, 5} {
		if got := rank(keys, size); !slices.Equal(got, want) {
			c.problem("keys asked in batches of %d get other ranks", size)
		}
	}
	order := c.random.Perm(len(keys.Keys))
	shuffled := &policy.Keys{Now: keys.Now, Keys: make([]policy.Key, len(keys.Keys))}
	for i, to := range order {
		shuffled.Keys[to] = keys.Keys[i]
	}
	got := rank(shuffled, policy.MaxBatch)
	for i, to := range order {
		if got != nil && want != nil && got[to] != want[i] {
			c.problem("key %q gets another rank in another order", keys.Keys[i].Key)
			return
		}
	}
}
