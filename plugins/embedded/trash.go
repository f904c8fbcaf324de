package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// setAside puts a job in the trash. Its details and attached records stay where
// they are.
func (v *boardTx) setAside(op *driver.Op, s *subject) (driver.Result, error) {
	j := &s.job
	owner := j.holder.owner
	result, err := v.step(op, j)
	if err != nil {
		return result, err
	}
	v.endClaim(j)
	v.count(j.limits, -1)
	j.trashed, j.aside = true, j.modified
	v.counts.open--
	v.counts.trashed++
	v.log.job(v.note(op, owner), j, false)
	if err := v.delete(inJobs, uintKey(j.sequence)); err != nil {
		return result, err
	}
	v.setRef(j.id, newRef(refTrash, j.position))
	if err := v.put(inTrash, kindJob, uintKey(j.position), j.size(), j.append); err != nil {
		return result, err
	}
	return result, v.leave(op, &result)
}

// restore puts a trashed job back on the board. It was there before: no limit
// keeps it off.
func (v *boardTx) restore(op *driver.Op, s *subject) (driver.Result, error) {
	j := &s.job
	result, err := v.step(op, j)
	if err != nil {
		return result, err
	}
	j.trashed, j.aside = false, noTime
	v.count(j.limits, 1)
	v.counts.trashed--
	v.counts.open++
	v.log.job(v.note(op, nil), j, true)
	if err := v.delete(inTrash, uintKey(s.at.key())); err != nil {
		return result, err
	}
	v.setRef(j.id, newRef(refOpen, j.sequence))
	if err := v.save(j); err != nil {
		return result, err
	}
	return result, v.leave(op, &result)
}

// purge takes a trashed job, or what is left of an ended one, away for good.
// What stays is the answers to retries: of the purge, and of the ending.
func (v *boardTx) purge(op *driver.Op, s *subject) (driver.Result, error) {
	take := v.purgeEnded
	if s.trashed() {
		take = v.purgeTrashed
	}
	e, err := take(s)
	if err != nil {
		return driver.Result{}, err
	}
	e.version++
	e.position = v.next()
	e.at = v.at.wall.UnixNano()
	e.outcome = job.Purged
	result := driver.Result{Position: driver.Position(e.position), Version: e.version, At: timeOf(e.at)}
	v.log.ended(v.note(op, nil), e, e.position)
	v.setRef(e.id, 0)
	return result, v.leave(op, &result)
}

func (v *boardTx) purgeTrashed(s *subject) (*endedRecord, error) {
	j := &s.job
	v.counts.trashed--
	if err := v.delete(inTrash, uintKey(s.at.key())); err != nil {
		return nil, err
	}
	if err := v.dropDetails(&j.posting); err != nil {
		return nil, err
	}
	return &endedRecord{posting: j.posting, version: j.version}, v.dropAttached(&j.posting)
}

func (v *boardTx) purgeEnded(s *subject) (*endedRecord, error) {
	e, key := s.ended, uintKey(s.at.key())
	if v.board.remembers(e.at, v.at.steady) {
		if err := v.remember(e.trace()); err != nil {
			return nil, err
		}
	}
	if s.at.set() == refTombstone {
		v.counts.tombstones--
		return &e, v.delete(inTombstones, key)
	}
	v.counts.finals--
	v.counts.finalBytes -= e.size
	if err := v.dropBelongings(&e); err != nil {
		return nil, err
	}
	return &e, v.deleteFinal(key, expiryKey(e.keepUntil, e.position))
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
