package store

import (
	"context"
	_ "embed"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

var (
	//go:embed lua/empty.lua
	emptyLua string

	emptyScript = newScript(emptyLua)
)

// emptyAtOnce is how many jobs one call of the script takes out of TaskFlow's keys.
const emptyAtOnce = 100

// An emptying takes the jobs of a board that has gone to another store out of TaskFlow's keys.
type emptying struct {
	board   *board
	opening *opening
	mark    string // how the board stands between stores

	held, changed   int64 // jobs of which another program has done something since
	aHeld, aChanged string
}

// empty takes the jobs out, a few in each step. What it finds gone was taken out before, by
// whoever began.
func (b *board) empty(ctx context.Context, st *opening, passage transition.Passage) error {
	e := &emptying{board: b, opening: st, mark: string(passage.Bytes())}
	if err := b.eachRecord(ctx, st, func(fields []string) error { return e.take(ctx, fields) }); err != nil {
		return err
	}
	if e.held > 0 {
		return job.Errorf(job.Unavailable, "another program has claimed job %s (and %d more) since the board was left: it is waited for until the claim ends",
			e.aHeld, e.held-1)
	}
	for _, hash := range []string{st.keys.listings, st.keys.trash} {
		if err := e.late(ctx, hash); err != nil {
			return err
		}
	}
	if e.changed > 0 {
		return job.Errorf(job.AlreadyExists, "another program has posted or ended job %s (and %d more) since the board was left: that stays as it is in TaskFlow's keys",
			e.aChanged, e.changed-1)
	}
	return nil
}

// take takes out some jobs, given with our records of them.
func (e *emptying) take(ctx context.Context, fields []string) error {
	came, err := e.came(ctx, fields)
	if err != nil {
		return err
	}
	k := &e.opening.keys
	for part := range slices.Chunk(came, emptyAtOnce) {
		args := []any{e.mark, k.prefix}
		for _, id := range part {
			args = append(args, id)
		}
		reply, err := emptyScript.run(context.WithoutCancel(ctx), e.board.store.client, []string{k.head, k.jobs, k.listings, k.trash}, args...).Slice()
		if err != nil {
			return changeFailed(err)
		}
		if len(reply) != 5 {
			return job.Errorf(job.Aborted, "somebody else has moved the board on meanwhile")
		}
		held, _ := reply[1].(int64)
		changed, _ := reply[3].(int64)
		if e.held += held; held > 0 {
			e.aHeld, _ = reply[2].(string)
		}
		if e.changed += changed; changed > 0 {
			e.aChanged, _ = reply[4].(string)
		}
		if err := ctx.Err(); err != nil {
			return ended(ctx)
		}
	}
	return nil
}

// came returns those of some jobs that are in the new store: all whose postings can be read.
func (e *emptying) came(ctx context.Context, fields []string) (ids []string, err error) {
	var unsure []string
	var listed, trashed []*redis.StringCmd
	for i := 0; i < len(fields); i += 2 {
		if flagsOf(fields[i+1])&flagUnread == 0 {
			ids = append(ids, fields[i])
		} else {
			unsure = append(unsure, fields[i])
		}
	}
	if len(unsure) == 0 {
		return ids, nil
	}
	_, err = e.board.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range unsure {
			listed, trashed = append(listed, p.HGet(ctx, e.opening.keys.listings, id)), append(trashed, p.HGet(ctx, e.opening.keys.trash, id))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, readFailed(ctx, err)
	}
	for i, id := range unsure {
		posting := listed[i].Val()
		if posting == "" {
			posting = trashed[i].Val()
		}
		if _, err := decodePosting(id, []byte(posting), driver.Details); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// late counts the jobs in one of TaskFlow's hashes that came there since the board was left: our
// records know nothing of them.
func (e *emptying) late(ctx context.Context, hash string) error {
	s := newSweep(e.board, e.opening)
	for cursor := uint64(0); ; {
		names, next, err := s.names(ctx, hash, cursor)
		if err != nil {
			return err
		}
		ids := slices.DeleteFunc(names, func(name string) bool { _, ok := jobNamed(name); return !ok })
		records, err := s.records(ctx, ids)
		if err != nil {
			return err
		}
		for i := range records {
			if records[i] == nil {
				e.changed++
				e.aChanged = ids[i]
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
