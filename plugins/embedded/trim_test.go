package embedded

import (
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestTrimPassesOverNothing: what one change costs does not grow with what was trimmed since the last
// checkpoint, whose keys are still in the file. The changes, answers, tombstones and final records of
// each are too old for the next.
func TestTrimPassesOverNothing(t *testing.T) { // not in parallel: it counts allocations
	const past, trimmed = 300, 1000
	for name, spec := range map[string]driver.BoardSpec{
		"tombstones": {MaxTombstones: past, Window: time.Hour},
		"finals":     {MaxTombstones: past, MaxFinals: past, MaxFinalBytes: 1 << 30},
		"window":     {MaxTombstones: driver.DefaultMaxTombstones, MaxFinals: 2 * past, MaxFinalBytes: 1 << 30, Window: past * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			hand := &handClock{}
			s, _ := openBoard(t, t.TempDir(), options{clock: hand.clock(1), limits: storageLimits{changes: 2 * past}}, spec)
			n, keep := uint64(0), time.Duration(0)
			if spec.MaxFinals > 0 {
				keep = past * time.Second
			}
			one := func() {
				n++
				hand.turn(time.Second, time.Second)
				mustApply(t, s, postOf(numberedID(n)), driver.Op{
					Kind: driver.Remove, Job: numberedID(n), Precondition: driver.Whatever, Event: job.ConsumedEvent, Ending: &driver.Ending{Outcome: job.Consumed, Keep: keep},
				})
			}
			for range past + trimStep {
				one()
			}
			toFile(t, s)
			before := testing.AllocsPerRun(100, one)
			for range trimmed {
				one()
			}
			if after := testing.AllocsPerRun(100, one); after > 1.5*before {
				t.Errorf("a job costs %.0f allocations after a checkpoint, and %.0f once %d were trimmed since", before, after, trimmed)
			}
		})
	}
}
