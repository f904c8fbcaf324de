package embedded

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// The buckets of a board. All but details and attached are keyed by a number
// that only grows, and so are filled from one end.
var (
	jobsBucket      = []byte("jobs")       // by sequence: jobRecord
	detailsBucket   = []byte("details")    // by sequence: bytes as posted
	attachedBucket  = []byte("attached")   // by sequence and name: bytes
	trashBucket     = []byte("trash")      // by position of the trashing: jobRecord
	tombstoneBucket = []byte("tombstones") // by position of the ending: endedRecord
	finalBucket     = []byte("finals")     // likewise, those with a final record
	expiryBucket    = []byte("expiry")     // by end and position of a final record: nothing
	answerBucket    = []byte("answers")    // by number, as they were given: answer
	keyBucket       = []byte("keys")       // by name: which job has it, see driver.Key
	groupBucket     = []byte("groups")     // by key, see transition.GroupKey: what it counts
	changeBucket    = []byte("changes")    // by position of the last change in it: one commit's changes
	stateKey        = []byte("state")      // in the board's own bucket: boardState
)

// A ref says where the record of a job lies: a set and a key in it. The zero
// ref is nowhere.
type ref uint64

const (
	refOpen ref = iota + 1
	refTrash
	refTombstone
	refFinal

	refShift = 60
)

func newRef(set ref, key uint64) ref { return set<<refShift | ref(key) }

func (r ref) set() ref { return r >> refShift }

func (r ref) key() uint64 { return uint64(r &^ (0xF << refShift)) }

// bucket returns where records of the ref's set are kept.
func (r ref) bucket() []byte {
	switch r.set() {
	case refOpen:
		return jobsBucket
	case refTrash:
		return trashBucket
	case refTombstone:
		return tombstoneBucket
	case refFinal:
		return finalBucket
	}
	return nil
}

// boardState is a board's own record.
type boardState struct {
	position   uint64 // of the last change
	sequence   uint64 // of the last post
	generation uint64
	forgotten  uint64 // changes up to here are no longer known
	window     int64  // tombstones that ended before this were taken away for want of room
	changes    uint64 // in the log
	logBytes   uint64 // likewise

	// passage is at the end of the record while the board moves, and when it has gone. A
	// program that does not know of moves cannot read such a record, and serves no such board.
	passage transition.Passage
}

func (s *boardState) append(b []byte) []byte {
	b = binary.AppendUvarint(b, s.position)
	b = binary.AppendUvarint(b, s.sequence)
	b = binary.AppendUvarint(b, s.generation)
	b = binary.AppendUvarint(b, s.forgotten)
	b = appendInt64(b, s.window)
	b = binary.AppendUvarint(b, s.changes)
	b = binary.AppendUvarint(b, s.logBytes)
	return append(b, s.passage.Bytes()...)
}

func (s *boardState) decode(body []byte) error {
	r := reader{b: body}
	*s = boardState{
		position: r.uvarint(), sequence: r.uvarint(), generation: r.uvarint(), forgotten: r.uvarint(), window: r.int64(),
		changes: r.uvarint(), logBytes: r.uvarint(),
	}
	if r.err != nil {
		return r.err
	}
	var err error
	s.passage, err = transition.ReadPassage(r.b)
	return err
}

// counts are kept in memory and counted anew at open.
type counts struct {
	open, claimed, trashed, tombstones, finals, finalBytes, answers int64
}

// board is one open board. What is below spec is written by the committer
// alone, while the store's gate is closed; others read it under the gate.
type board struct {
	store  *Store
	name   string
	number uint32 // in this process, see tableID

	opening sync.Mutex // one OpenBoard or DropBoard at a time; it guards no field
	ready   atomic.Bool
	dropped atomic.Bool
	spec    atomic.Pointer[driver.BoardSpec]

	generation atomic.Uint64 // as in state, for readers that are not under the gate

	exists  bool // it has a bucket
	state   boardState
	counts  counts
	refs    map[job.ID]ref
	answers map[[16]byte]uint64 // number of each remembered answer, by its mixed transition.Key
	limits  map[string]int64    // and what groups count
	bad     []driver.BadRecord

	ring ring

	// What is below is the committer's own.
	scratch      []byte // see changeLog
	swept        []byte // the last key that was looked at, see take
	oldestStone  int64  // when the oldest tombstone was made, at least
	oldestAnswer int64  // likewise

	oldest [tableCount][]byte // of the tables that are trimmed: nothing that is to be trimmed is before it
}

// older notes that a record is written.
func (b *board) older(n int, key []byte) {
	if bytes.Compare(key, b.oldest[n]) < 0 {
		b.oldest[n] = append(b.oldest[n][:0], key...)
	}
}

// newBoard returns a board that nothing is known of. The caller has the store's mu.
func newBoard(s *Store, name string) *board {
	return &board{store: s, name: name, number: s.numberLocked(name), ring: newRing()}
}

// bucketName is that of the board's bucket.
func (b *board) bucketName() []byte { return bucketNameOf(b.name) }

func bucketNameOf(board string) []byte { return append(append([]byte(nil), boardPrefix...), board...) }

// remembers reports whether what happened at that time is still within the
// board's window.
func (b *board) remembers(at int64, now time.Time) bool {
	return now.UnixNano()-at < int64(b.spec.Load().Window)
}

// storageLimits bound what a board keeps of its past beside what the host asks
// for.
type storageLimits struct {
	changes     uint64 // in the file, from which a watch can go on
	changeBytes uint64 // likewise
	ringBytes   int    // in memory

	journalBytes int64 // in an epoch of the journal, roughly
}

func (l storageLimits) filled() storageLimits {
	if l.changes == 0 {
		l.changes = 200_000
	}
	if l.changeBytes == 0 {
		l.changeBytes = 64 << 20
	}
	if l.ringBytes == 0 {
		l.ringBytes = 4 << 20
	}
	if l.journalBytes == 0 {
		l.journalBytes = 16 << 20
	}
	return l
}

// capabilities is what this driver can do on every board.
func capabilities() driver.Capabilities {
	c := driver.CapabilityAll()
	c.MaxDetails = job.MaxDetails
	c.MaxRecord = 1 << 20
	c.MaxBatch = 256
	c.InFlight = 4
	c.Moves, c.Empties = true, true
	return c
}
