package embedded

import (
	"go.etcd.io/bbolt"
)

// txn is one write transaction, which carries the ops of many callers. Only
// the committer has one. What it changes in memory is kept aside in each
// board's boardTx and becomes visible after the commit.
type txn struct {
	store  *Store
	tx     *bbolt.Tx
	at     instant
	arena  *arena
	boards map[*board]*boardTx

	documents *bbolt.Bucket
	edited    []edit // documents that were changed
	dropped   []*board
	floor     *floor  // the new one, if a board was dropped
	found     subject // of the latest lookup; kept here, since it is large
	wrote     bool
}

// board returns the transaction's view of a board.
func (t *txn) board(b *board) *boardTx {
	v := t.boards[b]
	if v == nil {
		v = &boardTx{txn: t, board: b, state: b.state, counts: b.counts}
		v.log.body = b.scratch
		t.boards[b] = v
	}
	return v
}

// put writes a record whose body append makes; room is how many bytes that is
// at most, roughly.
func (t *txn) put(bucket *bbolt.Bucket, kind byte, key []byte, room int, body func([]byte) []byte) error {
	value := t.arena.room(checksumSize + room)
	value = body(value[:checksumSize])
	seal(kind, key, value)
	t.wrote = true
	return bucket.Put(key, t.arena.keep(value))
}

// publish makes what was committed visible. The store's gate is closed
// meanwhile.
func (t *txn) publish() {
	for _, v := range t.boards {
		v.publish()
	}
	for _, b := range t.dropped {
		t.store.unload(b)
	}
	if t.floor != nil {
		t.store.floor = *t.floor
	}
	t.store.documents.publish(t.edited)
}

// unload takes a dropped board out of memory. Who still has it in hand finds out.
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
