package embedded

import (
	"encoding/binary"
	"fmt"

	"github.com/boardd/boardd/plugins/embedded/wal"
)

// The body of a journal's record is a list of entries. Each begins with what it
// is and, where it concerns a key, the bucket; 0 fills the record up.
const (
	entryBoard  byte = 0x20 // the name of the board that what follows is about; empty: the store itself
	entryPut    byte = 0x40 // key, value
	entryRemove byte = 0x80 // key

	entryBucket byte = 0x1F
)

// recordWriter encodes what a transaction puts where.
type recordWriter struct {
	b     []byte // with room for the head in front
	board *board
	any   bool
}

func (w *recordWriter) reset() {
	if cap(w.b) > maxVolume/4 {
		w.b = nil
	}
	w.b = append(w.b[:0], make([]byte, wal.Head)...)
	w.board, w.any = nil, false
}

func (w *recordWriter) about(t *table) {
	if w.any && w.board == t.board {
		return
	}
	w.any, w.board = true, t.board
	name := ""
	if t.board != nil {
		name = t.board.name
	}
	w.b = appendBytes(append(w.b, entryBoard), name)
}

func (w *recordWriter) put(t *table, key, value []byte) {
	w.about(t)
	w.b = appendBytes(appendBytes(append(w.b, entryPut|t.place[4]), key), value)
}

func (w *recordWriter) remove(t *table, key []byte) {
	w.about(t)
	w.b = appendBytes(append(w.b, entryRemove|t.place[4]), key)
}

// entry is what a record says of one key. Its slices alias the record.
type recordEntry struct {
	board      string // empty: the store itself
	bucket     int
	key, value []byte
	gone       bool
}

// eachEntry takes the body of a record apart.
func eachEntry(body []byte, visit func(e *recordEntry) error) error {
	r := reader{b: body}
	var e recordEntry
	named := false
	for len(r.b) > 0 {
		what := r.byte()
		if what == 0 {
			continue
		}
		if what == entryBoard {
			e.board, named = string(r.bytes()), true
			continue
		}
		e.bucket, e.gone, e.value = int(what&entryBucket), what&^entryBucket == entryRemove, nil
		if !e.gone && what&^entryBucket != entryPut || !named || !isBucket(e.board, e.bucket) {
			return fmt.Errorf("it has an entry of the unknown kind %#x", what)
		}
		e.key = r.bytes()
		if !e.gone {
			e.value = r.bytes()
		}
		if r.err == nil && e.bucket == inSequences && (len(e.key) != 1 || !isBucket(e.board, int(e.key[0])) || len(e.value) != 8) {
			r.fail()
		}
		if r.err != nil || len(e.key) == 0 {
			return fmt.Errorf("an entry in it cannot be read: %w", errShort)
		}
		if err := visit(&e); err != nil {
			return err
		}
	}
	return r.err
}

func isBucket(board string, bucket int) bool {
	if board == "" {
		return bucket < len(storeBuckets) || bucket == inSequences
	}
	return bucket < tableCount
}

// sequenceOf is the counter that a value in inSequences says.
func sequenceOf(value []byte) uint64 { return binary.BigEndian.Uint64(value) }
