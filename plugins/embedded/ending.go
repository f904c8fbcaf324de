package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// extend counts the lease of a claim anew.
func (v *boardTx) extend(op *driver.Op, s *subject) driver.Result {
	j := &s.job
	j.position = v.next()
	j.modified = v.at.wall.UnixNano()
	j.holder.lease = 0
	if !op.NoExpiry {
		j.holder.start(v.at, op.Lease)
	}
	result := v.done(j)
	result.Lease = j.holder.lease
	v.log.job(v.note(op, j.holder.owner), j, false)
	v.save(j)
	return result
}

// update changes status, attached records and hold.
func (v *boardTx) update(op *driver.Op, s *subject) driver.Result {
	j := &s.job
	result := v.step(op, j)
	v.log.job(v.note(op, j.holder.owner), j, false)
	v.save(j)
	v.leave(op, &result)
	return result
}

// step raises the job's version and carries out what an op may change beside
// the claim.
func (v *boardTx) step(op *driver.Op, j *jobRecord) driver.Result {
	j.version++
	j.position = v.next()
	j.modified = v.at.wall.UnixNano()
	result := v.done(j)
	v.amend(op, j, &result)
	v.attach(&j.posting, op.Attach)
	return result
}

// release ends the claim and leaves the job on the board.
func (v *boardTx) release(op *driver.Op, s *subject) driver.Result {
	j := &s.job
	owner := j.holder.owner
	result := v.step(op, j)
	v.endClaim(j)
	v.log.job(v.note(op, owner), j, false)
	v.save(j)
	v.leave(op, &result)
	return result
}

func outcomeOf(e *driver.Ending) job.Outcome {
	if e == nil || e.Outcome == job.NoOutcome {
		return job.Consumed
	}
	return e.Outcome
}

// end takes the job off the board for good.
func (v *boardTx) end(op *driver.Op, s *subject) driver.Result {
	j := &s.job
	owner := j.holder.owner
	result := v.step(op, j)
	v.endClaim(j)
	v.count(j.limits, -1)
	v.counts.open--
	e := v.endedOf(op, j)
	v.delete(inJobs, uintKey(j.sequence))
	if !e.keepPosting {
		v.dropDetails(&j.posting)
	}
	if !e.keepAttached {
		v.dropAttached(&j.posting)
	}
	v.log.ended(v.note(op, owner), e, j.position)
	v.keepEnded(e)
	return result
}

// endedOf makes what an ending leaves behind.
func (v *boardTx) endedOf(op *driver.Op, j *jobRecord) *endedRecord {
	e := &endedRecord{
		posting: j.posting, version: j.version, at: v.at.wall.UnixNano(), outcome: outcomeOf(op.Ending),
		must: op.Precondition, request: op.Request, position: j.position, status: j.status,
	}
	if op.Precondition.ByToken() {
		e.token = op.Token
	}
	if op.Ending == nil || op.Ending.Keep <= 0 {
		stone := e.stripped()
		return &stone
	}
	e.final, e.data = true, op.Ending.Data
	e.keepUntil = nanos(v.at.steady.Add(op.Ending.Keep))
	e.keepPosting, e.keepAttached = op.Ending.KeepPosting, op.Ending.KeepAttached
	e.size = int64(len(e.data) + len(e.status))
	if !e.keepPosting {
		e.posting = e.stripped().posting
	}
	e.attached = 0
	if e.keepAttached {
		e.attached = j.attached
	}
	v.measure(e)
	return e
}

// measure adds what is kept beside a final record to its size.
func (v *boardTx) measure(e *endedRecord) {
	if e.keepPosting {
		e.size += int64(len(e.extra)) + int64(e.details)
	}
	if !e.keepAttached || e.attached == 0 {
		return
	}
	key := uintKey(e.sequence)
	cursor := v.table(inAttached).cursor()
	for k, value := cursor.seek(key); len(k) > 8 && string(k[:8]) == string(key); k, value = cursor.next() {
		e.size += int64(max(0, len(value)-checksumSize))
	}
}

// keepEnded writes a tombstone or a final record.
func (v *boardTx) keepEnded(e *endedRecord) {
	key := uintKey(e.position)
	if !e.final {
		v.setRef(e.id, newRef(refTombstone, e.position))
		v.counts.tombstones++
		v.insert(inTombstones, kindEnded, key, e.room(), e.append)
		return
	}
	v.setRef(e.id, newRef(refFinal, e.position))
	v.counts.finals++
	v.counts.finalBytes += e.size
	v.insert(inFinals, kindEnded, key, e.room(), e.append)
	v.set(v.table(inExpiry), expiryKey(e.keepUntil, e.position), []byte{}, true)
}
