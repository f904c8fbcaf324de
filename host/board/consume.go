package board

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// prerequisiteKeep is how long at least the store remembers the end of a job that
// another one waits for, in case no host runs to see it.
const prerequisiteKeep = 30 * 24 * time.Hour

// ending says what a job leaves behind: with a history all of it, else how it
// ended.
func (b *Board) ending(outcome job.Outcome, s *currentJob) *driver.Ending {
	e := &driver.Ending{Outcome: outcome}
	if b.spec.History > 0 {
		e.Keep, e.KeepPosting, e.KeepAttached = b.spec.History, true, true
		if s != nil && s.entry.Claim != nil {
			e.Data = record.AppendText([]byte{record.Version}, finalOwner, s.entry.Claim.Owner)
		}
	}
	if s != nil && b.waiting.awaited(s.entry.ID) {
		e.Keep = max(e.Keep, prerequisiteKeep)
	}
	if e.Keep == 0 && outcome == job.Consumed {
		return nil
	}
	return e
}

// The fields of a final record.
const finalOwner = 1

func ownerOfFinal(encoded []byte) (owner string) {
	_ = record.EachField(encoded, func(tag uint64, data, _ []byte) error { // one that cannot be read says nothing
		if tag == finalOwner {
			owner = string(data)
		}
		return nil
	})
	return owner
}

// Consume ends jobs that are done. Repeated with the same token it answers as
// it first did.
func (b *Board) Consume(ctx context.Context, refs []Ref) ([]error, error) {
	return b.ConsumeAs(ctx, refs, job.NoOutcome)
}

// ConsumeAs is Consume with an outcome that the worker gives. With NoOutcome the
// job's operations decide; a job without operations is Consumed.
func (b *Board) ConsumeAs(ctx context.Context, refs []Ref, outcome job.Outcome) ([]error, error) {
	e := Ending{How: ToConsume, Outcome: outcome}
	if err := e.check(); err != nil {
		return nil, err
	}
	return b.endClaims(ctx, refs, func(int) *Ending { return &e })
}

// consume fills in how the job ends.
func (b *Board) consume(op *driver.Op, s *currentJob, outcome job.Outcome) {
	ended := outcome
	switch {
	case s == nil:
	case s.state == job.Complete:
		ended = s.outcome // it may be a repetition, which is recognised by it
	case s.status.Operations.Len() > 0:
		after := s.status
		o := after.Operations.Own()
		ended = o.Conclude(outcome, time.Now())
		after.SetOperations(o)
		after.Cancel = false
		encoded := after.Encode()
		op.Version, op.Status = s.entry.Version, &encoded
	}
	if ended == job.NoOutcome || ended == job.Purged {
		ended = job.Consumed
	}
	op.Ending = b.ending(ended, s)
	if ended == job.Canceled {
		op.Event = job.CanceledEvent
	}
}

// giveUp completes op, a Release, for a claim that ends before its job is done: the
// job goes back onto the board, or ends if it was to be canceled.
func (b *Board) giveUp(op driver.Op, s *currentJob, after record.Status) driver.Op {
	// A job that an earlier try of this call canceled is canceled again, so that the
	// store recognises the repetition.
	if after.Canceling() && isOpen(s.state) || s.state == job.Complete && s.outcome == job.Canceled {
		return b.cancelOp(op, s, after, "canceled by request")
	}
	after.Present = record.Attempt{}
	after.Requeue()
	encoded := after.Encode()
	op.Status = &encoded
	return op
}

// Archive takes jobs out of the trash for good: they end as failed, and stay as
// long as the board keeps ended jobs.
func (b *Board) Archive(ctx context.Context, ids []job.ID) ([]error, error) {
	errs := make([]error, len(ids))
	// First out of the trash and onto the board, held so that nobody claims them; then
	// off the board.
	// A job that is left between the two is archived by the next try.
	for _, step := range []func(s *currentJob) (driver.Op, error){b.unarchiveOp, b.archiveOp} {
		a, err := b.alterIDs(ctx, ids)
		if err != nil {
			return nil, err
		}
		a.errs = errs
		a.enough = func(int, *currentJob) bool { return false }
		a.plan = func(i int, s *currentJob) (driver.Op, error) {
			if s == nil {
				return driver.Op{}, notFound(a.ids[i])
			}
			return step(s)
		}
		if err := a.run(ctx); err != nil {
			return nil, err
		}
		for i, err := range errs {
			if err == errUnchanged { //nolint:errorlint // it is never wrapped
				errs[i] = nil
			}
		}
	}
	return errs, nil
}

const archiving = "archived"

// betweenArchiving reports whether the job is on the board between the two steps of Archive.
func (s *currentJob) betweenArchiving() bool {
	return isOpen(s.state) && s.entry.Held && s.status.Last == archiving
}

func (b *Board) unarchiveOp(s *currentJob) (driver.Op, error) {
	switch {
	case s.state == job.Complete, s.betweenArchiving():
		return driver.Op{}, errUnchanged
	case isOpen(s.state):
		return driver.Op{}, onBoard(s.entry.ID, job.NotEligible)
	}
	after := s.status
	after.Last = archiving
	after.Met = after.Met || b.waits(s.entry) // it waits for nothing any more: see release
	encoded := after.Encode()
	return driver.Op{
		Kind: driver.Restore, Version: s.entry.Version, Status: &encoded, Hold: &driver.Hold{Always: true},
		Event: job.Restored, Reason: archiving,
	}, nil
}

func (b *Board) archiveOp(s *currentJob) (driver.Op, error) {
	switch {
	case s.state == job.Complete:
		return driver.Op{}, errUnchanged
	case s.state == job.Trashed:
		return driver.Op{}, &job.Error{Job: s.entry.ID, Kind: job.NotEligible, Message: "the job was put into the trash again meanwhile: archive it once more"}
	case !s.betweenArchiving():
		return driver.Op{}, onBoard(s.entry.ID, job.NotEligible) // somebody let it go
	}
	after := s.status
	o := after.Operations.Own()
	o.Conclude(job.Failed, time.Now())
	after.SetOperations(o)
	after.Last = ""
	if n := len(after.Reasons); n > 0 {
		after.Last = after.Reasons[n-1]
	}
	encoded := after.Encode()
	return driver.Op{
		Kind: driver.Remove, Version: s.entry.Version, Status: &encoded, Ending: b.ending(job.Failed, s),
		Event: job.ConsumedEvent, Reason: archiving,
	}, nil
}
