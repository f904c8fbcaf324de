package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func (k *desk) stands(key string) int64 {
	k.Helper()
	counts, err := k.driver.Count(k.Context(), k.name)
	if err != nil {
		k.Fatal(err)
	}
	return counts.Limits[key]
}

// limitedPost posts a job that counts for the limit jobs.
func (k *desk) limitedPost(most int64) (job.ID, driver.Result) {
	id := job.ID(random16())
	p := &driver.Posting{ID: id, Name: "limited", Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
	return id, k.do(driver.Op{Kind: driver.Post, Job: id, Posting: p, Event: job.Posted, Limits: []driver.Limit{{Key: "jobs", Max: most}}})
}

func limitedClaim(id job.ID, key string, most int64) driver.Op {
	op := claimOp(id, "worker", time.Minute)
	op.Claim.Candidates[0].Limits = []driver.Limit{{Key: key, Max: most}}
	return op
}

// TestLimitsHosts has two hosts claim under one limit, each side by side: it is
// never exceeded, and used to the full.
func TestLimitsHosts(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	a := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	const jobs, most = 40, 7
	var claims []driver.Claimed
	for round := range 3 { // the second and third with counters that are known
		ids := make([]job.ID, jobs)
		for i := range ids {
			ids[i] = a.post("a job", `{}`, nil)
		}
		var mu sync.Mutex
		var group sync.WaitGroup
		for i, id := range ids {
			k := []*desk{a, b}[i%2]
			group.Go(func() {
				r := k.do(limitedClaim(id, "claims", most))
				mu.Lock()
				defer mu.Unlock()
				claims = append(claims, r.Claims...)
				if len(r.Claims) == 0 && (len(r.Skipped) != 1 || r.Skipped[0].Kind != job.QuotaExceeded || r.Skipped[0].Message != "claims") {
					t.Errorf("a claim got %v (%s), passed over %+v", r.Kind, r.Message, r.Skipped)
				}
			})
		}
		group.Wait()
		if len(claims) != most {
			t.Errorf("round %d: %d claims under a limit of %d", round, len(claims), most)
		}
		for _, c := range claims {
			b.must(byToken(driver.Remove, c, job.ConsumedEvent))
		}
		claims = nil
		for _, k := range []*desk{a, b} {
			k.until("no claim is counted", func() bool { return k.stands("claims") == 0 })
		}
	}
}

// TestLimitsStranger lets another program end what is counted.
func TestLimitsStranger(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	id, r := p.limitedPost(1)
	if r.Kind != job.NoKind {
		t.Fatal(r.Message)
	}
	if _, r := p.limitedPost(1); r.Kind != job.QuotaExceeded || r.Message != "jobs" {
		t.Errorf("over the limit: %v (%s)", r.Kind, r.Message)
	}
	// TaskFlow gives a claim of boardd's back, under the same owner's name.
	p.must(limitedClaim(id, "claims", 1))
	if err := p.python.End("abandon", id.String(), "worker"); err != nil {
		t.Fatal(err)
	}
	p.until("the claim is counted no longer", func() bool { return p.stands("claims") == 0 })
	other := p.post("another", `{}`, nil)
	if r := p.must(limitedClaim(other, "claims", 1)); len(r.Claims) != 1 {
		t.Errorf("there is room, and the claim is passed over: %+v", r.Skipped)
	}
	// It consumes the job that counts.
	if err := p.python.Claim(id.String(), "py", 0); err != nil {
		t.Fatal(err)
	}
	if err := p.python.End("consume", id.String(), "py"); err != nil {
		t.Fatal(err)
	}
	p.until("the job is counted no longer", func() bool { return p.stands("jobs") == 0 })
	if _, r := p.limitedPost(1); r.Kind != job.NoKind {
		t.Errorf("there is room again, and a post gets %v (%s)", r.Kind, r.Message)
	}
}

// TestLimitsRestart has the counters survive their host, and a claim that ends
// with its session count no longer.
func TestLimitsRestart(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	for claims, want := range map[string]int64{"lease": 1, "session": 0} {
		first := openWith(t, settingsOf(z.Servers(), nil))
		a := sit(t, first, "/"+claims+"/jobs", map[string]any{"claims": claims})
		id, _ := a.limitedPost(2)
		a.must(limitedClaim(id, "claims", 1))
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/"+claims+"/jobs", map[string]any{"claims": claims})
		b.until("claims = "+claims+" are counted as they stand", func() bool { return b.stands("claims") == want })
		if n := b.stands("jobs"); n != 1 {
			t.Errorf("jobs stand at %d, want 1", n)
		}
		other, _ := b.limitedPost(2)
		if r := b.must(limitedClaim(other, "claims", 1)); int64(len(r.Claims)) != 1-want {
			t.Errorf("claims = %q: under a limit of 1, of which %d are used, %d claims are granted", claims, want, len(r.Claims))
		}
	}
}
