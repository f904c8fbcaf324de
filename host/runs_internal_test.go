package host

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/memory"
)

// TestEarlierRuns: a run knows those that had its data folder before it, and is told of none
// as long as another one has the folder, or where there is no folder.
func TestEarlierRuns(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	begin := func(folder, boot string) (m *memory.Memory, ended []string) {
		t.Helper()
		m, err := memory.Open(folder, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return m, earlierRuns(m, boot)
	}
	end := func(m *memory.Memory) {
		t.Helper()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first, none := begin(folder, "a")
	second, beside := begin(folder, "b")
	if len(none)+len(beside) != 0 {
		t.Errorf("the first run knows of %v, one beside it of %v", none, beside)
	}
	end(second)
	end(first)
	for n := range runsKept + 2 {
		m, ended := begin(folder, fmt.Sprint("run", n))
		if n == 0 {
			if diff := cmp.Diff([]string{"a"}, ended); diff != "" {
				t.Errorf("the run after the first one: %s", diff)
			}
		}
		end(m)
	}
	last, ended := begin(folder, "last")
	defer end(last)
	if len(ended) != runsKept || ended[0] != "run2" || ended[runsKept-1] != fmt.Sprint("run", runsKept+1) {
		t.Errorf("after many runs: %v", ended)
	}
	if _, nowhere := begin("", "x"); nowhere != nil {
		t.Errorf("without a folder: %v", nowhere)
	}
}
