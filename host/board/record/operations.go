package record

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Operations is how the operations of a job stand, as its status record has it.
// They run one after another, so that no finished one comes after an unfinished
// one. The slices may be shared with a record: Own copies them before a change.
type Operations struct {
	Statuses   []byte    // one job.OperationStatus each
	Priorities []byte    // one int8 each; nil: all 0
	Times      []OpTimes // nil: none has begun
	Results    []uint16  // whose result each has, see ResultOf; nil: none has one
}

// OpTimes are in microseconds since 1970; 0: not yet.
type OpTimes struct{ Started, Executed, Ended int64 }

// Where the result of an operation is kept: in the attached record of operation
// n-1, or nowhere. The result of all those that a request canceled is the same
// text, which need not be kept.
const (
	NoResult       = 0
	CanceledResult = 1 << 15
)

// CanceledText is the result of operations that a request canceled, as JSON.
const CanceledText = `"Job canceled by request"`

// NewOperations returns those of a new job: all are queued.
func NewOperations(list []job.NewOperation) Operations {
	if len(list) == 0 {
		return Operations{}
	}
	o := Operations{Statuses: make([]byte, len(list))}
	for i := range list {
		o.Statuses[i] = byte(job.OpQueued)
		if list[i].Priority != 0 {
			o.SetPriority(i, list[i].Priority)
		}
	}
	return o
}

// Len returns how many there are.
func (o *Operations) Len() int { return len(o.Statuses) }

// At returns how one stands.
func (o *Operations) At(i int) job.OperationStatus      { return job.OperationStatus(o.Statuses[i]) }
func (o *Operations) set(i int, to job.OperationStatus) { o.Statuses[i] = byte(to) }

// PriorityOf returns the priority of one.
func (o *Operations) PriorityOf(i int) int32 {
	if o.Priorities == nil {
		return 0
	}
	return int32(int8(o.Priorities[i])) //nolint:gosec // it was one
}

// SetPriority changes the priority of one.
func (o *Operations) SetPriority(i int, to int32) {
	if o.Priorities == nil {
		o.Priorities = make([]byte, len(o.Statuses))
	}
	o.Priorities[i] = byte(int8(to)) //nolint:gosec // checked when it came
}

// ResultOf returns where the result of an operation is kept.
func (o *Operations) ResultOf(i int) int {
	if o.Results == nil {
		return NoResult
	}
	return int(o.Results[i])
}

// SetResult notes where the result of an operation is kept.
func (o *Operations) SetResult(i, to int) {
	if o.Results == nil {
		if to == NoResult {
			return
		}
		o.Results = make([]uint16, len(o.Statuses))
	}
	o.Results[i] = uint16(to) //nolint:gosec // at most MaxOperations or CanceledResult
}

// TimesOf returns when an operation began and ended.
func (o *Operations) TimesOf(i int) OpTimes {
	if o.Times == nil {
		return OpTimes{}
	}
	return o.Times[i]
}

// Begin returns the times of an operation, to be changed.
func (o *Operations) Begin(i int) *OpTimes {
	if o.Times == nil {
		o.Times = make([]OpTimes, len(o.Statuses))
	}
	return &o.Times[i]
}

// Own returns a copy that may be changed.
func (o *Operations) Own() Operations {
	return Operations{slices.Clone(o.Statuses), slices.Clone(o.Priorities), slices.Clone(o.Times), slices.Clone(o.Results)}
}

// Status is that of the whole job: the first operation that is canceling, failed
// or canceled decides; else the last that waits or runs; else it is queued, or
// done if all are.
func (o *Operations) Status() job.OperationStatus {
	if len(o.Statuses) == 0 {
		return job.NoOperation
	}
	all, status := true, job.OpQueued
	for _, s := range o.Statuses {
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

// Priority is that of the most urgent operation that is not finished.
func (o *Operations) Priority() int32 {
	first := o.Unfinished()
	if first == len(o.Statuses) || o.Priorities == nil {
		return 0
	}
	least := o.PriorityOf(first)
	for i := first + 1; i < len(o.Statuses); i++ {
		if !o.At(i).Finished() {
			least = min(least, o.PriorityOf(i))
		}
	}
	return least
}

// Unfinished returns the first operation that is not finished; the number of
// Operations if all are.
func (o *Operations) Unfinished() int {
	for i := range o.Statuses {
		if !o.At(i).Finished() {
			return i
		}
	}
	return len(o.Statuses)
}

// Next refuses an operation that does not exist, is finished, or comes after one
// that is not.
func (o *Operations) Next(i int) error {
	switch first := o.Unfinished(); {
	case o.Len() == 0:
		return job.Errorf(job.Invalid, "index: the job has no operations")
	case i < 0 || i >= o.Len():
		return job.Errorf(job.Invalid, "index: want 0 to %d, got %d", o.Len()-1, i)
	case i < first:
		return job.Errorf(job.Precondition, "operation %d is %s: a finished one is never changed", i, o.At(i))
	case i > first:
		return job.Errorf(job.Precondition, "operation %d is %s: it comes before operation %d and has to be finished first", first, o.At(first), i)
	}
	return nil
}

// Start makes an operation wait or run. One that is to be canceled is left as it
// is. It reports whether anything changed; the caller owns o.
func (o *Operations) Start(i int, to job.OperationStatus, now time.Time) (bool, error) {
	if to != job.OpWaiting && to != job.OpRunning {
		return false, job.Errorf(job.Invalid, "status: want WAITING or RUNNING, got %s", to)
	}
	if err := o.Next(i); err != nil {
		return false, err
	}
	switch o.At(i) {
	case to, job.OpCanceling:
		return false, nil
	case job.OpRunning:
		return false, job.Errorf(job.Precondition, "operation %d is RUNNING: it cannot wait any more", i)
	}
	o.set(i, to)
	t := o.Begin(i)
	if t.Started == 0 {
		t.Started = now.UnixMicro()
	}
	if to == job.OpRunning {
		t.Executed = now.UnixMicro()
	}
	return true, nil
}

// Finish ends an operation. After one that failed or was canceled, those behind
// it are marked alike, with the same result. The caller owns o.
func (o *Operations) Finish(i int, to job.OperationStatus, result int, now time.Time) error {
	if !to.Finished() {
		return job.Errorf(job.Invalid, "status: want SUCCESS, ERROR or CANCELED, got %s", to)
	}
	if err := o.Next(i); err != nil {
		return err
	}
	if to != job.OpSuccess {
		o.Mark(to, result, now)
		return nil
	}
	o.set(i, to)
	o.SetResult(i, result)
	t := o.Begin(i)
	t.Ended = now.UnixMicro()
	if t.Executed == 0 {
		t.Executed = t.Ended
	}
	if t.Started == 0 {
		t.Started = t.Executed
	}
	return nil
}

// Mark gives every unfinished operation a status and a result. The caller owns o.
func (o *Operations) Mark(to job.OperationStatus, result int, now time.Time) {
	for i := range o.Statuses {
		if o.At(i).Finished() {
			continue
		}
		o.set(i, to)
		if to.Finished() {
			o.SetResult(i, result)
			o.Begin(i).Ended = now.UnixMicro()
		}
	}
}

// Requeue puts operations back that a claim left behind. The caller owns o.
func (o *Operations) Requeue() {
	for i := range o.Statuses {
		if s := o.At(i); s == job.OpWaiting || s == job.OpRunning {
			o.queue(i)
		}
	}
}

// Again queues everything that did not end well. The caller owns o.
func (o *Operations) Again() {
	for i := range o.Statuses {
		if o.At(i) != job.OpSuccess {
			o.queue(i)
		}
	}
}

func (o *Operations) queue(i int) {
	o.set(i, job.OpQueued)
	o.SetResult(i, NoResult)
	if o.Times != nil {
		o.Times[i] = OpTimes{}
	}
}

// under reports whether an operation was begun and not finished.
func (o *Operations) under() bool {
	i := o.Unfinished()
	return i < o.Len() && o.At(i) != job.OpQueued
}

// Reprioritize changes the priority of operations that did not begin to run, and
// reports whether there were any. The caller owns o.
func (o *Operations) Reprioritize(to int32) (changed bool) {
	for i := range o.Statuses {
		if s := o.At(i); s == job.OpQueued || s == job.OpWaiting {
			o.SetPriority(i, to)
			changed = true
		}
	}
	return changed
}

// Conclude finishes what is left when the job is consumed, and returns how the job
// ended. If the worker gave no outcome, the operations decide. The caller owns o.
func (o *Operations) Conclude(outcome job.Outcome, now time.Time) job.Outcome {
	for i := range o.Statuses {
		s := o.At(i)
		if s.Finished() {
			continue
		}
		switch {
		case outcome == job.Failed:
			o.Mark(job.OpError, NoResult, now)
		case outcome == job.Canceled, outcome == job.NoOutcome && s == job.OpCanceling:
			o.Mark(job.OpCanceled, CanceledResult, now)
		default:
			o.set(i, job.OpSuccess)
			o.Begin(i).Ended = now.UnixMicro()
		}
	}
	if outcome != job.NoOutcome {
		return outcome
	}
	switch o.Status() {
	case job.OpError:
		return job.Failed
	case job.OpCanceled:
		return job.Canceled
	}
	return job.Consumed
}

// Unlike counts the operations that are not finished and whose status is not to.
func (o *Operations) Unlike(to job.OperationStatus) (n int) {
	for i := range o.Statuses {
		if at := o.At(i); !at.Finished() && at != to {
			n++
		}
	}
	return n
}
