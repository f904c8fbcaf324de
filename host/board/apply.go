package board

import (
	"context"
	"errors"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// untold bounds how long the board asks again for an outcome that the store did not
// tell. The end of the call's context may end that sooner.
const untold = 30 * time.Second

// send has the driver apply ops on jobs whose in-flight locks (b.flight) the caller
// holds. It sends ops whose outcome the store did not tell again, until it is known,
// ctx ends or untold is over: a store recognises an op that comes twice.
func (b *Board) send(ctx context.Context, opened *driver.BoardStatus, ops []driver.Op) []driver.Result {
	results := b.applyAll(ctx, opened, ops)
	var unknown []int
	for i := range results {
		if results[i].Kind == job.OutcomeUnknown {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) == 0 {
		return results
	}
	ctx, cancel := context.WithTimeout(ctx, untold)
	defer cancel()
	for pause := 20 * time.Millisecond; len(unknown) > 0 && sleep.For(ctx, pause) == nil; pause = min(2*pause, time.Second) {
		again := make([]driver.Op, len(unknown))
		for i, at := range unknown {
			again[i] = ops[at]
		}
		b.metrics.Retried.Add(int64(len(again)))
		left := unknown[:0]
		for i, r := range b.applyAll(ctx, opened, again) {
			at := unknown[i]
			switch r.Kind {
			case job.OutcomeUnknown, job.Unavailable, job.Interrupted: // says nothing of the first try
				left = append(left, at)
			default:
				results[at] = r
			}
		}
		unknown = left
	}
	b.metrics.Unknown.Add(int64(len(unknown)))
	return results
}

// applyAll hands ops to the driver in batches of the size that it asked for. For none the driver
// is not asked.
func (b *Board) applyAll(ctx context.Context, opened *driver.BoardStatus, ops []driver.Op) []driver.Result {
	size := opened.Capabilities.MaxBatch
	if size <= 0 {
		size = 128
	}
	if len(ops) == 0 {
		return nil
	}
	if len(ops) <= size {
		return b.applyBatch(ctx, ops)
	}
	results := make([]driver.Result, 0, len(ops))
	for len(ops) > 0 {
		n := min(size, len(ops))
		results = append(results, b.applyBatch(ctx, ops[:n])...)
		ops = ops[n:]
	}
	return results
}

// applyBatch hands one batch to b.driver. That is not the store's driver itself: the
// host has wrapped it. From the outside in, quota refuses ops that exceed the
// tenant's limits, acknowledged remembers what the store acknowledged (to notice a
// restored store later), trace measures the call, and the supervisor passes it to the
// driver's process. See host/served.go and host/backend.go.
func (b *Board) applyBatch(ctx context.Context, ops []driver.Op) []driver.Result {
	failpoint.Hit("board/before-apply")
	results := b.driver.Apply(ctx, b.spec.Key, ops)
	failpoint.Hit("board/before-memory")
	if len(results) == len(ops) {
		return results
	}
	b.log.ErrorContext(ctx, "the driver broke its contract: it did not answer each op", "ops", len(ops), "results", len(results))
	results = make([]driver.Result, len(ops))
	for i := range results {
		results[i] = driver.Result{Kind: job.OutcomeUnknown, Message: "the driver did not answer"}
	}
	return results
}

// read asks the driver how jobs stand, without details unless parts say so.
func (b *Board) read(ctx context.Context, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	return keptBoard{b.driver, b.spec.Key}.read(ctx, ids, parts)
}

// A keptBoard is a board as a store keeps it, whoever serves it.
type keptBoard struct {
	driver driver.Driver
	key    string
}

func (k keptBoard) read(ctx context.Context, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	const most = 256 // records with details may be large
	records := make([]driver.Record, 0, len(ids))
	for len(ids) > 0 {
		n := min(most, len(ids))
		part, err := k.driver.Read(ctx, k.key, ids[:n], parts)
		if err != nil {
			return nil, err
		}
		if len(part) != n {
			return nil, job.Errorf(job.Internal, "the driver broke its contract: it answered %d of %d reads", len(part), n)
		}
		records = append(records, part...)
		ids = ids[n:]
	}
	for i := range records {
		// A record that says nothing but its state may lack even its id.
		if records[i].State == job.Unknown {
			continue
		}
		if records[i].Posting.ID == (job.ID{}) {
			return nil, job.Errorf(job.Internal, "the driver broke its contract: it answered a read with a record without an id")
		}
	}
	return records, nil
}

// itemError makes an error that an item of a call may have: one of the kinds
// that clients know for items.
func itemError(id job.ID, r *driver.Result) error {
	if r.Kind == job.NoKind {
		return nil
	}
	if r.Taken != (job.ID{}) {
		return taken(id, r)
	}
	e := &job.Error{Job: id, Kind: r.Kind, Message: r.Message, Owner: r.Owner}
	switch r.Kind {
	case job.Interrupted:
		e.Kind, e.Message = job.Unavailable, "the call ended before this was begun: nothing was changed"
	case job.Aborted:
		e.Kind, e.Message = job.Unavailable, "others changed the job again and again meanwhile: nothing was changed"
	case job.Corrupt:
		return corrupt(id, r.Message)
	case job.Precondition:
		e.Kind = job.NotEligible
	case job.Unsupported:
		e.Kind = job.Invalid
	case job.Internal:
		e.Kind = job.OutcomeUnknown
	default:
	}
	return e
}

// TurnedAway reports whether an item of a call was refused since its board moves, or has moved,
// to another store: nothing was done of it, and it can be soon.
func TurnedAway(err error) bool {
	e, ok := errors.AsType[*job.Error](err)
	return ok && transition.TurnsAway(e.Kind, e.Message)
}

// rounds calls do for the items of a call in rounds: no round has a job twice, and
// items of the same job keep their order. While do runs, the in-flight locks of the
// round's jobs are held, so that no other call changes them. The entries that do
// returns are put into the index after the locks are released: a claim call that
// they wake finds the jobs free.
func (b *Board) rounds(ctx context.Context, ids []job.ID, do func(items []int) []*index.Entry) error {
	left := make([]int, len(ids))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		var items, later []int
		var round []job.ID
		if len(left) == 1 {
			items, round = left, []job.ID{ids[left[0]]}
		} else {
			items, later, round = distinct(ids, left)
		}
		s, err := b.flight.lock(ctx, round)
		if err != nil {
			if len(left) < len(ids) {
				return job.Errorf(job.Interrupted, "the call ended when a part of it was done")
			}
			return err
		}
		b.index.PutAll(func() []*index.Entry {
			defer b.flight.unlock(round, s)
			return do(items)
		}())
		failpoint.Hit("board/before-answer")
		left = later
	}
	return nil
}

func distinct(ids []job.ID, left []int) (items, later []int, round []job.ID) {
	seen := make(map[job.ID]struct{}, len(left))
	items, round = make([]int, 0, len(left)), make([]job.ID, 0, len(left))
	for _, i := range left {
		if _, ok := seen[ids[i]]; ok {
			later = append(later, i)
			continue
		}
		seen[ids[i]] = struct{}{}
		items, round = append(items, i), append(round, ids[i])
	}
	return items, later, round
}
