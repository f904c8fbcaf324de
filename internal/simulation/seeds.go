package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// CISeeds is how many seeds of each game a test runs. SeedsVariable and FirstVariable
// name the variables of the environment that ask for others; see scripts/simulate.sh.
const (
	CISeeds       = 10_000
	SeedsVariable = "BOARDD_TEST_SEEDS"
	FirstVariable = "BOARDD_TEST_FIRST_SEED"
)

// Asked returns the seeds that a test is to run.
func Asked(t testing.TB) (first, count uint64) {
	t.Helper()
	number := func(variable string, otherwise uint64) uint64 {
		text := os.Getenv(variable)
		if text == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", variable, err)
		}
		return n
	}
	return number(FirstVariable, 0), number(SeedsVariable, CISeeds)
}

// Totals is what many seeds came to.
type Totals struct {
	Seeds, Steps int
	Coverage     Coverage
}

// Test runs the seeds that are asked for, says how many there were, and checks that,
// if they were as many as in continuous integration, everything was seen that can
// happen.
func (g *Game) Test(t *testing.T) {
	t.Helper()
	first, count := Asked(t)
	total := g.Seeds(t, first, count)
	t.Logf("%s: %d seeds from %d on, %d steps, %d pairs", g.Name, total.Seeds, first, total.Steps, len(total.Coverage))
	for _, p := range total.Coverage.Rarest(3) {
		t.Logf("rare: %q with %q, %d times", p.One, p.Other, total.Coverage[p])
	}
	if count < CISeeds || t.Failed() {
		return
	}
	for _, p := range total.Coverage.Unseen(g.Possible()) {
		t.Errorf("%q with %q was never seen", p.One, p.Other)
	}
}

// Replays checks that each of count seeds has the same history when it is run again.
func (g *Game) Replays(t *testing.T, count uint64) {
	t.Helper()
	different := map[uint64]bool{}
	for seed := range count {
		p := g.Program(seed)
		a, b := g.Run(t, p), g.Tell(t, p)
		if a.Sum != b.Sum || a.Steps != b.Steps || a.Problem != b.Problem {
			t.Errorf("%s: seed %d has another history when it is run again", g.Name, seed)
		}
		different[a.Sum] = true
	}
	if len(different) < int(count)*9/10 {
		t.Errorf("%s: %d seeds have %d histories", g.Name, count, len(different))
	}
}

// Seeds runs the programs of count seeds from first on, on as many cores as there are.
// The first seed of each core that goes wrong fails the test, with its program shrunk.
func (g *Game) Seeds(t *testing.T, first, count uint64) Totals {
	t.Helper()
	var mu sync.Mutex
	all := Totals{Coverage: Coverage{}}
	parts := uint64(max(1, runtime.GOMAXPROCS(0)))
	t.Run(g.Name, func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint("part", part), func(t *testing.T) {
				t.Parallel()
				mine := Totals{Coverage: Coverage{}}
				for seed := first + part; seed < first+count; seed += parts {
					r := g.Run(t, g.Program(seed))
					mine.Seeds++
					mine.Steps += r.Steps
					mine.Coverage.Add(r.Coverage)
					if r.Problem != "" {
						t.Errorf("seed %d: %s", seed, g.Report(t, g.Shrink(t, g.Program(seed))))
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				all.Seeds += mine.Seeds
				all.Steps += mine.Steps
				all.Coverage.Add(mine.Coverage)
			})
		}
	})
	return all
}

// Find returns the first of count seeds whose program goes wrong, and how it does;
// false: none did.
func (g *Game) Find(t *testing.T, first, count uint64) (seed uint64, r Run, found bool) {
	t.Helper()
	for seed = first; seed < first+count; seed++ {
		if r = g.Run(t, g.Program(seed)); r.Problem != "" {
			return seed, r, true
		}
	}
	return 0, Run{}, false
}

// Kept runs the programs that are kept in a folder: each went wrong once. The lines
// that begin with # say how.
func (g *Game) Kept(t *testing.T, folder string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			p, err := g.Parse(string(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if r := g.Run(t, p); r.Problem != "" {
				t.Errorf("%s: %s", name, g.Report(t, p))
			}
		})
	}
}
