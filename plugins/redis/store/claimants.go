package store

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/job"
)

// claims looks for claims that began or ended: among the keys, if they are few,
// since a job has an owner's key only while somebody has it; else job by job.
func (s *sweep) claims(ctx context.Context) (err error) {
	begun := time.Now()
	s.claiming, s.next = true, begun // who finds meanwhile that claims were missed, makes it zero
	defer func() {
		s.claiming, s.lately, s.took = false, time.Now(), time.Since(begun)
		switch {
		case err != nil || s.next.IsZero():
			s.next = time.Time{}
		case s.notices.on():
			s.next = begun.Add(max(sweepRest, wholeRest*s.took))
		default:
			s.next = begun.Add(sweepTime)
		}
	}()
	if s.few {
		return s.owners(ctx)
	}
	clear(s.owned)
	_, err = s.through(ctx, nil, func(ctx context.Context, cursor uint64) ([]string, uint64, error) {
		fields, next, err := s.fields(ctx, s.opening.keys.jobs, cursor)
		if err != nil {
			return nil, 0, err
		}
		found, err := s.claimed(ctx, fields)
		return found, next, err
	})
	return err
}

// claimed returns those of some jobs, given with our records of them, that have
// another owner than the records say. Most jobs have none, and need no more than
// to be counted.
func (s *sweep) claimed(ctx context.Context, fields []string) ([]string, error) {
	var free, owners, taken []string
	for i := 0; i < len(fields); i += 2 {
		switch flags := flagsOf(fields[i+1]); {
		case flags&flagTrashed != 0:
		case flags&(flagClaim|flagForeign|flagHeld|flagDelayed) == 0:
			free, owners = append(free, fields[i]), append(owners, s.opening.keys.owner(fields[i]))
		default:
			taken = append(taken, fields[i])
		}
	}
	if len(free) > 0 {
		var n *redis.IntCmd
		_, err := s.pace.timed(ctx, s.board, owners[0], func(p redis.Pipeliner) { n = p.Exists(ctx, owners...) })
		if err != nil {
			return nil, err
		}
		if n.Val() > 0 {
			taken = append(taken, free...)
		}
	}
	s.pace.looked += len(free)
	return s.differing(ctx, taken)
}

// owners looks for claims among the keys of the database, and for the end of
// those that were known before.
func (s *sweep) owners(ctx context.Context) error {
	k, before := &s.opening.keys, s.owned
	s.owned = map[string]bool{}
	_, err := s.through(ctx, nil, func(ctx context.Context, cursor uint64) ([]string, uint64, error) {
		var scan *redis.ScanCmd
		_, err := s.pace.timed(ctx, s.board, k.jobs, func(p redis.Pipeliner) {
			scan = p.Scan(ctx, cursor, escape(k.prefix)+"*"+ownedSuffix, keysCount)
		})
		if err != nil {
			return nil, 0, err
		}
		names, next := scan.Val()
		var ids []string
		for _, name := range names {
			id := strings.TrimSuffix(strings.TrimPrefix(name, k.prefix), ownedSuffix)
			if _, err := job.ParseID(id); err == nil && !s.owned[id] {
				s.owned[id], ids = true, append(ids, id)
			}
		}
		found, err := s.differing(ctx, ids)
		return found, next, err
	})
	if err != nil {
		maps.Copy(s.owned, before)
		return err
	}
	maps.DeleteFunc(before, func(id string, _ bool) bool { return s.owned[id] })
	gone := slices.Collect(maps.Keys(before))
	_, err = s.through(ctx, nil, func(ctx context.Context, cursor uint64) ([]string, uint64, error) {
		n := min(sweepCount, len(gone))
		ids := gone[:n]
		gone = gone[n:]
		found, err := s.differing(ctx, ids)
		return found, uint64(len(gone)), err
	})
	return err
}
