package board

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Round brings what has changed in the first store since the last round.
func (c *Copy) Round(ctx context.Context) error {
	jobs, upTo, err := c.changed.take()
	if err != nil {
		return err
	}
	b := c.copier(ctx)
	if err = b.round(jobs); err != nil {
		for id := range jobs {
			c.changed.again(id)
		}
		return err
	}
	c.changed.mu.Lock()
	defer c.changed.mu.Unlock()
	if !b.postponed {
		c.changed.brought = upTo
	}
	return nil
}

// heardWithin bounds how long a frozen board waits for a store that is to tell of the last
// changes.
const heardWithin = 30 * time.Second

// Rest brings, from a board that is frozen at a position, what changed since the last round,
// and all claims.
func (c *Copy) Rest(ctx context.Context, position driver.Position) error {
	hearing, cancel := context.WithTimeout(ctx, heardWithin)
	defer cancel()
	if err := c.Heard(hearing, position); err != nil {
		if hearing.Err() != nil && ctx.Err() == nil { // nothing may be changed on the board meanwhile
			err = job.Errorf(job.Unavailable, "the store has not told within %v what changed last on the board", heardWithin)
		}
		return err
	}
	jobs, _, err := c.changed.take()
	if err != nil {
		return err
	}
	held, err := c.held(ctx)
	if err != nil {
		return err
	}
	for _, id := range held {
		if _, there := jobs[id]; !there {
			jobs[id] = job.NoOutcome
		}
	}
	c.lost = 0
	return c.copier(ctx).round(jobs)
}

// held returns the jobs that somebody may hold in the first store.
func (c *Copy) held(ctx context.Context) ([]job.ID, error) {
	c.changed.mu.Lock()
	ids, known := slices.Collect(maps.Keys(c.changed.held)), c.changed.heldKnown
	c.changed.mu.Unlock()
	if known {
		return ids, nil
	}
	x := exporter{from: keptBoard{c.From, c.Key}} // another host brought the rest, and knew them
	err := x.scanOf(ctx, driver.ScanRequest{}, func(p driver.Page) error {
		for i := range p.Records {
			if r := &p.Records[i]; r.State == job.Claimed {
				ids = append(ids, r.Posting.ID)
			}
		}
		return nil
	})
	return ids, err
}

// round brings jobs to where they stand in the first store: first those that leave the board,
// whose keys and limits others may want, and then the others in the order of their posts.
func (b *copier) round(jobs map[job.ID]job.Outcome) error {
	ids := slices.Collect(maps.Keys(jobs))
	from, to := keptBoard{b.From, b.Key}, keptBoard{b.To, b.Key}
	here, err := from.read(b.ctx, ids, 0)
	if err != nil {
		return err
	}
	there, err := to.read(b.ctx, ids, 0)
	if err != nil {
		return err
	}
	var leave, rest []int
	for i := range ids {
		if stands(&there[i]) && !stands(&here[i]) {
			leave = append(leave, i)
		} else {
			rest = append(rest, i)
		}
	}
	slices.SortFunc(rest, func(i, k int) int {
		a, b := &here[i].Posting, &here[k].Posting
		return cmp.Or(a.CreatedAt.Truncate(time.Microsecond).Compare(b.CreatedAt.Truncate(time.Microsecond)), cmp.Compare(a.Sequence, b.Sequence))
	})
	for _, list := range [][]int{leave, rest} {
		for part := range slices.Chunk(list, exportChunk) {
			of := make([]job.ID, len(part))
			for n, i := range part {
				of[n] = ids[i]
			}
			if err := b.follow(of, jobs); err != nil {
				return err
			}
		}
		if err := b.send(); err != nil {
			return err
		}
	}
	return nil
}

// stands reports whether a job is on the board.
func stands(r *driver.Record) bool { return r.State == job.Unclaimed || r.State == job.Claimed }

// follow brings a few jobs to where they stand in the first store.
func (b *copier) follow(ids []job.ID, jobs map[job.ID]job.Outcome) error {
	here, err := keptBoard{b.From, b.Key}.read(b.ctx, ids, exportParts)
	if err != nil {
		return err
	}
	there, err := keptBoard{b.To, b.Key}.read(b.ctx, ids, driver.Attached)
	if err != nil {
		return err
	}
	b.now = time.Now()
	for i := range ids {
		if here[i].Corrupt != "" {
			return corrupt(ids[i], here[i].Corrupt)
		}
		ops, err := b.way(&here[i], &there[i], jobs[ids[i]])
		if err != nil {
			return err
		}
		if err := b.add(ops...); err != nil {
			return err
		}
	}
	return nil
}

// way returns the ops that bring a job from where it stands in the second store to where it
// does in the first, one after the other. If it is gone there, how says how it ended, as far as
// that is known.
func (b *copier) way(here, there *driver.Record, how job.Outcome) ([]driver.Op, error) {
	if here.State == job.Unknown {
		return b.gone(there, how), nil
	}
	post, err := b.moved(here)
	if err != nil {
		return nil, err
	}
	switch {
	case there.State == job.Unknown:
		return []driver.Op{post}, nil
	case !sameJob(&post, here, there):
		return append(b.gone(there, how), post), nil
	case there.State == job.Complete:
		return nil, nil
	case there.State == job.Claimed && here.State == job.Claimed:
		return nil, nil // Rest was cut off
	case there.State == job.Trashed && here.State == job.Trashed && near(here.EndedAt, there.EndedAt):
		return nil, nil
	}
	update, some := b.update(&post, there)
	if there.State == job.Trashed {
		restore := b.following(driver.Restore, post.Job)
		restore.Event, restore.Keys = job.Restored, post.Keys
		return []driver.Op{restore, update}, nil
	}
	if !some {
		return nil, nil
	}
	return []driver.Op{update}, nil
}

// following is an op that has an imported job follow the first store.
func (b *copier) following(kind driver.OpKind, id job.ID) driver.Op {
	return driver.Op{Kind: kind, Job: id, Request: b.taking.random.next(), Reason: "moved", Import: &driver.Import{Move: b.Move}}
}

// gone returns the ops that take a job away for good. Where it is known how it ended, it does so
// first, so that its batch counts it.
func (b *copier) gone(there *driver.Record, how job.Outcome) []driver.Op {
	purge := b.following(driver.Purge, there.Posting.ID)
	purge.Event = job.PurgedEvent
	switch {
	case there.State == job.Unknown:
		return nil
	case !stands(there):
		return []driver.Op{purge}
	case how == job.NoOutcome:
		trash := b.following(driver.Trash, there.Posting.ID)
		trash.Event = job.TrashedEvent
		return []driver.Op{trash, purge}
	}
	end := b.following(driver.Update, there.Posting.ID)
	end.Event, end.Import.EndedAt = job.OperationEvent, b.now
	end.Import.Then = &driver.Op{
		Kind: driver.Remove, Job: there.Posting.ID, Event: job.ConsumedEvent, Reason: "moved", Ending: &driver.Ending{Outcome: how},
	}
	return []driver.Op{end, purge}
}

// update is the op that brings a job up to date which is on the board in the second store, as
// the import that would post it says. some is false if there is nothing to bring.
func (b *copier) update(post *driver.Op, there *driver.Record) (op driver.Op, some bool) {
	op = b.following(driver.Update, post.Job)
	op.Event = job.OperationEvent
	op.Import.Then, op.Import.EndedAt = post.Import.Then, post.Import.EndedAt
	status := []byte{}
	if post.Status != nil {
		status = *post.Status
	}
	if !bytes.Equal(status, there.Status) {
		op.Status = &status
	}
	hold := driver.Hold{}
	if post.Hold != nil {
		hold = *post.Hold
	}
	ends := op.Import.Then != nil && op.Import.Then.Kind == driver.Remove
	if !ends && (hold.Always != there.Held || !near(hold.Until, there.NotBefore)) {
		op.Hold = &hold
	}
	op.Attach = attachmentsFrom(there.Attached, post.Attach)
	return op, op.Import.Then != nil || op.Status != nil || op.Hold != nil || len(op.Attach) > 0
}

// attachmentsFrom returns what makes attached records of others.
func attachmentsFrom(there, here []driver.Attachment) (list []driver.Attachment) {
	for i := range here {
		if !slices.ContainsFunc(there, func(a driver.Attachment) bool { return a.Name == here[i].Name && bytes.Equal(a.Data, here[i].Data) }) {
			list = append(list, here[i])
		}
	}
	for i := range there {
		if !slices.ContainsFunc(here, func(a driver.Attachment) bool { return a.Name == there[i].Name }) {
			list = append(list, driver.Attachment{Name: there[i].Name, Delete: true})
		}
	}
	return list
}

// sameJob reports whether a job that both stores know is one, and not another one that was
// posted with its uuid after the first was gone.
func sameJob(post *driver.Op, here, there *driver.Record) bool {
	switch {
	case post.Posting.Digest != there.Posting.Digest:
		return false
	case there.State != job.Complete:
		return here.State == job.Complete || near(here.Posting.CreatedAt, there.Posting.CreatedAt)
	}
	return here.State == job.Complete && here.Outcome == there.Outcome
}

// near reports whether two times are one, as far as stores keep them.
func near(a, b time.Time) bool {
	return a.IsZero() == b.IsZero() && a.Sub(b).Abs() < time.Millisecond
}
