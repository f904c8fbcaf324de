package wasm_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testserver"
)

// child is this test program, as a child.
func child(ctx context.Context) *exec.Cmd {
	return exec.CommandContext(ctx, os.Args[0], wasm.ChildArgument) //nolint:gosec // this program
}

// Modules in processes of their own give the same answers, for the same fuel.
func TestProcesses(t *testing.T) {
	t.Parallel()
	here, apart := newEngine(t, wasm.Config{Instances: 1}), newEngine(t, wasm.Config{Instances: 2, Child: child})
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			a, b := bind(t, here, template(t, language), nil), bind(t, apart, template(t, language), nil)
			for seed, n := range []int{1, 100, 1024, 1500, 3} {
				batch := jobs(n, uint64(seed))
				want, got := make([]int64, n), make([]int64, n)
				if err := a.Score(t.Context(), batch, want); err != nil {
					t.Fatal(err)
				}
				if err := b.Score(t.Context(), batch, got); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(want, got) || a.Used() != b.Used() {
					t.Fatalf("%d jobs: the answers differ, or the fuel: %d and %d", n, a.Used(), b.Used())
				}
			}
		})
	}
}

// children returns the process ids of this process's children.
func children(t *testing.T) (ids []int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue // the thread ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			id, _ := strconv.Atoi(field)
			ids = append(ids, id)
		}
	}
	return ids
}

// A process that is killed, or stopped, costs its call and no more.
func TestProcessLost(t *testing.T) { // not parallel: it looks for its own children
	e := newEngine(t, wasm.Config{Instances: 1, Child: child})
	before := children(t)
	p := bind(t, e, template(t, "c"), nil)
	score := func() error { return p.Score(t.Context(), jobs(10, 1), make([]int64, 10)) }
	killed := func(t testing.TB, id int) {
		if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for i, lose := range []func(testing.TB, int){killed, testserver.Freeze} {
		if err := score(); err != nil {
			t.Fatal(err)
		}
		for _, id := range children(t) {
			if !slices.Contains(before, id) {
				lose(t, id)
			}
		}
		var fault *wasm.Fault
		if err := score(); !errors.As(err, &fault) || fault.Kind != wasm.Lost {
			t.Fatalf("loss %d: got %v", i, err)
		}
	}
	if err := score(); err != nil {
		t.Fatal(err)
	}
}
