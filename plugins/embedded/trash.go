package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// setAside puts a job in the trash. Its details and attached records stay where
// they are.
func (v *boardTx) setAside(op *driver.Op, s *subject) driver.Result {
	j := &s.job
	owner := j.holder.owner
	result := v.step(op, j)
	v.endClaim(j)
	v.count(j.limits, -1)
	j.trashed, j.aside = true, j.modified
	v.counts.open--
	v.counts.trashed++
	v.log.job(v.note(op, owner), j, false)
	v.delete(inJobs, uintKey(j.sequence))
	v.setRef(j.id, newRef(refTrash, j.position))
	v.insert(inTrash, kindJob, uintKey(j.position), j.size(), j.append)
	v.leave(op, &result)
	return result
}

// restore puts a trashed job back on the board. It was there before: no limit
// keeps it off.
func (v *boardTx) restore(op *driver.Op, s *subject) driver.Result {
	j := &s.job
	result := v.step(op, j)
	j.trashed, j.aside = false, noTime
	v.count(j.limits, 1)
	v.counts.trashed--
	v.counts.open++
	v.log.job(v.note(op, nil), j, true)
	v.delete(inTrash, uintKey(s.at.key()))
	v.setRef(j.id, newRef(refOpen, j.sequence))
	v.save(j)
	v.leave(op, &result)
	return result
}

// purge takes a trashed job, or what is left of an ended one, away for good.
// What stays is the answers to retries: of the purge, and of the ending.
func (v *boardTx) purge(op *driver.Op, s *subject) driver.Result {
	take := v.purgeEnded
	if s.trashed() {
		take = v.purgeTrashed
	}
	e := take(s)
	e.version++
	e.position = v.next()
	e.at = v.at.wall.UnixNano()
	e.outcome = job.Purged
	result := driver.Result{Position: driver.Position(e.position), Version: e.version, At: timeOf(e.at)}
	v.log.ended(v.note(op, nil), e, e.position)
	v.setRef(e.id, 0)
	v.leave(op, &result)
	return result
}

func (v *boardTx) purgeTrashed(s *subject) *endedRecord {
	j := &s.job
	v.counts.trashed--
	v.delete(inTrash, uintKey(s.at.key()))
	v.dropDetails(&j.posting)
	v.dropAttached(&j.posting)
	return &endedRecord{posting: j.posting, version: j.version}
}

func (v *boardTx) purgeEnded(s *subject) *endedRecord {
	e, key := s.ended, uintKey(s.at.key())
	if v.board.remembers(e.at, v.at.steady) {
		v.remember(e.trace())
	}
	if s.at.set() == refTombstone {
		v.counts.tombstones--
		v.delete(inTombstones, key)
		return &e
	}
	v.counts.finals--
	v.counts.finalBytes -= e.size
	v.dropBelongings(&e)
	v.deleteFinal(key, expiryKey(e.keepUntil, e.position))
	return &e
}

// trace is what answers the retry of an ending when the record of it is gone.
func (e *endedRecord) trace() *answer {
	random := e.request
	if !e.token.IsZero() {
		random = e.token.Nonce
	}
	return &answer{
		key: mix(e.id, random), kind: driver.Remove, must: e.must, outcome: e.outcome, job: e.id, request: e.request, token: e.token,
		position: e.position, version: e.version, at: e.at, notBefore: noTime,
	}
}
