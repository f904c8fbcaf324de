//go:build linux

package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/replay"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// assembled is a module with what a policy needs and what is given. The number makes
// it another one.
func assembled(t *testing.T, number int, kinds, more string) []byte {
	t.Helper()
	program, dir := testneed.Program(t, "wat2wasm"), t.TempDir()
	in, out := filepath.Join(dir, "m.wat"), filepath.Join(dir, "m.wasm")
	text := fmt.Sprintf(`(module
  (memory (export "memory") 16)
  (global i32 (i32.const %d))
  (func (export "boardd_policy_abi_1"))
  %s)`, number, more)
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if message, err := exec.CommandContext(t.Context(), program, "-o", out, in).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, message)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	b, err = policy.AddManifest(b, fmt.Appendf(nil, `{"name":"assembled","version":"1","abi":1,"kinds":[%s],"reasons":["no"]}`, kinds))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// allowing lets every worker have every job.
func allowing(t *testing.T, number int) []byte {
	t.Helper()
	return assembled(t, number, `"eligibility"`, `
  (func (export "boardd_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "boardd_eligible") (param i32 i32) (result i32) (i32.const 0))`)
}

// countedChild is a Child whose processes can be told from those of other tests.
func countedChild(t *testing.T) (child wasm.Child, count func() int) {
	t.Helper()
	link := filepath.Join(t.TempDir(), "child")
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, link)
	}
	if err != nil {
		t.Fatal(err)
	}
	child = func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, link, wasm.ChildArgument) } //nolint:gosec // this program
	count = func() (n int) {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range lines {
			if text, err := os.ReadFile(name); err == nil && bytes.HasPrefix(text, []byte(link+"\x00")) {
				n++
			}
		}
		return n
	}
	return child, count
}

// TestPolicyProcesses promotes and rolls back without pause on a board that asks
// several policies, while workers claim: no more processes run than the tenant may
// have, and none of a policy that is not asked any more.
func TestPolicyProcesses(t *testing.T) {
	t.Parallel()
	child, count := countedChild(t)
	b := config.NewBoard("builds")
	b.Backend = "store"
	c := cataloged(t.TempDir(), b)
	const most = 6
	c.Limits = map[string]config.Limits{"default": {PolicyProcesses: most}}
	h, _ := open(t, host.Config{Config: c, Drivers: oneStore(t, false), PolicyChild: child})
	s, on, ctx := operator(t, h), boardOf(t, h), t.Context()
	const names, versions, rounds = 4, 3, 5
	for n := range names {
		for v := range versions {
			if _, err := s.PutPolicy(ctx, "", fmt.Sprint("p", n), allowing(t, 10*n+v)); err != nil {
				t.Fatal(err)
			}
		}
	}
	over := func() int { // one compilation at a time besides
		if n := count(); n > most+1 {
			return n
		}
		return 0
	}
	claiming, stop := context.WithCancel(ctx)
	var claims sync.WaitGroup
	claims.Go(func() {
		for claiming.Err() == nil {
			_, _ = on.Claim(claiming, hostboard.ClaimRequest{Owner: "w", WorkerLabels: []job.Label{{Key: "a", Value: "b"}}})
		}
	})
	for range rounds {
		for n := range names {
			p := admin.Promotion{Board: "builds", Name: fmt.Sprint("p", n)}
			if _, err := s.Promote(ctx, p); err != nil {
				t.Fatal(err)
			}
			if n := over(); n != 0 {
				t.Fatalf("%d processes", n)
			}
			if n%2 == 1 {
				continue
			}
			if _, err := s.Rollback(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	claims.Wait()
	if n := count(); n > most {
		t.Errorf("%d processes of 2 policies", n)
	}
	d := admin.Promotion{Board: "builds"}
	for n := range names {
		for d.Name = fmt.Sprint("p", n); ; {
			if _, err := s.Rollback(ctx, d); job.KindOf(err) == job.NotFound {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := count(); n != 0 {
		t.Errorf("%d processes of policies that nobody asks", n)
	}
	if all := h.PolicyUse(); all.Processes != 0 || all.Memory != 0 {
		t.Errorf("%+v is charged", all)
	}
}

// TestPolicyLimits: a promotion above the limits of a tenant is refused as such.
func TestPolicyLimits(t *testing.T) {
	t.Parallel()
	child, _ := countedChild(t)
	b := config.NewBoard("builds")
	b.Backend = "store"
	c := cataloged("", b)
	c.Limits = map[string]config.Limits{"default": {PolicyMemory: 1 << 20}}
	h, _ := open(t, host.Config{Config: c, Drivers: oneStore(t, false), PolicyChild: child})
	s := operator(t, h)
	if _, err := s.PutPolicy(t.Context(), "", "p", allowing(t, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Promote(t.Context(), admin.Promotion{Board: "builds", Name: "p"}); job.KindOf(err) != job.QuotaExceeded || !strings.Contains(err.Error(), "1 MiB of memory are the most for the tenant's policies") {
		t.Error(err)
	}
}

// TestPolicyStorage: a tenant puts so many policies, of so many bytes, and has the
// room back of what it takes away.
func TestPolicyStorage(t *testing.T) {
	t.Parallel()
	b := config.NewBoard("builds")
	b.Backend = "store"
	c := cataloged(t.TempDir(), b)
	dir := filepath.Join(c.DataDir, "policies", "foreign")
	size := int64(len(allowing(t, 0)))
	c.Limits = map[string]config.Limits{"default": {Policies: 2, PolicyBytes: 3 * size}}
	child, _ := countedChild(t)
	h, _ := open(t, host.Config{Config: c, Drivers: oneStore(t, false), PolicyChild: child})
	s, ctx := operator(t, h), t.Context()
	put := func(name string, number int) error {
		t.Helper()
		_, err := s.PutPolicy(ctx, "", name, allowing(t, number))
		return err
	}
	refused := func(what string, err error, limit string) {
		t.Helper()
		if job.KindOf(err) != job.QuotaExceeded || !strings.Contains(err.Error(), limit) {
			t.Errorf("%s: %v, want %s", what, err, limit)
		}
	}
	for n, name := range []string{"a", "b", "a"} {
		if err := put(name, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("a", 2); err != nil {
		t.Errorf("what is there already: %v", err)
	}
	refused("a third policy", put("c", 0), "policies")
	refused("a fourth module", put("a", 3), "policy_bytes")
	p := admin.Promotion{Board: "builds", Name: "b"}
	if _, err := s.Promote(ctx, p); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rollback(ctx, p); err != nil {
		t.Fatal(err)
	}
	if use, err := s.TenantUse(ctx, ""); err != nil || use["policies"] != 2 || use["policy_bytes"] != 3*size {
		t.Errorf("%v in use: %v", use, err)
	}
	for _, name := range []string{"a", "b"} {
		if err := s.DeletePolicy(ctx, "", name); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("c", 3); err != nil {
		t.Errorf("after all was deleted: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
		t.Errorf("the compiled code of %v is kept: %v", entries, err)
	}
}

// TestModulesThatDoNotStart: whoever brings a module that fails before it is asked
// anything is told what it did.
func TestModulesThatDoNotStart(t *testing.T) {
	t.Parallel()
	child, _ := countedChild(t)
	b := config.NewBoard("builds")
	b.Backend = "store"
	b.Record = config.MinRecord
	h, _ := open(t, host.Config{Config: cataloged(t.TempDir(), b), Drivers: oneStore(t, false), PolicyChild: child})
	s, ctx := operator(t, h), t.Context()
	const eligible = `(func (export "boardd_eligible") (param i32 i32) (result i32) (i32.const 0))`
	const alloc = `(func (export "boardd_alloc") (param i32) (result i32) (i32.const 1024))`
	for i, c := range []struct{ name, text, want string }{
		{"start", alloc + eligible + `(func (export "_initialize") unreachable)`, "_initialize: it trapped"},
		{"loop", alloc + eligible + `(func (export "_initialize") (loop $l (br $l)))`, "_initialize: it used up its fuel"},
		{"alloc", eligible + `(func (export "boardd_alloc") (param i32) (result i32) (i32.const 0))`, "boardd_alloc: its answer makes no sense"},
		{"configure", alloc + eligible + `(func (export "boardd_configure") (param i32 i32) (result i32) unreachable)`, "boardd_configure: it trapped"},
		{"refuse", alloc + eligible + `(func (export "boardd_configure") (param i32 i32) (result i32) (i32.const 1))`, "boardd_configure: it failed"},
	} {
		if _, err := s.PutPolicy(ctx, "", c.name, assembled(t, i, `"eligibility"`, c.text)); err != nil {
			t.Fatal(err)
		}
		p := admin.Promotion{Board: "builds", Name: c.name}
		refused := func(call string, err error) {
			t.Helper()
			if e, ok := err.(*job.Error); !ok || job.KindOf(err) != job.Invalid || !strings.Contains(e.Message, c.want) {
				t.Errorf("%s %s: %v: %v, want %q", call, c.name, job.KindOf(err), err, c.want)
			}
		}
		_, err := s.Promote(ctx, p)
		refused("promote", err)
		_, err = s.Shadow(ctx, p, false)
		refused("shadow", err)
		_, err = s.Simulate(ctx, p, replay.Options{})
		refused("simulate", err)
		asking := config.NewBoard("asking")
		asking.Backend, asking.Eligibility = "store", []config.Rule{{Policy: c.name}}
		_, err = s.CreateBoard(ctx, "", asking)
		refused("create a board with", err)
	}
}
