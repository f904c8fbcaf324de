package index

import (
	"testing"
	"time"
)

// BenchmarkRescore gives every job of a board another place, in the reverse
// order each time, and tells how long the longest of the claims waited that were
// made meanwhile.
func BenchmarkRescore(b *testing.B) {
	const backlog = 1e6
	ix := filled(b, backlog)
	sign := int64(1)
	longest := time.Duration(0)
	for b.Loop() {
		sign = -sign
		ix.SetScorer(func(entries []*Entry) {
			for _, e := range entries {
				e.Score = sign * int64(e.ID[0]^e.ID[15])
			}
		}, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := ix.Rescore(b.Context()); err != nil {
				b.Error(err)
			}
		}()
		for waiting := true; waiting; {
			select {
			case <-done:
				waiting = false
			default:
				began := time.Now()
				for _, e := range ix.Take(b.Context(), ix.everyone, 1) {
					longest = max(longest, time.Since(began))
					ix.Return(e.ID)
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/backlog, "ns/job")
	b.ReportMetric(float64(longest.Microseconds()), "longest-claim-µs")
}
