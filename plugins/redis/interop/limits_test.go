package interop_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// hosts are two drivers on one board.
func hosts(t *testing.T) [2]*both {
	t.Helper()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	settings, err := json.Marshal(map[string]string{"address": server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	var list [2]*both
	for i := range list {
		d, err := store.Open(t.Context(), driver.Config{Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"` + namespace + `"}`), Window: time.Hour}); err != nil {
			t.Fatal(err)
		}
		list[i] = &both{T: t, server: server, d: d}
	}
	return list
}

// TestLimitsOverHosts posts and claims through two hosts at once, from several callers
// each: as much is taken as the limits say, and not one more.
func TestLimitsOverHosts(t *testing.T) {
	t.Parallel()
	list := hosts(t)
	const most, mostClaims, callers, each = 100, 30, 8, 20
	var mu sync.Mutex
	var posted []job.ID
	var claims []driver.Claimed
	all := func(one func(b *both, i int)) {
		var group sync.WaitGroup
		for caller := range callers {
			group.Go(func() {
				for i := range each {
					one(list[caller%2], caller*each+i)
				}
			})
		}
		group.Wait()
	}
	all(func(b *both, _ int) {
		id := random()
		r := b.apply(driver.Op{
			Kind: driver.Post, Limits: []driver.Limit{{Key: "jobs", Max: most}},
			Posting: &driver.Posting{ID: id, Name: "limited", Details: []byte(`{}`), Digest: random()},
		})
		mu.Lock()
		defer mu.Unlock()
		switch r.Kind {
		case job.NoKind:
			posted = append(posted, id)
		case job.QuotaExceeded:
		default:
			t.Errorf("a post: %v (%s)", r.Kind, r.Message)
		}
	})
	if len(posted) != most {
		t.Fatalf("%d jobs were taken under a limit of %d", len(posted), most)
	}
	all(func(b *both, i int) {
		r := b.apply(driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{Count: 1, Owner: "w", Lease: time.Hour, Candidates: []driver.Candidate{{
			Job: posted[i%most], Nonce: random(), Limits: []driver.Limit{{Key: "claims", Max: mostClaims}},
		}}}})
		mu.Lock()
		defer mu.Unlock()
		claims = append(claims, r.Claims...)
	})
	if len(claims) != mostClaims {
		t.Fatalf("%d claims were granted under a limit of %d", len(claims), mostClaims)
	}
	for i, c := range claims { // each through the other host than the one before
		list[i%2].done(driver.Op{Kind: driver.Remove, Job: c.Job, Precondition: driver.HeldByToken, Token: c.Token})
	}
	for i, b := range list {
		counts, err := b.d.Count(t.Context(), "b")
		if err != nil || counts.Limits["jobs"] != most-mostClaims || counts.Limits["claims"] != 0 {
			t.Errorf("host %d counts %v, %v", i, counts.Limits, err)
		}
	}
}
