package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// lost is what a store keeps of the last loss that it found in itself, under lossKey.
// Every board that was there then is in its generation since; a host that remembers
// nothing of a board in that generation is told of the loss. New boards begin in a
// later one.
type lost struct {
	at         int64
	generation uint64
	text       string
	bad        [32]byte // which documents could not be read, hashed; zero: none
	found      bool     // by this process, when it opened the store
}

var lossKey = []byte("loss")

func (l *lost) append(b []byte) []byte {
	b = appendInt64(b, l.at)
	b = binary.AppendUvarint(b, l.generation)
	b = appendBytes(b, []byte(l.text))
	return append(b, l.bad[:]...)
}

func (l *lost) decode(body []byte) error {
	r := reader{b: body}
	*l = lost{at: r.int64(), generation: r.uvarint(), text: string(r.bytes())}
	first, second := r.array16(), r.array16()
	copy(l.bad[:], first[:])
	copy(l.bad[16:], second[:])
	return r.done()
}

func (l *lost) String() string {
	return fmt.Sprintf("%s (found %s); documents, as books of tenants and pauses, may be older too", l.text, timeOf(l.at).UTC().Format(time.RFC3339))
}

// loss says what the store has lost, by comparing the end of its records, has, with the
// mark, was; "": nothing.
func (s *Store) loss(was mark, has tail) string {
	switch {
	case was.tail.epoch == putBackEpoch:
		return fmt.Sprintf("the store was put back from a backup that was made at %s: what was acknowledged since is lost",
			time.Unix(int64(was.tail.number), 0).UTC().Format(time.RFC3339))
	case was.store != s.id:
		return "the store was acknowledged to hold other changes: its file was taken away, or it is that of another store"
	case has.before(was.tail):
		return fmt.Sprintf("of the store's changes those up to record %d of epoch %d were acknowledged, and it has those up to record %d of epoch %d: the others are lost",
			was.tail.number, was.tail.epoch, has.number, has.epoch)
	}
	return ""
}

// audit compares the store with its mark when it is opened and everything is in the
// file. Where something was lost, every board begins a new generation, behind all that
// was ever seen of it, and so do the versions of documents.
func (s *Store) audit(was mark, marked bool, has tail) error {
	var known mark
	var bad [32]byte
	var unread int
	err := s.db.View(func(tx *bbolt.Tx) (err error) {
		if err = s.readLost(tx.Bucket(storeBucket)); err != nil {
			return err
		}
		known = s.extent(tx)
		bad, unread = s.badDocuments(tx)
		return nil
	})
	if err != nil {
		return err
	}
	found := lost{at: s.clock.wall().UnixNano(), bad: bad, found: true}
	if marked {
		found.text = s.loss(was, has)
	}
	if found.text == "" && unread > 0 && bad != s.lost.bad {
		found.text = fmt.Sprintf("%d documents of the store cannot be read", unread)
	}
	s.marker.last.store = s.id
	s.marker.last.raise(known.position, known.generation, known.documents)
	if found.text == "" {
		if !marked {
			s.marker.write(tail{epoch: s.reached.epoch})
		}
		return nil
	}
	last := &s.marker.last
	found.generation = last.generation + 1
	s.logger.Error("the store has lost changes that it had acknowledged, or documents cannot be read; its boards begin a new generation",
		"path", s.folder.path, "loss", found.text, "generation", found.generation)
	next := reached{epoch: s.reached.epoch + 1, whole: true}
	err = s.update(func(tx *bbolt.Tx) (bool, error) { return true, s.lift(tx, &found, next) })
	if err != nil {
		return unavailable(fmt.Errorf("%s: that changes were lost cannot be written to it: %w", s.folder.file(), err))
	}
	s.lost, s.reached = found, next
	last.raise(last.position+2, found.generation+1, 0)
	s.marker.write(tail{epoch: next.epoch})
	s.marker.write(tail{epoch: next.epoch}) // both slots: the older one is of what is lost
	return s.marker.sync()
}

// lift writes a loss into the file, with what follows of it.
func (s *Store) lift(tx *bbolt.Tx, found *lost, next reached) error {
	last := &s.marker.last
	head := tx.Bucket(storeBucket)
	f := floor{position: last.position + 2, generation: found.generation + 1}
	for _, r := range []struct{ key, body []byte }{
		{lossKey, found.append(nil)},
		{floorKey, binary.AppendUvarint(binary.AppendUvarint(nil, f.position), f.generation)},
		{journalKey, next.append(nil)},
	} {
		if err := putHead(head, r.key, r.body); err != nil {
			return err
		}
	}
	documents := tx.Bucket(documentsBucket)
	if err := documents.SetSequence(max(documents.Sequence(), last.documents) + 1); err != nil {
		return err
	}
	return eachState(tx, func(root *bbolt.Bucket, state *boardState) error {
		state.generation, state.position = found.generation, last.position+1
		state.forgotten = state.position
		value := state.append(make([]byte, checksumSize))
		seal(kindState, stateKey, value)
		return root.Put(stateKey, value)
	})
}

// eachState calls visit with the state of each board that can be read. The other boards
// are not served.
func eachState(tx *bbolt.Tx, visit func(root *bbolt.Bucket, state *boardState) error) error {
	var names [][]byte
	cursor := tx.Cursor()
	for key, _ := cursor.Seek(boardPrefix); bytes.HasPrefix(key, boardPrefix); key, _ = cursor.Next() {
		names = append(names, bytes.Clone(key))
	}
	for _, name := range names {
		root := tx.Bucket(name)
		if root == nil {
			continue
		}
		var state boardState
		body, err := unseal(kindState, stateKey, root.Get(stateKey))
		if err == nil {
			err = state.decode(body)
		}
		if err != nil {
			continue
		}
		if err := visit(root, &state); err != nil {
			return err
		}
	}
	return nil
}

// extent is how far the boards and documents in the file have come.
func (s *Store) extent(tx *bbolt.Tx) (m mark) {
	m.documents = tx.Bucket(documentsBucket).Sequence()
	_ = eachState(tx, func(_ *bbolt.Bucket, state *boardState) error {
		m.raise(state.position, state.generation, 0)
		return nil
	})
	return m
}

// badDocuments looks at every document. What cannot be read may lie under another key
// than it was put at, and then nobody would miss it.
func (s *Store) badDocuments(tx *bbolt.Tx) (hash [32]byte, unread int) {
	sum := sha256.New()
	cursor := tx.Bucket(documentsBucket).Cursor()
	for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
		if _, err := unseal(kindDocument, key, value); err != nil {
			unread++
			sum.Write(binary.AppendUvarint(nil, uint64(len(key))))
			sum.Write(key)
		}
	}
	if unread > 0 {
		sum.Sum(hash[:0])
	}
	return hash, unread
}

// readLost reads what the store keeps of a loss. One that cannot be read is none that
// could be told.
func (s *Store) readLost(head *bbolt.Bucket) error {
	body, err := readHead(head, lossKey)
	if body == nil && err == nil {
		return nil
	}
	if err == nil {
		err = s.lost.decode(body)
	}
	if err != nil {
		s.logger.Error("the record of the store's last loss cannot be read", "path", s.folder.path, "error", err)
		s.lost = lost{}
	}
	return nil
}
