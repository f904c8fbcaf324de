//go:build linux

package wasm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/sdk/job"
)

// manyModule is a module of which there are as many as there are numbers.
func manyModule(t *testing.T, number int) []byte {
	t.Helper()
	return assemble(t, frame(fmt.Sprintf(`
  (func (export "boardd_score") (param i32 i32) (result i32)
    (drop (i32.const %d)) (i32.const 0))`, number)), `"ordering"`)
}

// bindFor makes a policy whose processes an account pays for.
func bindFor(t *testing.T, e *wasm.Engine, b []byte, a *wasm.Account) (*wasm.Policy, error) {
	t.Helper()
	m, err := e.LoadFor(t.Context(), b, a)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = m.Close() })
	p, err := m.BindFor(t.Context(), nil, nil, a)
	if err == nil {
		t.Cleanup(func() { _ = p.Close() })
	}
	return p, err
}

func allow(processes, memory int64) func() wasm.Allowance {
	return func() wasm.Allowance { return wasm.Allowance{Processes: processes, Memory: memory} }
}

// An account's processes are never more than it may have: idle ones end for those
// that are needed, and where all are in use the next is refused.
func TestBudget(t *testing.T) { // not parallel: it looks for its own children
	e := newEngine(t, wasm.Config{Instances: 4, Child: child, Allowance: allow(3, 0)})
	before := len(children(t))
	small, other := e.Account(allow(2, 0)), e.Account(allow(10, 0))
	var policies []*wasm.Policy
	for n := range 5 {
		p, err := bindFor(t, e, manyModule(t, n), small)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
		if got := small.Usage(); got.Processes > 2 || len(children(t))-before > 2 {
			t.Fatalf("%d processes are charged, there are %d: want at most 2", got.Processes, len(children(t))-before)
		}
	}
	for range 2 { // each takes the place of another one
		for i, p := range policies {
			if err := p.Score(t.Context(), jobs(3, 1), make([]int64, 3)); err != nil {
				t.Fatalf("policy %d: %v", i, err)
			}
		}
	}
	for n := range 4 { // the engine's own bound holds for all accounts together
		if _, err := bindFor(t, e, manyModule(t, 10+n), other); err != nil {
			t.Fatal(err)
		}
		if got := e.Usage(); got.Processes > 3 || len(children(t))-before > 3 {
			t.Fatalf("%d processes are charged, there are %d: want at most 3", got.Processes, len(children(t))-before)
		}
	}
	if got := e.Usage(); got.Memory != got.Processes*mustLoad(t, e, manyModule(t, 0)).Memory() {
		t.Errorf("%d processes are charged %d bytes", got.Processes, got.Memory)
	}
}

func mustLoad(t *testing.T, e *wasm.Engine, b []byte) *wasm.Module {
	t.Helper()
	m, err := e.Load(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// A call that needs a process which may not be started is refused, with the limit.
func TestBudgetRefuses(t *testing.T) {
	t.Parallel()
	e := newEngine(t, wasm.Config{Instances: 1, Child: child})
	need := mustLoad(t, e, manyModule(t, 1)).Memory()
	if _, err := bindFor(t, e, manyModule(t, 1), e.Account(allow(0, need-1))); job.KindOf(err) != job.QuotaExceeded || !strings.Contains(err.Error(), "MiB of memory are the most") {
		t.Errorf("a byte less than a process needs: %v", err)
	}
	p, err := bindFor(t, e, manyModule(t, 1), e.Account(allow(0, need)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Score(t.Context(), jobs(1, 1), make([]int64, 1)); err != nil {
		t.Error(err)
	}
	if got := e.Usage(); got.Refused != 1 {
		t.Errorf("%d refusals were counted", got.Refused)
	}
}

// Calls at the same time share what processes there may be.
func TestBudgetShared(t *testing.T) {
	t.Parallel()
	e := newEngine(t, wasm.Config{Instances: 8, Child: child})
	a := e.Account(allow(1, 0))
	var policies []*wasm.Policy
	for n := range 2 {
		p, err := bindFor(t, e, manyModule(t, n), a)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for range 3 {
				err := policies[i%2].Score(t.Context(), jobs(3, 1), make([]int64, 3))
				if err != nil && job.KindOf(err) != job.QuotaExceeded { // on a machine that has no time to start processes
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	if got := a.Usage().Processes; got > 1 {
		t.Errorf("%d processes", got)
	}
}

// A policy that was retired has no process when no call goes on, and answers calls
// that come late.
func TestRetire(t *testing.T) { // not parallel: it looks for its own children
	e := newEngine(t, wasm.Config{Instances: 2, Child: child})
	before := len(children(t))
	p, err := bindFor(t, e, manyModule(t, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(children(t)) - before; n != 1 {
		t.Fatalf("%d processes", n)
	}
	p.Retire()
	for range 3 {
		if n, used := len(children(t))-before, e.Usage().Processes; n != 0 || used != 0 {
			t.Fatalf("%d processes of a policy that was retired, %d charged", n, used)
		}
		if err := p.Score(t.Context(), jobs(3, 1), make([]int64, 3)); err != nil {
			t.Fatal(err)
		}
	}
}

// What a process really takes is less than it is charged, also when the module
// touches all the memory that it may have.
func TestCharge(t *testing.T) { // not parallel: it looks for its own children
	e := newEngine(t, wasm.Config{Instances: 1, Child: child})
	before := children(t)
	b := assemble(t, frame(`
  (func (export "_initialize") (local i32)
    (drop (memory.grow (i32.sub (i32.const 256) (memory.size))))
    (loop $next
      (i32.store8 (local.get 0) (i32.const 1))
      (br_if $next (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 4096))) (i32.const 16777216)))))
  (func (export "boardd_score") (param i32 i32) (result i32) (local i32)
    (loop $next
      (i32.store8 (local.get 2) (i32.const 2))
      (br_if $next (i32.lt_u (local.tee 2 (i32.add (local.get 2) (i32.const 4096))) (i32.const 16777216))))
    (i32.const 0))`), `"ordering"`)
	m := mustLoad(t, e, b)
	p, err := m.Bind(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.Score(t.Context(), jobs(3, 1), make([]int64, 3)); err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, id := range children(t) {
		if slices.Contains(before, id) {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
		if err != nil {
			continue
		}
		looked++
		if took := kilobytes(t, string(text), "VmHWM:") << 10; took > m.Memory() {
			t.Errorf("a process took %d bytes, and is charged %d", took, m.Memory())
		}
	}
	if looked != 1 {
		t.Errorf("looked at %d processes", looked)
	}
}

func kilobytes(t *testing.T, text, field string) int64 {
	t.Helper()
	_, rest, ok := strings.Cut(text, field)
	if !ok {
		t.Fatal("no " + field)
	}
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Of one account one module is compiled at a time, of all so many as are allowed,
// and more than MaxQueued in line are refused.
func TestCompilationsWait(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	waits := func(ctx context.Context) *exec.Cmd { // it waits for the gate to be opened, whatever it is to do
		return exec.CommandContext(ctx, "/bin/sh", "-c", `until [ -e "$0" ]; do sleep 0.02; done; exec "$@"`, gate, os.Args[0], wasm.ChildArgument) //nolint:gosec // this program
	}
	e := newEngine(t, wasm.Config{Instances: 1, Child: waits, Compilations: func() int { return 2 }})
	accounts := []*wasm.Account{e.Account(allow(0, 0)), e.Account(allow(0, 0)), e.Account(allow(0, 0))}
	var loading sync.WaitGroup
	load := func(n int, a *wasm.Account) {
		b := manyModule(t, n)
		loading.Go(func() {
			m, err := e.LoadFor(t.Context(), b, a)
			if err != nil {
				t.Error(err)
				return
			}
			_ = m.Close()
		})
	}
	for n := range 4 {
		load(n, accounts[0])
	}
	until(t, func() bool { u := accounts[0].Usage(); return u.Compiling == 1 && u.Queued == 3 })
	load(10, accounts[1])
	load(20, accounts[2])
	until(t, func() bool { u := e.Usage(); return u.Compiling == 2 && u.Queued == 1 })
	for n := range wasm.MaxQueued - 3 {
		load(100+n, accounts[0])
	}
	until(t, func() bool { return accounts[0].Usage().Queued == wasm.MaxQueued })
	if _, err := e.LoadFor(t.Context(), manyModule(t, 1000), accounts[0]); job.KindOf(err) != job.QuotaExceeded {
		t.Errorf("one more than may wait: %v", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	loading.Wait()
	if u := e.Usage(); u.Compiling != 0 || u.Queued != 0 || u.Refused != 1 {
		t.Errorf("in the end: %+v", u)
	}
}

// until waits for something that is bound to come.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		if t.Context().Err() != nil {
			t.Fatal("it does not come")
		}
		time.Sleep(time.Millisecond)
	}
}

// A module's code is taken away when nobody wants it, and made anew when somebody
// does.
func TestPrune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, wasm.Config{Instances: 1, Child: child, CacheDir: dir})
	kept, used, left := manyModule(t, 1), manyModule(t, 2), manyModule(t, 3)
	for _, b := range [][]byte{kept, left} {
		m, err := e.Load(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		_ = m.Close()
	}
	p, err := bindFor(t, e, used, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "of an earlier version"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Prune(func(digest string) bool { return digest == wasm.Digest(kept) }); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	want := []string{wasm.Digest(kept), wasm.Digest(used)}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the folder has %v, want %v", names, want)
	}
	if err := p.Score(t.Context(), jobs(3, 1), make([]int64, 3)); err != nil {
		t.Error(err)
	}
	if _, err := bindFor(t, e, left, nil); err != nil {
		t.Error(err)
	}
}
