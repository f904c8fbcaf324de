package embedded

import (
	"encoding/binary"
	"fmt"

	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// boardTx is what a transaction has done to one board so far. It shows its own
// changes over the board's memory, which publish brings up to date.
type boardTx struct {
	*txn
	board  *board
	at     instant // the transaction's, in the board's generation
	state  boardState
	counts counts
	tables [tableCount]*table

	refs    map[job.ID]ref // a zero ref: taken away
	answers map[[16]byte]uint64
	limits  map[string]int64 // differences
	moves   transition.Moves // see full; kept for its room
	log     changeLog
	touched bool // the state is to be written
	lifted  bool // the position moved without a change
}

// The tables of a board. All but inRoot and inSequences are buckets of their own.
const (
	inJobs = iota
	inDetails
	inAttached
	inTrash
	inTombstones
	inFinals
	inExpiry
	inAnswers
	inChanges
	inRoot      // the board's own bucket
	inSequences // by table: the last number that it gave out, which the file keeps in the bucket
	inKeys      // a bucket of its own again; the numbers are in the journal
	inGroups    // likewise
	tableCount
)

// bucketNames are those of the tables that are buckets; nil: the table is none.
var bucketNames = [tableCount][]byte{
	inJobs: jobsBucket, inDetails: detailsBucket, inAttached: attachedBucket, inTrash: trashBucket, inTombstones: tombstoneBucket,
	inFinals: finalBucket, inExpiry: expiryBucket, inAnswers: answerBucket, inChanges: changeBucket, inKeys: keyBucket,
	inGroups: groupBucket,
}

// appendFill is how full a page gets before a new one is begun, in buckets that
// are filled from one end.
const appendFill = 0.95

// table returns one of the board's tables.
func (v *boardTx) table(n int) *table {
	if v.tables[n] == nil {
		v.tables[n] = v.txn.table(v.board, n)
	}
	return v.tables[n]
}

func bucketOf(set ref) int {
	switch set {
	case refOpen:
		return inJobs
	case refTrash:
		return inTrash
	case refTombstone:
		return inTombstones
	}
	return inFinals
}

// ref says where a job is.
func (v *boardTx) ref(id job.ID) ref {
	if r, ok := v.refs[id]; ok {
		return r
	}
	return v.board.refs[id]
}

func (v *boardTx) setRef(id job.ID, r ref) {
	if v.refs == nil {
		v.refs = map[job.ID]ref{}
	}
	v.refs[id] = r
}

func (v *boardTx) answerAt(key [16]byte) uint64 {
	if at, ok := v.answers[key]; ok {
		return at
	}
	return v.board.answers[key]
}

func (v *boardTx) setAnswer(key [16]byte, at uint64) {
	if v.answers == nil {
		v.answers = map[[16]byte]uint64{}
	}
	v.answers[key] = at
}

// get returns a stored value, or nil. It stays valid until the commit.
func (v *boardTx) get(n int, key []byte) []byte { return v.table(n).get(key) }

func (v *boardTx) put(n int, kind byte, key []byte, room int, body func([]byte) []byte) {
	v.touched = true
	v.board.older(n, key)
	v.txn.put(v.table(n), kind, key, room, body)
}

// insert is put for a key that the table never had.
func (v *boardTx) insert(n int, kind byte, key []byte, room int, body func([]byte) []byte) {
	v.touched = true
	v.board.older(n, key)
	v.txn.insert(v.table(n), kind, key, room, body)
}

func (v *boardTx) delete(n int, key []byte) {
	v.touched = true
	v.remove(v.table(n), key)
}

// corrupt is what an op finds where a record cannot be read. It changes
// nothing, and other jobs are not concerned.
type corruptError struct{ err error }

func (e *corruptError) Error() string { return e.err.Error() }

func (e *corruptError) Unwrap() error { return e.err }

// load reads the record of an open or trashed job.
func (v *boardTx) load(r ref, j *jobRecord) error {
	key, value, err := v.stored(r)
	if err != nil {
		return err
	}
	if err = j.open(key, value); err == nil {
		err = v.join(&j.posting)
	}
	return damaged(r, err)
}

// loadEnded reads what is left of a job that ended.
func (v *boardTx) loadEnded(r ref, e *endedRecord) error {
	key, value, err := v.stored(r)
	if err != nil {
		return err
	}
	if err = e.open(key, value); err == nil {
		err = v.join(&e.posting)
	}
	return damaged(r, err)
}

// join takes in the extra, if it lies beside a record.
func (v *boardTx) join(p *posting) error {
	if p.apart == 0 {
		return nil
	}
	key := uintKey(p.sequence)
	_, err := p.join(key, v.get(inDetails, key))
	return err
}

// stored returns the key and the bytes of a record, which has to be there.
func (v *boardTx) stored(r ref) (key, value []byte, err error) {
	key = uintKey(r.key())
	if value = v.get(bucketOf(r.set()), key); value == nil {
		return nil, nil, &corruptError{fmt.Errorf("%s/%d is missing", r.bucket(), r.key())}
	}
	return key, value, nil
}

// damaged adds to err which record it is about; nil stays nil.
func damaged(r ref, err error) error {
	if err == nil {
		return nil
	}
	return &corruptError{fmt.Errorf("%s/%d: %w", r.bucket(), r.key(), err)}
}

// save writes the record of an open job back.
func (v *boardTx) save(j *jobRecord) {
	v.put(inJobs, kindJob, uintKey(j.sequence), j.size(), j.append)
}

// next counts one change of the board.
func (v *boardTx) next() uint64 {
	v.state.position++
	v.touched = true
	return v.state.position
}

// limit returns what a limit's key stands at.
func (v *boardTx) limit(key string) int64 { return v.board.limits[key] + v.limits[key] }

// count raises or, with sign -1, lowers what appendLimits wrote.
func (v *boardTx) count(list []byte, sign int64) {
	_ = eachLimit(list, func(key []byte, weight int64) { // checked when it was decoded
		if v.limits == nil {
			v.limits = map[string]int64{}
		}
		v.limits[string(key)] += sign * weight
	})
}

// finish writes what concerns the board as a whole.
func (v *boardTx) finish() {
	if !v.touched {
		return
	}
	v.trim()
	v.writeGroups()
	v.writeLog()
	v.txn.put(v.table(inRoot), kindState, stateKey, 5*binary.MaxVarintLen64, v.state.append)
}

// publish brings the board's memory up to what was committed.
func (v *boardTx) publish() {
	b := v.board
	if v.touched {
		b.exists = true
	}
	b.state, b.counts = v.state, v.counts
	for id, r := range v.refs {
		if r == 0 {
			delete(b.refs, id)
		} else {
			b.refs[id] = r
		}
	}
	for key, at := range v.answers {
		if at == 0 {
			delete(b.answers, key)
		} else {
			b.answers[key] = at
		}
	}
	for key, difference := range v.limits {
		if now := b.limits[key] + difference; now == 0 {
			delete(b.limits, key)
		} else {
			b.limits[key] = now
		}
	}
	if v.lifted {
		b.ring.entries, b.ring.size = nil, 0
		b.ring.rouse()
	}
	b.ring.add(v.log.entry(), b.store.keep.ringBytes)
}
