package seeded

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func claimBugs() []Bug {
	return []Bug{
		{Name: "claim-loses-status", Doc: "empties the status with a claim", Check: "claim/status", Open: eachOp(claimLosesStatus)},
		{Name: "ignores-version", Doc: "does not look at versions", Check: "claim/version", Open: eachOp(ignoresVersion)},
		{Name: "claims-held", Doc: "claims jobs that are held back", Check: "claim/held-back", Open: eachOp(claimsHeld)},
		{Name: "two-winners", Doc: "looks first and claims then", Check: "race/one-winner", Open: eachOp(twoWinners)},
		{Name: "forgets-order", Doc: "claims candidates in another order", Check: "claim/order", Open: eachOp(forgetsOrder)},
		{Name: "forgets-answers", Doc: "keeps no answers to claims", Check: "claim/remembered", Open: eachOp(forgetsAnswers)},
		{Name: "nonce-claims-anew", Doc: "takes a repeated claim for somebody else's", Check: "claim/nonce-again", Open: eachOp(nonceClaimsAnew)},
		{Name: "ignores-limits", Doc: "does not look at the limits of claims", Check: "limits/claims", Open: eachOp(ignoresLimits)},
		{Name: "ignores-rates", Doc: "does not look at rates", Check: "rates/race", Open: eachOp(ignoresRates)},
		{Name: "rates-of-standing", Doc: "counts a claim in its rates only while it stands", Check: "rates/claims", Open: eachOp(ratesOfStanding)},
		{Name: "endless-periods", Doc: "takes every period for the longest", Check: "rates/period", Open: eachOp(endlessPeriods)},
		{Name: "stops-at-gone", Doc: "stops at the first candidate that is taken", Check: "claim/order", Open: eachOp(stopsAtGone)},
	}
}

// changed returns the op with a claim that its caller does not see.
func changed(op driver.Op, change func(*driver.ClaimSpec)) driver.Op {
	if op.Claim != nil {
		spec := *op.Claim
		spec.Candidates = slices.Clone(spec.Candidates)
		change(&spec)
		op.Claim = &spec
	}
	return op
}

func claimLosesStatus(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) {
		for i := range c.Candidates {
			if c.Candidates[i].Status == nil {
				c.Candidates[i].Status = &[]byte{}
			}
		}
	}))
}

func ignoresVersion(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	op.Version = 0
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) {
		for i := range c.Candidates {
			c.Candidates[i].Version = 0
		}
	}))
}

func claimsHeld(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := one(ctx, d, board, op)
	for _, g := range r.Skipped {
		if g.Kind == job.NotEligible {
			one(ctx, d, board, driver.Op{Kind: driver.Update, Job: g.Job, Hold: &driver.Hold{}})
			return one(ctx, d, board, op)
		}
	}
	return r
}

// twoWinners decides on what it read a moment ago.
func twoWinners(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Kind != driver.Claim {
		return one(ctx, d, board, op)
	}
	free := map[job.ID]bool{}
	for _, c := range op.Claim.Candidates {
		free[c.Job] = read(ctx, d, board, c.Job).State == job.Unclaimed
	}
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	<-timer.C
	r := one(ctx, d, board, op)
	for _, g := range r.Skipped {
		if g.Kind == job.AlreadyClaimed && free[g.Job] {
			one(ctx, d, board, driver.Op{Kind: driver.Release, Job: g.Job, Precondition: driver.Held})
			return one(ctx, d, board, op)
		}
	}
	return r
}

func forgetsOrder(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) { slices.Reverse(c.Candidates) }))
}

func forgetsAnswers(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) { c.Remember = false }))
}

func nonceClaimsAnew(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Claim == nil {
		return one(ctx, d, board, op)
	}
	r := driver.Result{}
	op = changed(op, func(c *driver.ClaimSpec) {
		c.Candidates = slices.DeleteFunc(c.Candidates, func(candidate driver.Candidate) bool {
			h := read(ctx, d, board, candidate.Job).Holder
			mine := h != nil && h.Token.Nonce == candidate.Nonce
			if mine {
				r.Skipped = append(r.Skipped, driver.Skipped{Job: candidate.Job, Kind: job.AlreadyClaimed, Owner: h.Owner})
			}
			return mine
		})
	})
	done := one(ctx, d, board, op)
	done.Skipped = append(r.Skipped, done.Skipped...)
	return done
}

func ignoresLimits(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) {
		for i := range c.Candidates {
			c.Candidates[i].Limits = nil
		}
	}))
}

func ignoresRates(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) {
		for i := range c.Candidates {
			c.Candidates[i].Rates = nil
		}
	}))
}

func ratesOfStanding(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) {
		for i := range c.Candidates {
			for _, r := range c.Candidates[i].Rates {
				c.Candidates[i].Limits = append(slices.Clone(c.Candidates[i].Limits), driver.Limit{Key: r.Key, Max: r.Max})
			}
			c.Candidates[i].Rates = nil
		}
	}))
}

func endlessPeriods(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) {
		for i := range c.Candidates {
			c.Candidates[i].Rates = slices.Clone(c.Candidates[i].Rates)
			for j := range c.Candidates[i].Rates {
				c.Candidates[i].Rates[j].Per = driver.MaxPeriod
			}
		}
	}))
}

func stopsAtGone(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return one(ctx, d, board, changed(op, func(c *driver.ClaimSpec) {
		for i, candidate := range c.Candidates {
			if read(ctx, d, board, candidate.Job).State == job.Claimed {
				c.Candidates = c.Candidates[:i+1]
				return
			}
		}
	}))
}
