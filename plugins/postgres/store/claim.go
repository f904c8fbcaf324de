package store

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// readAgain reads the jobs of claims that were answered before, which need not be
// candidates any more.
func (t *batch) readAgain(ops []driver.Op) error {
	var ids []job.ID
	for i := range ops {
		if op := &ops[i]; op.Kind == driver.Claim && op.Claim.Parts != 0 && op.Claim.Remember {
			key, _ := transition.KeyOf(op)
			if k := t.kept[key]; k != nil {
				for _, c := range k.Claims {
					ids = append(ids, c.Job)
				}
			}
		}
	}
	return t.load(ids)
}

// claim goes through the candidates until it has enough, and says what was the matter
// with those that it passed over.
func (t *batch) claim(op *driver.Op) driver.Result {
	spec := op.Claim
	key, remember := transition.KeyOf(op)
	before := t.kept[key]
	if remember && before != nil && (!spec.More || before.Given) {
		if !before.Given {
			before.Given = true
			t.keep(before)
		}
		return t.claimedBefore(before, spec.Parts)
	}
	r := driver.Result{At: t.head.now}
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
	r.Position = driver.Position(t.head.position) //nolint:gosec // of a bigint
	if remember && len(r.Claims) > 0 {
		t.rememberClaims(before, key, &r)
	}
	return r
}

// rememberClaims keeps the answer to a claim, with those that it was given before.
func (t *batch) rememberClaims(before *kept, key transition.Key, r *driver.Result) {
	if before == nil {
		before = &kept{stamp: int64(r.Claims[len(r.Claims)-1].Position), at: t.head.now.UnixNano()} //nolint:gosec // of a bigint
	}
	before.Claims = transition.Remember(before.Claims, r.Claims)
	before.Stamp = transition.Stamp{Key: key, Kind: driver.Claim, Position: r.Position, At: r.At}
	t.keep(before)
}

func (t *batch) candidate(op *driver.Op, c *driver.Candidate) (claimed driver.Claimed, skipped driver.Skipped) {
	r := t.find(c.Job)
	f := t.facts(r)
	if r != nil && r.damage != nil {
		return claimed, f.PassOver(c, job.Corrupt, "the job's row cannot be read")
	}
	plan, skipped := transition.Candidate(op, c, &f)
	if plan.Do != 0 {
		if _, full := t.carryOut(op, &plan, r, t.head.now); full != "" {
			skipped = f.PassOver(c, job.QuotaExceeded, full)
		}
	}
	if skipped.Kind != job.NoKind {
		return claimed, skipped
	}
	claimed = plan.Claimed()
	claimed.Record = t.want(r, op.Claim.Parts)
	return claimed, skipped
}

// want has the larger parts of a job read for an answer; nil: none are wanted.
func (t *batch) want(r *row, parts driver.Parts) *driver.Record {
	if parts == 0 {
		return nil
	}
	record := r.shown()
	byJob := t.wanted[parts]
	if byJob == nil {
		byJob = map[job.ID][]*driver.Record{}
		t.wanted[parts] = byJob
	}
	byJob[r.Posting.ID] = append(byJob[r.Posting.ID], record)
	return record
}

// claimedBefore gives a remembered answer again: the claims as they were granted, and
// the jobs as they stand now.
func (t *batch) claimedBefore(before *kept, parts driver.Parts) driver.Result {
	r := driver.Result{
		Repeated: true, Position: before.Stamp.Position, At: before.Stamp.At,
		Claims: append([]driver.Claimed(nil), before.Claims...),
	}
	for i := range r.Claims {
		if found := t.find(r.Claims[i].Job); found != nil && found.damage == nil {
			r.Claims[i].Record = t.want(found, parts)
		}
	}
	return r
}
