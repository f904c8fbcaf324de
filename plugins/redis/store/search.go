package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// How much is looked at in one step of a search. Redis does nothing else
// meanwhile, for less than a millisecond.
const (
	sweepCount = 400   // jobs
	firstCount = 16    // jobs, until it is known how large they are
	keysCount  = 1_000 // keys of the database, of which most need no further look
	fewKeys    = 2     // for each job: where there are more keys, the jobs are gone through
)

// A search goes through something that Redis has, step by step. Whatever it
// finds is looked at again by the script that reconciles it, so nothing here need
// be seen in one moment.
type search func(ctx context.Context, cursor uint64) (found []string, next uint64, err error)

// through searches to the end, which it reports, or until enough is found, and reconciles
// what is found on the way. Without enough it goes on to the end.
func (s *sweep) through(ctx context.Context, enough func() bool, step search) (whole bool, err error) {
	for cursor := uint64(0); ; {
		found, next, err := step(ctx, cursor)
		if err == nil {
			err = s.reconcile(ctx, found)
		}
		if err == nil {
			err = s.rest(ctx, s.pace.rest())
		}
		// What takes long on a large board must not keep claims from being seen.
		if err == nil && !s.claiming && s.few && time.Now().After(s.next) && time.Since(s.lately) > max(sweepTime, s.took) {
			err = s.claims(ctx)
		}
		if err == nil && !s.pace.hurry && !s.alone && time.Since(s.counted) > lookTime {
			_, err = s.findCounted(ctx, true)
		}
		if cursor = next; err != nil || cursor == 0 {
			return err == nil, err
		}
		if enough != nil && enough() {
			return false, nil
		}
	}
}

// jobs looks at whatever our records know of, on the board and in the trash: at all (0),
// or until so many have ended. Who has which job is seen among the keys, if they are few.
func (s *sweep) jobs(ctx context.Context, wanted int64) error {
	n := int64(0)
	enough := func() bool { return wanted > 0 && n >= wanted }
	_, err := s.through(ctx, enough, func(ctx context.Context, cursor uint64) ([]string, uint64, error) {
		fields, next, err := s.fields(ctx, s.opening.keys.jobs, cursor)
		if err != nil {
			return nil, 0, err
		}
		listed := make([]*redis.BoolCmd, 0, len(fields)/2)
		_, err = s.pace.timed(ctx, s.board, s.opening.keys.listings, func(p redis.Pipeliner) {
			for i := 0; i < len(fields); i += 2 {
				listed = append(listed, p.HExists(ctx, s.opening.keys.listings, fields[i]))
			}
		})
		if err != nil {
			return nil, 0, err
		}
		var found []string
		for i, is := range listed {
			if trashed := flagsOf(fields[2*i+1])&flagTrashed != 0; trashed == is.Val() {
				found = append(found, fields[2*i])
			}
		}
		n += int64(len(found))
		if s.pace.looked += len(listed); s.few {
			return found, next, nil
		}
		claimed, err := s.claimed(ctx, fields)
		return append(found, claimed...), next, err
	})
	return err
}

// named looks at jobs that notifications named.
func (s *sweep) named(ctx context.Context, ids []string) ([]string, error) {
	found, open, err := s.present(ctx, ids)
	if err != nil {
		return nil, err
	}
	differing, err := s.differing(ctx, open)
	return append(found, differing...), err
}

// present returns those jobs that are on the board where our records have them elsewhere,
// or the other way round, and those that both have there.
func (s *sweep) present(ctx context.Context, ids []string) (found, open []string, err error) {
	k := &s.opening.keys
	var records *redis.SliceCmd
	listed := make([]*redis.BoolCmd, len(ids))
	_, err = s.pace.timed(ctx, s.board, k.jobs, func(p redis.Pipeliner) {
		records = p.HMGet(ctx, k.jobs, ids...)
		for i, id := range ids {
			listed[i] = p.HExists(ctx, k.listings, id)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	s.pace.looked += len(ids)
	for i, id := range ids {
		record := value(records, i)
		switch wanted := record != nil && flagsOf(record)&flagTrashed == 0; {
		case listed[i].Val() != wanted:
			found = append(found, id)
		case wanted:
			open = append(open, id)
		}
	}
	return found, open, nil
}

// differing returns those jobs on the board of which our records do not say what
// TaskFlow's keys do.
func (s *sweep) differing(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	k := &s.opening.keys
	owners, modified := make([]string, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		owners[i], modified[i] = k.owner(id), k.modified(id)
	}
	var r reading
	lasting := make([]*redis.DurationCmd, len(ids))
	now, err := s.pace.timed(ctx, s.board, k.jobs, func(p redis.Pipeliner) {
		r.jobs, r.owners, r.modified = p.HMGet(ctx, k.jobs, ids...), p.MGet(ctx, owners...), p.MGet(ctx, modified...)
		for i, key := range owners {
			lasting[i] = p.PTTL(ctx, key)
		}
	})
	if err != nil {
		return nil, err
	}
	s.pace.looked += len(ids)
	at := scene{now: now, generation: s.opening.generation}
	var found []string
	for i, id := range ids {
		one := storedJob{id: id, meta: value(r.jobs, i), owner: value(r.owners, i), modified: value(r.modified, i), left: leftOf(lasting[i].Val())}
		if one.owner != nil || flagsOf(one.meta)&(flagClaim|flagForeign) != 0 {
			s.owned[id] = true
		}
		if one.meta != nil && flagsOf(one.meta)&flagTrashed == 0 && !one.reconciled(at) {
			found = append(found, id)
		}
	}
	return found, nil
}

// fields makes a step of Redis's scan of a hash. Where the values are large, the
// next one will be smaller.
func (s *sweep) fields(ctx context.Context, key string, cursor uint64) ([]string, uint64, error) {
	count := s.counts[key]
	if cursor == 0 {
		count = firstCount
	}
	var scan *redis.ScanCmd
	_, err := s.pace.timed(ctx, s.board, key, func(p redis.Pipeliner) { scan = p.HScan(ctx, key, cursor, "", int64(count)) })
	if err != nil {
		return nil, 0, err
	}
	fields, next := scan.Val()
	fields = fields[:len(fields)&^1]
	size := 0
	for i := 1; i < len(fields); i += 2 {
		size += len(fields[i])
	}
	s.counts[key] = stepOf(size, len(fields)/2, sweepCount)
	return fields, next, nil
}

// records returns our records of jobs; nil where there is none.
func (s *sweep) records(ctx context.Context, ids []string) ([][]byte, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var values *redis.SliceCmd
	_, err := s.pace.timed(ctx, s.board, s.opening.keys.jobs, func(p redis.Pipeliner) { values = p.HMGet(ctx, s.opening.keys.jobs, ids...) })
	if err != nil {
		return nil, err
	}
	s.pace.looked += len(ids)
	list := make([][]byte, len(ids))
	for i := range ids {
		list[i] = value(values, i)
	}
	return list, nil
}

// flagsOf returns the flags of one of our records.
func flagsOf[T string | []byte](record T) byte {
	if len(record) < 2 {
		return 0
	}
	return record[1]
}
