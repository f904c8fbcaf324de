package embedded

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// changeLog gathers the changes of one board in one transaction, encoded as
// they are kept: in the file under the position of the last of them, so that a
// watch can go on after a restart, and in memory for the watches that are up to
// date.
type changeLog struct {
	body        []byte // without the checksum, which is in front of it
	first, last uint64
	n           uint64
}

// What stands behind a change.
const (
	changeFull   byte = iota + 1 // the job with its posting
	changeSparse                 // what changes of a job
	changeEnded                  // a job that left the board
)

// note is what a change says beside the job.
type note struct {
	event  job.EventType
	at     int64
	reason string
	owner  []byte
}

func (l *changeLog) begin(n note, id job.ID, position uint64) {
	if l.n == 0 {
		l.body = append(l.body[:0], make([]byte, checksumSize)...)
		l.first = position
	}
	l.n++
	l.last = position
	b := append(l.body, byte(n.event))
	b = append(b, id[:]...)
	b = binary.AppendUvarint(b, position)
	b = appendInt64(b, n.at)
	b = appendBytes(b, n.reason[:min(len(n.reason), job.MaxReason)])
	l.body = appendBytes(b, n.owner)
}

// job notes a change that left the job on the board or in the trash.
func (l *changeLog) job(n note, j *jobRecord, full bool) {
	l.begin(n, j.id, j.position)
	if full {
		l.body = append(l.body, changeFull)
		l.body = j.posting.whole().append(l.body)
	} else {
		l.body = append(l.body, changeSparse)
	}
	l.body = j.appendState(l.body)
}

// ended notes a change that took the job away.
func (l *changeLog) ended(n note, e *endedRecord, position uint64) {
	l.begin(n, e.id, position)
	b := append(l.body, changeEnded, byte(e.outcome))
	b = binary.AppendUvarint(b, e.version)
	l.body = appendInt64(b, e.at)
}

// entry is what was written, or an empty one.
func (l *changeLog) entry() entry {
	if l.n == 0 {
		return entry{}
	}
	return entry{first: l.first, last: l.last, value: l.body}
}

// writeLog keeps the transaction's changes and forgets the oldest ones.
func (v *boardTx) writeLog() {
	if v.log.n == 0 {
		return
	}
	// The room that the log grew in is used again; what stays in memory is cut to
	// its size.
	v.board.scratch = v.log.body[:0]
	if cap(v.board.scratch) > arenaChunk {
		v.board.scratch = nil
	}
	v.log.body = append(make([]byte, 0, len(v.log.body)), v.log.body...)
	key := uintKey(v.log.last)
	seal(kindChanges, key, v.log.body)
	v.set(v.table(inChanges), key, v.log.body, true)
	v.state.changes += v.log.n
	v.state.logBytes += uint64(len(v.log.body))
	keep := v.store.keep
	if v.state.changes <= keep.changes && v.state.logBytes <= keep.changeBytes {
		return
	}
	v.fromOldest(inChanges, trimStep, func(key, value []byte) bool {
		last, err := keyUint(key)
		if err != nil || last >= v.log.last || v.state.changes <= keep.changes && v.state.logBytes <= keep.changeBytes {
			return false
		}
		v.state.changes -= min(v.state.changes, countChanges(key, value))
		v.state.logBytes -= min(v.state.logBytes, uint64(len(value)))
		v.state.forgotten = last
		v.delete(inChanges, key)
		return true
	})
}

// countChanges says how many changes an entry holds; one that cannot be read
// counts as one.
func countChanges(key, value []byte) uint64 {
	n := uint64(0)
	e := entry{value: value}
	if err := e.check(key); err != nil {
		return 1
	}
	for range e.each(0, instant{}) { //nolint:errcheck // one that cannot be read counts, too
		n++
	}
	return n
}

// entry is the changes of one commit.
type entry struct {
	first, last uint64
	value       []byte
}

func (e *entry) check(key []byte) error {
	last, err := keyUint(key)
	if err != nil {
		return err
	}
	e.last = last
	_, err = unseal(kindChanges, key, e.value)
	return err
}

// each goes through the changes after a position.
func (e *entry) each(after uint64, at instant) func(func(driver.Change, error) bool) {
	return func(yield func(driver.Change, error) bool) {
		r := reader{b: e.value[checksumSize:]}
		for len(r.b) > 0 {
			change, err := readChange(&r, after, at)
			if err != nil {
				yield(driver.Change{}, err)
				return
			}
			if uint64(change.Position) > after && !yield(change, nil) {
				return
			}
		}
	}
}

// readChange takes one change apart; of one that is not after the given
// position only the position is right.
func readChange(r *reader, after uint64, at instant) (driver.Change, error) {
	c := driver.Change{Event: job.EventType(r.byte()), Job: r.array16(), Position: driver.Position(r.uvarint()), At: timeOf(r.int64())}
	reason, owner := r.bytes(), r.bytes()
	wanted := uint64(c.Position) > after
	if wanted {
		c.Reason, c.Owner = string(reason), string(owner)
	}
	switch kind := r.byte(); {
	case r.err != nil:
	case kind == changeFull || kind == changeSparse:
		var j jobRecord
		if kind == changeFull {
			j.posting.read(r)
		} else {
			j.id = c.Job
			j.created = noTime
		}
		j.readState(r)
		if wanted && r.err == nil {
			c.Record, c.Sparse = j.public(at), kind == changeSparse
		}
	case kind == changeEnded:
		e := endedRecord{posting: posting{id: c.Job, created: noTime}, outcome: job.Outcome(r.byte()), position: uint64(c.Position)}
		e.version, e.at = r.uvarint(), r.int64()
		if wanted && r.err == nil {
			c.Record, c.Sparse = e.public(0), true
			if e.outcome == job.Purged {
				c.Record.State = job.Unknown
			}
		}
	default:
		r.err = fmt.Errorf("it has a change of the unknown kind %d", kind)
	}
	return c, r.err
}

// ring is the newest entries, in memory.
type ring struct {
	entries []entry
	size    int
	wake    chan struct{} // closed when an entry comes
	waiting *atomic.Bool  // somebody looks at wake
}

func newRing() ring { return ring{wake: make(chan struct{}), waiting: new(atomic.Bool)} }

// add takes an entry in and lets old ones go.
func (r *ring) add(e entry, limit int) {
	if len(e.value) == 0 {
		return
	}
	r.entries = append(r.entries, e)
	r.size += len(e.value)
	drop := 0
	for r.size > limit && drop < len(r.entries)-1 {
		r.size -= len(r.entries[drop].value)
		r.entries[drop] = entry{}
		drop++
	}
	r.entries = r.entries[drop:]
	r.rouse()
}

func (r *ring) rouse() {
	if r.waiting.Swap(false) {
		close(r.wake)
		r.wake = make(chan struct{})
	}
}

// after returns up to limit entries that hold changes after the position, and
// false if older ones than the ring has are needed.
func (r *ring) after(position uint64, limit int) ([]entry, bool) {
	if len(r.entries) == 0 || r.entries[0].first > position+1 {
		return nil, false
	}
	low, high := 0, len(r.entries)
	for low < high {
		if middle := (low + high) / 2; r.entries[middle].last <= position {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return append([]entry(nil), r.entries[low:min(len(r.entries), low+limit)]...), true
}
