package store

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// namesCount is how many fields a step of a search asks for where their values need not
// come with them, which is most of what they cost.
const namesCount = 800

// A sender sends queued commands to the server that has the board.
type sender func(queue func(redis.Pipeliner)) error

// names makes a step of Redis's scan of a hash for its fields alone, without their values
// where the server can leave those out: Redis 7.4 and Valkey 8.0 can. One that has refused
// is not asked again, until another server is met; ok is false then.
func (s *Store) names(ctx context.Context, key string, cursor uint64, count int64, send sender) (names []string, next uint64, ok bool, err error) {
	if s.valued.Load() {
		return nil, 0, false, nil
	}
	var scan *redis.ScanCmd
	err = send(func(p redis.Pipeliner) { scan = p.HScanNoValues(ctx, key, cursor, "", count) })
	var reply redis.Error
	if errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "ERR") { // syntax error, or however a proxy says so
		s.valued.Store(true)
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, err
	}
	names, next = scan.Val()
	return names, next, true, nil
}

// namesOf drops the values from what a scan of a hash returned.
func namesOf(fields []string) []string {
	names := make([]string, 0, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		names = append(names, fields[i])
	}
	return names
}

// names makes a step of a search through the fields of a hash.
func (s *sweep) names(ctx context.Context, key string, cursor uint64) ([]string, uint64, error) {
	send := func(queue func(redis.Pipeliner)) error {
		_, err := s.pace.timed(ctx, s.board, key, queue)
		return err
	}
	names, next, ok, err := s.board.store.names(ctx, key, cursor, namesCount, send)
	if ok || err != nil {
		return names, next, err
	}
	fields, next, err := s.fields(ctx, key, cursor)
	return namesOf(fields), next, err
}
