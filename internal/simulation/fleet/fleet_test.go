package fleet_test

import (
	"testing"

	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/internal/simulation/fleet"
)

// seedsFor is how many seeds of the others there are for one of these, whose programs are
// hours of a fleet.
const seedsFor = 330

func TestSeeds(t *testing.T) {
	first, count := simulation.Asked(t)
	g := fleet.Game(fleet.NoFlaw)
	total := g.Seeds(t, first/seedsFor, count/seedsFor)
	t.Logf("fleet: %d seeds from %d on, %d steps, %d pairs", total.Seeds, first/seedsFor, total.Steps, len(total.Coverage))
	if count < simulation.CISeeds || t.Failed() {
		return
	}
	for _, p := range total.Coverage.Unseen(g.Possible()) {
		t.Errorf("%q with %q was never seen", p.One, p.Other)
	}
}

// TestReplay checks that a seed is one history.
func TestReplay(t *testing.T) {
	t.Parallel()
	fleet.Game(fleet.NoFlaw).Replays(t, 2)
}

// TestFlaws checks that each flaw is found, and soon.
func TestFlaws(t *testing.T) {
	t.Parallel()
	for _, flaw := range fleet.Flaws() {
		t.Run(flaw.String(), func(t *testing.T) {
			t.Parallel()
			seed, r, found := fleet.Game(flaw).Find(t, 0, 30)
			if !found {
				t.Fatal("30 seeds did not find it")
			}
			t.Logf("seed %d, step %d: %s", seed, r.Steps, r.Problem)
		})
	}
}

// TestKept runs the programs that found something once.
func TestKept(t *testing.T) {
	t.Parallel()
	fleet.Game(fleet.NoFlaw).Kept(t, "testdata/fleet")
}
