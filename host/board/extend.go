package board

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// century bounds the lease that a request may ask for: a longer one is taken for a
// mistake in the unit and refused, and not cut to the board's longest.
const century = job.MaxNotBeforeDays * 24 * time.Hour

// leaseOf returns the lease to ask for: the board's for 0, and at most the
// board's longest.
func (b *Board) leaseOf(lease time.Duration) (time.Duration, error) {
	switch {
	case lease == 0:
		return b.spec.Lease, nil
	case lease < job.MinLease || lease >= century:
		return 0, job.Errorf(job.Invalid, "lease: want %s to %s (0: the board's, %s), got %s", job.MinLease, b.spec.MaxLease, b.spec.Lease, lease)
	}
	return min(lease, b.spec.MaxLease), nil
}

// Extend sets the leases of claims anew, counted from now: 0 is the board's,
// and leaves a claim that does not expire as it is.
func (b *Board) Extend(ctx context.Context, refs []Ref, lease time.Duration) ([]ExtendResult, error) {
	return b.extend(ctx, refs, lease, "")
}

// extend is Extend for a worker that has the claims in hand; empty: nobody says so.
func (b *Board) extend(ctx context.Context, refs []Ref, lease time.Duration, worker string) ([]ExtendResult, error) {
	granted, err := b.leaseOf(lease)
	if err != nil {
		return nil, err
	}
	a, proofs, err := b.alterClaims(ctx, refs)
	if err != nil {
		return nil, err
	}
	results := make([]ExtendResult, len(refs))
	a.enough = func(i int, s *currentJob) bool {
		return s != nil && s.entry.Claim != nil && proofs[i].known(s) // to know whether it expires at all
	}
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		op := proofs[i].op(driver.Extend)
		op.Lease, op.Event = granted, job.Extended
		if lease == 0 && s != nil && s.entry.Claim != nil && s.entry.Claim.NoExpiry {
			op.Lease, op.NoExpiry = 0, true
		}
		if s != nil && s.entry.Claim != nil && !s.entry.Claim.Foreign {
			op.Most = timeoutOf(s.entry)
		}
		return op, proofs[i].check(a.ids[i], s)
	}
	a.done = func(i int, s *currentJob, r *driver.Result) {
		count(r, &b.metrics.Extended)
		if r.Kind != job.NoKind {
			return
		}
		results[i].Lease = r.Lease
		if r.Lease > 0 {
			results[i].LeaseExpiresAt = expiresAt(r.At, r.Lease)
		}
		results[i].CancelRequested = s != nil && s.status.Cancel
		if worker != "" && proofs[i].must == driver.HeldByToken {
			b.hands.hold(worker, a.ids[i], proofs[i].token, r.Position, s != nil && s.status.IsAhead())
		}
	}
	if err := a.run(ctx); err != nil {
		return nil, err
	}
	for i, err := range a.errs {
		results[i].Err = err
	}
	return results, nil
}

// expiresAt says when a lease ends by the store's clock, or ours if the store
// gave no time.
func expiresAt(at time.Time, lease time.Duration) time.Time {
	if at.IsZero() {
		at = time.Now()
	}
	return record.Shown(at.Add(lease))
}
