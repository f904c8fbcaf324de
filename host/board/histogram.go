package board

import (
	"slices"
	"sync/atomic"
	"time"
)

// Histogram counts how long something took, in buckets.
type Histogram struct {
	bounds  []float64 // upper, in seconds
	buckets []atomic.Uint64
	nanos   atomic.Int64
}

// NewHistogram returns one with these upper bounds of its buckets, in seconds.
func NewHistogram(bounds ...float64) *Histogram {
	return &Histogram{bounds: bounds, buckets: make([]atomic.Uint64, len(bounds)+1)}
}

// Observe counts one that took so long.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0) // clocks may differ
	i, _ := slices.BinarySearch(h.bounds, d.Seconds())
	h.buckets[i].Add(1)
	h.nanos.Add(int64(d))
}

// Totals returns how many were counted, their sum in seconds, and how many took
// at most so many seconds each.
func (h *Histogram) Totals() (count uint64, sum float64, atMost map[float64]uint64) {
	atMost = make(map[float64]uint64, len(h.bounds))
	for i, bound := range h.bounds {
		count += h.buckets[i].Load()
		atMost[bound] = count
	}
	return count + h.buckets[len(h.bounds)].Load(), time.Duration(h.nanos.Load()).Seconds(), atMost
}

// Empty returns a Histogram with the same buckets and nothing in them.
func (h *Histogram) Empty() *Histogram { return NewHistogram(h.bounds...) }

// Advance adds what from has counted since last was as from, and makes last as from. All
// have the same buckets.
func (h *Histogram) Advance(from, last *Histogram) {
	for i := range from.buckets {
		n := from.buckets[i].Load()
		h.buckets[i].Add(n - last.buckets[i].Swap(n))
	}
	nanos := from.nanos.Load()
	h.nanos.Add(nanos - last.nanos.Swap(nanos))
}

// newJobTimes returns a histogram of what jobs do: from quick ones to those of a day.
func newJobTimes() *Histogram {
	return NewHistogram(.01, .1, 1, 5, 30, 120, 600, 3600, 6*3600, 24*3600)
}
