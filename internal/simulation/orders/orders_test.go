package orders_test

import (
	"testing"

	"github.com/boardd/boardd/internal/simulation/orders"
)

func TestSeeds(t *testing.T) { orders.Game(orders.NoFlaw).Test(t) }

// TestReplay checks that a seed is one history.
func TestReplay(t *testing.T) {
	t.Parallel()
	orders.Game(orders.NoFlaw).Replays(t, 100)
}

// TestFlaws checks that each flaw is found, and soon.
func TestFlaws(t *testing.T) {
	t.Parallel()
	for _, flaw := range orders.Flaws() {
		t.Run(flaw.String(), func(t *testing.T) {
			t.Parallel()
			seed, r, found := orders.Game(flaw).Find(t, 0, 500)
			if !found {
				t.Fatal("500 seeds did not find it")
			}
			t.Logf("seed %d, step %d: %s", seed, r.Steps, r.Problem)
		})
	}
}

// TestKept runs the programs that found something once.
func TestKept(t *testing.T) {
	t.Parallel()
	orders.Game(orders.NoFlaw).Kept(t, "testdata/index")
}
