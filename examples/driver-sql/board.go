package main

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A board is how a board was opened here. It is never changed, but replaced.
type board struct {
	driver.BoardSpec
	events int64 // how many changes are kept
}

const defaultEvents = 8192

// OpenBoard makes the board's row, and looks whether the store lost something that the
// host remembers.
func (s *store) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	settings := struct {
		Events int64 `json:"events"`
	}{defaultEvents}
	if err := json.Unmarshal([]byte(cmp.Or(string(spec.Settings), "{}")), &settings); err != nil {
		return driver.BoardStatus{}, job.Errorf(job.Invalid, "the settings of board %q cannot be read: %v", spec.Name, err)
	}
	if err := spec.Check(); err != nil {
		return driver.BoardStatus{}, err
	}
	b := &board{BoardSpec: spec.WithDefaults(), events: max(settings.Events, 1)}
	status := driver.BoardStatus{Durability: driver.Durable, Capabilities: driver.CapabilityAll(), Window: b.Window}
	run := s.write
	if spec.Observe {
		run = s.read
	}
	err := run(ctx, func(q *session) error {
		if !spec.Observe {
			q.exec("INSERT INTO boards (name) VALUES (?) ON CONFLICT DO NOTHING", spec.Name)
		}
		t, err := s.onBoard(q, b)
		if err == nil {
			err = t.open(&status)
		}
		return err
	})
	if err != nil {
		return driver.BoardStatus{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boards[spec.Name] = b
	return status, nil
}

// open says how the board stands, and whether it has lost something.
func (t *tx) open(status *driver.BoardStatus) error {
	stands := driver.Witness{Store: t.store.id, Generation: t.generation, Position: t.position}
	generation, loss, err := stands.Compare(&t.spec.BoardSpec)
	if err != nil {
		return err
	}
	lost := generation != t.generation
	t.generation, stands.Generation = generation, generation
	status.Generation, status.Position, status.Witness, status.Loss = generation, t.position, stands.Bytes(), loss
	if t.spec.Observe {
		return nil
	}
	if lost { // no token of before is good any more
		t.exec("UPDATE jobs SET ends = 0, lease = 1, boot = ? WHERE board = ? AND state = ?", t.store.boot, t.board, job.Claimed)
	}
	// Nobody knows for how long the machine was off: leases of before it count anew.
	t.exec("UPDATE jobs SET ends = lease + ?, boot = ? WHERE board = ? AND state = ? AND lease > 0 AND boot <> ?",
		t.clock, t.store.boot, t.board, job.Claimed, t.store.boot)
	t.forget()
	t.save()
	return nil
}

// DropBoard takes away the board's row, and with it (ON DELETE CASCADE) all others.
func (s *store) DropBoard(ctx context.Context, name string) error {
	err := s.write(ctx, func(q *session) error {
		q.exec("DELETE FROM boards WHERE name = ?", name)
		q.exec("DELETE FROM documents WHERE board = ? AND board <> ''", name)
		return nil
	})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.boards, name)
	}
	return err
}

// board returns a board that is open here.
func (s *store) board(name string) (*board, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.boards[name]; b != nil {
		return b, nil
	}
	return nil, notOpen(name)
}

func notOpen(name string) error {
	return job.Errorf(job.Precondition, "board %q is not open: open it first", name)
}

// A tx is a transaction on one board, with the board's row as it stands.
type tx struct {
	*session
	store *store
	spec  *board
	now   time.Time     // wall clock: for what people see, and for what is kept for a time
	clock time.Duration // boot clock: for leases

	board      int64
	generation uint64
	position   driver.Position
	sequence   uint64
	epoch      uint64
}

// onBoard reads the board's row. One that is only observed need not have any: then it
// is empty.
func (s *store) onBoard(q *session, b *board) (*tx, error) {
	t := &tx{session: q, store: s, spec: b, now: time.Now().Round(0), clock: bootClock(), generation: 1}
	found := q.row(into(&t.board, &t.generation, &t.position, &t.sequence, &t.epoch),
		"SELECT board, generation, position, sequence, epoch FROM boards WHERE name = ?", b.Name)
	if !found && q.err == nil && !b.Observe {
		return nil, notOpen(b.Name) // somebody dropped it
	}
	return t, q.err
}

// save writes the board's row, and forgets changes that no watcher will ask for.
func (t *tx) save() {
	t.exec("UPDATE boards SET generation = ?, position = ?, sequence = ?, epoch = ? WHERE board = ?",
		t.generation, t.position, t.sequence, t.epoch, t.board)
	t.exec("DELETE FROM changes WHERE board = ? AND position <= ?", t.board, int64(t.position)-t.spec.events)
}
