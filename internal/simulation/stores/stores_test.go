package stores_test

import (
	"testing"

	"github.com/boardd/boardd/internal/simulation/stores"
)

func TestSeeds(t *testing.T) {
	stores.Reference().Test(t)
	stores.Transition(stores.NoFlaw).Test(t)
}

// TestKept runs the programs that found something once.
func TestKept(t *testing.T) {
	t.Parallel()
	stores.Transition(stores.NoFlaw).Kept(t, "testdata/transition")
}

// TestReplay checks that a seed is one history.
func TestReplay(t *testing.T) {
	t.Parallel()
	stores.Reference().Replays(t, 100)
	stores.Transition(stores.NoFlaw).Replays(t, 100)
}

// TestFlaws checks that each flaw is found, and soon.
func TestFlaws(t *testing.T) {
	t.Parallel()
	for _, flaw := range stores.Flaws() {
		t.Run(flaw.String(), func(t *testing.T) {
			t.Parallel()
			seed, r, found := stores.Transition(flaw).Find(t, 0, 200)
			if !found {
				t.Fatal("200 seeds did not find it")
			}
			t.Logf("seed %d, step %d: %s", seed, r.Steps, r.Problem)
		})
	}
}
