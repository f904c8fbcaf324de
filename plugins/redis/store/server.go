package store

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// durability says what an acknowledged change survives, as Redis is configured
// now.
func (s *Store) durability(ctx context.Context) (driver.Durability, error) {
	info, err := s.client.InfoMap(ctx, "persistence").Result()
	if err != nil {
		return "", readFailed(ctx, err)
	}
	if info["Persistence"]["aof_enabled"] != "1" {
		return driver.Volatile, nil
	}
	set, err := s.client.ConfigGet(ctx, "appendfsync").Result()
	if err == nil && set["appendfsync"] == "always" {
		return driver.Durable, nil
	}
	return driver.Delayed, nil // also where Redis does not let this user ask
}

// meet greets every server of a cluster before the first board is opened, since a
// server that is met later counts as restarted. One that does not answer now is met
// when it does; boards are then opened again without need.
func (s *Store) meet(ctx context.Context) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return
	}
	s.mu.Lock()
	met := s.met
	s.met = true
	s.mu.Unlock()
	if met {
		return
	}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx).Err() })
	if err != nil {
		s.logger.Info("a server of the cluster does not answer", "error", err)
	}
}

// greet looks at a new connection before it is used. A server that was not met
// before may have lost what another one had acknowledged, so that every board
// has to be opened again.
func (s *Store) greet(ctx context.Context, c *redis.Conn) error {
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return unavailable("Redis does not say which server it is", err)
	}
	run := runID(info)
	s.mu.Lock()
	defer s.mu.Unlock()
	if run == "" || s.runs[run] {
		return nil
	}
	first := len(s.runs) == 0
	if _, cluster := s.client.(*redis.ClusterClient); !cluster {
		clear(s.runs) // who comes back to a server that was met before may find less there
	}
	s.runs[run] = true
	s.valued.Store(false) // it may know what the last one did not
	if first || len(s.boards) == 0 {
		return nil
	}
	s.logger.Warn("this is another Redis server, or it was restarted; every board is looked at again", "run_id", run)
	for _, b := range s.boards {
		if st := b.opening.Load(); st != nil {
			st.expire()
		}
	}
	return &job.Error{Kind: job.Unavailable, Message: "every board has to be opened again", Err: errRestarted}
}

// errRestarted refuses the first connection to a server that was not met before:
// the call that asked for it may have been made up before the restart.
var errRestarted = errors.New("the server was restarted, or is another one")

// runID finds the run id in what INFO says of a server; empty: it does not say.
func runID(info string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
