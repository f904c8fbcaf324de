// Package store is the engine of the Redis driver: boards in Redis that are, at
// the same time, jobboards of OpenStack TaskFlow. Every transition is one step of
// a Lua script; TaskFlow's keys and bytes are its own, and what boardd adds lies
// in keys beside them. See docs/redis.md.
//
// Locks. Store.mu, board.mu, bad.mu, knownJobs.mu, notices.mu and searchBudget.mu are
// each held alone, while memory is read or written. None of them may be held while Redis
// is asked: a call may make a new connection, and greet takes Store.mu before that is
// used.
//
// wakes.mu is held while Redis is told what to listen to, which may make a connection,
// so that Store.mu is taken after it and never before. Meanwhile no watcher is woken. What
// watchPattern calls is called without it.
package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
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
			Config:  configSchema(),
			Board:   boardSchema,
		},
		Open: Open,
	}
}

// configSchema declares the settings of a backend: where Redis is, and how it
// wants to be spoken to.
func configSchema() driver.Schema {
	schema := connect.Schema()
	schema.Fields = append(schema.Fields, driver.Field{
		Name: "declare_keys", Type: driver.Boolean,
		Doc: "name every key to Redis that a script may touch, for proxies that refuse others; costs a little; absent: false",
	})
	return schema
}

// Open returns a driver. It connects when it is first used.
func Open(_ context.Context, c driver.Config) (driver.Driver, error) {
	declare, place, err := ownSettings(c.Settings)
	if err != nil {
		return nil, err
	}
	self := random16()
	s := &Store{
		logger: c.Logger, boards: map[string]*board{}, closing: make(chan struct{}), runs: map[string]bool{},
		self: hex.EncodeToString(self[:]), budget: newSearchBudget(), looking: newSearchBudget(),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if c.Logger != nil {
		connect.Log(c.Logger)
	}
	client, err := connect.Open(place, s.greet)
	if err != nil {
		return nil, err
	}
	s.client, s.declare = client, declare
	s.wakes, s.rounds = newWakes(s), newRounds(s)
	return s, nil
}

// ownSettings takes what is ours out of a backend's settings; the rest says where
// Redis is.
func ownSettings(settings []byte) (declare bool, place []byte, err error) {
	if len(settings) == 0 {
		return false, nil, nil
	}
	var all map[string]json.RawMessage
	err = json.Unmarshal(settings, &all)
	if raw, ok := all["declare_keys"]; ok && err == nil {
		err = json.Unmarshal(raw, &declare)
	}
	if err == nil {
		delete(all, "declare_keys")
		place, err = json.Marshal(all)
	}
	if err != nil {
		return false, nil, job.Errorf(job.Invalid, "the settings cannot be read: %v", err)
	}
	return declare, place, nil
}

// Store is the driver over one Redis.
type Store struct {
	client  redis.UniversalClient
	declare bool // every key of a script is named
	logger  *slog.Logger
	wakes   *wakes
	rounds  *rounds
	self    string        // what tells this driver from other servers'
	budget  *searchBudget // of what searches may cost Redis
	looking *searchBudget // of what looking at observed boards may, which is measured by the time that it takes
	closing chan struct{}
	work    sync.WaitGroup // goroutines of the boards

	mu     sync.Mutex
	boards map[string]*board
	runs   map[string]bool // by run id, the server that was met last; of a cluster, all of them
	met    bool            // the servers of a cluster were greeted, all at once
	done   bool

	// Not guarded by mu.
	calls  atomic.Int64 // of the script
	valued atomic.Bool  // the server cannot scan a hash without its values
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
