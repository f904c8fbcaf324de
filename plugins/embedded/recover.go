package embedded

import (
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// memory is what the host remembers of a board for us: which store it was in,
// and how far it had come. A store that was put back from a backup knows less.
type memory struct {
	store      [16]byte
	position   uint64
	generation uint64
}

const memoryVersion = 1

func (m memory) encode() []byte {
	b := append([]byte{memoryVersion}, m.store[:]...)
	b = binary.AppendUvarint(b, m.position)
	return binary.AppendUvarint(b, m.generation)
}

func decodeMemory(b []byte) (memory, error) {
	r := reader{b: b}
	if v := r.byte(); r.err == nil && v != memoryVersion {
		return memory{}, fmt.Errorf("it is of version %d, not %d", v, memoryVersion)
	}
	m := memory{store: r.array16(), position: r.uvarint(), generation: r.uvarint()}
	return m, r.done()
}

// OpenBoard loads the board's index at the first call, and takes over the
// settings at every one.
func (s *Store) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	if err := checkSpec(&spec); err != nil {
		return driver.BoardStatus{}, err
	}
	b, err := s.place(ctx, spec.Name)
	if err != nil {
		return driver.BoardStatus{}, err
	}
	defer b.opening.Unlock()
	b.spec.Store(&spec)
	if !b.ready.Load() {
		if err := b.load(ctx); err != nil {
			return driver.BoardStatus{}, err
		}
	}
	loss, err := b.compare(ctx, &spec)
	if err != nil {
		return driver.BoardStatus{}, err
	}
	b.ready.Store(true)
	return b.status(loss), nil
}

func checkSpec(spec *driver.BoardSpec) error {
	if spec.Name == "" || len(spec.Name) > driver.MaxBoardName {
		return job.Errorf(job.Invalid, "a board's name has 1 to %d bytes, this one %d", driver.MaxBoardName, len(spec.Name))
	}
	if spec.Window <= 0 {
		spec.Window = driver.DefaultWindow
	}
	if spec.MaxTombstones <= 0 {
		spec.MaxTombstones = driver.DefaultMaxTombstones
	}
	if spec.MaxFinals <= 0 {
		spec.MaxFinals = 1 << 62
	}
	if spec.MaxFinalBytes <= 0 {
		spec.MaxFinalBytes = 1 << 62
	}
	return nil
}

// place returns the board, locked for its opening.
func (s *Store) place(ctx context.Context, name string) (*board, error) {
	for {
		select {
		case <-s.closing:
			return nil, s.gone()
		case <-ctx.Done():
			return nil, &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
		default:
		}
		s.mu.Lock()
		b := s.boards[name]
		if b == nil {
			b = newBoard(s, name)
			s.boards[name] = b
		}
		s.mu.Unlock()
		b.opening.Lock()
		if !b.dropped.Load() {
			return b, nil
		}
		b.opening.Unlock() // dropped meanwhile: begin with a new one
	}
}

// compare looks for a loss: the host knows of a change that the store does not.
// Then all tokens and positions of before end.
func (b *board) compare(ctx context.Context, spec *driver.BoardSpec) (string, error) {
	if len(spec.Witness) == 0 {
		return b.untold(ctx)
	}
	m, err := decodeMemory(spec.Witness)
	if err != nil {
		return "", job.Errorf(job.Invalid, "board %q: what the host remembers of it cannot be read: %v", b.name, err)
	}
	m.position = max(m.position, uint64(spec.Seen))
	s := b.store
	s.gate.RLock()
	state := b.state
	s.gate.RUnlock()
	var loss string
	switch {
	case m.generation > state.generation && m.store == s.id:
		loss = fmt.Sprintf("the store is in generation %d of this board, and generation %d was seen: it was put back to an earlier time", state.generation, m.generation)
	case m.position > state.position && m.store == s.id:
		loss = fmt.Sprintf("the store knows the board's changes up to %d, and %d was seen: it was put back to an earlier time", state.position, m.position)
	case m.store != s.id && m.position > 0:
		loss = "this is another store than the one that was seen before"
	case m.store == s.id && m.generation < state.generation:
		text := fmt.Sprintf("the board lost changes before, and is in generation %d since, after generation %d", state.generation, m.generation)
		if s.lost.generation > m.generation {
			text += ": " + s.lost.String()
		}
		return text, nil
	default:
		return "", nil
	}
	return loss, b.raise(ctx, m)
}

// untold is what is to be said of the board to a host that remembers nothing of it: the
// loss that the store found in itself. Of a board that is not there only the process
// that found the loss can tell: it was lost, or it is new.
func (b *board) untold(ctx context.Context) (string, error) {
	s := b.store
	s.gate.RLock()
	exists, state := b.exists, b.state
	s.gate.RUnlock()
	switch {
	case s.lost.generation == 0:
		return "", nil
	case exists && state.generation == s.lost.generation:
		return s.lost.String(), nil
	case !exists && s.lost.found:
		return "the board is not in the store, and may have been: " + s.lost.String(),
			b.raise(ctx, memory{position: state.position, generation: state.generation})
	}
	return "", nil
}

// raise begins a new generation of the board, behind everything that was ever
// seen of it. A board that is only observed gets it in memory alone.
func (b *board) raise(ctx context.Context, m memory) error {
	lift := func(state *boardState) {
		state.generation = max(state.generation, m.generation) + 1
		state.position = max(state.position, m.position) + 1
		state.forgotten = state.position
	}
	s := b.store
	if b.spec.Load().Observe {
		s.gate.Lock()
		defer s.gate.Unlock()
		lift(&b.state)
		b.generation.Store(b.state.generation)
		b.ring.rouse()
		return nil
	}
	var next uint64
	err := s.committer.do(ctx, 1, 0, func(t *txn) {
		v := t.board(b)
		lift(&v.state)
		next = v.state.generation
		v.touched, v.lifted, t.wrote = true, true, true
	})
	if err == nil {
		b.generation.Store(next)
	}
	return err
}

// status says what the board is now.
func (b *board) status(loss string) driver.BoardStatus {
	s := b.store
	s.gate.RLock()
	defer s.gate.RUnlock()
	m := memory{store: s.id, position: b.state.position, generation: b.state.generation}
	return driver.BoardStatus{
		Generation: b.state.generation, Position: driver.Position(b.state.position), Durability: driver.Durable,
		Capabilities: capabilities(), Window: b.reach(s.clock.wall()), Witness: m.encode(), Loss: loss,
	}
}

// DropBoard takes a board and its documents away.
func (s *Store) DropBoard(ctx context.Context, name string) error {
	b, err := s.place(ctx, name)
	if err != nil {
		return err
	}
	defer b.opening.Unlock()
	if !b.ready.Load() { // never opened: what it left still sets the floor
		b.spec.CompareAndSwap(nil, &driver.BoardSpec{Name: name})
		if err := b.load(ctx); err != nil {
			return err
		}
	} else if b.spec.Load().Observe {
		return job.Errorf(job.Precondition, "board %q is observed only: this host changes nothing on it", name)
	}
	return s.committer.alone(ctx, b.drop)
}

// drop takes the board's bucket away and remembers how far it had come. The
// committer calls it when everything is in the file.
func (b *board) drop() error {
	if b.dropped.Load() {
		return nil
	}
	s := b.store
	f := floor{position: max(s.floor.position, b.state.position), generation: max(s.floor.generation, b.state.generation)}
	var edited []edit
	existed := false
	// What was dropped stays dropped: the head of before is an earlier state.
	next := reached{epoch: s.reached.epoch + 1, whole: true}
	err := s.update(func(tx *bbolt.Tx) (wrote bool, err error) {
		if existed = tx.Bucket(b.bucketName()) != nil; existed {
			body := binary.AppendUvarint(binary.AppendUvarint(nil, f.position), f.generation)
			if err := putHead(tx.Bucket(storeBucket), floorKey, body); err != nil {
				return false, err
			}
			if err := tx.DeleteBucket(b.bucketName()); err != nil {
				return false, err
			}
		}
		edited, err = dropDocuments(tx, b.name)
		if err != nil || !existed && len(edited) == 0 {
			return false, err
		}
		return true, putHead(tx.Bucket(storeBucket), journalKey, next.append(nil))
	})
	if err != nil {
		return err
	}
	if existed || len(edited) > 0 {
		s.reached = next
		s.marker.last.raise(f.position, f.generation, 0)
		s.marker.write(tail{epoch: next.epoch})
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	if existed {
		s.floor = f
	}
	s.unload(b)
	s.documents.publish(edited)
	return nil
}
