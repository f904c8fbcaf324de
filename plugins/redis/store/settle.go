package store

import (
	"context"
	_ "embed"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

var (
	//go:embed lua/froze.lua
	frozeLua string

	frozeScript = newScript(frozeLua)
)

// passed does what else a step needs, once the board stands between stores as it says.
func (b *board) passed(ctx context.Context, st *opening, m *driver.Move, passage transition.Passage) error {
	switch {
	case m.Step == driver.Empty:
		return b.empty(ctx, st, passage)
	case m.Step != driver.Freeze || !m.Shared || passage.Gone:
		return nil
	}
	if err := b.settle(ctx, st); err != nil {
		return err
	}
	if err := b.unheld(ctx, st); err != nil {
		return err
	}
	noted, err := frozeScript.run(context.WithoutCancel(ctx), b.store.client, []string{st.keys.head}, string(passage.Bytes())).Bool()
	switch {
	case err != nil:
		return changeFailed(err)
	case !noted:
		return job.Errorf(job.Aborted, "somebody else has moved the board on meanwhile")
	}
	return nil
}

// settle has our records follow all that other programs have done to the board. On one that has
// gone to another store they follow nothing.
func (b *board) settle(ctx context.Context, st *opening) error {
	s := newSweep(b, st)
	s.alone = true
	if err := s.listings(ctx, 0); err != nil {
		return err
	}
	if err := s.trash(ctx); err != nil {
		return err
	}
	return s.jobs(ctx, 0)
}

// unheld refuses to freeze a board of which another program holds a job.
func (b *board) unheld(ctx context.Context, st *opening) error {
	claimed, err := b.store.client.HGet(ctx, st.keys.head, "claimed").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return readFailed(ctx, err)
	}
	if parseInt(claimed) == 0 {
		return nil
	}
	return b.eachRecord(ctx, st, func(fields []string) error {
		for i := 0; i < len(fields); i += 2 {
			if flagsOf(fields[i+1])&flagForeign != 0 {
				m, _ := decodeMeta([]byte(fields[i+1]))
				return job.Errorf(job.Precondition, "another program holds job %s as %.80q: its claim cannot come along", fields[i], m.owner)
			}
		}
		return nil
	})
}

// eachRecord goes through our records of jobs: a uuid and its record in turn.
func (b *board) eachRecord(ctx context.Context, st *opening, do func(fields []string) error) error {
	for cursor := uint64(0); ; {
		fields, next, err := b.store.client.HScan(ctx, st.keys.jobs, cursor, "", sweepCount).Result()
		if err != nil {
			return readFailed(ctx, err)
		}
		if err := do(fields[:len(fields)&^1]); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// changedFrozen is the error of leaving a board that another program has changed since it was
// frozen: that is the last change of it.
func (b *board) changedFrozen(ctx context.Context, st *opening) error {
	which := "the board"
	last, err := b.store.client.XRevRangeN(ctx, st.keys.events, "+", "-", 1).Result()
	if err == nil && len(last) == 1 {
		if e, err := decodeEntry(&last[0]); err == nil && len(e.events) > 0 {
			which = "job " + e.events[len(e.events)-1].id.String()
		}
	}
	return job.Errorf(job.Precondition, "another program has changed %s since the board was frozen: stop it before the board moves", which)
}
