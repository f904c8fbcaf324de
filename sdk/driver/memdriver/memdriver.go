// Package memdriver is the reference driver: boards in memory, written to be
// read. It implements the whole driver contract in the plainest way and keeps
// nothing when it is closed. Other drivers are compared with it.
//
// Locks. store.mu, board.mu and documents.mu are held one at a time, and only while
// memory is read or written. A bell may be rung with any of them held.
package memdriver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// DefaultEvents is how many changes a board remembers for its watchers.
const DefaultEvents = 8192

// Program returns the driver as a plugin's main serves it.
func Program() driver.Program {
	return driver.Program{
		Info: driver.Info{
			Name:    "memory",
			Version: "1.0.0",
			Summary: "Keeps boards in memory, for tests; everything is lost when it stops.",
			Board: driver.Schema{Fields: []driver.Field{{
				Name: "events", Type: driver.Integer,
				Doc: "how many changes are remembered for watchers; absent: 8192",
			}}},
		},
		Open: Open,
	}
}

// Open makes an empty store. It starts no goroutines, and all its times come
// from package time, so that it works in a bubble of testing/synctest.
func Open(context.Context, driver.Config) (driver.Driver, error) {
	s := &store{boards: map[string]*board{}}
	_, _ = rand.Read(s.id[:]) // never fails
	s.documents = documents{store: s, docs: map[place]driver.Document{}, passages: map[string]transition.Passage{}}
	return s, nil
}

type store struct {
	id        [8]byte // tells this store from one that was lost
	documents documents

	mu     sync.Mutex
	boards map[string]*board
}

func (s *store) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	if err := ended(ctx); err != nil {
		return driver.BoardStatus{}, err
	}
	settings := struct {
		Events int `json:"events"`
	}{DefaultEvents}
	if len(spec.Settings) > 0 {
		if err := json.Unmarshal(spec.Settings, &settings); err != nil {
			return driver.BoardStatus{}, job.Errorf(job.Invalid, "the settings of board %q cannot be read: %v", spec.Name, err)
		}
	}
	if err := spec.Check(); err != nil {
		return driver.BoardStatus{}, err
	}
	s.mu.Lock()
	b := s.boards[spec.Name]
	if b == nil {
		b = newBoard()
		s.boards[spec.Name] = b
	}
	s.mu.Unlock()
	return b.open(spec, settings.Events, s.id)
}

func (s *store) DropBoard(ctx context.Context, name string) error {
	if err := ended(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	b := s.boards[name]
	delete(s.boards, name)
	s.mu.Unlock()
	if b != nil {
		close(b.dropped)
		b.bell.Ring()
	}
	s.documents.drop(name)
	return nil
}

// board returns an open board.
func (s *store) board(name string) (*board, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boards[name]
	if b == nil {
		return nil, notOpen(name)
	}
	return b, nil
}

func notOpen(name string) error {
	return job.Errorf(job.Precondition, "board %q is not open: open it first", name)
}

func (s *store) Apply(ctx context.Context, name string, ops []driver.Op) []driver.Result {
	b, err := s.board(name)
	return driver.Each(ctx, ops, func(_ context.Context, op *driver.Op) driver.Result {
		if err != nil {
			return driver.Failed(err)
		}
		return b.apply(op)
	})
}

func (s *store) Read(ctx context.Context, name string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	b, err := s.board(name)
	if err == nil {
		err = ended(ctx)
	}
	if err != nil {
		return nil, err
	}
	return b.read(ids, parts)
}

func (s *store) Count(ctx context.Context, name string) (driver.Counts, error) {
	b, err := s.board(name)
	if err == nil {
		err = ended(ctx)
	}
	if err != nil {
		return driver.Counts{}, err
	}
	return b.count(), nil
}

func (s *store) Documents() driver.Documents { return &s.documents }

func (s *store) Health(ctx context.Context) error { return ended(ctx) }

// Measure adds up what jobs and documents were given to keep.
func (s *store) Measure(ctx context.Context) (u driver.Usage, err error) {
	if err := ended(ctx); err != nil {
		return u, err
	}
	s.mu.Lock()
	boards := slices.Collect(maps.Values(s.boards))
	s.mu.Unlock()
	for _, b := range boards {
		u.Used += b.size()
	}
	u.Used += s.documents.size()
	return u, nil
}

var _ driver.Measurer = (*store)(nil)

// Close ends the streams that are still open.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.boards {
		b.bell.Close()
	}
	s.documents.bell.Close()
	return nil
}

// ended returns the end of ctx as an error of the contract.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	return nil
}
