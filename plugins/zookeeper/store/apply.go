package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// opTime bounds one op, whatever its caller's patience: connection and all.
const opTime = 45 * time.Second

// maxTries is how often an op is tried anew whose job was changed by others in
// between.
const maxTries = 24

// Where an op of a batch is.
const (
	opWaits int32 = iota
	opBegun
	opDropped
)

// Apply carries out the ops side by side, imports one after the other. An op goes on when its caller has
// left: whether it was done has to be known here in any case.
func (s *Store) Apply(ctx context.Context, name string, ops []driver.Op) []driver.Result {
	results := make([]driver.Result, len(ops))
	b, err := s.board(name)
	if err == nil {
		err = alive(ctx)
	}
	if err == nil {
		err = b.ready(ctx)
	}
	if err != nil {
		for i := range results {
			results[i] = driver.Failed(err)
		}
		return results
	}
	type flight struct {
		state  atomic.Int32
		result driver.Result
		done   chan struct{}
	}
	flights := make([]*flight, len(ops))
	var imported *flight // the last one
	for i := range ops {
		f := &flight{done: make(chan struct{})}
		flights[i] = f
		op := copyOp(&ops[i])
		var before *flight
		if op.Import != nil {
			before, imported = imported, f
		}
		b.ops.Go(func() {
			defer close(f.done)
			if before != nil {
				<-before.done // jobs are in the order of their imports
			}
			inner, cancel := context.WithTimeout(b.life, opTime)
			defer cancel()
			f.result = b.apply(inner, op, func() bool { return f.state.CompareAndSwap(opWaits, opBegun) || f.state.Load() == opBegun })
		})
	}
	for i, f := range flights {
		select {
		case <-f.done:
			results[i] = f.result
			continue
		default:
		}
		select {
		case <-f.done:
			results[i] = f.result
		case <-ctx.Done():
			results[i] = interrupted(ctx, f.state.CompareAndSwap(opWaits, opDropped))
		}
	}
	return results
}

func interrupted(ctx context.Context, before bool) driver.Result {
	if before {
		return driver.Failed(&job.Error{Kind: job.Interrupted, Message: "the op was not begun in time", Err: ctx.Err()})
	}
	return driver.Failed(&job.Error{Kind: job.OutcomeUnknown, Message: "the op was begun, and its caller went away", Err: ctx.Err()})
}

// copyOp copies what an op shares with its caller.
func copyOp(from *driver.Op) *driver.Op {
	op := *from
	if op.Status != nil {
		status := bytes.Clone(*op.Status)
		op.Status = &status
	}
	op.Attach, op.Keys = slices.Clone(op.Attach), slices.Clone(op.Keys)
	for i := range op.Attach {
		op.Attach[i].Data = bytes.Clone(op.Attach[i].Data)
	}
	if op.Posting != nil {
		p := *op.Posting
		p.Details, p.Extra = bytes.Clone(p.Details), bytes.Clone(p.Extra)
		op.Posting = &p
	}
	if op.Ending != nil {
		e := *op.Ending
		e.Data = bytes.Clone(e.Data)
		op.Ending = &e
	}
	if op.Hold != nil {
		h := *op.Hold
		op.Hold = &h
	}
	if op.Import != nil {
		i := *op.Import
		if i.Then != nil {
			i.Then = copyOp(i.Then)
		}
		op.Import = &i
	}
	if op.Claim != nil {
		c := *op.Claim
		c.Candidates = slices.Clone(c.Candidates)
		for i := range c.Candidates {
			if status := c.Candidates[i].Status; status != nil {
				copied := bytes.Clone(*status)
				c.Candidates[i].Status = &copied
			}
		}
		op.Claim = &c
	}
	return &op
}

// apply does one op. begin is asked before each change: when it says no, nobody
// waits any more and nothing was changed.
func (b *board) apply(ctx context.Context, op *driver.Op, begin func() bool) driver.Result {
	b.mu.Lock()
	can, observe := b.capabilities(), b.spec.Observe
	b.mu.Unlock()
	if err := op.Check(can); err != nil {
		return driver.Failed(err)
	}
	if observe {
		return driver.Result{Kind: job.Precondition, Message: transition.Observed}
	}
	for range maxTries {
		b.mu.Lock()
		before := b.root
		b.mu.Unlock()
		answer, refused := before.refuses(op)
		if !refused {
			answer = b.perform(ctx, op, begin)
		}
		some := op.Kind != driver.Claim || len(answer.Claims) > 0
		if answer.Kind == job.OutcomeUnknown || answer.Kind == job.NoKind && !answer.Repeated && some {
			return answer // it was done on a board that takes it, or nobody knows
		}
		if same, err := b.stands(ctx, &before, refused); err != nil || same {
			if err != nil {
				return driver.Failed(err)
			}
			return answer
		}
	}
	return driver.Result{Kind: job.Unavailable, Message: "the board is moved all the time"}
}

// stands reports whether the board still takes ops as it did before, when one was answered that
// changed nothing: what it says of the job may be of a board that has gone since. Such an op has
// read the job after a Sync, unless it was refused at once.
func (b *board) stands(ctx context.Context, before *root, refused bool) (bool, error) {
	if refused {
		if err := b.client().Sync(ctx, b.at.own); err != nil {
			return false, err
		}
	}
	if err := b.heedRoot(ctx); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.root.passage == before.passage && b.root.entering == before.entering, nil
}

// perform does an op that the board takes as it is known.
func (b *board) perform(ctx context.Context, op *driver.Op, begin func() bool) driver.Result {
	if problem := b.unreadable(op.Job); problem != "" && op.Kind != driver.Claim {
		return driver.Result{Kind: job.Corrupt, Message: problem}
	}
	switch op.Kind {
	case driver.Post:
		return b.post(ctx, op, begin)
	case driver.Claim:
		return b.claim(ctx, op, begin)
	case driver.Tally:
		return b.tallied(ctx, op, begin)
	}
	if r := b.extendedSince(ctx, op); r != nil {
		return *r
	}
	a := newAttempt(b, op.Job, begin)
	_, stamped := transition.KeyOf(op)
	a.known, a.search = stamped || op.Kind == driver.Extend, anywhere
	var plan, then transition.Plan // then is of what an imported job went through
	var missed uint64              // the record whose posting was not there
	return a.run(ctx, func(v *view, at instant) (*change, *driver.Result, error) {
		ch, r := b.planned(op, &plan, v, at, a.fresh)
		if ch == nil {
			return nil, r, nil
		}
		if op.Import != nil && op.Import.Then != nil {
			then = b.goAlong(ch, op, &plan, v, at)
		}
		err := b.supply(ctx, op, v, ch)
		if job.KindOf(err) == job.Corrupt && missed != v.recZxid {
			missed = v.recZxid
			return nil, nil, nil // another host may have taken it since: the record says so, or stands as it was
		}
		return ch, nil, err
	}, func(v *view, w written) driver.Result {
		r := w.finish(&plan, v)
		if then.Do != 0 {
			r = transition.Imported(&then, r, w.finish(&then, v))
		}
		return r
	})
}

// planned returns the change that an op asks for, or the answer to it; or neither, if it
// has to be asked again of a job that was read since.
func (b *board) planned(op *driver.Op, plan *transition.Plan, v *view, at instant, fresh bool) (*change, *driver.Result) {
	var r driver.Result
	switch *plan, r = b.decide(op, v, at, fresh); {
	case plan.Reread:
		return nil, nil
	case plan.Do == 0:
		return nil, &r
	case plan.Do == driver.Post && b.full() && (op.Import == nil || op.Import.Then == nil || op.Import.Then.Kind == driver.Claim):
		if !fresh {
			return nil, nil
		}
		return nil, &driver.Result{Kind: job.QuotaExceeded, Message: "max_jobs"}
	}
	ch, refused := b.changeOf(op, plan, v, at)
	if ch != nil && ch.lock != leaveLock && v.stranger() != nil && !fresh {
		return nil, nil // another conductor's lock may have taken its place: all have the same version
	}
	return ch, refused
}

// supply reads what an op moves and the view does not hold: the posting's bytes.
func (b *board) supply(ctx context.Context, op *driver.Op, v *view, ch *change) error {
	switch {
	case ch.takeNode && ch.rec.place == inTrash:
		node, err := b.client().Get(ctx, b.at.Job(v.node))
		if err != nil {
			return err
		}
		ch.putTrash = node.Data
		return b.findTrash(ctx, v, ch)
	case op.Kind == driver.Restore:
		node, err := b.client().Get(ctx, ch.outTrash)
		if session.NoNode(err) {
			return &job.Error{Kind: job.Corrupt, Message: fmt.Sprintf("the posting is gone from the trash: there is no %s", ch.outTrash)}
		}
		if err != nil {
			return err
		}
		ch.newNode = node.Data
		ch.post, err = taskflow.DecodeZooKeeper(node.Data)
		ch.post.Details = nil
		return err
	case ch.rec.end != nil && ch.rec.end.kept && v.node != "":
		details, err := b.details(ctx, v)
		ch.rec.end.details = details
		return err
	case op.Kind == driver.Purge && ch.outTrash != "":
		stat, err := b.client().Exists(ctx, ch.outTrash)
		if err == nil && stat == nil {
			ch.outTrash = ""
		}
		return err
	}
	return nil
}

// findTrash chooses where a posting lies in the trash: where TaskFlow would put
// it, or beside that if a sibling board's lies there.
func (b *board) findTrash(ctx context.Context, v *view, ch *change) error {
	path := b.at.Trashed(v.node)
	stat, err := b.client().Exists(ctx, path)
	if stat != nil {
		path += "-" + v.id.String()
	}
	ch.rec.trash = path
	return err
}

// finish answers an op whose plan was written. Times are kept in milliseconds.
func (w *written) finish(plan *transition.Plan, v *view) driver.Result {
	version := v.version()
	if plan.Do == driver.Purge {
		version = w.zxid
	}
	shown := w.zxid + w.offset
	r := transition.Finish(plan, version, driver.Position(shown), shown, atMillis(w.at))
	r.NotBefore = atMillis(millis(r.NotBefore))
	return r
}
