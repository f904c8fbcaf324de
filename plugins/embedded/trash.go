package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// setAside puts a job in the trash. Its details and attached records stay where
// they are.
func (v *boardTx) setAside(j *jobRecord, n note) {
	j.trashed, j.aside = true, j.modified
	v.counts.open--
	v.counts.trashed++
	v.log.job(n, j, false)
	v.delete(inJobs, uintKey(j.sequence))
	v.setRef(j.id, newRef(refTrash, j.position))
	v.insert(inTrash, kindJob, uintKey(j.position), j.size(), j.append)
}

// restore puts a trashed job back on the board.
func (v *boardTx) restore(s *subject, n note) {
	j := &s.job
	j.trashed, j.aside = false, noTime
	v.counts.trashed--
	v.counts.open++
	v.log.job(n, j, true)
	v.delete(inTrash, uintKey(s.at.key()))
	v.setRef(j.id, newRef(refOpen, j.sequence))
	v.save(j)
}

// purge takes a trashed job, or what is left of an ended one, away for good.
// What stays is the answers to retries: of the purge, and of the ending.
func (v *boardTx) purge(op *driver.Op, plan *transition.Plan, s *subject) driver.Result {
	take := v.purgeEnded
	if s.trashed() {
		take = v.purgeTrashed
		v.stand(plan, &s.job)
	}
	e := take(s)
	e.version, e.position, e.at, e.outcome = plan.Version, v.next(), v.at.wall.UnixNano(), job.Purged
	result := transition.Finish(plan, e.version, driver.Position(e.position), 0, timeOf(e.at))
	v.log.ended(v.note(op, nil), e, e.position)
	v.setRef(e.id, 0)
	v.leave(plan)
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
		stamp := e.stamp()
		v.remember(answerOf(&stamp))
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
