package policytest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/policytest"
)

// fake is a policy of functions.
type fake struct {
	manifest policy.Manifest
	eligible func(b *policy.Batch, i int) policy.Verdict
	score    func(b *policy.Batch, i int) int64
	rank     func(k *policy.Keys, i int) policy.Rank
	err      error
}

func (f *fake) Manifest() policy.Manifest { return f.manifest }

func (f *fake) Eligible(_ context.Context, b *policy.Batch, v []policy.Verdict) error {
	for i := range v {
		v[i] = f.eligible(b, i)
	}
	return f.err
}

func (f *fake) Score(_ context.Context, b *policy.Batch, s []int64) error {
	for i := range s {
		s[i] = f.score(b, i)
	}
	return f.err
}

func (f *fake) RankKeys(_ context.Context, k *policy.Keys, r []policy.Rank) error {
	for i := range r {
		r[i] = f.rank(k, i)
	}
	return f.err
}

func label(b *policy.Batch, i int, key string) string {
	for _, l := range b.Jobs[i].Labels {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// Policies that are wrong in one way each are found out.
func TestProblems(t *testing.T) {
	t.Parallel()
	calls := int64(0)
	ordering := policy.Manifest{Name: "x", Ordering: true, Labels: []string{"tier"}}
	eligibility := policy.Manifest{Name: "x", Eligibility: true, Reasons: []string{"r"}}
	byTime := eligibility
	byTime.ByTime, byTime.Tick = true, time.Minute
	counts := policy.Manifest{Name: "x", Counts: "name"}
	for _, test := range []struct {
		name string
		p    *fake
		want string // empty: nothing is wrong
	}{
		{"good order", &fake{manifest: ordering, score: func(b *policy.Batch, i int) int64 { return int64(len(label(b, i, "tier"))) + int64(b.Jobs[i].Attempt) }}, ""},
		{"remembers", &fake{manifest: ordering, score: func(*policy.Batch, int) int64 { calls++; return calls }}, "asked again"},
		{"looks at its neighbours", &fake{manifest: ordering, score: func(b *policy.Batch, _ int) int64 { return int64(len(b.Jobs)) }}, "in batches of 1"},
		{"looks at its place", &fake{manifest: ordering, score: func(_ *policy.Batch, i int) int64 { return int64(i) }}, "in another order"},
		{"undeclared label", &fake{manifest: ordering, score: func(b *policy.Batch, i int) int64 { return int64(len(label(b, i, "undeclared"))) }}, "what it does not declare"},
		{"undeclared worker", &fake{manifest: ordering, score: func(b *policy.Batch, _ int) int64 { return int64(len(b.Worker)) }}, "what it does not declare"},
		{"undeclared time", &fake{manifest: ordering, score: func(b *policy.Batch, _ int) int64 { return b.Now.Unix() }}, "what it does not declare"},
		{"takes back", &fake{manifest: byTime, eligible: func(b *policy.Batch, i int) policy.Verdict {
			if b.Jobs[i].Attempt == 0 || b.Now.Second() < 10 {
				return policy.Verdict{Decision: policy.Allow, Until: b.Now.Truncate(time.Minute).Add(time.Duration(1+b.Jobs[i].Attempt) * 10 * time.Second)}
			}
			return policy.Verdict{}
		}}, "before a verdict that stands until"},
		{"good within a tick", &fake{manifest: byTime, eligible: func(b *policy.Batch, _ int) policy.Verdict {
			if open := b.Now.Truncate(time.Minute).Add(20 * time.Second); b.Now.Before(open) {
				return policy.Verdict{Decision: policy.Defer, Until: open}
			}
			return policy.Verdict{Decision: policy.Allow}
		}}, ""},
		{"good windows", &fake{manifest: byTime, eligible: func(b *policy.Batch, _ int) policy.Verdict {
			return policy.Verdict{Decision: policy.Defer, Until: b.Now.Truncate(time.Minute).Add(time.Hour)}
		}}, ""},
		{"past", &fake{manifest: byTime, eligible: func(b *policy.Batch, _ int) policy.Verdict {
			return policy.Verdict{Decision: policy.Defer, Until: b.Now.Truncate(time.Minute)}
		}}, "which is past"},
		{"unknown reason", &fake{manifest: eligibility, eligible: func(*policy.Batch, int) policy.Verdict { return policy.Verdict{Reason: 1} }}, "reason 1 of 1"},
		{"unknown decision", &fake{manifest: eligibility, eligible: func(*policy.Batch, int) policy.Verdict { return policy.Verdict{Decision: 3} }}, "the decision 3 is none"},
		{"defers without time", &fake{manifest: eligibility, eligible: func(*policy.Batch, int) policy.Verdict { return policy.Verdict{Decision: policy.Defer} }}, "does not declare time"},
		{"fails", &fake{manifest: eligibility, err: context.Canceled, eligible: func(*policy.Batch, int) (v policy.Verdict) { return v }}, "Eligible fails"},
		{"good ranks", &fake{manifest: counts, rank: func(k *policy.Keys, i int) policy.Rank { return policy.Rank{Score: -k.Keys[i].Running} }}, ""},
		{"ranks by place", &fake{manifest: counts, rank: func(_ *policy.Keys, i int) policy.Rank { return policy.Rank{Score: int64(i)} }}, "gets another rank"},
		{"ranks by neighbours", &fake{manifest: counts, rank: func(k *policy.Keys, _ int) policy.Rank { return policy.Rank{Score: int64(len(k.Keys))} }}, "batches of 1 get other ranks"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := strings.Join(policytest.Problems(t.Context(), test.p, 1), "\n")
			if test.want == "" && found != "" || !strings.Contains(found, test.want) {
				t.Errorf("got %q, want %q", found, test.want)
			}
		})
	}
}
