package board

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/guest"
	"github.com/boardd/boardd/sdk/policy/native"
)

// zones lets a worker have jobs of its own zone only.
type zones struct {
	mu    sync.Mutex
	fail  bool
	asked int
}

func (z *zones) Manifest() policy.Manifest {
	return policy.Manifest{
		Name: "zones", Eligibility: true, ByWorker: true, WorkerLabels: []string{"zone"}, Labels: []string{"zone"},
		Reasons: []string{"the job is for another zone"},
	}
}

func (z *zones) Eligible(_ context.Context, batch *policy.Batch, verdicts []policy.Verdict) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	if z.fail {
		return errors.New("broken")
	}
	mine, _ := filter.Label(batch.Worker, "zone")
	for i := range batch.Jobs {
		if len(batch.Jobs[i].Labels) > 1 || len(batch.Jobs) > policy.MaxBatch {
			return errors.New("was shown more than it asked for")
		}
		if its, ok := filter.Label(batch.Jobs[i].Labels, "zone"); ok && its == mine {
			verdicts[i].Decision = policy.Allow
		}
	}
	return nil
}

func (z *zones) Score(context.Context, *policy.Batch, []int64) error { return nil }

func (z *zones) setFail(fail bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.fail = fail
}

func TestClaimPolicies(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		z := &zones{}
		b := start(t, openStore(t), Spec{Rules: Rules{Eligibility: []Rule{{Policy: z}}}})
		jobs := post(
			t, b,
			job.Posting{Name: "east", Labels: []job.Label{{Key: "other", Value: "1"}, {Key: "zone", Value: "east"}}},
			job.Posting{Name: "west", Labels: []job.Label{{Key: "zone", Value: "west"}}},
		)
		west := []job.Label{{Key: "unread", Value: "1"}, {Key: "zone", Value: "west"}}
		if claims := claim(t, b, ClaimRequest{}); len(claims) != 0 {
			t.Fatal("a worker without a zone was given a job")
		}
		if c := claimOne(t, b, ClaimRequest{Max: 5, WorkerLabels: west}); c.Job.Name != "west" {
			t.Fatal(c.Job.Name)
		}
		// A chosen job that is denied says why.
		r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{jobs[0].ID}, WorkerLabels: west})
		if err != nil || len(r.Failures) != 1 || job.KindOf(r.Failures[0].Err) != job.NotEligible || !strings.Contains(r.Failures[0].Err.Error(), "another zone") {
			t.Fatalf("%+v %v", r, err)
		}
		// An error denies, and does not last.
		east := []job.Label{{Key: "zone", Value: "east"}}
		z.setFail(true)
		if claims := claim(t, b, ClaimRequest{WorkerLabels: east}); len(claims) != 0 {
			t.Fatal("a failing policy let a job pass")
		}
		x, err := b.Explain(t.Context(), jobs[0].ID, "w", east)
		if err != nil || x.Verdict != "POLICY_ERROR" || x.Policy != "zones" {
			t.Fatalf("%+v %v", x, err)
		}
		go func() {
			time.Sleep(5 * time.Second)
			z.setFail(false)
		}()
		claimOne(t, b, ClaimRequest{WorkerLabels: east, Wait: time.Minute}) // it is asked again in a while
	})
}

// night lets jobs go from a time on, and not for long.
type night struct{ from, to time.Time }

func (n night) Manifest() policy.Manifest {
	return policy.Manifest{Name: "night", Eligibility: true, ByTime: true, Reasons: []string{"wait for the night"}}
}

func (n night) Eligible(_ context.Context, batch *policy.Batch, verdicts []policy.Verdict) error {
	for i := range batch.Jobs {
		if batch.Now.Before(n.from) || !batch.Now.Before(n.to) {
			verdicts[i] = policy.Verdict{Decision: policy.Defer, Until: n.from}
			continue
		}
		verdicts[i] = policy.Verdict{Decision: policy.Allow, Until: n.to}
	}
	return nil
}

func (n night) Score(context.Context, *policy.Batch, []int64) error { return nil }

// block is the same as a policy that is asked in blocks, as modules are.
func (n night) block(t *testing.T) policy.Policy {
	t.Helper()
	made, err := native.New(
		[]byte(`{"name": "night", "version": "1", "abi": 1, "kinds": ["eligibility"], "tick": "1h", "reasons": ["wait for the night"]}`), nil,
		&guest.Policy{Eligible: func(b guest.Batch, _ guest.Job) guest.Verdict {
			if now := time.Unix(0, b.Now()); now.Before(n.from) || !now.Before(n.to) {
				return guest.Verdict{Decision: guest.Defer, Until: n.from.UnixNano()}
			}
			return guest.Verdict{Decision: guest.Allow, Until: n.to.UnixNano()}
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestClaimPolicyByTime(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(t *testing.T, n night) policy.Policy{
		"here":      func(_ *testing.T, n night) policy.Policy { return n },
		"in blocks": func(t *testing.T, n night) policy.Policy { return n.block(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				n := night{time.Now().Add(25 * time.Second), time.Now().Add(33 * time.Second)}
				claimByTime(t, of(t, n))
			})
		})
	}
}

// claimByTime is about a policy that lets jobs go from 25 s on, for 8 s.
func claimByTime(t *testing.T, p policy.Policy) {
	t.Helper()
	b := start(t, openStore(t), Spec{Rules: Rules{Eligibility: []Rule{{Policy: p}}}})
	jobs := postN(t, b, 2)
	if c := claim(t, b, ClaimRequest{}); len(c) != 0 {
		t.Fatal("claimed by day")
	}
	r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{jobs[0].ID}})
	if err != nil || len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "deferred by the policy night until") {
		t.Fatalf("%+v %v", r, err)
	}
	began := time.Now()
	if claimOne(t, b, ClaimRequest{Wait: time.Minute, Lease: time.Hour}); time.Since(began) != 25*time.Second {
		t.Fatal(time.Since(began)) // when the verdict was made anew
	}
	time.Sleep(10 * time.Second) // the verdict stood for 8 of them
	for range 2 {
		if c := claim(t, b, ClaimRequest{Wait: time.Minute}); len(c) != 0 {
			t.Fatal("claimed by day")
		}
	}
	if c, _ := b.Count(t.Context()); c.Ready != 1 {
		t.Fatalf("%+v", c)
	}
}

// A call that waits is given a job that came while the policy failed, once it works again.
func TestPolicyFailsAtAJobThatComes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		z := &zones{}
		b := start(t, openStore(t), Spec{Rules: Rules{Eligibility: []Rule{{Policy: z}}}})
		east := []job.Label{{Key: "zone", Value: "east"}}
		go func() {
			time.Sleep(time.Second)
			z.setFail(true)
			post(t, b, job.Posting{Name: "east", Labels: east})
			time.Sleep(500 * time.Millisecond)
			z.setFail(false)
		}()
		began := time.Now()
		if claimOne(t, b, ClaimRequest{WorkerLabels: east, Wait: time.Hour}); time.Since(began) > 10*time.Second {
			t.Errorf("it was given the job after %v", time.Since(began))
		}
	})
}
