package memdriver

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

func (b *board) claim(op *driver.Op, now time.Time) driver.Result {
	spec := op.Claim
	key, remember := transition.KeyOf(op)
	if s := b.past.stamps[key]; remember && s != nil && (!spec.More || s.given) {
		return b.answerAgain(s, spec, now)
	}
	r := driver.Result{At: now.Round(0)}
	for i := range spec.Candidates {
		if len(r.Claims) == spec.Count {
			break
		}
		plan, skipped := b.candidate(op, &spec.Candidates[i], now)
		if skipped.Kind != job.NoKind {
			r.Skipped = append(r.Skipped, skipped)
			continue
		}
		claimed := plan.Claimed()
		if spec.Parts != 0 {
			claimed.Record = b.find(claimed.Job, now, spec.Parts)
		}
		r.Claims = append(r.Claims, claimed)
	}
	r.Position = b.position
	if remember && len(r.Claims) > 0 {
		b.rememberAnswer(key, &r, now)
	}
	return r
}

// candidate claims one candidate, or says why not.
func (b *board) candidate(op *driver.Op, c *driver.Candidate, now time.Time) (transition.Plan, driver.Skipped) {
	f := b.facts(c.Job, now)
	plan, skipped := transition.Candidate(op, c, &f)
	if plan.Do != 0 {
		if _, full := b.carryOut(op, &plan, b.jobs[c.Job], now, now); full != "" {
			skipped = f.PassOver(c, job.QuotaExceeded, full)
		}
	}
	return plan, skipped
}

// answerAgain gives a remembered answer, which takes no more claims from now on.
func (b *board) answerAgain(s *stamp, spec *driver.ClaimSpec, now time.Time) driver.Result {
	s.given = true
	r := driver.Result{Repeated: true, Position: s.Position, At: s.At, Claims: slices.Clone(s.claims)}
	if spec.Parts != 0 {
		for i := range r.Claims {
			r.Claims[i].Record = b.find(r.Claims[i].Job, now, spec.Parts)
		}
	}
	return r
}

// rememberAnswer adds claims to the answer that is kept under key.
func (b *board) rememberAnswer(key transition.Key, r *driver.Result, now time.Time) {
	s := b.past.stamps[key]
	if s == nil {
		s = &stamp{Stamp: transition.Stamp{Key: key, Kind: driver.Claim, Position: r.Position, At: r.At}, at: now}
		b.past.add(s)
	}
	s.claims = transition.Remember(s.claims, r.Claims)
	b.forget(now)
}
