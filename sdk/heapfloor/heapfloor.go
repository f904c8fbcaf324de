// Package heapfloor keeps Go from collecting a small heap many times a second. Its users are the
// server and the drivers: programs that make much garbage and keep little alive.
package heapfloor

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Floor is the size up to which the heap may grow before it is collected, in bytes. A server or a
// driver between two bursts keeps a few megabytes alive; with Go's own rule, twice what is alive,
// it would be collected many times a second and spend a sixth of its processor time on that. A
// large heap is collected by Go's rule. GOMEMLIMIT holds in any case.
const Floor = 128 << 20

// Keep applies Floor to this process from now on, unless whoever started it chose a rule with
// GOGC. It is for a program's main, and called once.
func Keep() {
	if os.Getenv("GOGC") == "" {
		(&keeper{percent: 100}).collected()
	}
}

// keeper sets anew after each collection how far the heap may grow.
type keeper struct{ percent int }

func (k *keeper) collected() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if percent := growth(sample[0].Value.Uint64()); percent != k.percent {
		k.percent = percent
		debug.SetGCPercent(percent)
	}
	// The cleanup of something that nobody holds runs after each collection.
	runtime.AddCleanup(new([64]byte), (*keeper).collected, k)
}

// growth returns by how many percent a heap with so much alive may grow, in
// steps that keep small changes from changing it.
func growth(live uint64) int {
	live = max(live, 1<<20)
	if live >= Floor/2 {
		return 100
	}
	step := math.Exp2(math.Ceil(math.Log2(float64(live))))
	return int(100*Floor/step) - 100
}
