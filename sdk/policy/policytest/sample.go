package policytest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// values are what labels are set to, besides what parameters name.
var values = []string{"", "a", "b", "gold", "1", "2030-01-31T09:00:00Z", strings.Repeat("x", job.MaxLabelValue), "a|b", "*", "ü"}

func (c *checker) tick() time.Duration {
	if c.manifest.Tick > 0 {
		return c.manifest.Tick
	}
	return policy.DefaultTick
}

// start is about the time of a batch.
var start = time.Date(2026, 11, 21, 13, 37, 42, 123456789, time.UTC)

// now is a time as a board shows it to the policy.
func (c *checker) now(at time.Time) time.Time {
	if c.manifest.ByTime {
		at = at.Truncate(c.tick())
	}
	return at
}

// batches are usual jobs, and jobs at the ends of what there can be.
func (c *checker) batches() []*policy.Batch {
	var all []*policy.Batch
	for round := range 4 {
		b := &policy.Batch{Now: c.now(start.Add(time.Duration(c.random.Int64N(int64(8 * 24 * time.Hour)))))}
		if round > 0 {
			b.Worker = c.labels(c.manifest.WorkerLabels)
		}
		for i := range 100 {
			b.Jobs = append(b.Jobs, c.job(i))
		}
		all = append(all, b)
	}
	return append(all, &policy.Batch{Now: c.now(start), Jobs: c.extremes()})
}

func (c *checker) job(i int) policy.Job {
	j := policy.Job{
		Name: fmt.Sprintf("job-%d", i), Sequence: uint64(i), Priority: job.Priority(c.random.IntN(5) - 2),
		OperationPriority: int32(c.random.IntN(7) - 3), Attempt: int32(c.random.IntN(4)), MaxAttempts: int32(c.random.IntN(3)) * 5,
		CreatedAt: start.Add(-time.Duration(c.random.Int64N(int64(48 * time.Hour)))), Labels: c.labels(c.manifest.Labels),
	}
	for k := range j.ID {
		j.ID[k] = byte(c.random.Uint32())
	}
	if c.random.IntN(4) == 0 {
		j.NotBefore = start.Add(time.Hour)
	}
	for _, f := range c.manifest.Facts {
		j.Facts = append(j.Facts, c.fact(f.Type))
	}
	return j
}

// labels sets some of the labels that patterns name, and some that they don't.
func (c *checker) labels(patterns []string) (labels []job.Label) {
	keys := []string{"undeclared", "zz-undeclared"}
	for _, p := range patterns {
		keys = append(keys, strings.ReplaceAll(p, "*", "x"))
	}
	slices.Sort(keys)
	pool := values
	for _, p := range c.manifest.Parameters { // a policy's own words are more telling
		if m, ok := p.Default.(map[string]string); ok {
			for k := range m {
				pool = append(slices.Clone(pool), k)
			}
		}
	}
	slices.Sort(pool)
	for _, k := range slices.Compact(keys) {
		if c.random.IntN(3) > 0 {
			labels = append(labels, job.Label{Key: k, Value: pool[c.random.IntN(len(pool))]})
		}
	}
	return labels
}

func (c *checker) fact(t policy.FactType) policy.Fact {
	if c.random.IntN(4) == 0 {
		return nil
	}
	switch t {
	case policy.IntFact:
		return c.random.Int64N(1000) - 500
	case policy.FloatFact:
		return c.random.NormFloat64()
	case policy.BoolFact:
		return c.random.IntN(2) == 0
	case policy.StringFact:
		return values[c.random.IntN(len(values))]
	case policy.TimeFact:
		return start.Add(time.Duration(c.random.Int64N(int64(96*time.Hour))) - 48*time.Hour)
	}
	return nil
}

// extremes are jobs at the ends of what there can be.
func (c *checker) extremes() (jobs []policy.Job) {
	times := []time.Time{{}, time.Unix(0, 0), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Unix(0, math.MaxInt64)}
	numbers := []int32{math.MinInt32, -1, 0, 1, math.MaxInt32}
	facts := map[policy.FactType][]policy.Fact{
		policy.IntFact:    {int64(math.MinInt64), int64(math.MaxInt64), nil},
		policy.FloatFact:  {math.Inf(1), -math.MaxFloat64, math.NaN(), nil},
		policy.BoolFact:   {true, "of another type"},
		policy.StringFact: {"", strings.Repeat("y", 4096), 7},
		policy.TimeFact:   {times[2], times[3], nil},
	}
	for i, t := range times {
		for k, n := range numbers {
			j := policy.Job{Name: fmt.Sprintf("extreme-%d-%d", i, k), CreatedAt: t, NotBefore: times[k], Attempt: n, MaxAttempts: n, OperationPriority: n, Sequence: math.MaxUint64 - uint64(i)}
			for _, f := range c.manifest.Facts {
				list := facts[f.Type]
				j.Facts = append(j.Facts, list[(i+k)%len(list)])
			}
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// poison changes everything that the manifest does not declare.
func (c *checker) poison(batch *policy.Batch) *policy.Batch {
	p := *batch
	if !c.manifest.ByTime {
		p.Now = p.Now.Add(12345 * time.Hour)
	}
	p.Worker = c.relabel(batch.Worker, c.manifest.WorkerLabels)
	p.Jobs = slices.Clone(batch.Jobs)
	for i := range p.Jobs {
		p.Jobs[i].Labels = c.relabel(p.Jobs[i].Labels, c.manifest.Labels)
	}
	return &p
}

// relabel gives labels that patterns don't name other values, and adds some.
func (c *checker) relabel(labels []job.Label, patterns []string) (changed []job.Label) {
	for _, l := range labels {
		if policy.Sees(patterns, l.Key) {
			changed = append(changed, l)
		}
	}
	for _, k := range []string{"another", "undeclared", "zz-more"} {
		if !policy.Sees(patterns, k) {
			changed = append(changed, job.Label{Key: k, Value: values[c.random.IntN(len(values))]})
		}
	}
	slices.SortFunc(changed, func(a, b job.Label) int { return strings.Compare(a.Key, b.Key) })
	return changed
}

// keys are usual groups, and groups at the ends of what there can be.
func (c *checker) keys() *policy.Keys {
	k := &policy.Keys{Now: c.now(start)}
	for i := range 60 {
		k.Keys = append(k.Keys, policy.Key{
			Key: fmt.Sprintf("key-%d", i), Running: c.random.Int64N(20), Waiting: c.random.Int64N(1000), Served: c.random.Int64N(5000), Oldest: start.Add(-time.Hour),
		})
	}
	for _, n := range []int64{0, -1, math.MaxInt64} {
		k.Keys = append(k.Keys, policy.Key{Key: values[c.random.IntN(len(values))], Running: n, Waiting: n, Served: n})
	}
	return k
}
