// Package store is the engine of the Redis driver: boards in Redis that are, at
// the same time, jobboards of OpenStack TaskFlow. Every transition is one step of
// a Lua script; TaskFlow's keys and bytes are its own, and what boardd adds lies
// in keys beside them. See docs/redis.md.
package store

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/plugins/redis/connect"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Program returns the driver.
func Program() driver.Program {
	return driver.Program{
		Info: driver.Info{
			Name:    "redis",
			Version: "1.0.0",
			Summary: "Keeps boards in Redis or Valkey, shared with OpenStack TaskFlow.",
			Config:  connect.Schema(),
			Board:   boardSchema,
		},
		Open: Open,
	}
}

// Open returns a driver. It connects when it is first used.
func Open(_ context.Context, c driver.Config) (driver.Driver, error) {
	s := &Store{logger: c.Logger, boards: map[string]*board{}, closing: make(chan struct{}), runs: map[string]bool{}}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	client, err := connect.Open(c.Settings, s.greet)
	if err != nil {
		return nil, err
	}
	s.client = client
	s.wakes = newWakes(s)
	return s, nil
}

// Store is the driver over one Redis.
type Store struct {
	client  redis.UniversalClient
	logger  *slog.Logger
	wakes   *wakes
	closing chan struct{}
	work    sync.WaitGroup // goroutines of the boards

	mu     sync.Mutex
	boards map[string]*board
	runs   map[string]bool // the servers that were met, by run id
	done   bool

	calls atomic.Int64 // of the script
}

// board returns an open board.
func (s *Store) board(name string) (*board, error) {
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

// Health asks Redis for a sign of life.
func (s *Store) Health(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if err := s.client.Ping(ctx).Err(); err != nil {
		return readFailed(ctx, err)
	}
	return nil
}

// Close ends the streams and the connections.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.done {
		s.mu.Unlock()
		return nil
	}
	s.done = true
	close(s.closing)
	s.mu.Unlock()
	s.wakes.close()
	s.work.Wait()
	return s.client.Close()
}
