package store

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

var (
	//go:embed lua/move.lua
	moveLua string

	//go:embed lua/docmove.lua
	docmoveLua string

	moveScript    = newScript(moveLua)
	docmoveScript = newScript(docmoveLua)
)

// frozenDocuments is what changes of a frozen board's documents are answered with, see
// lua/docmove.lua.
const frozenDocuments = 3

// moveTries is how often a step is tried that another one comes before.
const moveTries = 10

// MoveBoard takes a step of a move: first for the jobs, and then for the documents, which may
// lie on another server. It has taken both when it returns.
func (s *Store) MoveBoard(ctx context.Context, name string, m driver.Move) error {
	b, err := s.board(name)
	if err == nil {
		err = ended(ctx)
	}
	if err != nil {
		return err
	}
	st := b.opening.Load()
	if st.spec.Observe {
		return observed(name)
	}
	if m.Shared && m.Step == driver.Leave {
		if err := b.settle(ctx, st); err != nil {
			return err
		}
	}
	for range moveTries {
		passage, done, err := b.pass(ctx, st, &m)
		if err != nil {
			return err
		}
		if !done {
			continue
		}
		mark := ""
		if passage.Closed() != nil {
			mark = strconv.Itoa(frozenDocuments)
		}
		if err := docmoveScript.run(context.WithoutCancel(ctx), s.client, []string{movedOf(name)}, mark).Err(); err != nil {
			return changeFailed(err)
		}
		return b.passed(ctx, st, &m, passage)
	}
	return job.Errorf(job.Unavailable, "others move the board at the same time")
}

// pass changes how the board stands between stores, and returns that; false: somebody else
// changed it meanwhile.
func (b *board) pass(ctx context.Context, st *opening, m *driver.Move) (passage transition.Passage, done bool, err error) {
	kept, err := b.store.client.HGet(ctx, st.keys.head, "moved").Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return passage, false, readFailed(ctx, err)
	}
	before, err := transition.ReadPassage(kept)
	if err != nil {
		return passage, false, err
	}
	if passage, err = before.After(m, 0); err != nil || passage == before && m.Step != driver.Receive {
		return passage, err == nil, err
	}
	reply, err := moveScript.run(context.WithoutCancel(ctx), b.store.client, []string{st.keys.head, st.keys.events},
		string(before.Bytes()), string(passage.Bytes()), m.Generation, uint64(m.Position), newBoardID(), st.server, m.Shared).Int64Slice()
	switch {
	case err != nil:
		return passage, false, changeFailed(err)
	case len(reply) != 3:
		return passage, false, job.Errorf(job.OutcomeUnknown, "the script's answer cannot be read")
	case reply[0] == 2:
		_, err = before.After(m, 1)
		return passage, false, err
	case reply[0] == 0:
		return passage, false, nil
	case reply[0] == 3:
		return passage, false, b.changedFrozen(ctx, st)
	}
	if m.Step == driver.Receive {
		b.goOn(st, uint64(reply[1]), uint64(reply[2])) //nolint:gosec // the script counted them
	}
	return passage, true, nil
}

// goOn has this host take the generation and the position in which the board goes on for no
// loss.
func (b *board) goOn(st *opening, generation, position uint64) {
	next := *st
	next.generation, next.stale, next.once = generation, make(chan struct{}), &sync.Once{}
	b.store.mu.Lock()
	if b.opening.CompareAndSwap(st, &next) {
		st.expire()
	}
	b.store.mu.Unlock()
	b.saw(&next, mark{position: position})
}
