package board

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Change is the outcome of a request to change one job: whether the job changed, and
// in words for people what was done or why not.
type Change struct {
	Changed bool
	Message string
	Err     error
}

// wishes is an alteration whose items are answered in words.
type wishes struct {
	*alteration
	changes []Change
}

func (b *Board) wishes(ctx context.Context, ids []job.ID) (*wishes, error) {
	a, err := b.alterIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	return &wishes{a, make([]Change, len(ids))}, nil
}

// deny answers an item with no, for a plan to return.
func (w *wishes) deny(i int, format string, args ...any) (driver.Op, error) {
	w.changes[i] = Change{Message: fmt.Sprintf(format, args...)}
	return driver.Op{}, errUnchanged
}

// grant answers an item with yes, should its op be done.
func (w *wishes) grant(i int, format string, args ...any) {
	w.changes[i] = Change{Changed: true, Message: fmt.Sprintf(format, args...)}
}

func (w *wishes) run(ctx context.Context) ([]Change, error) {
	if err := w.alteration.run(ctx); err != nil {
		return nil, err
	}
	for i, err := range w.errs {
		if err != nil && !errors.Is(err, errUnchanged) {
			w.changes[i] = Change{Err: err}
		}
	}
	return w.changes, nil
}

// Cancel ends jobs of which nothing has begun. Of jobs whose operation waits, it asks
// the worker to stop; with force, of jobs that run as well.
func (b *Board) Cancel(ctx context.Context, ids []job.ID, force bool) ([]Change, error) {
	w, err := b.wishes(ctx, ids)
	if err != nil {
		return nil, err
	}
	// Only a job that looks as if it could be canceled at once needs no look at the store:
	// it is asked with the job's version anyway. A no is for good.
	w.enough = func(_ int, s *currentJob) bool { return s != nil && isOpen(s.state) && stageOf(s) == job.OpQueued }
	w.plan = func(i int, s *currentJob) (driver.Op, error) {
		id := w.ids[i]
		switch {
		case s == nil:
			return driver.Op{}, notFound(id)
		case !isOpen(s.state):
			return w.deny(i, "Job %s is no longer waiting in the queue", id)
		}
		switch stage := stageOf(s); {
		case stage == job.OpQueued:
			w.grant(i, "Job %s canceled", id)
			return b.cancelOp(driver.Op{}, s, s.status, "canceled by request"), nil
		case stage == job.OpWaiting, force && (stage == job.OpRunning || stage == job.OpCanceling):
			w.grant(i, "Job %s will be canceled", id)
			return askToStop(s), nil
		}
		return w.deny(i, "Job %s is no longer waiting in the queue", id)
	}
	return w.run(ctx)
}

// stageOf returns the status that decides how a job is canceled: that of its
// operations. A job without operations runs as soon as it is claimed.
func stageOf(s *currentJob) job.OperationStatus {
	if stage := s.status.Operations.Status(); stage != job.NoOperation {
		return stage
	}
	switch {
	case s.status.Cancel:
		return job.OpCanceling
	case s.state == job.Claimed:
		return job.OpRunning
	}
	return job.OpQueued
}

func askToStop(s *currentJob) driver.Op {
	after := s.status
	o := after.Operations.Own()
	o.Mark(job.OpCanceling, record.NoResult, time.Now())
	after.SetOperations(o)
	after.Cancel = true
	encoded := after.Encode()
	return driver.Op{
		Kind: driver.Update, Version: s.entry.Version, Status: &encoded,
		Event: job.OperationEvent, Reason: "the worker is asked to stop",
	}
}

// cancelOp makes of op the end of a job that was canceled.
func (b *Board) cancelOp(op driver.Op, s *currentJob, after record.Status, reason string) driver.Op {
	now := time.Now()
	o := after.Operations.Own()
	o.Conclude(job.Canceled, now)
	after.SetOperations(o)
	after.Cancel = false
	after.Last = shorten.To(reason, record.MaxReasonKept)
	encoded := after.Encode()
	op.Kind, op.Version, op.Status, op.Hold = driver.Remove, s.entry.Version, &encoded, nil
	op.Ending = b.ending(job.Canceled, s)
	op.Event, op.Reason = job.CanceledEvent, reason
	return op
}

// SetOperationPriority changes the priority of those operations of jobs that
// have not begun to run.
func (b *Board) SetOperationPriority(ctx context.Context, ids []job.ID, to int32) ([]Change, error) {
	if to < job.MinOperationPriority || to > job.MaxOperationPriority {
		return nil, job.Errorf(job.Invalid, "operationPriority: want %d to %d, got %d", job.MinOperationPriority, job.MaxOperationPriority, to)
	}
	return b.setPriority(ctx, ids, func(w *wishes, i int, s *currentJob, after *record.Status) error {
		o := after.Operations.Own()
		if !o.Reprioritize(to) {
			_, err := w.deny(i, "Job %s had no pending operations", w.ids[i])
			return err
		}
		after.SetOperations(o)
		w.grant(i, "Priorities of pending operations for job %s have been changed to %d", w.ids[i], to)
		return nil
	})
}

// SetPriority changes the priority of jobs. The posting in the store keeps its own.
func (b *Board) SetPriority(ctx context.Context, ids []job.ID, to job.Priority) ([]Change, error) {
	if to < job.VeryHigh || to > job.VeryLow {
		return nil, job.Errorf(job.Invalid, "priority: want VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW")
	}
	return b.setPriority(ctx, ids, func(w *wishes, i int, s *currentJob, after *record.Status) error {
		after.HasPriority, after.Priority = true, to
		w.grant(i, "Priority of job %s has been changed to %s", w.ids[i], to)
		return nil
	})
}

func (b *Board) setPriority(ctx context.Context, ids []job.ID, set func(w *wishes, i int, s *currentJob, after *record.Status) error) ([]Change, error) {
	w, err := b.wishes(ctx, ids)
	if err != nil {
		return nil, err
	}
	w.enough = func(_ int, s *currentJob) bool { // as in Cancel
		return s != nil && isOpen(s.state) && !s.status.Operations.Status().Finished() && !s.status.Canceling()
	}
	w.plan = func(i int, s *currentJob) (driver.Op, error) {
		if s == nil {
			return driver.Op{}, notFound(w.ids[i])
		}
		switch stage := s.status.Operations.Status(); {
		case !isOpen(s.state), stage.Finished():
			return w.deny(i, "Job %s is finished", w.ids[i])
		case s.status.Canceling():
			return w.deny(i, "Job %s is cancelling", w.ids[i])
		}
		after := s.status
		if err := set(w, i, s, &after); err != nil {
			return driver.Op{}, err
		}
		encoded := after.Encode()
		return driver.Op{
			Kind: driver.Update, Version: s.entry.Version, Status: &encoded, Event: job.OperationEvent, Reason: w.changes[i].Message,
		}, nil
	}
	return w.run(ctx)
}
