package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
)

// end takes the job off the board for good.
func (v *boardTx) end(op *driver.Op, plan *transition.Plan, j *jobRecord, n note) {
	v.counts.open--
	e := v.endedOf(op, plan, j)
	v.delete(inJobs, uintKey(j.sequence))
	if !e.keepPosting {
		v.dropDetails(&j.posting)
	}
	if !e.keepAttached {
		v.dropAttached(&j.posting)
	}
	v.log.ended(n, e, j.position)
	v.keepEnded(e)
}

// endedOf makes what an ending leaves behind.
func (v *boardTx) endedOf(op *driver.Op, plan *transition.Plan, j *jobRecord) *endedRecord {
	left := &plan.Ending
	e := &endedRecord{
		posting: j.posting, version: j.version, at: j.modified, outcome: left.Outcome,
		must: op.Precondition, token: plan.EndedBy, request: op.Request, position: j.position, status: j.status,
	}
	if left.Keep == 0 {
		stone := e.stripped()
		return &stone
	}
	e.final, e.data = true, left.Data
	e.keepUntil = nanos(v.at.steady.Add(left.Keep))
	e.keepPosting, e.keepAttached = left.KeepPosting, left.KeepAttached
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
