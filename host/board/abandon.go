package board

import (
	"context"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// proof is how a call shows that it may end a claim.
type proof struct {
	must  driver.Precondition
	token job.Token
	owner string // what the caller says; not empty only if it has to match
}

// proofOf checks the form of a claim in a request.
func (b *Board) proofOf(r *Ref) (proof, error) {
	if len(r.Owner) > job.MaxOwner {
		return proof{}, &job.Error{Job: r.ID, Kind: job.Invalid, Message: "owner: want at most 256 bytes"}
	}
	if r.Token != "" {
		t, err := b.ParseToken(r.ID, r.Token)
		return proof{driver.HeldByToken, t, r.Owner}, err
	}
	switch {
	case !b.spec.FenceByOwner:
		return proof{}, &job.Error{Job: r.ID, Kind: job.Invalid, Message: "token: want the token that the claim gave: this board does not go by an owner's name alone"}
	case r.Owner == "":
		return proof{}, &job.Error{Job: r.ID, Kind: job.Invalid, Message: "want the claim's token, or its owner"}
	}
	return proof{must: driver.HeldByOwner, owner: r.Owner}, nil
}

// known reports whether s is enough for check: no owner is to be compared with
// a token, or s shows the claim of that token.
func (p *proof) known(s *currentJob) bool {
	return p.must != driver.HeldByToken || p.owner == "" || s != nil && s.entry.Claim != nil && s.entry.Claim.Token == p.token
}

// check refuses a token that comes with another name than that of its claim's
// owner. Whether the claim still stands is decided by the store.
func (p *proof) check(id job.ID, s *currentJob) error {
	if p.must != driver.HeldByToken || p.owner == "" || s == nil || s.entry.Claim == nil || s.entry.Claim.Token != p.token {
		return nil
	}
	if owner := s.entry.Claim.Owner; owner != p.owner {
		return &job.Error{Job: id, Kind: job.NotOwner, Owner: owner, Message: "the token is that of another owner's claim"}
	}
	return nil
}

// op begins an op that needs the claim.
func (p *proof) op(kind driver.OpKind) driver.Op {
	op := driver.Op{Kind: kind, Precondition: p.must, Token: p.token}
	if p.must == driver.HeldByOwner {
		op.Owner = p.owner
	}
	return op
}

// alterClaims begins an alteration of claimed jobs.
func (b *Board) alterClaims(ctx context.Context, refs []Ref) (*alteration, []proof, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(refs) > MaxBatch {
		return nil, nil, job.Errorf(job.Invalid, "claims: %d are too many: want at most %d", len(refs), MaxBatch)
	}
	a := &alteration{board: b, opened: opened, ids: make([]job.ID, len(refs)), errs: make([]error, len(refs))}
	proofs := make([]proof, len(refs))
	for i := range refs {
		a.ids[i] = refs[i].ID
		proofs[i], a.errs[i] = b.proofOf(&refs[i])
	}
	a.enough = func(i int, s *currentJob) bool { return s != nil && proofs[i].known(s) }
	return a, proofs, nil
}

// Abandon gives jobs back: after the time that the options or the board's
// back-off say, or into the trash when their attempts are used up. Repeated
// with the same token it answers as it first did.
func (b *Board) Abandon(ctx context.Context, refs []Ref, o AbandonOptions) ([]error, error) {
	e := Ending{How: ToAbandon, AbandonOptions: o}
	if err := e.check(); err != nil {
		return nil, err
	}
	return b.endClaims(ctx, refs, func(int) *Ending { return &e })
}

func (b *Board) abandonOp(p *proof, s *currentJob, o *AbandonOptions) driver.Op {
	reason := cleanReason(o.Reason)
	if reason == "" {
		reason = "abandoned"
		if s.entry.Claim != nil {
			reason += " by " + s.entry.Claim.Owner
		}
	}
	after := s.status
	wait := time.Duration(0)
	if o.Begun {
		after.Begin()
	}
	if !s.loseUnbegun(&after) {
		if o.RefundAttempt && after.Attempt > 0 {
			after.Attempt--
		}
		wait = b.backoff(max(after.Attempt, 1))
	}
	if o.RetryAfter != nil {
		wait = *o.RetryAfter
	}
	if p.must.ByToken() {
		after.End(record.Ended{By: p.token})
	}
	op := b.lose(p.op(driver.Release), s, after, reason, wait)
	if op.Kind == driver.Release {
		op.Event = job.Abandoned
	}
	if outcome := b.gaveUp(); op.Kind == driver.Trash && outcome != job.NoOutcome {
		op.Ending = &driver.Ending{Outcome: outcome}
	}
	return op
}

// lose makes of op the end of a claim whose job is not done: back on the board
// after a wait, or into the trash if its attempts are used up.
func (b *Board) lose(op driver.Op, s *currentJob, after record.Status, reason string, wait time.Duration) driver.Op {
	op.Version, op.Reason = s.entry.Version, reason
	if limit := b.limit(s.entry); limit > 0 && after.Attempt >= limit && s.heldBy(&op) && !after.Canceling() {
		after.Exhausted, s.ranOut = true, true
		op.Kind, op.Event = driver.Trash, job.TrashedEvent
	} else if wait > 0 {
		op.Hold = &driver.Hold{For: wait}
	}
	if op.Kind == driver.Trash {
		after.Lose(reason, attemptOf(&after, s.entry))
		b.setAside(&op, after)
		return op
	}
	after.Lose(reason, attemptOf(&after, s.entry))
	return b.giveUp(op, s, after)
}

// setAside writes the status of a job that goes to the trash into op.
func (b *Board) setAside(op *driver.Op, after record.Status) {
	after.Present = record.Attempt{}
	after.Requeue()
	if after.Canceling() {
		o := after.Operations.Own()
		o.Conclude(job.Canceled, time.Now())
		after.SetOperations(o)
		after.Cancel = false
	}
	encoded := after.Encode()
	op.Status = &encoded
}

// Trash puts jobs into the trash, for a person to look at: first the claimed jobs
// that refs name, then the unclaimed jobs of ids. The errors are in that order.
func (b *Board) Trash(ctx context.Context, refs []Ref, ids []job.ID, reason string) ([]error, error) {
	a, proofs, err := b.alterClaims(ctx, refs)
	if err != nil {
		return nil, err
	}
	if len(refs)+len(ids) > MaxBatch {
		return nil, job.Errorf(job.Invalid, "claims and uuids: %d are too many: want at most %d", len(refs)+len(ids), MaxBatch)
	}
	a.ids = append(a.ids, ids...)
	a.errs = append(a.errs, make([]error, len(ids))...)
	a.enough = func(i int, s *currentJob) bool { return s != nil && (i >= len(refs) || proofs[i].known(s)) }
	a.gaveUp = func(int) How { return ToTrash }
	reason = cleanReason(reason)
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		if i < len(refs) {
			return b.trashOp(&proofs[i], a.ids[i], s, reason)
		}
		if s == nil {
			return driver.Op{}, notFound(a.ids[i])
		}
		after := s.status
		after.Exhausted = false
		op := driver.Op{Kind: driver.Trash, Precondition: driver.Free}
		if reason != "" {
			after.Last = shorten.To(reason, record.MaxReasonKept)
		}
		b.setAside(&op, after)
		op.Version, op.Reason, op.Event = s.entry.Version, reason, job.TrashedEvent
		return op, nil
	}
	left := b.hands.leave(proofs, a.ids)
	err = a.run(ctx)
	b.hands.stay(left, a.errs, err)
	return a.errs, err
}

// alterIDs begins an alteration of jobs named by their ids.
func (b *Board) alterIDs(ctx context.Context, ids []job.ID) (*alteration, error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) > MaxBatch {
		return nil, job.Errorf(job.Invalid, "uuids: %d are too many: want at most %d", len(ids), MaxBatch)
	}
	a := &alteration{board: b, opened: opened, ids: ids, errs: make([]error, len(ids))}
	a.enough = func(_ int, s *currentJob) bool { return s != nil }
	return a, nil
}

// Restore puts jobs from the trash back onto the board, in their old places.
// Their attempts start anew, and so do those of their operations that did not
// succeed; what went wrong before stays on record. A back-off is over, and the
// time that a job was posted for stands.
func (b *Board) Restore(ctx context.Context, ids []job.ID) ([]error, error) {
	a, err := b.alterIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	a.enough = func(int, *currentJob) bool { return false }
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		switch {
		case s == nil || s.state == job.Complete:
			return driver.Op{}, notFound(a.ids[i])
		case s.state != job.Trashed:
			return driver.Op{}, onBoard(a.ids[i], job.AlreadyExists)
		}
		after := s.status
		after.Attempt, after.Exhausted, after.Cancel = 0, false, false
		after.RestoredAt = time.Now().UTC().Truncate(time.Microsecond)
		if after.Operations.Status() != job.OpSuccess {
			o := after.Operations.Own()
			o.Again()
			after.SetOperations(o)
		}
		hold := &driver.Hold{Always: b.waits(s.entry) && !after.Met}
		if !hold.Always && s.notBefore.After(time.Now()) {
			hold.Until = s.notBefore
		}
		encoded := after.Encode()
		return driver.Op{
			Kind: driver.Restore, Version: s.entry.Version, Status: &encoded, Hold: hold, Keys: keysBack(s.entry), Event: job.Restored,
		}, nil
	}
	a.done = func(i int, _ *currentJob, r *driver.Result) {
		count(r, &b.metrics.Restored)
		if cameBack(r) {
			a.errs[i] = onBoard(a.ids[i], job.AlreadyExists)
		}
	}
	return a.errs, a.run(ctx)
}

// Purge deletes jobs that are in the trash, or the records of ended jobs, for good.
func (b *Board) Purge(ctx context.Context, ids []job.ID) ([]error, error) {
	a, err := b.alterIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	a.enough = func(int, *currentJob) bool { return false }
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		switch {
		case s == nil:
			return driver.Op{}, notFound(a.ids[i])
		case isOpen(s.state):
			return driver.Op{}, onBoard(a.ids[i], job.NotEligible)
		}
		return driver.Op{Kind: driver.Purge, Event: job.PurgedEvent}, nil
	}
	a.done = func(i int, _ *currentJob, r *driver.Result) {
		count(r, &b.metrics.Purged)
		if cameBack(r) {
			a.errs[i] = onBoard(a.ids[i], job.NotEligible)
		}
	}
	return a.errs, a.run(ctx)
}

// Release ends claims without their tokens. If expectOwner is not empty, it ends
// only claims of that owner.
func (b *Board) Release(ctx context.Context, ids []job.ID, expectOwner, reason string) ([]error, error) {
	if len(expectOwner) > job.MaxOwner {
		return nil, job.Errorf(job.Invalid, "expectOwner: want at most %d bytes", job.MaxOwner)
	}
	a, err := b.alterIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	reason = cleanReason(reason)
	if reason == "" {
		reason = "released"
	}
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		if s == nil || !isOpen(s.state) {
			return driver.Op{}, notFound(a.ids[i])
		}
		after := s.status
		s.loseUnbegun(&after)
		after.Lose(reason, attemptOf(&after, s.entry))
		return b.giveUp(driver.Op{
			Kind: driver.Release, Precondition: driver.Held, Owner: expectOwner, Version: s.entry.Version,
			Reason: reason, Event: job.Abandoned,
		}, s, after), nil
	}
	a.done = func(_ int, _ *currentJob, r *driver.Result) { count(r, &b.metrics.Released) }
	return a.errs, a.run(ctx)
}

// cameBack reports whether an op on a job in the trash was refused since the
// job had come back onto the board meanwhile.
func cameBack(r *driver.Result) bool {
	return r.Kind == job.NotFound && r.Record != nil && isOpen(r.Record.State)
}

func onBoard(id job.ID, kind job.Kind) error {
	return &job.Error{Job: id, Kind: kind, Message: "the job is on the board, not in the trash"}
}

func notFound(id job.ID) error {
	return &job.Error{Job: id, Kind: job.NotFound, Message: "there is no such job on this board"}
}

func cleanReason(reason string) string {
	return shorten.To(strings.ToValidUTF8(reason, "\uFFFD"), job.MaxReason)
}
