package board

import (
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Steps are the operations of a job as the store's records have them: to be gone
// through where a job.Operation of each would cost more than all else that is said of
// the job. The zero value has none.
type Steps struct {
	posted  []byte // the extra record
	now     record.Operations
	results map[int][]byte // by the operation that they were given for
}

// A Step is one operation. Its bytes are the records': nobody may write to them.
type Step struct {
	Index       int32
	Name, Input []byte
	Priority    int32
	Status      job.OperationStatus
	Result      []byte // nil: none, or not at hand

	StartedAt, ExecutedAt, EndedAt int64 // in microseconds since 1970; 0: not yet
}

// stepsOf returns the operations of a job whose status is known, as far as the record
// has what belongs to them.
func stepsOf(rec *driver.Record, s *record.Status) Steps {
	return Steps{posted: rec.Posting.Extra, now: s.Operations, results: results(rec.Attached)}
}

// Len returns how many there are.
func (o *Steps) Len() int { return o.now.Len() }

// Size returns about how many bytes their names, inputs and results have.
func (o *Steps) Size() int {
	size := len(o.posted)
	for _, result := range o.results {
		size += len(result)
	}
	return size
}

// Each calls fn for each operation in order. The Step is only good until fn returns.
func (o *Steps) Each(fn func(*Step)) {
	n := 0
	var step Step
	show := func(posted record.PostedOperation) {
		step = Step{
			Index: int32(n), Name: posted.Name, Input: posted.Input, Priority: o.now.PriorityOf(n), Status: o.now.At(n), //nolint:gosec // an index
		}
		t := o.now.TimesOf(n)
		step.StartedAt, step.ExecutedAt, step.EndedAt = t.Started, t.Executed, t.Ended
		switch at := o.now.ResultOf(n); at {
		case record.NoResult:
		case record.CanceledResult:
			step.Result = []byte(record.CanceledText)
		default:
			step.Result = o.results[at-1]
		}
		n++
		fn(&step)
	}
	_ = record.EachField(o.posted, func(tag uint64, data, _ []byte) error { // one that cannot be read was reported when it came
		if tag != record.ExtraOperation || n == o.Len() {
			return nil
		}
		posted, err := record.ReadOperation(data)
		if err == nil {
			show(posted)
		}
		return err
	})
	for n < o.Len() {
		show(record.PostedOperation{}) // how they stand is known all the same
	}
}

// List returns the operations as people see them.
func (o *Steps) List() []job.Operation {
	if o.Len() == 0 {
		return nil
	}
	list := make([]job.Operation, 0, o.Len())
	names := make([]byte, 0, 512) // of all of them: one text costs less than many
	var few [32]int               // on the stack, for most jobs
	ends := few[:0]
	o.Each(func(s *Step) {
		names = append(names, s.Name...)
		ends = append(ends, len(names))
		list = append(list, job.Operation{
			Index: s.Index, Input: s.Input, Priority: s.Priority, Status: s.Status, Result: s.Result,
			StartedAt: micro(s.StartedAt), ExecutedAt: micro(s.ExecutedAt), EndedAt: micro(s.EndedAt),
		})
	})
	start, text := 0, string(names)
	for i := range list {
		list[i].Name, start = text[start:ends[i]], ends[i]
	}
	return list
}

// micro is a time of a status record.
func micro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
