package board

import (
	"context"
	"fmt"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// MarkRequest is about all operations of a claimed job that are not finished.
type MarkRequest struct {
	Ref    Ref
	Status job.OperationStatus
	Result []byte // JSON; only with OpSuccess, OpError and OpCanceled
}

// MarkResult says how things stand after it.
type MarkResult struct {
	Marked          int                 // how many changed
	JobStatus       job.OperationStatus // of the whole job
	CancelRequested bool                // the worker is asked to stop
}

// MarkOperations gives all operations that are not finished one status and one
// result. Repeated, it changes nothing more.
func (b *Board) MarkOperations(ctx context.Context, req MarkRequest) (MarkResult, error) {
	if err := checkMark(&req); err != nil {
		return MarkResult{}, err
	}
	var result MarkResult
	err := b.changeOperations(ctx, req.Ref, func(_ *currentJob, after *status) ([]driver.Attachment, string, error) {
		attach, marked, err := b.mark(after, &req)
		if err != nil {
			return nil, "", err
		}
		result = MarkResult{marked, after.operations.status(), after.canceling()}
		if marked == 0 {
			return nil, "", errUnchanged
		}
		return attach, fmt.Sprintf("unfinished operations are %s", req.Status), nil
	})
	if err != nil {
		return MarkResult{}, err
	}
	return result, nil
}

func checkMark(req *MarkRequest) error {
	switch {
	case req.Status.Finished():
		return checkValue("result", req.Result, job.MaxResult)
	case req.Status != job.OpQueued && req.Status != job.OpCanceling:
		return job.Errorf(job.Invalid, "status: want QUEUED, CANCELING, SUCCESS, ERROR or CANCELED, got %s", req.Status)
	case len(req.Result) > 0:
		return job.Errorf(job.Invalid, "result: what is %s has none yet", req.Status)
	}
	return nil
}

// mark changes the operations and makes the attached record of their result, which
// is kept once for all of them.
func (b *Board) mark(after *status, req *MarkRequest) (attach []driver.Attachment, marked int, err error) {
	o := &after.operations
	if o.len() == 0 {
		return nil, 0, job.Errorf(job.Invalid, "the job has no operations")
	}
	marked = o.unlike(req.Status)
	if marked == 0 {
		return nil, 0, nil
	}
	now := time.Now()
	switch req.Status {
	case job.OpQueued:
		if after.canceling() {
			return nil, 0, job.Errorf(job.Precondition, "the job is to be canceled: what is CANCELING is not queued again")
		}
		o.requeue()
	case job.OpCanceling:
		o.mark(req.Status, noResult, now)
		after.cancel = true
	default:
		var at int
		if at, attach, err = b.keepResult(after, o.unfinished(), req.Result); err != nil {
			return nil, 0, err
		}
		if at == noResult && req.Status == job.OpCanceled {
			at = canceledResult
		}
		o.mark(req.Status, at, now)
	}
	return attach, marked, nil
}

// unlike counts the operations that are not finished and stand otherwise.
func (o *operations) unlike(to job.OperationStatus) (n int) {
	for i := range o.statuses {
		if at := o.at(i); !at.Finished() && at != to {
			n++
		}
	}
	return n
}
