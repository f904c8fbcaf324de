package board

import (
	"context"
	"fmt"
	"time"

	"github.com/boardd/boardd/host/board/jsontext"
	"github.com/boardd/boardd/host/board/record"
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
	err := b.changeOperations(ctx, req.Ref, func(s *currentJob, after *record.Status) ([]driver.Attachment, string, error) {
		attach, marked, err := b.mark(ctx, s.entry.ID, after, &req)
		if err != nil {
			return nil, "", err
		}
		result = MarkResult{marked, after.Operations.Status(), after.Canceling()}
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
		return jsontext.CheckValue("result", req.Result, job.MaxResult)
	case req.Status != job.OpQueued && req.Status != job.OpCanceling:
		return job.Errorf(job.Invalid, "status: want QUEUED, CANCELING, SUCCESS, ERROR or CANCELED, got %s", req.Status)
	case len(req.Result) > 0:
		return job.Errorf(job.Invalid, "result: what is %s has none yet", req.Status)
	}
	return nil
}

// mark changes the operations and makes the attached record of their result, which
// is kept once for all of them.
func (b *Board) mark(ctx context.Context, id job.ID, after *record.Status, req *MarkRequest) (attach []driver.Attachment, marked int, err error) {
	o := &after.Operations
	if o.Len() == 0 {
		return nil, 0, job.Errorf(job.Invalid, "the job has no operations")
	}
	marked = o.Unlike(req.Status)
	if marked == 0 {
		return nil, 0, nil
	}
	now := time.Now()
	switch req.Status {
	case job.OpQueued:
		if after.Canceling() {
			return nil, 0, job.Errorf(job.Precondition, "the job is to be canceled: what is CANCELING is not queued again")
		}
		o.Requeue()
	case job.OpCanceling:
		o.Mark(req.Status, record.NoResult, now)
		after.Cancel = true
	default:
		var at int
		if at, attach, err = b.keepResult(ctx, id, after, o.Unfinished(), req.Result); err != nil {
			return nil, 0, err
		}
		if at == record.NoResult && req.Status == job.OpCanceled {
			at = record.CanceledResult
		}
		o.Mark(req.Status, at, now)
	}
	return attach, marked, nil
}
