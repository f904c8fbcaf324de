package memdriver

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func (b *board) apply(op *driver.Op) driver.Result {
	if err := op.Check(b.capabilities); err != nil {
		return driver.Failed(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.dropped:
		return driver.Failed(notOpen(b.spec.Name))
	default:
	}
	if b.spec.Observe {
		return driver.Result{Kind: job.Precondition, Message: "the board is only observed: nothing may be changed"}
	}
	now := time.Now()
	b.forget(now)
	switch op.Kind {
	case driver.Post:
		return b.post(op, now)
	case driver.Claim:
		return b.claim(op, now)
	}
	if r, ok := b.past.repeat(op); ok {
		return r
	}
	return b.change(op, now)
}

// change does an op that was not done before.
func (b *board) change(op *driver.Op, now time.Time) driver.Result {
	switch op.Kind {
	case driver.Restore:
		return b.restore(op, now)
	case driver.Purge:
		return b.purge(op, now)
	}
	e := b.jobs[op.Job]
	if refused := b.permit(op, e, now); refused != nil {
		return *refused
	}
	switch op.Kind {
	case driver.Extend:
		return b.extend(op, e, now)
	case driver.Remove:
		return b.remove(op, e, now)
	case driver.Trash:
		return b.setAside(op, e, now)
	case driver.Release:
		return b.release(op, e, now)
	}
	return b.update(op, e, now)
}

// refuse makes the answer to an op that the job's state does not allow.
func (b *board) refuse(op *driver.Op, now time.Time, kind job.Kind, message string) *driver.Result {
	r := &driver.Result{Kind: kind, Message: message, Record: b.find(op.Job, now, 0)}
	if r.Record != nil && r.Record.Holder != nil {
		r.Owner = r.Record.Holder.Owner
	}
	return r
}

// permit returns nil if the op's conditions hold. e is the job, open or
// trashed, or nil.
func (b *board) permit(op *driver.Op, e *entry, now time.Time) *driver.Result {
	if e == nil {
		if p := b.ended[op.Job]; p != nil && op.Precondition.ByToken() && p.token == op.Token {
			return b.refuse(op, now, job.LeaseLost, "the claim of this token ended the job in another way")
		}
		return b.refuse(op, now, job.NotFound, "there is no such job on the board")
	}
	if refused := b.permitClaim(op, e, now); refused != nil {
		return refused
	}
	switch {
	case e.record.State == job.Trashed:
		return b.refuse(op, now, job.NotFound, "the job is in the trash, not on the board")
	case op.Version != 0 && op.Version != e.record.Version:
		return b.refuse(op, now, job.Aborted, "the job was changed meanwhile")
	case op.Kind == driver.Release && e.holder == nil:
		return b.refuse(op, now, job.NotClaimed, "nobody holds the job")
	}
	return nil
}

// permitClaim looks at op.Precondition alone.
func (b *board) permitClaim(op *driver.Op, e *entry, now time.Time) *driver.Result {
	h, live := e.holder, e.live(now)
	switch op.Precondition {
	case driver.HeldByToken:
		if live == nil || live.token != op.Token {
			return b.refuse(op, now, job.LeaseLost, "the claim of this token has ended")
		}
	case driver.Lapsed:
		if h == nil || h.token != op.Token {
			return b.refuse(op, now, job.LeaseLost, "the claim of this token has ended")
		}
		if live != nil {
			r := b.refuse(op, now, job.Precondition, "the lease has not run out")
			r.Remaining = r.Record.Holder.Remaining
			return r
		}
	case driver.HeldByOwner, driver.Held:
		if h == nil || op.Precondition == driver.HeldByOwner && live == nil {
			return b.refuse(op, now, job.NotClaimed, "nobody holds the job")
		}
		if op.Owner != "" && op.Owner != h.owner {
			return b.refuse(op, now, job.NotOwner, "somebody else holds the job")
		}
	case driver.Free:
		if live != nil {
			return b.refuse(op, now, job.AlreadyClaimed, "somebody holds the job")
		}
	case driver.Whatever:
	}
	return nil
}

func (b *board) post(op *driver.Op, now time.Time) driver.Result {
	p := op.Posting
	if r := b.find(p.ID, now, 0); r != nil {
		if r.Posting.Digest != p.Digest {
			return driver.Result{Kind: job.AlreadyExists, Message: "another posting has this uuid", Record: r}
		}
		return driver.Result{Repeated: true, Position: r.Position, Version: r.Version, At: r.Posting.CreatedAt, Record: r}
	}
	if key := b.full(op.Limits); key != "" {
		return driver.Result{Kind: job.QuotaExceeded, Message: key}
	}
	b.raise(op.Limits, 1)
	b.sequence++
	e := &entry{record: driver.Record{Posting: *p, State: job.Unclaimed}, details: bytes.Clone(p.Details), limits: copyLimits(op.Limits)}
	e.record.Posting.Details = nil
	e.record.Posting.Extra = bytes.Clone(p.Extra)
	e.record.Posting.CreatedAt = now.Round(0)
	e.record.Posting.Sequence = b.sequence
	b.jobs[p.ID] = e
	e.write(op, now)
	r := b.changed(op, e, now, "")
	r.Record = e.view(now, 0)
	return r
}

func (b *board) extend(op *driver.Op, e *entry, now time.Time) driver.Result {
	h := *e.holder
	h.lease, h.noExpiry = op.Lease, op.NoExpiry
	if h.noExpiry {
		h.lease = 0
	}
	h.ends = now.Add(h.lease)
	e.holder = &h
	e.record.Version-- // changed raises it again: an extension does not
	r := b.changed(op, e, now, h.owner)
	r.Lease = h.lease
	return r
}

func (b *board) update(op *driver.Op, e *entry, now time.Time) driver.Result {
	e.write(op, now)
	owner := ""
	if e.holder != nil {
		owner = e.holder.owner
	}
	r := b.changed(op, e, now, owner)
	b.remember(op, &r, nil)
	return r
}

func (b *board) release(op *driver.Op, e *entry, now time.Time) driver.Result {
	owner := b.endClaim(e)
	e.write(op, now)
	r := b.changed(op, e, now, owner)
	b.remember(op, &r, nil)
	return r
}

// endClaim takes the claim off a job and returns who held it.
func (b *board) endClaim(e *entry) string {
	if e.holder == nil {
		return ""
	}
	owner := e.holder.owner
	b.raise(e.holder.limits, -1)
	e.holder = nil
	return owner
}

// write changes what an op may change of any job.
func (e *entry) write(op *driver.Op, now time.Time) {
	if op.Status != nil {
		e.record.Status = bytes.Clone(*op.Status)
	}
	for _, a := range op.Attach {
		if a.Delete {
			delete(e.attached, a.Name)
			continue
		}
		if e.attached == nil {
			e.attached = map[string][]byte{}
		}
		e.attached[a.Name] = bytes.Clone(a.Data)
	}
	if h := op.Hold; h != nil {
		e.record.Held, e.record.NotBefore = h.Always, h.Until
		if h.For > 0 {
			e.record.NotBefore = now.Add(h.For)
		}
	}
}

// changed gives a change its place in the board's history and tells watchers.
func (b *board) changed(op *driver.Op, e *entry, now time.Time, owner string) driver.Result {
	b.position++
	e.record.Version++
	e.record.Position = b.position
	e.record.ModifiedAt = now.Round(0)
	r := driver.Result{Position: b.position, Version: e.record.Version, At: now.Round(0)}
	if op.Hold != nil {
		r.NotBefore = e.record.NotBefore.Round(0)
	}
	b.events.add(driver.Change{
		Event: op.Event, Job: e.record.Posting.ID, Position: r.Position, At: r.At,
		Reason: op.Reason, Owner: owner, Record: e.view(now, 0),
	})
	return r
}

func copyLimits(limits []driver.Limit) []driver.Limit {
	return append([]driver.Limit(nil), limits...)
}
