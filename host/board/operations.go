package board

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// operations is how the operations of a job stand, as its status record has it.
// They run one after another, so that no finished one comes after an unfinished
// one. The slices may be shared with a record: own copies them before a change.
type operations struct {
	statuses   []byte    // one job.OperationStatus each
	priorities []byte    // one int8 each; nil: all 0
	times      []opTimes // nil: none has begun
	results    []uint16  // whose result each has, see resultOf; nil: none has one
}

// opTimes are in microseconds since 1970; 0: not yet.
type opTimes struct{ started, executed, ended int64 }

// Where the result of an operation is kept: in the attached record of operation
// n-1, or nowhere. The result of all those that a request canceled is the same
// text, which need not be kept.
const (
	noResult       = 0
	canceledResult = 1 << 15
)

// canceledText is the result of operations that a request canceled, as JSON.
const canceledText = `"Job canceled by request"`

func newOperations(list []job.NewOperation) operations {
	if len(list) == 0 {
		return operations{}
	}
	o := operations{statuses: make([]byte, len(list))}
	for i := range list {
		o.statuses[i] = byte(job.OpQueued)
		if list[i].Priority != 0 {
			o.setPriority(i, list[i].Priority)
		}
	}
	return o
}

func (o *operations) len() int                          { return len(o.statuses) }
func (o *operations) at(i int) job.OperationStatus      { return job.OperationStatus(o.statuses[i]) }
func (o *operations) set(i int, to job.OperationStatus) { o.statuses[i] = byte(to) }

func (o *operations) priorityOf(i int) int32 {
	if o.priorities == nil {
		return 0
	}
	return int32(int8(o.priorities[i])) //nolint:gosec // it was one
}

func (o *operations) setPriority(i int, to int32) {
	if o.priorities == nil {
		o.priorities = make([]byte, len(o.statuses))
	}
	o.priorities[i] = byte(int8(to)) //nolint:gosec // checked when it came
}

// resultOf returns where the result of an operation is kept.
func (o *operations) resultOf(i int) int {
	if o.results == nil {
		return noResult
	}
	return int(o.results[i])
}

func (o *operations) setResult(i, to int) {
	if o.results == nil {
		if to == noResult {
			return
		}
		o.results = make([]uint16, len(o.statuses))
	}
	o.results[i] = uint16(to) //nolint:gosec // at most MaxOperations or canceledResult
}

func (o *operations) timesOf(i int) opTimes {
	if o.times == nil {
		return opTimes{}
	}
	return o.times[i]
}

// begin returns the times of an operation, to be changed.
func (o *operations) begin(i int) *opTimes {
	if o.times == nil {
		o.times = make([]opTimes, len(o.statuses))
	}
	return &o.times[i]
}

// own returns a copy that may be changed.
func (o *operations) own() operations {
	return operations{slices.Clone(o.statuses), slices.Clone(o.priorities), slices.Clone(o.times), slices.Clone(o.results)}
}

// status is that of the whole job: the first operation that is canceling, failed
// or canceled decides; else the last that waits or runs; else it is queued, or
// done if all are.
func (o *operations) status() job.OperationStatus {
	if len(o.statuses) == 0 {
		return job.NoOperation
	}
	all, status := true, job.OpQueued
	for _, s := range o.statuses {
		switch s := job.OperationStatus(s); s {
		case job.OpSuccess:
			continue
		case job.OpCanceling, job.OpError, job.OpCanceled:
			return s
		case job.OpWaiting, job.OpRunning:
			status = s
		case job.NoOperation, job.OpQueued:
		}
		all = false
	}
	if all {
		return job.OpSuccess
	}
	return status
}

// priority is that of the most urgent operation that is not finished.
func (o *operations) priority() int32 {
	first := o.unfinished()
	if first == len(o.statuses) || o.priorities == nil {
		return 0
	}
	least := o.priorityOf(first)
	for i := first + 1; i < len(o.statuses); i++ {
		if !o.at(i).Finished() {
			least = min(least, o.priorityOf(i))
		}
	}
	return least
}

// unfinished returns the first operation that is not finished; the number of
// operations if all are.
func (o *operations) unfinished() int {
	for i := range o.statuses {
		if !o.at(i).Finished() {
			return i
		}
	}
	return len(o.statuses)
}

// turn refuses an operation that does not exist, is finished, or comes after one
// that is not.
func (o *operations) turn(i int) error {
	switch first := o.unfinished(); {
	case o.len() == 0:
		return job.Errorf(job.Invalid, "index: the job has no operations")
	case i < 0 || i >= o.len():
		return job.Errorf(job.Invalid, "index: want 0 to %d, got %d", o.len()-1, i)
	case i < first:
		return job.Errorf(job.Precondition, "operation %d is %s: a finished one is never changed", i, o.at(i))
	case i > first:
		return job.Errorf(job.Precondition, "operation %d is %s: it comes before operation %d and has to be finished first", first, o.at(first), i)
	}
	return nil
}

// start makes an operation wait or run. One that is to be canceled is left as it
// is. It reports whether anything changed; the caller owns o.
func (o *operations) start(i int, to job.OperationStatus, now time.Time) (bool, error) {
	if to != job.OpWaiting && to != job.OpRunning {
		return false, job.Errorf(job.Invalid, "status: want WAITING or RUNNING, got %s", to)
	}
	if err := o.turn(i); err != nil {
		return false, err
	}
	switch o.at(i) {
	case to, job.OpCanceling:
		return false, nil
	case job.OpRunning:
		return false, job.Errorf(job.Precondition, "operation %d is RUNNING: it cannot wait any more", i)
	}
	o.set(i, to)
	t := o.begin(i)
	if t.started == 0 {
		t.started = now.UnixMicro()
	}
	if to == job.OpRunning {
		t.executed = now.UnixMicro()
	}
	return true, nil
}

// finish ends an operation. After one that failed or was canceled, those behind
// it are marked alike, with the same result. The caller owns o.
func (o *operations) finish(i int, to job.OperationStatus, result int, now time.Time) error {
	if !to.Finished() {
		return job.Errorf(job.Invalid, "status: want SUCCESS, ERROR or CANCELED, got %s", to)
	}
	if err := o.turn(i); err != nil {
		return err
	}
	if to != job.OpSuccess {
		o.mark(to, result, now)
		return nil
	}
	o.set(i, to)
	o.setResult(i, result)
	t := o.begin(i)
	t.ended = now.UnixMicro()
	if t.executed == 0 {
		t.executed = t.ended
	}
	if t.started == 0 {
		t.started = t.executed
	}
	return nil
}

// mark gives every unfinished operation a status and a result. The caller owns o.
func (o *operations) mark(to job.OperationStatus, result int, now time.Time) {
	for i := range o.statuses {
		if o.at(i).Finished() {
			continue
		}
		o.set(i, to)
		if to.Finished() {
			o.setResult(i, result)
			o.begin(i).ended = now.UnixMicro()
		}
	}
}

// requeue puts operations back that a claim left behind. The caller owns o.
func (o *operations) requeue() {
	for i := range o.statuses {
		if s := o.at(i); s == job.OpWaiting || s == job.OpRunning {
			o.queue(i)
		}
	}
}

// again queues everything that did not end well. The caller owns o.
func (o *operations) again() {
	for i := range o.statuses {
		if o.at(i) != job.OpSuccess {
			o.queue(i)
		}
	}
}

func (o *operations) queue(i int) {
	o.set(i, job.OpQueued)
	o.setResult(i, noResult)
	if o.times != nil {
		o.times[i] = opTimes{}
	}
}

// under reports whether an operation was begun and not finished.
func (o *operations) under() bool {
	i := o.unfinished()
	return i < o.len() && o.at(i) != job.OpQueued
}

// reprioritize changes the priority of operations that did not begin to run, and
// reports whether there were any. The caller owns o.
func (o *operations) reprioritize(to int32) (changed bool) {
	for i := range o.statuses {
		if s := o.at(i); s == job.OpQueued || s == job.OpWaiting {
			o.setPriority(i, to)
			changed = true
		}
	}
	return changed
}

// settle finishes what is left when the job is consumed, and returns how the job
// ended. Without an outcome of the worker's the operations decide. The caller
// owns o.
func (o *operations) settle(outcome job.Outcome, now time.Time) job.Outcome {
	for i := range o.statuses {
		s := o.at(i)
		if s.Finished() {
			continue
		}
		switch {
		case outcome == job.Failed:
			o.mark(job.OpError, noResult, now)
		case outcome == job.Canceled, outcome == job.NoOutcome && s == job.OpCanceling:
			o.mark(job.OpCanceled, canceledResult, now)
		default:
			o.set(i, job.OpSuccess)
			o.begin(i).ended = now.UnixMicro()
		}
	}
	if outcome != job.NoOutcome {
		return outcome
	}
	switch o.status() {
	case job.OpError:
		return job.Failed
	case job.OpCanceled:
		return job.Canceled
	}
	return job.Consumed
}
