package orders

import (
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// jobs is how many jobs there are at most.
const jobs = 7

func jobID(n int) job.ID { return job.ID{1, byte(n % jobs)} }

// A board is what is true: the jobs, and every change of them.
type board struct {
	open     map[job.ID]*index.Entry
	log      []change
	position driver.Position
	sequence uint64
	epoch    uint64
}

// A change is one line of the log.
type change struct {
	id       job.ID
	position driver.Position
	entry    *index.Entry // after it; nil: the job left the board
	extended bool         // only the lease is another one
}

func newBoard() *board { return &board{open: map[job.ID]*index.Entry{}} }

func (b *board) copy() *board {
	c := *b
	c.open, c.log = maps.Clone(b.open), slices.Clone(b.log)
	return &c
}

// write writes a change of a job; what edit does is done to a copy of it.
func (b *board) write(id job.ID, edit func(*index.Entry)) change {
	b.position++
	e := *b.open[id]
	edit(&e)
	e.Position, e.ModifiedAt = b.position, time.Now().UTC()
	e.Version++
	b.open[id] = &e
	c := change{id: id, position: b.position, entry: &e}
	b.log = append(b.log, c)
	return c
}

func (b *board) post(n int, choice uint8) change {
	b.sequence++
	id := jobID(n)
	now := time.Now().UTC()
	e := &index.Entry{
		ID: id, Name: "n", Priority: job.Priority(choice%3) - 1, OperationPriority: int32(choice / 3 % 2), Sequence: b.sequence,
		CreatedAt: now, ModifiedAt: now, MaxAttempts: 5,
		Labels: []job.Label{{Key: "class", Value: []string{"a", "b"}[choice%2]}, {Key: "key", Value: []string{"x", "y", "z"}[choice/2%3]}},
	}
	switch choice % 5 {
	case 3:
		e.NotBefore = now.Add(5 * time.Second)
	case 4:
		e.Held = choice > 8
	}
	b.open[id] = e
	return b.write(id, func(*index.Entry) {})
}

// claimable reports whether the store grants a claim of what a host believes.
func (b *board) claimable(e *index.Entry) bool {
	is := b.open[e.ID]
	return is != nil && is.Version == e.Version && is.Claim == nil && !is.Held && !is.NotBefore.After(time.Now())
}

func (b *board) claim(id job.ID, lease time.Duration) change {
	b.epoch++
	return b.write(id, func(e *index.Entry) {
		e.Claim = &index.Claim{
			Owner: "w", Token: job.Token{Generation: 1, Epoch: b.epoch}, NoExpiry: lease == 0, Ends: time.Now().Add(lease), Since: time.Now(),
		}
		e.Attempt++
	})
}

func (b *board) extend(id job.ID, lease time.Duration) change {
	c := b.write(id, func(e *index.Entry) {
		held := *e.Claim
		held.NoExpiry, held.Ends = lease == 0, time.Now().Add(lease)
		e.Claim = &held
		e.Version-- // which stays
	})
	c.extended = true
	b.log[len(b.log)-1] = c
	return c
}

func (b *board) end(id job.ID) change {
	b.position++
	delete(b.open, id)
	c := change{id: id, position: b.position}
	b.log = append(b.log, c)
	return c
}
