package seeded

import (
	"context"
	"sync"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A burying driver knows each job by where it found it first. One that another host has
// taken off the board and put there again is not where it was, and it writes down that
// the job has ended.
type burying struct {
	*shared

	own   sync.Mutex
	known map[job.ID]int // which of a job's comings onto the board this host knows
}

func (b *burying) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	return driver.Each(ctx, ops, func(ctx context.Context, op *driver.Op) driver.Result {
		r := one(ctx, b.Driver, board, *op)
		if came := op.Kind == driver.Post || op.Kind == driver.Restore; came && r.Kind == job.NoKind && !r.Repeated {
			b.knows(op.Job, b.comes(op.Job))
		}
		return r
	})
}

// comes counts how often a job came onto the board.
func (s *shared) comes(id job.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.came == nil {
		s.came = map[job.ID]int{}
	}
	s.came[id]++
	return s.came[id]
}

func (b *burying) knows(id job.ID, came int) (before int) {
	b.own.Lock()
	defer b.own.Unlock()
	if b.known == nil {
		b.known = map[job.ID]int{}
	}
	before = b.known[id]
	b.known[id] = came
	return before
}

func (b *burying) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	for _, id := range ids {
		b.mu.Lock()
		came := b.came[id]
		b.mu.Unlock()
		if before := b.knows(id, came); before != 0 && before != came {
			one(ctx, b.Driver, board, driver.Op{Kind: driver.Remove, Job: id, Event: job.ForeignChange})
		}
	}
	return b.Driver.Read(ctx, board, ids, parts)
}
