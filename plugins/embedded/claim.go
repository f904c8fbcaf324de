package embedded

import (
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// claim goes through the candidates and claims those that are free.
func (v *boardTx) claim(op *driver.Op) driver.Result {
	spec := op.Claim
	var before answer
	if spec.Remember {
		a, ok := v.recall(op.Request)
		switch {
		case ok && a.kind == driver.Claim && !spec.More:
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
	if gone := v.passOver(c, s); gone != nil {
		result.Skipped = append(result.Skipped, *gone)
		return
	}
	if j := &s.job; !byEarlierTry(j, c, v.at) {
		v.grant(op, c, j)
	}
	result.Claims = append(result.Claims, v.granted(&s.job, op.Claim.Parts))
}

// byEarlierTry reports whether the candidate was claimed by an earlier try of
// the same op, whose answer was lost.
func byEarlierTry(j *jobRecord, c *driver.Candidate, at instant) bool {
	return j.claimed && j.holder.token.Nonce == c.Nonce && !j.holder.lapsed(at)
}

// passOver says why a candidate cannot be claimed, or returns nil.
func (v *boardTx) passOver(c *driver.Candidate, s *subject) *driver.Skipped {
	j := &s.job
	gone := func(kind job.Kind, message string) *driver.Skipped {
		g := &driver.Skipped{Job: c.Job, Kind: kind, Message: message}
		g.Record = s.public(v.at)
		return g
	}
	switch {
	case !s.open():
		return gone(job.NotFound, "the job is not on the board")
	case byEarlierTry(j, c, v.at):
		return nil
	case j.claimed && !j.holder.lapsed(v.at):
		g := gone(job.AlreadyClaimed, "")
		g.Owner = string(j.holder.owner)
		return g
	case c.Version != 0 && c.Version != j.version:
		return gone(job.Aborted, "the job's version is another one")
	case j.held, j.notBefore != noTime && j.notBefore > v.at.wall.UnixNano():
		return gone(job.NotEligible, "the job is held back")
	}
	if j.claimed { // the lapsed claim makes room
		v.count(j.holder.limits, -1)
		defer v.count(j.holder.limits, 1)
	}
	if key, over := v.overLimit(c.Limits); over {
		return gone(job.QuotaExceeded, key)
	}
	return nil
}

// grant writes the claim.
func (v *boardTx) grant(op *driver.Op, c *driver.Candidate, j *jobRecord) {
	spec := op.Claim
	v.endClaim(j)
	j.version++
	j.position = v.next()
	j.modified = v.at.wall.UnixNano()
	j.claimed = true
	j.holder = holder{
		owner:  []byte(spec.Owner),
		token:  job.Token{Generation: v.state.generation, Epoch: j.position, Nonce: c.Nonce},
		since:  j.modified,
		limits: appendLimits(make([]byte, 0, limitsSize(c.Limits)), c.Limits),
	}
	if !spec.NoExpiry {
		j.holder.start(v.at, spec.Lease)
	}
	if c.Status != nil {
		j.status = *c.Status
	}
	v.counts.claimed++
	v.count(j.holder.limits, 1)
	v.log.job(v.note(op, j.holder.owner), j, false)
	v.save(j)
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

// granted shows a claim to the claimant.
func (v *boardTx) granted(j *jobRecord, parts driver.Parts) driver.Claimed {
	c := driver.Claimed{
		Job: j.id, Token: j.holder.token, Lease: max(0, j.holder.left(v.at)), Version: j.version,
		Position: driver.Position(j.position), At: timeOf(j.holder.since),
	}
	if parts != 0 {
		c.Record = v.show(j.id, parts)
	}
	return c
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

// repeatClaims gives a remembered answer again.
func (v *boardTx) repeatClaims(op *driver.Op, a *answer) driver.Result {
	result := a.result()
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
