package embedded

import (
	"bytes"
	"encoding/binary"

	"github.com/tidwall/btree"
	"go.etcd.io/bbolt"
)

// A tableID names one of the sorted maps that a store consists of, its tables: the
// number of a board in this process, 0 for the store itself, and one of the
// board's buckets.
type tableID [5]byte

func newTableID(board uint32, bucket int) (p tableID) {
	binary.BigEndian.PutUint32(p[:], board)
	p[4] = byte(bucket)
	return p
}

func (p tableID) board() uint32 { return binary.BigEndian.Uint32(p[:]) }

func (p tableID) bucket() int { return int(p[4]) }

// A cell is what a memtable says of one key: its value, or that it was taken away.
// It never changes, and neither do its bytes.
type cell struct {
	key   []byte // with the place in front
	value []byte
	gone  bool
	fresh bool // nothing below this memtable has the key: what is taken away leaves no trace
}

func (c *cell) place() tableID { return tableID(c.key) }

func (c *cell) name() []byte { return c.key[len(tableID{}):] }

// A memtable is changes that are in the journal and not yet in the file. A copy
// costs nothing and never changes.
type memtable = btree.BTreeG[cell]

func newMemtable() *memtable {
	return btree.NewBTreeGOptions(func(a, b cell) bool { return bytes.Compare(a.key, b.key) < 0 },
		btree.Options{NoLocks: true, Degree: 16})
}

// overlay is what lies over the file, newest first.
type overlay struct {
	recent *memtable
	frozen *memtable // being written to the file; nil where nothing is
}

// A snapshot is the store as it was at one time. It must be short: it keeps old
// pages of the file from being used again.
type snapshot struct {
	store *Store
	over  overlay
	tx    *bbolt.Tx // nil until somebody asks for the file

	probe []byte
	known *board // whose bucket root is
	root  *bbolt.Bucket
}

// file returns the transaction that reads the file. A file whose head cannot be
// read any more is a panic, as a page is.
func (m *snapshot) file() *bbolt.Tx {
	if m.tx == nil {
		tx, err := m.store.db.Begin(false)
		if err != nil {
			panic(err)
		}
		m.tx = tx
	}
	return m.tx
}

func (m *snapshot) close() error {
	if m.tx == nil {
		return nil
	}
	return m.tx.Rollback()
}

// full puts the place in front of a key. The next call uses the same bytes.
func (m *snapshot) full(p tableID, key []byte) []byte {
	m.probe = append(append(m.probe[:0], p[:]...), key...)
	return m.probe
}

// A table is one of the store's sorted maps at one moment.
type table struct {
	in     *snapshot
	place  tableID
	board  *board // nil for the store's own
	looked bool
	bucket *bbolt.Bucket
}

// table returns a bucket of a board, or, where b is nil, of the store.
func (m *snapshot) table(b *board, bucket int) *table {
	t := &table{in: m, board: b, place: newTableID(0, bucket)}
	if b != nil {
		t.place = newTableID(b.number, bucket)
	}
	return t
}

// below returns what the file has of the table, or nil.
func (t *table) below() *bbolt.Bucket {
	if t.looked {
		return t.bucket
	}
	t.looked = true
	m := t.in
	if t.board == nil {
		t.bucket = m.file().Bucket(storeBuckets[t.place.bucket()])
		return t.bucket
	}
	if m.known != t.board {
		m.known, m.root = t.board, m.file().Bucket(t.board.bucketName())
	}
	switch {
	case m.root == nil:
	case t.place.bucket() == inRoot:
		t.bucket = m.root
	default:
		t.bucket = m.root.Bucket(bucketNames[t.place.bucket()])
	}
	return t.bucket
}

// get returns a value, or nil. It stays valid until the snapshot is closed.
func (t *table) get(key []byte) []byte {
	over := &t.in.over
	at := cell{key: t.in.full(t.place, key)}
	if c, ok := over.recent.Get(at); ok {
		return c.held()
	}
	if over.frozen != nil {
		if c, ok := over.frozen.Get(at); ok {
			return c.held()
		}
	}
	if b := t.below(); b != nil {
		return b.Get(key)
	}
	return nil
}

func (c *cell) held() []byte {
	if c.gone {
		return nil
	}
	return c.value
}

// sequence returns the last number that the table gave out.
func (t *table) sequence() uint64 {
	counters := table{in: t.in, place: newTableID(t.place.board(), inSequences), looked: true}
	if value := counters.get([]byte{t.place[4]}); len(value) == 8 {
		return binary.BigEndian.Uint64(value)
	}
	if b := t.below(); b != nil {
		return b.Sequence()
	}
	return 0
}
