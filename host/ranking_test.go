package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/build"
)

// ofTeams are postings, one for each letter, of the team of that letter.
func ofTeams(teams string) []job.Posting {
	var list []job.Posting
	for team := range strings.SplitSeq(teams, "") {
		list = append(list, job.Posting{Name: team, Labels: []job.Label{{Key: "team", Value: team}}})
	}
	return list
}

// teamsOf claims jobs and returns whose they were.
func teamsOf(t *testing.T, b *hostboard.Board, n int) string {
	t.Helper()
	// A policy that was just promoted may have to rank first: who waits is woken then.
	r, err := b.Claim(within(t), hostboard.ClaimRequest{Owner: "w", Max: n, Wait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var teams strings.Builder
	for _, c := range r.Claims {
		teams.WriteString(c.Job.Name)
	}
	return teams.String()
}

// TestConfiguredFairShare: a file says how teams share, and they do.
func TestConfiguredFairShare(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "boardd.hcl")
	if err := os.WriteFile(path, []byte(`
token "operator" {
  roles  = ["operator"]
  secret = "`+operatorSecret+`"
}
token "worker" {
  roles  = ["worker", "poster"]
  secret = "`+secret+`"
}
backend "store" {
  driver = "memory"
}
board "builds" {
  backend = "store"
  ordering {
    policy = "fair-share"
    params = { weights = { b = 2, z = 0 } }
  }
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Source{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := open(t, host.Config{Config: *c, Drivers: oneStore(t, false)})
	on := boardOf(t, h)
	if _, err := on.Post(within(t), ofTeams("zzaaaaabbbbb")); err != nil {
		t.Fatal(err)
	}
	if got := teamsOf(t, on, 12); strings.Count(got[:6], "b") != 4 || got[10:] != "zz" {
		t.Fatalf("claimed %q: want two of b for each of a, and z last", got)
	}
}

// TestLimitOnTwoServers has two servers on one store hold to a limit together.
func TestLimitOnTwoServers(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	b := config.NewBoard("builds")
	b.Backend = "store"
	b.Ordering = &config.Rule{Policy: "limit", Params: json.RawMessage(`{"max": 2, "limits": {"b": "1"}}`)}
	var servers []*hostboard.Board
	for range 2 {
		h, _ := open(t, host.Config{Config: cataloged("", b), Drivers: drivers})
		servers = append(servers, boardOf(t, h))
	}
	const jobs = 120
	if _, err := servers[0].Post(within(t), ofTeams(strings.Repeat("ab", jobs/2))); err != nil {
		t.Fatal(err)
	}
	most := map[string]int64{"a": 2, "b": 1}
	running := map[string]*atomic.Int64{"a": {}, "b": {}}
	var done atomic.Int64
	var group sync.WaitGroup
	for w := range 6 {
		on := servers[w%2]
		group.Go(func() {
			for done.Load() < jobs {
				r, err := on.Claim(t.Context(), hostboard.ClaimRequest{Owner: "w", Max: 1 + w, Wait: 100 * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range r.Claims {
					if n := running[c.Job.Name].Add(1); n > most[c.Job.Name] {
						t.Errorf("%d of %s run", n, c.Job.Name)
					}
				}
				for _, c := range r.Claims {
					running[c.Job.Name].Add(-1) // before the store knows
					ref := hostboard.Ref{ID: c.ID, Owner: "w", Token: on.FormatToken(c.ID, c.Token)}
					if errs, err := on.Consume(t.Context(), []hostboard.Ref{ref}); errors.Join(append(errs, err)...) != nil {
						t.Error(err, errs)
						return
					}
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
}

// leastFirst is a policy in C: who has the least running comes first.
const leastFirst = `
#include "boardd_policy.h"

BOARDD_EXPORT(boardd_rank_keys) int32_t boardd_rank_keys(boardd_block *b, uint32_t length) {
  for (uint32_t i = 0; i < b->count; i++) {
    boardd_rank *r = boardd_out_at(b, i);
    r->score = -boardd_key_at(b, i)->running;
    r->most = 3;
  }
  return BOARDD_OK;
}
`

// TestPromotedRanking: a module that orders by counts is pushed, runs in the
// shadow, is promoted and rolled back, while jobs run.
func TestPromotedRanking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"least.c":          leastFirst,
		build.ManifestFile: `{"name": "acme/least", "version": "1", "abi": 1, "kinds": [], "counts": "label:team"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	module, err := build.Folder(t.Context(), dir, os.Environ())
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(t, missing.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	b := config.NewBoard("builds")
	b.Backend = "store"
	child := func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, os.Args[0], wasm.ChildArgument) } //nolint:gosec // this program
	h, _ := open(t, host.Config{Config: cataloged("", b), Drivers: oneStore(t, false), PolicyChild: child})
	s, on := operator(t, h), boardOf(t, h)
	if _, err := on.Post(within(t), ofTeams("aaaaaaaabbbb")); err != nil {
		t.Fatal(err)
	}
	if got := teamsOf(t, on, 2); got != "aa" {
		t.Fatal(got)
	}
	if _, err := s.PutPolicy(within(t), "", "least", module); err != nil {
		t.Fatal(err)
	}
	p := admin.Promotion{Board: "builds", Name: "least"}
	// Of a, of which two run, and b it would give b, b, a, b, and hold back the rest.
	testserver.Eventually(t, "the shadow was compared", func() bool {
		if _, err := on.List(within(t), hostboard.ListRequest{}); err != nil { // so that the board is in use
			t.Fatal(err)
		}
		r, err := s.Shadow(within(t), p, false)
		if err != nil || r.Errors > 0 {
			t.Fatalf("%+v %v", r, err)
		}
		if r.Pairs > 0 && (r.Swaps*30 != r.Pairs*17 || r.Denies*10 != r.Judged*6 || r.Allows > 0 || r.Policy != "least 1") {
			t.Fatalf("%+v", r)
		}
		return r.Pairs > 0
	})
	if _, err := s.Promote(within(t), p); err != nil {
		t.Fatal(err)
	}
	if got := teamsOf(t, on, 12); got != "bbab" {
		t.Fatalf("claimed %q, want b, b, then one of each: three of each may run", got)
	}
	if _, err := s.Rollback(within(t), p); err != nil {
		t.Fatal(err)
	}
	if got := teamsOf(t, on, 12); got != "aaaaab" {
		t.Fatalf("claimed %q, want all that is left, in order", got)
	}
}
