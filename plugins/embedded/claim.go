package embedded

import (
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// claim goes through the candidates and claims those that are free.
func (v *boardTx) claim(op *driver.Op) driver.Result {
	spec := op.Claim
	var before answer
	if spec.Remember {
		a, ok := v.recall(op.Request)
		switch {
		case ok && a.kind == driver.Claim && (!spec.More || a.given()):
			return v.repeatClaims(op, &a)
		case ok && a.kind == driver.Claim:
			before = a
		}
	}
	result := driver.Result{At: timeOf(v.at.wall.UnixNano())}
	for i := range spec.Candidates {
		if len(result.Claims) >= spec.Count {
			break
		}
		v.candidate(op, &spec.Candidates[i], &result)
	}
	result.Position = driver.Position(v.state.position)
	if spec.Remember && len(result.Claims) > 0 {
		v.rememberClaims(op, &before, &result)
	}
	return result
}

// candidate claims one job, or says why not.
func (v *boardTx) candidate(op *driver.Op, c *driver.Candidate, result *driver.Result) {
	s, err := v.lookup(c.Job)
	if err != nil {
		result.Skipped = append(result.Skipped, driver.Skipped{Job: c.Job, Kind: job.Corrupt, Message: err.Error()})
		return
	}
	f := v.facts(s, "")
	plan, skipped := transition.Candidate(op, c, &f)
	if plan.Do != 0 {
		switch key, err := v.full(&plan, &s.job); {
		case err != nil:
			skipped = f.PassOver(c, job.Corrupt, err.Error())
		case key != "":
			skipped = f.PassOver(c, job.QuotaExceeded, key)
		default:
			v.grant(op, &plan, &s.job)
		}
	}
	if skipped.Kind != job.NoKind {
		result.Skipped = append(result.Skipped, skipped)
		return
	}
	claimed := plan.Claimed()
	if op.Claim.Parts != 0 {
		claimed.Record = v.show(c.Job, op.Claim.Parts)
	}
	result.Claims = append(result.Claims, claimed)
}

// grant writes the claim.
func (v *boardTx) grant(op *driver.Op, plan *transition.Plan, j *jobRecord) {
	v.step(plan, j)
	v.log.job(v.note(op, j.holder.owner), j, false)
	v.save(j)
	v.pace(plan.Rates, plan.Job)
}

// hold writes who holds the job, or the new lease of who does.
func (v *boardTx) hold(plan *transition.Plan, j *jobRecord) {
	if plan.Do == driver.Claim {
		limits := appendLimits(make([]byte, 0, limitsSize(plan.Within)), plan.Within)
		j.claimed = true
		j.holder = holder{owner: []byte(plan.Holder.Owner), token: plan.Holder.Token, since: j.modified, limits: limits}
		v.counts.claimed++
		v.count(limits, 1)
	}
	j.holder.lease = 0
	if !plan.Holder.NoExpiry {
		j.holder.start(v.at, plan.Holder.Remaining)
	}
}

// endClaim takes the claim off a job that is about to be saved or taken away.
func (v *boardTx) endClaim(j *jobRecord) {
	if !j.claimed {
		return
	}
	v.counts.claimed--
	v.count(j.holder.limits, -1)
	j.claimed, j.holder = false, holder{}
}

// show reads a job with the parts asked for. It is nil where it cannot be read:
// the claim stands all the same, and whoever reads the job learns what is wrong.
func (v *boardTx) show(id job.ID, parts driver.Parts) *driver.Record {
	r := view{board: v.board, at: v.at, parts: parts, table: v.table}
	record, err := r.record(v.ref(id))
	if err != nil {
		v.store.logger.Error("a claimed job cannot be shown", "board", v.board.name, "job", id, "error", err)
	}
	return record
}

// rememberClaims keeps the answer, added to what was answered before.
func (v *boardTx) rememberClaims(op *driver.Op, before *answer, r *driver.Result) {
	a := answer{
		key: op.Request, request: op.Request, kind: driver.Claim, position: uint64(r.Position), at: v.at.wall.UnixNano(), claims: before.claims,
		notBefore: noTime,
	}
	for i := range r.Claims {
		c := &r.Claims[i]
		if slices.ContainsFunc(before.claims, func(k claimed) bool { return k.token == c.Token }) {
			continue
		}
		a.claims = append(a.claims, claimed{
			job: c.Job, token: c.Token, lease: c.Lease, version: c.Version, position: uint64(c.Position), at: nanos(c.At),
		})
	}
	v.remember(&a)
}

// repeatClaims gives a remembered answer again. Then it takes no more claims.
func (v *boardTx) repeatClaims(op *driver.Op, a *answer) driver.Result {
	if !a.given() {
		a.version = answerGiven
		v.remember(a)
	}
	result := driver.Result{Repeated: true, Position: driver.Position(a.position), At: timeOf(a.at)}
	for i := range a.claims {
		was := &a.claims[i]
		c := driver.Claimed{
			Job: was.job, Token: was.token, Lease: was.lease, Version: was.version,
			Position: driver.Position(was.position), At: timeOf(was.at),
		}
		if op.Claim.Parts != 0 {
			c.Record = v.show(was.job, op.Claim.Parts)
		}
		result.Claims = append(result.Claims, c)
	}
	return result
}
