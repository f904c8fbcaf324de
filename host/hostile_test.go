package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/build"
)

// attacks are what hostile policies do when they are asked who may have a job. The
// whole corpus is in the tests of host/wasm; these are of each kind that runs.
var attacks = map[string]string{
	"endless":  `for (volatile uint32_t i = 0;; i++) {}`,
	"trap":     `__builtin_trap();`,
	"memory":   `while (__builtin_wasm_memory_grow(0, 1) != (unsigned long)-1) {} for (;;) __builtin_memset((char *)b + b->out, 1, b->count);`,
	"outside":  `*(volatile int *)0xfffffff0 = 1;`,
	"nonsense": `for (uint32_t i = 0; i < b->count; i++) ((boardd_verdict *)boardd_out_at(b, i))->decision = 77;`,
	"deep":     `return boardd_deeper(b, length) + 1;`,
}

// hostile builds a policy that attacks.
func hostile(t *testing.T, attack string) []byte {
	t.Helper()
	dir := t.TempDir()
	source := fmt.Sprintf(`#include "boardd_policy.h"
__attribute__((noinline)) static int32_t boardd_deeper(boardd_block *b, uint32_t n) {
  volatile char room[64];
  room[n %% 64] = 1;
  return boardd_deeper(b, n + 1) + room[n %% 64];
}
BOARDD_EXPORT(boardd_eligible) int32_t boardd_eligible(boardd_block *b, uint32_t length) {
  (void)boardd_deeper;
  (void)length;
  %s
  return BOARDD_OK;
}
`, attack)
	for name, text := range map[string]string{
		"attack.c": source, build.ManifestFile: `{"name": "attack", "version": "1", "abi": 1, "kinds": ["eligibility"]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := build.Folder(t.Context(), dir, os.Environ())
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(t, missing.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Whatever a board's policies do, the server's other boards give out their jobs,
// and the board itself lets nobody in, says why, and is well again without them.
func TestHostilePoliciesHurtNobodyElse(t *testing.T) {
	t.Parallel()
	victim, attacked := config.NewBoard("builds"), config.NewBoard("attacked")
	victim.Backend, attacked.Backend = "store", "store"
	child := func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, os.Args[0], wasm.ChildArgument) } //nolint:gosec // this program
	h, _ := open(t, host.Config{Config: cataloged("", victim, attacked), Drivers: oneStore(t, false), PolicyChild: child})
	s, on := operator(t, h), boardOf(t, h)
	bad, err := s.Board(within(t), "attacked", "ClaimJobs")
	if err != nil {
		t.Fatal(err)
	}
	results, err := bad.Post(within(t), make40("attacked"))
	if err != nil {
		t.Fatal(err)
	}
	for name, attack := range attacks {
		if _, err := s.PutPolicy(within(t), "", name, hostile(t, attack)); err != nil {
			t.Fatal(name, err)
		}
		p := admin.Promotion{Board: "attacked", Name: name}
		if _, err := s.Promote(within(t), p); err != nil {
			t.Fatal(name, err)
		}
		if _, err := on.Post(within(t), make40("well")); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var attacking sync.WaitGroup
		for range 2 {
			attacking.Go(func() {
				for ctx.Err() == nil {
					if r, err := bad.Claim(ctx, hostboard.ClaimRequest{Owner: "w", Max: 10}); err == nil && len(r.Claims) > 0 {
						t.Errorf("%s: it lets somebody in", name)
					}
				}
			})
		}
		for range 40 {
			if r, err := on.Claim(within(t), hostboard.ClaimRequest{Owner: "w", Max: 1}); err != nil || len(r.Claims) != 1 {
				t.Errorf("%s: the other board gives out %d jobs, %v", name, len(r.Claims), err)
			}
		}
		if x, err := bad.Explain(within(t), results[0].Job.ID, "w", nil); err != nil || x.Verdict != "POLICY_ERROR" || x.Reason == "" {
			t.Errorf("%s: it is explained as %+v, %v", name, x, err)
		}
		stop()
		attacking.Wait()
		if _, err := s.Rollback(within(t), p); err != nil {
			t.Fatal(name, err)
		}
	}
	if r, err := bad.Claim(within(t), hostboard.ClaimRequest{Owner: "w", Max: 40}); err != nil || len(r.Claims) != 40 {
		t.Errorf("without them the board gives out %d jobs, %v", len(r.Claims), err)
	}
}

func make40(name string) []job.Posting {
	postings := make([]job.Posting, 40)
	for i := range postings {
		postings[i] = job.Posting{Name: name}
	}
	return postings
}
