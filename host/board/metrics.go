package board

import (
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
	Claimed             atomic.Int64
	Asked               atomic.Int64 // claim operations that the store was given; where there are no rivals, one for each call
	Passed              atomic.Int64 // candidates that were gone when the store was asked
	Extended            atomic.Int64
	Consumed            atomic.Int64
	Abandoned           atomic.Int64
	Expired             atomic.Int64 // claims whose lease ran out, found by this host
	Exhausted           atomic.Int64 // jobs set aside because their attempts ran out
	Trashed             atomic.Int64
	Restored            atomic.Int64
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

// observe counts what an op did to a job, by what is told of it: whatever call or clock
// it was for.
func (b *Board) observe(s *currentJob, op *driver.Op) {
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
	ends := op.Kind == driver.Remove || op.Kind == driver.Trash
	if ends && s != nil && s.entry.Claim != nil && !s.status.present.begun.IsZero() {
		b.metrics.Runs.Observe(time.Since(s.status.present.begun))
	}
}

// waited counts how long a job could have been claimed before it was.
func (b *Board) waited(before *index.Entry) {
	if before == nil || before.Claim != nil {
		return
	}
	ready := before.ModifiedAt
	if before.NotBefore.After(ready) {
		ready = before.NotBefore
	}
	if !ready.IsZero() {
		b.metrics.Waits.Observe(time.Since(ready))
	}
}

// count adds a change that was made now.
func count(r *driver.Result, counter *atomic.Int64) {
	if r.Kind == job.NoKind && !r.Repeated {
		counter.Add(1)
	}
}
