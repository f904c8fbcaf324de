package wasm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// moody is a policy that fails while err is set.
type moody struct {
	manifest policy.Manifest
	err      error
	asked    int
	score    int64
}

func (m *moody) Manifest() policy.Manifest { return m.manifest }

func (m *moody) Eligible(_ context.Context, _ *policy.Batch, v []policy.Verdict) error {
	m.asked++
	for i := range v {
		v[i].Decision = policy.Allow
	}
	return m.err
}

func (m *moody) Score(_ context.Context, _ *policy.Batch, s []int64) error {
	m.asked++
	for i := range s {
		s[i] = m.score
	}
	return m.err
}

func (m *moody) RankKeys(_ context.Context, _ *policy.Keys, r []policy.Rank) error {
	m.asked++
	for i := range r {
		r[i].Score = m.score
	}
	return m.err
}

var errMood = &wasm.Fault{Kind: wasm.Trap, Call: "boardd_score", Text: "unreachable"}

func TestGuardRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moody{manifest: policy.Manifest{Name: "moody", Eligibility: true}, err: errMood}
		g := wasm.NewGuard(m, nil, nil)
		ask := func() error {
			return g.Eligible(t.Context(), &policy.Batch{Jobs: make([]policy.Job, 1)}, make([]policy.Verdict, 1))
		}
		for range wasm.MaxFaults {
			if err := ask(); !errors.As(err, new(*wasm.Fault)) {
				t.Fatal(err)
			}
		}
		if err := ask(); !errors.Is(err, job.Unavailable) || m.asked != wasm.MaxFaults || !g.Health().Resting {
			t.Fatalf("after %d faults: %v, asked %d times", wasm.MaxFaults, err, m.asked)
		}
		// Each trial that fails doubles the rest.
		for rest := wasm.MinRest; rest <= 4*wasm.MinRest; rest *= 2 {
			time.Sleep(rest - time.Nanosecond)
			before := m.asked
			if _ = ask(); m.asked != before {
				t.Fatalf("asked before a rest of %s was over", rest)
			}
			time.Sleep(time.Nanosecond)
			if _ = ask(); m.asked != before+1 {
				t.Fatalf("not asked after a rest of %s", rest)
			}
		}
		m.err = nil
		time.Sleep(wasm.MaxRest)
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		m.err = errMood
		for range wasm.MaxFaults - 1 {
			_ = ask()
		}
		time.Sleep(wasm.FaultTime) // those are forgotten
		_ = ask()
		if g.Health().Resting {
			t.Error("faults of more than a minute ago count")
		}
	})
}

func TestGuardFallsBack(t *testing.T) {
	t.Parallel()
	one := &policy.Batch{Jobs: make([]policy.Job, 1)}
	scores, ranks, verdicts := make([]int64, 1), make([]policy.Rank, 1), make([]policy.Verdict, 1)
	keys := &policy.Keys{Keys: make([]policy.Key, 1)}

	old := &moody{manifest: policy.Manifest{Name: "old", Ordering: true, Counts: "name"}, score: 7}
	orders := &moody{manifest: policy.Manifest{Name: "new", Ordering: true, Counts: "name"}, err: errMood}
	if err := wasm.NewGuard(orders, old, nil).Score(t.Context(), one, scores); err != nil || scores[0] != 7 {
		t.Errorf("the version before: %v, %v", scores, err)
	}
	if err := wasm.NewGuard(orders, nil, nil).Score(t.Context(), one, scores); err != nil || scores[0] != policy.NoOpinion {
		t.Errorf("nothing before: %v, %v", scores, err)
	}
	if err := wasm.NewGuard(orders, old, nil).RankKeys(t.Context(), keys, ranks); err != nil || ranks[0].Score != 7 {
		t.Errorf("ranks of the version before: %v, %v", ranks, err)
	}
	if err := wasm.NewGuard(orders, nil, nil).RankKeys(t.Context(), keys, ranks); err != nil || ranks[0].Full {
		t.Errorf("an order without ranks: %v, %v", ranks, err)
	}
	limits := &moody{manifest: policy.Manifest{Name: "limits", Counts: "name"}, err: errMood}
	if err := wasm.NewGuard(limits, nil, nil).RankKeys(t.Context(), keys, ranks); err != nil || !ranks[0].Full {
		t.Errorf("a limit that fails: %v, %v", ranks, err)
	}
	open := &moody{manifest: policy.Manifest{Name: "open", Eligibility: true, OnError: policy.OnErrorAllow}, err: errMood}
	if err := wasm.NewGuard(open, nil, nil).Eligible(t.Context(), one, verdicts); err != nil || verdicts[0].Decision != policy.Allow {
		t.Errorf("onError allow: %v, %v", verdicts, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	interrupted := &moody{manifest: policy.Manifest{Ordering: true}, err: context.Canceled}
	g := wasm.NewGuard(interrupted, old, nil)
	for range 2 * wasm.MaxFaults {
		if err := g.Score(gone, one, scores); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that went away: %v", err)
		}
	}
	if g.Health().Last != nil {
		t.Error("a caller that went away counts as a fault")
	}
}
