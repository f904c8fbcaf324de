package board

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Metrics counts what a board did since it was made. The host reads it where it
// likes; nothing here knows how it is shown.
type Metrics struct {
	Posted, PostedAgain atomic.Int64 // accepted; and of repeated posts, those that stood already
	PostsRefused        atomic.Int64 // postings for which a limit left no room
	Claimed             atomic.Int64
	Asked               atomic.Int64 // claim operations that the store was given; one for each call if no other host claims
	Ahead               atomic.Int64 // of the claimed ones: to begin later
	Unbegun             atomic.Int64 // of these: given back or lapsed before they had begun
	Refunded            atomic.Int64 // and of these: without using up an attempt
	Passed              atomic.Int64 // candidates that were gone when the store was asked
	Extended            atomic.Int64
	Consumed            atomic.Int64
	Abandoned           atomic.Int64
	Expired             atomic.Int64 // claims whose lease ran out, found by this host
	Exhausted           atomic.Int64 // jobs set aside because their attempts ran out
	Trashed             atomic.Int64
	Restored            atomic.Int64
	Ticks               atomic.Int64 // of schedules, whose jobs were posted
	TicksMissed         atomic.Int64 // that were left out
	Purged              atomic.Int64
	Released            atomic.Int64
	Canceled            atomic.Int64
	Operations          atomic.Int64 // begun or finished
	LogEntries          atomic.Int64
	StaleTokens         atomic.Int64 // calls refused because their claim had ended
	Unknown             atomic.Int64 // outcomes that the store never told
	Retried             atomic.Int64 // ops sent again to learn their outcome
	PolicyErrors        atomic.Int64
	Loads               atomic.Int64 // times the whole board was read
	Unrecorded          atomic.Int64 // claims that a recording lacks, since nothing was known of the job any more
	BadRecords          atomic.Int64 // records found unreadable
	Watchers            atomic.Int64 // now
	Overrun             atomic.Int64 // watchers that were too slow and had to resync

	Waits *Histogram // of claimed jobs, since they were posted, due, given back or last changed
	Runs  *Histogram // of jobs that ended or went to the trash while they were claimed, since then
}

// Metrics returns the board's counters.
func (b *Board) Metrics() *Metrics { return &b.metrics }

// Waiting returns how many claim calls wait for a job now.
func (b *Board) Waiting() int64 { return b.waiters.Load() }

// observe counts what an op did to a job by the op's event, whichever call or timer
// sent it.
func (b *Board) observe(s *currentJob, op *driver.Op) {
	b.names.ended(s, op)
	switch op.Event {
	case job.TrashedEvent:
		b.metrics.Trashed.Add(1)
		if s != nil && s.ranOut {
			b.metrics.Exhausted.Add(1)
		}
	case job.CanceledEvent:
		b.metrics.Canceled.Add(1)
	default:
	}
	if s != nil && s.unbegun {
		b.metrics.Unbegun.Add(1)
	}
	if s != nil && s.refunds {
		b.metrics.Refunded.Add(1)
	}
	ends := op.Kind == driver.Remove || op.Kind == driver.Trash
	if ends && s != nil && s.entry.Claim != nil && !s.status.Present.Begun.IsZero() {
		b.metrics.Runs.Observe(time.Since(s.status.Present.Begun))
	}
}

// waited counts how long a job could have been claimed before it was.
func (b *Board) waited(before *index.Entry) {
	if took, known := waitedFor(before); known {
		b.metrics.Waits.Observe(took)
		b.names.waited(before.Name, took)
	}
}

// count adds a change that was made now.
func count(r *driver.Result, counter *atomic.Int64) {
	if r.Kind == job.NoKind && !r.Repeated {
		counter.Add(1)
	}
}

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

// Totals returns how many were counted, their sum in seconds, and for each upper bound
// in seconds how many took at most that long.
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

// Advance adds to h what from has counted since the Advance before, and makes last equal
// to from. last holds what from had counted then. All have the same buckets.
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
