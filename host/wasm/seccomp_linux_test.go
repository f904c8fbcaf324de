//go:build linux && (amd64 || arm64)

package wasm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testneed"
)

// maxThreads is how many threads the user of a process may have, in all processes, so that this one
// may start another.
func maxThreads(t *testing.T, process string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + process + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if most, ok := strings.CutPrefix(line, "Max processes"); ok {
			return strings.Fields(most)[0]
		}
	}
	t.Fatal("the kernel does not say how many threads a user may have")
	return ""
}

// A process that runs a policy can reach nothing: each of its threads has a filter
// of calls, and gets no new rights.
func TestSealed(t *testing.T) { // not parallel: it looks for its own children
	if text, err := os.ReadFile("/proc/self/status"); err != nil || !strings.Contains(string(text), "\nSeccomp:") {
		testneed.Skip(t, "the kernel says nothing of seccomp")
	}
	e := newEngine(t, wasm.Config{Instances: 1, Child: child})
	before := children(t)
	p := bind(t, e, template(t, "c"), nil) // which compiles in no time, however busy the machine is
	for range 5 {                          // instances are reset, and the Go runtime starts its threads
		if err := p.Score(t.Context(), jobs(1024, 1), make([]int64, 1024)); err != nil {
			t.Fatal(err)
		}
	}
	threads := 0
	may := maxThreads(t, "self")
	for _, id := range children(t) {
		if slices.Contains(before, id) {
			continue
		}
		if got := maxThreads(t, strconv.Itoa(id)); got != may {
			t.Errorf("the process starts if its user has no more than %s threads, want %s as here", got, may)
		}
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", id))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range tasks {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // the thread ended
			}
			threads++
			for _, want := range []string{"\nSeccomp:\t2\n", "\nNoNewPrivs:\t1\n"} {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s has no %q:\n%s", path, strings.TrimSpace(want), text)
				}
			}
		}
	}
	if threads == 0 {
		t.Error("there is no process")
	}
}
