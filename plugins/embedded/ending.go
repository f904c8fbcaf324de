package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// extend counts the lease of a claim anew.
func (v *boardTx) extend(op *driver.Op, s *subject) (driver.Result, error) {
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
	return result, v.save(j)
}

// update changes status, attached records and hold.
func (v *boardTx) update(op *driver.Op, s *subject) (driver.Result, error) {
	j := &s.job
	result, err := v.step(op, j)
	if err != nil {
		return result, err
	}
	v.log.job(v.note(op, j.holder.owner), j, false)
	if err := v.save(j); err != nil {
		return result, err
	}
	return result, v.leave(op, &result)
}

// step raises the job's version and carries out what an op may change beside
// the claim.
func (v *boardTx) step(op *driver.Op, j *jobRecord) (driver.Result, error) {
	j.version++
	j.position = v.next()
	j.modified = v.at.wall.UnixNano()
	result := v.done(j)
	v.amend(op, j, &result)
	return result, v.attach(&j.posting, op.Attach)
}

// release ends the claim and leaves the job on the board.
func (v *boardTx) release(op *driver.Op, s *subject) (driver.Result, error) {
	j := &s.job
	owner := j.holder.owner
	result, err := v.step(op, j)
	if err != nil {
		return result, err
	}
	v.endClaim(j)
	v.log.job(v.note(op, owner), j, false)
	if err := v.save(j); err != nil {
		return result, err
	}
	return result, v.leave(op, &result)
}

func outcomeOf(e *driver.Ending) job.Outcome {
	if e == nil || e.Outcome == job.NoOutcome {
		return job.Consumed
	}
	return e.Outcome
}

// remove takes the job off the board for good.
func (v *boardTx) remove(op *driver.Op, s *subject) (driver.Result, error) {
	j := &s.job
	owner := j.holder.owner
	result, err := v.step(op, j)
	if err != nil {
		return result, err
	}
	v.endClaim(j)
	v.count(j.limits, -1)
	v.counts.open--
	e, err := v.endedOf(op, j)
	if err != nil {
		return result, err
	}
	if err := v.delete(inJobs, uintKey(j.sequence)); err != nil {
		return result, err
	}
	if !e.keepPosting {
		if err := v.dropDetails(&j.posting); err != nil {
			return result, err
		}
	}
	if !e.keepAttached {
		if err := v.dropAttached(&j.posting); err != nil {
			return result, err
		}
	}
	v.log.ended(v.note(op, owner), e, j.position)
	return result, v.keepEnded(e)
}

// endedOf makes what an ending leaves behind.
func (v *boardTx) endedOf(op *driver.Op, j *jobRecord) (*endedRecord, error) {
	e := &endedRecord{
		posting: j.posting, version: j.version, at: v.at.wall.UnixNano(), outcome: outcomeOf(op.Ending),
		must: op.Must, request: op.Request, position: j.position, status: j.status,
	}
	if op.Must.ByToken() {
		e.token = op.Token
	}
	if op.Ending == nil || op.Ending.Keep <= 0 {
		stone := e.stripped()
		return &stone, nil
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
	return e, v.measure(e)
}

// measure adds what is kept beside a final record to its size.
func (v *boardTx) measure(e *endedRecord) error {
	if e.keepPosting {
		e.size += int64(len(e.extra)) + int64(e.details)
	}
	if !e.keepAttached || e.attached == 0 {
		return nil
	}
	key := uintKey(e.sequence)
	attached, err := v.bucket(inAttached)
	if err != nil {
		return err
	}
	cursor := attached.Cursor()
	for k, value := cursor.Seek(key); len(k) > 8 && string(k[:8]) == string(key); k, value = cursor.Next() {
		e.size += int64(max(0, len(value)-checksumSize))
	}
	return nil
}

// keepEnded writes a tombstone or a final record.
func (v *boardTx) keepEnded(e *endedRecord) error {
	key := uintKey(e.position)
	if !e.final {
		v.setRef(e.id, newRef(refTombstone, e.position))
		v.counts.tombstones++
		return v.put(inTombstones, kindEnded, key, e.room(), e.append)
	}
	v.setRef(e.id, newRef(refFinal, e.position))
	v.counts.finals++
	v.counts.finalBytes += e.size
	if err := v.put(inFinals, kindEnded, key, e.room(), e.append); err != nil {
		return err
	}
	expiry, err := v.bucket(inExpiry)
	if err != nil {
		return err
	}
	return expiry.Put(expiryKey(e.keepUntil, e.position), []byte{})
}
