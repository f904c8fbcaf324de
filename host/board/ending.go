package board

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// How is what the holder of a claim does to end it.
type How uint8

// The endings.
const (
	ToConsume How = iota + 1
	ToAbandon
	ToTrash
)

// Ending says how a claim is to end.
type Ending struct {
	How     How
	Outcome job.Outcome // of ToConsume; NoOutcome: as the job's operations say
	Reason  string      // of ToTrash; AbandonOptions have their own
	AbandonOptions
}

// check refuses what no claim can end with.
func (e *Ending) check() error {
	switch {
	case e.Outcome > job.Failed:
		return job.Errorf(job.Invalid, "outcome: want CONSUMED, CANCELED or FAILED")
	case e.RetryAfter != nil && (*e.RetryAfter < 0 || *e.RetryAfter > job.MaxNotBeforeDays*24*time.Hour):
		return job.Errorf(job.Invalid, "retryAfter: want 0s to %d days", job.MaxNotBeforeDays)
	}
	return nil
}

// endClaims ends claims, each in its own way: of says which. Repeated with the same
// token each answers as it first did.
func (b *Board) endClaims(ctx context.Context, refs []Ref, of func(i int) *Ending) ([]error, error) {
	a, proofs, err := b.alterClaims(ctx, refs)
	if err != nil {
		return nil, err
	}
	a.plan = func(i int, s *currentJob) (driver.Op, error) { return b.endOp(&proofs[i], a.ids[i], s, of(i)) }
	a.repeats = func(i int, s *currentJob) []endingOp {
		switch of(i).How {
		case ToConsume:
			return consumptions()
		case ToAbandon:
			return b.abandonments(&proofs[i], s)
		}
		return nil
	}
	a.gaveUp = func(i int) How { return of(i).How }
	a.done = func(i int, _ *currentJob, r *driver.Result) {
		switch of(i).How {
		case ToConsume:
			count(r, &b.metrics.Consumed)
		case ToAbandon:
			count(r, &b.metrics.Abandoned)
		}
	}
	left := b.hands.leave(proofs, a.ids)
	err = a.run(ctx)
	b.hands.stay(left, a.errs, err)
	return a.errs, err
}

// endOp plans the end of one claim; s is nil if the job is not known.
func (b *Board) endOp(p *proof, id job.ID, s *currentJob, e *Ending) (driver.Op, error) {
	switch e.How {
	case ToConsume:
		op := p.op(driver.Remove)
		op.Event = job.ConsumedEvent
		b.consume(&op, s, e.Outcome)
		return op, p.check(id, s)
	case ToAbandon:
		if s == nil { // it may be a repetition, which the store recognises
			return p.op(driver.Release), nil
		}
		return b.abandonOp(p, s, &e.AbandonOptions), p.check(id, s)
	}
	return b.trashOp(p, id, s, e.Reason)
}

// trashOp plans that a claimed job is set aside.
func (b *Board) trashOp(p *proof, id job.ID, s *currentJob, reason string) (driver.Op, error) {
	if s == nil { // it may be a repetition, which the store recognises
		return p.op(driver.Trash), nil
	}
	if b.gaveUp() == job.NoOutcome && s.status.HasEnded(record.Ended{By: p.token}) {
		return driver.Op{}, &job.Error{Job: id, Kind: job.LeaseLost, Message: "the claim of this token has ended: its holder gave it up"}
	}
	after := s.status
	after.Exhausted = false
	if p.must.ByToken() {
		after.End(record.Ended{By: p.token, Trashed: true})
	}
	op := p.op(driver.Trash)
	after.Lose(reason, attemptOf(&after, s.entry))
	b.setAside(&op, after)
	op.Version, op.Reason, op.Event = s.entry.Version, reason, job.TrashedEvent
	return op, p.check(id, s)
}
