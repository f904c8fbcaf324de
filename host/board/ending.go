package board

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// prerequisiteKeep is for how long the end of a job is remembered at least that
// another one waits for, should no host be there to see it.
const prerequisiteKeep = 30 * 24 * time.Hour

// ending says what a job leaves behind: with a history all of it, else how it
// ended.
func (b *Board) ending(outcome job.Outcome, s *currentJob) *driver.Ending {
	e := &driver.Ending{Outcome: outcome}
	if b.spec.History > 0 {
		e.Keep, e.KeepPosting, e.KeepAttached = b.spec.History, true, true
		if s != nil && s.entry.Claim != nil {
			e.Data = appendText([]byte{recordVersion}, finalOwner, s.entry.Claim.Owner)
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

func ownerOfFinal(record []byte) (owner string) {
	_ = eachField(record, func(tag uint64, data, _ []byte) error { // one that cannot be read says nothing
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

// ConsumeAs is Consume by a worker that says how the jobs ended: with NoOutcome
// as their operations say, and Consumed without.
func (b *Board) ConsumeAs(ctx context.Context, refs []Ref, outcome job.Outcome) ([]error, error) {
	if outcome > job.Failed {
		return nil, job.Errorf(job.Invalid, "outcome: want CONSUMED, CANCELED or FAILED")
	}
	a, proofs, err := b.alterClaims(ctx, refs)
	if err != nil {
		return nil, err
	}
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		op := proofs[i].op(driver.Remove)
		op.Event = job.ConsumedEvent
		b.consume(&op, s, outcome)
		return op, proofs[i].check(a.ids[i], s)
	}
	a.repeats = func(int, *currentJob) []endingOp { return consumptions() }
	a.done = func(_ int, _ *currentJob, r *driver.Result) { count(r, &b.metrics.Consumed) }
	return a.errs, a.run(ctx)
}

// consume fills in how the job ends.
func (b *Board) consume(op *driver.Op, s *currentJob, outcome job.Outcome) {
	ended := outcome
	switch {
	case s == nil:
	case s.state == job.Complete:
		ended = s.outcome // it may be a repetition, which is recognised by it
	case s.status.operations.len() > 0:
		after := s.status
		o := after.operations.own()
		ended = o.settle(outcome, time.Now())
		after.setOperations(o)
		after.cancel = false
		record := after.encode()
		op.Version, op.Status = s.entry.Version, &record
	}
	if ended == job.NoOutcome || ended == job.Purged {
		ended = job.Consumed
	}
	op.Ending = b.ending(ended, s)
	if ended == job.Canceled {
		op.Event = job.CanceledEvent
	}
}

// giveUp makes of op, a Release, what becomes of a job whose claim ends without
// it being done: it goes back onto the board, or has ended if it was to be
// canceled.
func (b *Board) giveUp(op driver.Op, s *currentJob, after status) driver.Op {
	// One that was canceled on this way before is canceled again, to be recognised.
	if after.canceling() && isOpen(s.state) || s.state == job.Complete && s.outcome == job.Canceled {
		return b.cancelOp(op, s, after, "canceled by request")
	}
	after.present = attempt{}
	after.requeue()
	record := after.encode()
	op.Status = &record
	return op
}

// Archive takes jobs out of the trash for good: they end as failed, and stay as
// long as the board keeps ended jobs.
func (b *Board) Archive(ctx context.Context, ids []job.ID) ([]error, error) {
	errs := make([]error, len(ids))
	// Off the trash and held, so that nobody claims them, and then off the board.
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

func (b *Board) unarchiveOp(s *currentJob) (driver.Op, error) {
	switch {
	case s.state == job.Complete, isOpen(s.state) && s.entry.Held && s.status.last == archiving:
		return driver.Op{}, errUnchanged
	case isOpen(s.state):
		return driver.Op{}, onBoard(s.entry.ID, job.NotEligible)
	}
	after := s.status
	after.last = archiving
	record := after.encode()
	return driver.Op{
		Kind: driver.Restore, Version: s.entry.Version, Status: &record, Hold: &driver.Hold{Always: true},
		Event: job.Restored, Reason: archiving,
	}, nil
}

func (b *Board) archiveOp(s *currentJob) (driver.Op, error) {
	if !isOpen(s.state) || !s.entry.Held {
		return driver.Op{}, errUnchanged
	}
	after := s.status
	o := after.operations.own()
	o.settle(job.Failed, time.Now())
	after.setOperations(o)
	after.last = ""
	if n := len(after.reasons); n > 0 {
		after.last = after.reasons[n-1]
	}
	record := after.encode()
	return driver.Op{
		Kind: driver.Remove, Version: s.entry.Version, Status: &record, Ending: b.ending(job.Failed, s),
		Event: job.ConsumedEvent, Reason: archiving,
	}, nil
}
