package embedded

import (
	"encoding/binary"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
)

// post puts a job on the board.
func (v *boardTx) post(op *driver.Op, plan *transition.Plan, s *subject) driver.Result {
	p, j := op.Posting, &s.job
	limits := transition.Counted(op)
	v.state.sequence++
	*j = jobRecord{
		posting: posting{
			id: p.ID, digest: p.Digest, created: v.at.wall.UnixNano(), sequence: v.state.sequence,
			priority: p.Priority, encoding: p.Encoding, name: []byte(p.Name), bookID: []byte(p.Book.UUID),
			bookName: []byte(p.Book.Name), extra: p.Extra, details: uint64(len(p.Details)),
		},
		aside: noTime, limits: appendLimits(make([]byte, 0, limitsSize(limits)), limits),
	}
	if op.Import != nil {
		j.created = nanos(op.Import.CreatedAt)
	}
	if len(p.Extra) > maxSlim {
		j.apart = uint64(len(p.Extra))
	}
	result := v.step(plan, j)
	if plan.Emptied != "" {
		v.move(transition.Moves{{Key: transition.GroupKey(plan.Emptied, transition.Open), By: transition.Closed}})
	}
	v.putDetails(&j.posting, p.Details)
	v.insert(inJobs, kindJob, uintKey(j.sequence), j.size(), j.append)
	v.setRef(p.ID, newRef(refOpen, j.sequence))
	v.counts.open++
	v.log.job(v.note(op, nil), j, true)
	result.Record = j.public(v.at)
	return result
}

// putDetails keeps details apart from the job's record, and a large extra with them.
// Empty ones are not kept: details come back nil only where they were posted nil or
// empty.
func (v *boardTx) putDetails(p *posting, details []byte) {
	if p.beside() == 0 {
		return
	}
	v.insert(inDetails, kindDetails, uintKey(p.sequence), int(p.beside()), func(b []byte) []byte {
		return append(append(b, p.extra[:p.apart]...), details...)
	})
}

// attachedKey is where an attached record lies: beside the others of its job,
// by name.
func attachedKey(sequence uint64, name string) []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(name)), sequence)
	return append(key, name...)
}

func (v *boardTx) dropDetails(p *posting) {
	if p.beside() > 0 {
		v.delete(inDetails, uintKey(p.sequence))
	}
}

// attach writes and takes away attached records.
func (v *boardTx) attach(p *posting, list []driver.Attachment) {
	for i := range list {
		a := &list[i]
		key := attachedKey(p.sequence, a.Name)
		there := v.get(inAttached, key) != nil
		switch {
		case a.Delete && there:
			p.attached--
			v.delete(inAttached, key)
		case !a.Delete:
			if !there {
				p.attached++
			}
			v.put(inAttached, kindAttached, key, len(a.Data), func(b []byte) []byte { return append(b, a.Data...) })
		}
	}
}

// dropAttached takes all attached records of a job away.
func (v *boardTx) dropAttached(p *posting) {
	if p.attached == 0 {
		return
	}
	first := uintKey(p.sequence)
	cursor := v.table(inAttached).cursor()
	for key, _ := cursor.seek(first); len(key) > 8 && string(key[:8]) == string(first); key, _ = cursor.next() {
		v.delete(inAttached, key) // the cursor has gone past it
	}
}
