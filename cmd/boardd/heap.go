package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// heapFloor is the size up to which the heap may grow before it is collected,
// in bytes. A server between two bursts keeps a few megabytes alive; with Go's
// own rule, twice what is alive, it would be collected many times a second and
// spend a sixth of its processor time on that. A large heap is collected by
// Go's rule. GOMEMLIMIT holds in any case.
const heapFloor = 128 << 20

// keepHeapFloor applies heapFloor from now on, unless the operator chose a rule
// with GOGC.
func keepHeapFloor(gogc string) {
	if gogc == "" {
		(&heapKeeper{percent: 100}).collected()
	}
}

// heapKeeper sets anew after each collection how far the heap may grow.
type heapKeeper struct{ percent int }

func (k *heapKeeper) collected() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if percent := growth(sample[0].Value.Uint64()); percent != k.percent {
		k.percent = percent
		debug.SetGCPercent(percent)
	}
	// The cleanup of something that nobody holds runs after each collection.
	runtime.AddCleanup(new([64]byte), (*heapKeeper).collected, k)
}

// growth returns by how many percent a heap with so much alive may grow, in
// steps that keep small changes from changing it.
func growth(live uint64) int {
	live = max(live, 1<<20)
	if live >= heapFloor/2 {
		return 100
	}
	step := math.Exp2(math.Ceil(math.Log2(float64(live))))
	return int(100*heapFloor/step) - 100
}
