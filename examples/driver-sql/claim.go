package main

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// claim goes through the candidates until it has enough, and says what was the matter
// with those that it passed over.
func (t *tx) claim(op *driver.Op) driver.Result {
	spec := op.Claim
	key, remember := transition.KeyOf(op)
	var before answer
	var stamp int64
	if remember {
		before, stamp = t.kept(key)
	}
	if stamp != 0 && (!spec.More || before.Given) {
		if !before.Given {
			before.Given = true
			t.keep(stamp, before)
		}
		return t.claimedBefore(before, spec.Parts)
	}
	r := driver.Result{At: t.now}
	for i := range spec.Candidates {
		if len(r.Claims) == spec.Count {
			break
		}
		claimed, skipped := t.candidate(op, &spec.Candidates[i])
		if skipped.Kind != job.NoKind {
			r.Skipped = append(r.Skipped, skipped)
			continue
		}
		r.Claims = append(r.Claims, claimed)
	}
	r.Position = t.position
	if remember && len(r.Claims) > 0 {
		before.Claims = transition.Remember(before.Claims, r.Claims)
		before.Stamp = transition.Stamp{Key: key, Kind: driver.Claim, Position: r.Position, At: r.At}
		t.keep(stamp, before)
	}
	return r
}

func (t *tx) candidate(op *driver.Op, c *driver.Candidate) (claimed driver.Claimed, skipped driver.Skipped) {
	r := t.find(c.Job)
	f := t.facts(r)
	plan, skipped := transition.Candidate(op, c, &f)
	if plan.Do != 0 {
		if _, full := t.carryOut(op, &plan, r, t.now); full != "" {
			skipped = f.PassOver(c, job.QuotaExceeded, full)
		}
	}
	if skipped.Kind != job.NoKind {
		return claimed, skipped
	}
	claimed = plan.Claimed()
	if op.Claim.Parts != 0 {
		t.parts(&r.Record, op.Claim.Parts)
		claimed.Record = &r.Record
	}
	return claimed, skipped
}

// claimedBefore gives a remembered answer again: the claims as they were granted, and
// the jobs as they stand now.
func (t *tx) claimedBefore(before answer, parts driver.Parts) driver.Result {
	r := driver.Result{Repeated: true, Position: before.Stamp.Position, At: before.Stamp.At, Claims: before.Claims}
	for i := range r.Claims {
		if found := t.find(r.Claims[i].Job); found != nil && parts != 0 {
			t.parts(&found.Record, parts)
			r.Claims[i].Record = &found.Record
		}
	}
	return r
}
