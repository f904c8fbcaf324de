package main

import (
	"os"
	"testing"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/native"
	"github.com/boardd/boardd/sdk/policy/policytest"
)

func start(t *testing.T, parameters map[string]any) policy.Policy {
	t.Helper()
	manifest, err := os.ReadFile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := native.New(manifest, parameters, newPolicy())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The policy runs here as it will as a module: it sees what the manifest names.
func TestEligible(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	a100 := []job.Label{{Key: "gpu", Value: "a100"}}
	for _, test := range []struct {
		name        string
		worker, job []job.Label
		want        policy.Decision
	}{
		{"needs none", nil, nil, policy.Allow},
		{"needs one", nil, a100, policy.Deny},
		{"has it", a100, a100, policy.Allow},
		{"has another", []job.Label{{Key: "gpu", Value: "h100"}}, a100, policy.Deny},
	} {
		verdicts := make([]policy.Verdict, 1)
		err := p.Eligible(t.Context(), &policy.Batch{Worker: test.worker, Jobs: []policy.Job{{Labels: test.job}}}, verdicts)
		if err != nil || verdicts[0].Decision != test.want {
			t.Errorf("%s: %v, %v; want %v", test.name, verdicts[0].Decision, err, test.want)
		}
	}
}

func TestGoldFirst(t *testing.T) {
	t.Parallel()
	p := start(t, map[string]any{"gold": 1000})
	jobs := []policy.Job{
		{Labels: []job.Label{{Key: "tier", Value: "gold"}}},
		{Labels: []job.Label{{Key: "tier", Value: "silver"}}},
		{},
		{Priority: job.High},
	}
	scores := make([]int64, len(jobs))
	if err := p.Score(t.Context(), &policy.Batch{Jobs: jobs}, scores); err != nil {
		t.Fatal(err)
	}
	if scores[3] <= scores[0] || scores[0] <= scores[1] || scores[1] <= scores[2] {
		t.Errorf("high, gold, silver, none: %d", scores)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	policytest.Run(t, start(t, nil))
}
