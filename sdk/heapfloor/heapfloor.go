// Package heapfloor keeps Go from collecting a small heap many times a second, and from letting as
// much garbage lie about as a large one has alive. Its users are the server and the drivers:
// programs that make much garbage, and keep little alive or millions of jobs without a pointer.
package heapfloor

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Keep has the heap of this process grow to floor bytes before it is collected, unless gogc, which
// is what the environment has for GOGC, says otherwise. It is for a program's main, and called once.
//
// A server or a driver between two bursts keeps a few megabytes alive; with Go's own rule, twice what
// is alive, it would be collected many times a second and spend a sixth of its processor time on
// that. A heap of which more than half of the floor is alive is collected by Go's rule until Garbage
// is alive, and then before so much is garbage: most of such a heap are a board's jobs, which have no
// pointers, and so cost the collector next to nothing (2 GiB of them 90 ms of a processor). GOMEMLIMIT
// holds in any case.
func Keep(gogc string, floor uint64) {
	if gogc == "" {
		(&keeper{percent: 100, floor: floor}).collected()
	}
}

// Floors in bytes: of what has jobs in memory, and of a driver whose store is another process.
const (
	Large = 128 << 20
	Small = 32 << 20
)

// Garbage is how many bytes of a large heap are garbage at most before it is collected, and half of
// that at least.
const Garbage = 512 << 20

// keeper sets anew after each collection how far the heap may grow.
type keeper struct {
	percent int
	floor   uint64
}

func (k *keeper) collected() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if percent := growth(sample[0].Value.Uint64(), k.floor); percent != k.percent {
		k.percent = percent
		debug.SetGCPercent(percent)
	}
	// The cleanup of something that nobody holds runs after each collection.
	runtime.AddCleanup(new([64]byte), (*keeper).collected, k)
}

// growth returns by how many percent a heap with so much alive may grow, in
// steps that keep small changes from changing it.
func growth(live, floor uint64) int {
	live = max(live, 1<<20)
	step := math.Exp2(math.Ceil(math.Log2(float64(live))))
	switch {
	case live < floor/2:
		return int(100*float64(floor)/step) - 100
	case live > Garbage:
		return max(1, int(100*Garbage/step))
	}
	return 100
}
