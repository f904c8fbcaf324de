package transition

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// What ops are refused with, for every driver.
const (
	Observed = "the board is only observed: nothing may be changed" // Precondition: see BoardSpec.Observe

	anotherPosting = "another posting has this uuid"
	notOnBoard     = "there is no such job on the board"
	inTrash        = "the job is in the trash, not on the board"
	notInTrash     = "there is no such job in the trash"
	notOff         = "there is no such job in the trash or among the ended ones"
	endedOtherwise = "the claim of this token ended the job in another way"
	claimEnded     = "the claim of this token has ended"
	endedJob       = claimEnded + ": its holder ended the job"
	leaseRuns      = "the lease has not run out"
	nobodyHolds    = "nobody holds the job"
	somebodyHolds  = "somebody holds the job"
	anotherHolds   = "somebody else holds the job"
	changed        = "the job was changed meanwhile"
	heldBack       = "the job is held back"
	noForeignLease = "the claim was made by another program, and has no lease"
)

// Decide decides any op but a Claim, for which see Candidate. If the op is
// permitted, Plan.Do is set, and the answer comes from Finish. Otherwise the Result
// is the answer: the op was done before, or is refused; see Plan.Reread for facts
// that were cached.
func Decide(op *driver.Op, f *Facts) (Plan, driver.Result) {
	if op.Kind == driver.Post {
		return post(op, f)
	}
	if f.Stamp.of(op) {
		return Plan{}, f.Stamp.answer()
	}
	kind, why := onBoard(op, f)
	if op.Kind == driver.Restore || op.Kind == driver.Purge {
		kind, why = offBoard(op, f)
	}
	if kind != job.NoKind {
		return f.refuse(kind, f.Stamp.tells(op, kind, why))
	}
	return planOf(op, f), driver.Result{}
}

// refuse makes the answer to an op that the job's state does not allow.
func (f *Facts) refuse(kind job.Kind, why string) (Plan, driver.Result) {
	r := driver.Result{Kind: kind, Message: why}
	if f.Cached {
		return Plan{Reread: true}, r
	}
	r.Record = f.record()
	if r.Record != nil && r.Record.Holder != nil && kind != job.AlreadyExists {
		r.Owner = r.Record.Holder.Owner
	}
	if why == leaseRuns && !f.Holder.NoExpiry {
		r.Remaining = f.Holder.Remaining
	}
	return Plan{}, r
}

// post decides a Post.
func post(op *driver.Op, f *Facts) (Plan, driver.Result) {
	switch p := op.Posting; {
	case f.State == job.Unknown:
		plan := Plan{
			Do: driver.Post, Job: p.ID, State: job.Unclaimed, Version: f.Version + 1,
			Status: op.Status, Attach: op.Attach, Counts: 1, Within: Counted(op), Emptied: op.Emptied,
		}
		if op.Import != nil {
			plan.Within = nil // it was on a board before
		}
		plan.hold(op.Hold, f)
		return plan, driver.Result{}
	case p.Digest != f.Digest:
		return f.refuse(job.AlreadyExists, anotherPosting)
	case f.Cached: // the job may be gone
		return Plan{Reread: true}, driver.Result{}
	}
	r := driver.Result{Repeated: true, Position: f.Position, Version: f.Version, Record: f.record()}
	if r.Record != nil {
		r.At = r.Record.Posting.CreatedAt
	}
	return Plan{}, r
}

// offBoard returns why a Restore or a Purge cannot be done; NoKind: it can.
func offBoard(op *driver.Op, f *Facts) (job.Kind, string) {
	switch {
	case op.Kind == driver.Restore && f.State != job.Trashed:
		return job.NotFound, notInTrash
	case f.State != job.Trashed && f.State != job.Complete:
		return job.NotFound, notOff
	case op.Version != 0 && op.Version != f.Version:
		return job.Aborted, changed
	}
	return job.NoKind, ""
}

// onBoard returns why an op that needs a job on the board cannot be done; NoKind:
// it can.
func onBoard(op *driver.Op, f *Facts) (job.Kind, string) {
	switch f.State {
	case job.Complete:
		switch {
		case !op.Precondition.ByToken() || f.EndedBy != op.Token:
		case byToken(op): // and is no repetition
			return job.LeaseLost, endedOtherwise
		default:
			return job.LeaseLost, endedJob
		}
		return job.NotFound, notOnBoard
	case job.Unknown:
		return job.NotFound, notOnBoard
	case job.Unclaimed, job.Claimed, job.Trashed:
	}
	if kind, why := holds(op, f); kind != job.NoKind {
		return kind, why
	}
	switch {
	case f.State == job.Trashed:
		return job.NotFound, inTrash
	case op.Version != 0 && op.Version != f.Version:
		return job.Aborted, changed
	case op.Kind == driver.Release && !f.claimed():
		return job.NotClaimed, nobodyHolds
	case op.Import != nil && op.Import.Then != nil && f.claimed():
		return job.AlreadyClaimed, somebodyHolds
	case op.Kind == driver.Extend && f.Holder.Foreign && f.Leaseless:
		return job.Precondition, noForeignLease
	}
	return job.NoKind, ""
}

// holds returns why op.Precondition is not met; NoKind: it is.
func holds(op *driver.Op, f *Facts) (job.Kind, string) {
	claimed, live := f.claimed(), f.live()
	switch op.Precondition {
	case driver.HeldByToken:
		if !live || f.Holder.Token != op.Token {
			return job.LeaseLost, claimEnded
		}
	case driver.Lapsed:
		if !claimed || f.Holder.Token != op.Token {
			return job.LeaseLost, claimEnded
		}
		if live {
			return job.Precondition, leaseRuns
		}
	case driver.HeldByOwner, driver.Held:
		if !claimed || op.Precondition == driver.HeldByOwner && !live {
			return job.NotClaimed, nobodyHolds
		}
		if op.Owner != "" && op.Owner != f.Holder.Owner {
			return job.NotOwner, anotherHolds
		}
	case driver.Free:
		if live {
			return job.AlreadyClaimed, somebodyHolds
		}
	case driver.Whatever:
	}
	return job.NoKind, ""
}

// Candidate decides one candidate of a claim. With Plan.Do zero there is nothing to
// write: with Plan.Reread it has to be asked again; if the Skipped has a Kind, the candidate was passed over; if not, an earlier
// try of this op claimed it, and Plan.Claimed returns that claim.
func Candidate(op *driver.Op, c *driver.Candidate, f *Facts) (Plan, driver.Skipped) {
	switch {
	case f.State != job.Unclaimed && f.State != job.Claimed:
		return f.skip(c, job.NotFound, notOnBoard)
	case f.live() && f.Holder.Token.Nonce == c.Nonce && f.Cached: // the claim may have ended
		return Plan{Reread: true}, driver.Skipped{}
	case f.live() && f.Holder.Token.Nonce == c.Nonce:
		return Plan{Job: c.Job, State: f.State, Version: f.Version, Position: f.Position, Holder: f.Holder}, driver.Skipped{}
	case f.live():
		return f.skip(c, job.AlreadyClaimed, somebodyHolds)
	case c.Version != 0 && c.Version != f.Version:
		return f.skip(c, job.Aborted, changed)
	case f.waits():
		return f.skip(c, job.NotEligible, heldBack)
	}
	plan := Plan{
		Do: driver.Claim, Job: c.Job, State: job.Claimed, Version: f.Version + 1, Status: c.Status, NotBefore: f.NotBefore,
		EndsClaim: f.claimed(), Within: c.Limits, Rates: c.Rates,
		Holder: driver.Holder{Owner: op.Claim.Owner, Token: job.Token{Generation: f.Generation, Nonce: c.Nonce}},
	}
	plan.lease(op.Claim.Lease, op.Claim.NoExpiry, c.Most)
	return plan, driver.Skipped{}
}

func (f *Facts) skip(c *driver.Candidate, kind job.Kind, why string) (Plan, driver.Skipped) {
	if f.Cached {
		return Plan{Reread: true}, driver.Skipped{Job: c.Job, Kind: kind, Message: why}
	}
	return Plan{}, f.PassOver(c, kind, why)
}

// PassOver returns the Skipped of a candidate that Candidate would grant and the store
// cannot: QuotaExceeded, with the limit's key as why, or Corrupt.
func (f *Facts) PassOver(c *driver.Candidate, kind job.Kind, why string) driver.Skipped {
	s := driver.Skipped{Job: c.Job, Kind: kind, Message: why, Record: f.record()}
	if kind == job.AlreadyClaimed && s.Record != nil && s.Record.Holder != nil {
		s.Owner = s.Record.Holder.Owner
	}
	return s
}
