package stores

import (
	"slices"

	"github.com/boardd/boardd/internal/simulation"
)

// faults are what may go wrong with an op on any store.
var faults = []string{"lost-before", "lost-after", "repeated", "other-request", "edge", "window-edge"}

// inside are those that need a store that can be stepped inside its ops.
var inside = []string{"overlap", "other-host", "jump", "clock-step", "late", "crash-before", "crash-after"}

// Reference is the game on package memdriver.
func Reference() *simulation.Game {
	return game("reference", nil, func(rec *simulation.Recorder) simulation.World { return open(rec, NewReference()) })
}

// Transition is the game on a store over package transition, with a flaw.
func Transition(flaw Flaw) *simulation.Game {
	return game("transition", inside, func(rec *simulation.Recorder) simulation.World { return open(rec, NewOptimist(flaw)) })
}

// OnDisk is the game on a store whose process can end in the middle of a write.
func OnDisk(name string, store func() Crasher) *simulation.Game {
	g := game(name, []string{"disk"}, func(rec *simulation.Recorder) simulation.World { return open(rec, store()) })
	g.Actions = append(g.Actions, simulation.Action{Name: "crash", Weight: 2, Most: most})
	return g
}

func game(name string, special []string, open func(*simulation.Recorder) simulation.World) *simulation.Game {
	g := &simulation.Game{Name: name, Length: 60, Open: open}
	op := func(name string, weight int, more ...string) {
		list := append(append([]string(nil), faults...), more...)
		list = append(list, special...)
		g.Actions = append(g.Actions, simulation.Action{Name: name, Weight: weight, Most: most, Faults: list})
	}
	other := func(name string, weight int, faults ...string) {
		g.Actions = append(g.Actions, simulation.Action{Name: name, Weight: weight, Most: most, Faults: faults})
	}
	op("post", 10, "limit-edge")
	op("claim", 16, "limit-edge")
	op("extend", 4, "stale-token")
	op("update", 6, "stale-token")
	op("release", 6, "stale-token")
	op("remove", 6, "stale-token")
	op("trash", 4, "stale-token")
	op("restore", 4)
	op("purge", 3)
	other("again", 8, "other-request", "other-job", "window-edge")
	other("pass", 4)
	other("edge", 4)
	other("watch", 6, "again", "too-late", "future")
	other("scan", 3)
	opens := []string{"seen-ahead", "no-witness"}
	if !slices.Contains(special, "disk") { // whose witness only the store itself can read
		opens = append(opens, "other-store")
	}
	other("open", 2, opens...)
	if !slices.Contains(special, "overlap") {
		return g
	}
	other("commit", 8)
	other("crash", 1)
	other("back-up", 1)
	other("put-back", 1)
	for _, one := range opNames {
		for _, two := range opNames {
			g.Also = append(g.Also, simulation.Pair{One: one + " under way", Other: two})
		}
	}
	return g
}
