package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// NearlyFull is the percentage of maxmemory from which an examination says that memory
// runs short.
const NearlyFull = 90

// Health asks Redis for a sign of life, and how full its memory is.
func (s *Store) Health(ctx context.Context) error {
	_, err := s.Measure(ctx)
	return err
}

// Measure is Health, and gives the memory of the master that is fullest.
func (s *Store) Measure(ctx context.Context) (fullest driver.Usage, err error) {
	if err := ended(ctx); err != nil {
		return driver.Usage{}, err
	}
	all, err := s.usage(ctx)
	if err != nil {
		return driver.Usage{}, readFailed(ctx, err)
	}
	for _, m := range all {
		if u := (driver.Usage{Used: m.used, Limit: m.limit}); u.Fuller(fullest) {
			fullest = u
		}
		if m.full() {
			err = &job.Error{Kind: job.QuotaExceeded, Message: noMemory}
		}
	}
	return fullest, err
}

var _ driver.Measurer = (*Store)(nil)

// A usage is what a server says of its own memory.
type usage struct {
	used   int64 // of what counts against the limit
	limit  int64 // 0: none
	policy string
}

// evicts reports whether Redis makes room by itself, with jobs.
func (m *usage) evicts() bool { return strings.HasPrefix(m.policy, "allkeys") }

func (m *usage) full() bool { return m.limit > 0 && m.used > m.limit && !m.evicts() }

// usage asks every server that boards may lie on.
func (s *Store) usage(ctx context.Context) (all []usage, err error) {
	ask := func(ctx context.Context, c redis.Cmdable) error {
		var info *redis.StringCmd
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Ping(ctx) // refused while a server loads its data, which INFO is not
			info = p.Info(ctx, "memory")
			return nil
		})
		if err == nil {
			s.mu.Lock() // the masters of a cluster are asked side by side
			defer s.mu.Unlock()
			all = append(all, parseUsage(info.Val()))
		}
		return err
	}
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return ask(ctx, c) })
	} else {
		err = ask(ctx, s.client)
	}
	return all, err
}

// parseUsage reads what INFO says; what it does not say is zero.
func parseUsage(info string) (m usage) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_memory":
			m.used += parseInt(value)
		case "mem_not_counted_for_evict":
			m.used -= parseInt(value)
		case "maxmemory":
			m.limit = parseInt(value)
		case "maxmemory_policy":
			m.policy = value
		}
	}
	return m
}

// memory looks whether there is room.
func (x *examination) memory(ctx context.Context) error {
	all, err := x.board.store.usage(ctx)
	if err != nil {
		return readFailed(ctx, err)
	}
	for _, m := range all {
		if m.limit <= 0 || m.evicts() {
			continue
		}
		percent := float64(m.used) / float64(m.limit) * 100
		const mend = "end jobs, shorten the board's history and idempotency_window, or redis-cli CONFIG SET maxmemory"
		subject := fmt.Sprintf("maxmemory %d", m.limit)
		switch {
		case m.full():
			err = x.find("memory-full", driver.Problem, subject, "Redis has no memory left: posts, logs and what else grows are refused", mend)
		case percent >= NearlyFull:
			err = x.find("memory-nearly-full", driver.Warning, subject,
				fmt.Sprintf("%.0f %% of Redis's memory are used: when it is full, posts are refused", percent), mend)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
