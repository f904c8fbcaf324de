package embedded

import "encoding/binary"

// txn is one write transaction, which carries the ops of many callers. Only
// the committer has one. What it changes goes into the committer's draft and into
// a record of the journal. What it changes in memory beside that is kept aside in
// each board's boardTx. All of it becomes visible when the record is on the disk.
type txn struct {
	snapshot

	at     instant
	arena  *arena
	record *recordWriter
	boards map[*board]*boardTx

	documents *table
	edited    []edit  // documents that were changed
	versions  uint64  // the last version of a document, if one was changed
	found     subject // of the latest lookup; kept here, since it is large
	wrote     bool

	looked, noRoom bool // see crowded
	grew           bool // something made a board larger
}

// board returns the transaction's view of a board.
func (t *txn) board(b *board) *boardTx {
	v := t.boards[b]
	if v == nil {
		v = &boardTx{txn: t, board: b, at: t.at, state: b.state, counts: b.counts}
		v.at.generation = b.state.generation
		v.log.body = b.scratch
		t.boards[b] = v
	}
	return v
}

// put writes a record whose body append makes; room is how many bytes that is
// at most, roughly.
func (t *txn) put(in *table, kind byte, key []byte, room int, body func([]byte) []byte) {
	value := t.arena.room(checksumSize + room)
	value = body(value[:checksumSize])
	seal(kind, key, value)
	t.set(in, key, t.arena.keep(value), false)
}

// insert is put for a key that the table never had.
func (t *txn) insert(in *table, kind byte, key []byte, room int, body func([]byte) []byte) {
	value := t.arena.room(checksumSize + room)
	value = body(value[:checksumSize])
	seal(kind, key, value)
	t.set(in, key, t.arena.keep(value), true)
}

// set writes a value, which must not change any more. Fresh says that the table
// never had the key.
func (t *txn) set(in *table, key, value []byte, fresh bool) {
	t.wrote = true
	t.record.put(in, key, value)
	c := cell{key: t.key(in, key), value: value, fresh: fresh}
	if before, ok := t.over.recent.Set(c); ok && before.fresh && !fresh {
		c.fresh = true
		t.over.recent.Set(c)
	}
}

// remove takes a key away, if it is there.
func (t *txn) remove(in *table, key []byte) {
	t.wrote = true
	t.record.remove(in, key)
	at := cell{key: t.full(in.place, key)}
	if c, ok := t.over.recent.Get(at); ok && c.fresh {
		t.over.recent.Delete(at)
		return
	}
	t.over.recent.Set(cell{key: t.key(in, key), gone: true})
}

// key returns the key of a cell, which stays.
func (t *txn) key(in *table, key []byte) []byte {
	return t.arena.keep(append(append(t.arena.room(len(in.place)+len(key)), in.place[:]...), key...))
}

// nextSequence gives out a number of the table that it never gave out before.
func (t *txn) nextSequence(in *table) uint64 {
	n := in.sequence() + 1
	counters := &table{in: &t.snapshot, board: in.board, place: newTableID(in.place.board(), inSequences), looked: true}
	t.set(counters, []byte{in.place[4]}, binary.BigEndian.AppendUint64(nil, n), false)
	return n
}

// publish makes what is durable visible. The store's gate is closed meanwhile.
func (t *txn) publish() {
	for _, v := range t.boards {
		v.publish()
	}
	t.store.documents.publish(t.edited)
}

// unload takes a dropped board out of memory. dropped tells those that still use it.
func (s *Store) unload(b *board) {
	b.dropped.Store(true)
	b.ready.Store(false)
	b.ring.rouse()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boards[b.name] == b {
		delete(s.boards, b.name)
	}
}
