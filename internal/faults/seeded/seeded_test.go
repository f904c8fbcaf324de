package seeded_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/faults/check"
	"github.com/boardd/boardd/internal/faults/seeded"
	"github.com/boardd/boardd/internal/testserver"
)

const (
	most     = 20 // schedules in which a bug has to be found
	together = 6  // bugs at the same time
)

// found runs schedules with a bug until the checker that has to find it does, and
// returns how many that took, and which checkers found something in the last one.
func found(t *testing.T, name string) (schedules int, checkers []string) {
	t.Helper()
	for seed := range uint64(most) {
		all := seeded.All() // anew: a bug may count its calls
		bug := all[slices.IndexFunc(all, func(b seeded.Bug) bool { return b.Name == name })]
		by := map[string]bool{}
		t.Run(fmt.Sprint("schedule-", seed+1), func(t *testing.T) { // its servers end with it
			for _, p := range check.Run(seeded.Run(t, bug, seed+1)) {
				by[p.Checker] = true
			}
		})
		checkers = slices.Sorted(maps.Keys(by))
		if by[bug.Checker] {
			return int(seed) + 1, checkers
		}
	}
	return 0, checkers
}

// TestSeededBugs finds every bug with the checker that is there for it.
func TestSeededBugs(t *testing.T) {
	turns := make(chan struct{}, together)
	var group sync.WaitGroup
	for _, bug := range seeded.All() {
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			t.Run(bug.Name, func(t *testing.T) {
				n, by := found(t, bug.Name)
				if n == 0 {
					t.Fatalf("%d schedules with a %s that %s, and %s did not find it; the last one was found by %v", most, bug.Where, bug.Doc, bug.Checker, by)
				}
				results.Lock()
				results.after[bug.Name] = n
				results.Unlock()
				t.Logf("found after %d schedules; by %v in the last", n, by)
			})
		})
	}
	group.Wait()
	if *update && !t.Failed() {
		write(t)
	}
}

// header begins the table of bugs in docs/reliability.md.
const header = "| bug | in | what it does | found by | after schedules |\n|---|---|---|---|---|\n"

var (
	update  = flag.Bool("update", false, "write the table in docs/reliability.md anew")
	results = struct {
		sync.Mutex
		after map[string]int
	}{after: map[string]int{}}
)

// table returns what is before the table, the table, and what is behind it.
func table(t *testing.T) (before, rows, behind string) {
	t.Helper()
	text, err := os.ReadFile(page(t))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), header)
	if !found {
		t.Fatal("docs/reliability.md has no table of the seeded bugs")
	}
	end := strings.Index(rest, "\n\n")
	return before, rest[:end+1], rest[end+1:]
}

func page(t *testing.T) string {
	t.Helper()
	return filepath.Join(testserver.Root(t), "docs", "reliability.md")
}

func row(b seeded.Bug) string {
	return fmt.Sprintf("| `%s` | %s | %s | %s |", b.Name, b.Where, b.Doc, b.Checker)
}

func write(t *testing.T) {
	t.Helper()
	before, _, behind := table(t)
	var rows strings.Builder
	for _, b := range seeded.All() {
		fmt.Fprintf(&rows, "%s %d |\n", row(b), results.after[b.Name])
	}
	if err := os.WriteFile(page(t), []byte(before+header+rows.String()+behind), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTable holds the table in docs/reliability.md to the bugs that there are.
func TestTable(t *testing.T) {
	t.Parallel()
	_, text, _ := table(t)
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	all := seeded.All()
	if len(rows) != len(all) || len(all) < 30 {
		t.Fatalf("the table has %d rows, and there are %d bugs; want at least 30", len(rows), len(all))
	}
	for i, b := range all {
		if !strings.HasPrefix(rows[i], row(b)) {
			t.Errorf("the table has %s\nwhere the bug is %s", rows[i], row(b))
		}
	}
	text, _, _ = table(t)
	for _, c := range check.All() {
		if row := fmt.Sprintf("| `%s` | %s |\n", c.Name, c.Promise); !strings.Contains(text, row) {
			t.Errorf("docs/reliability.md does not have %s", row)
		}
	}
}

// TestEveryChecker: a checker that has to find no bug may be blind.
func TestEveryChecker(t *testing.T) {
	t.Parallel()
	for _, c := range check.All() {
		if !slices.ContainsFunc(seeded.All(), func(b seeded.Bug) bool { return b.Checker == c.Name }) {
			t.Errorf("the checker %s has to find none of the bugs: want one that breaks what it promises", c.Name)
		}
	}
}

// TestNoBug finds nothing where there is nothing.
func TestNoBug(t *testing.T) {
	for seed := range uint64(6) { // two of each sort
		t.Run(fmt.Sprint("schedule-", seed+1), func(t *testing.T) {
			t.Parallel() // a schedule waits three quarters of its time
			for _, p := range check.Run(seeded.Run(t, seeded.Bug{}, seed+1)) {
				t.Errorf("seed %d: %v", seed+1, p)
			}
		})
	}
}
