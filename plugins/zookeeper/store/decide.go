package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// refuse makes the answer to an op that the job's state does not allow.
func (v *view) refuse(at instant, kind job.Kind, message string) *driver.Result {
	r := &driver.Result{Kind: kind, Message: message, Owner: v.owner()}
	if v.state(at) != job.Unknown {
		r.Record = v.show(at, 0)
	}
	return r
}

// permit returns nil if the op's conditions hold.
func (b *board) permit(op *driver.Op, v *view, at instant) *driver.Result {
	state := v.state(at)
	if state == job.Unknown || state == job.Complete {
		if v.rec != nil && v.rec.end != nil && op.Precondition.ByToken() && state == job.Complete && v.rec.end.token == op.Token {
			return v.refuse(at, job.LeaseLost, "the claim of this token ended the job in another way")
		}
		return v.refuse(at, job.NotFound, "there is no such job on the board")
	}
	if refused := b.permitClaim(op, v, at); refused != nil {
		return refused
	}
	switch {
	case state == job.Trashed:
		return v.refuse(at, job.NotFound, "the job is in the trash, not on the board")
	case op.Version != 0 && op.Version != v.version():
		return v.refuse(at, job.Aborted, "the job was changed meanwhile")
	case op.Kind == driver.Release && !v.held():
		return v.refuse(at, job.NotClaimed, "nobody holds the job")
	}
	return nil
}

// permitClaim looks at op.Precondition alone.
func (b *board) permitClaim(op *driver.Op, v *view, at instant) *driver.Result {
	c, live := v.claim(), v.live(at)
	switch op.Precondition {
	case driver.HeldByToken:
		if c == nil || !live || c.token != op.Token {
			return v.refuse(at, job.LeaseLost, "the claim of this token has ended")
		}
	case driver.Lapsed:
		if c == nil || c.token != op.Token {
			return v.refuse(at, job.LeaseLost, "the claim of this token has ended")
		}
		return b.permitLapsed(v, at)
	case driver.HeldByOwner, driver.Held:
		if !v.held() || op.Precondition == driver.HeldByOwner && !live {
			return v.refuse(at, job.NotClaimed, "nobody holds the job")
		}
		if op.Owner != "" && op.Owner != v.owner() {
			return v.refuse(at, job.NotOwner, "somebody else holds the job")
		}
	case driver.Free:
		if live {
			return v.refuse(at, job.AlreadyClaimed, "somebody holds the job")
		}
	case driver.Whatever:
	}
	return nil
}

// permitLapsed asks whether the lease of v's claim has run out. Of several hosts
// that have waited for it, one ends the claim, and each other one a little later
// than the one before: so they do not all ask ZooKeeper about it at once.
func (b *board) permitLapsed(v *view, at instant) *driver.Result {
	c := v.claim()
	early := func() *driver.Result {
		return v.refuse(at, job.Precondition, "the lease has not run out")
	}
	if v.live(at) {
		r := early()
		if !c.noExpiry {
			r.Remaining = v.left(at)
		}
		return r
	}
	if b.hosts.alone() || c.token.Generation != at.generation {
		return nil
	}
	late := b.hosts.grace(v.id.String())
	if rest := v.left(at) + late; rest > 0 {
		r := early()
		r.Remaining = min(rest, c.lease)
		return r
	}
	return nil
}

// extendedSince looks once at the record of a claim whose lease seems to have run
// out, and refuses to end it if another host has extended it: of that nobody is
// told, and it is by far the most frequent case.
func (b *board) extendedSince(ctx context.Context, op *driver.Op) *driver.Result {
	v := b.known(op.Job)
	if op.Precondition != driver.Lapsed || v == nil || v.claim() == nil || v.claim().token != op.Token || b.hosts.alone() {
		return nil
	}
	at := b.now()
	switch r := b.permitLapsed(v, at); {
	case v.live(at) && v.left(at) > v.claim().lease/100:
		return nil // it is early, which is found out like anything else
	case r != nil:
		return r // in a moment, or another host goes first
	}
	next := *v
	if err := b.fetchRecord(ctx, &next, v); err != nil || next.rec == nil || next.recZxid == v.recZxid {
		return nil
	}
	if c := next.claim(); c == nil || c.token != op.Token {
		return nil
	}
	return b.permitLapsed(b.learn(v, &next), b.now())
}

// decide returns the change that an op asks for, or the answer to it.
func (b *board) decide(op *driver.Op, v *view, at instant) (*change, *driver.Result) {
	if r, ok := v.repeat(op, at); ok {
		return nil, &r
	}
	switch op.Kind {
	case driver.Restore, driver.Purge:
		return b.decideOff(op, v, at)
	}
	if refused := b.permit(op, v, at); refused != nil {
		return nil, refused
	}
	ch := &change{rec: v.rec.clone(), event: op.Event, reason: op.Reason, who: v.owner(), changed: true}
	if op.Kind == driver.Extend {
		return b.decideExtend(op, v, ch)
	}
	if r := ch.write(op, at); r != nil {
		return nil, r
	}
	switch op.Kind {
	case driver.Remove:
		b.decideRemove(op, v, ch, at)
	case driver.Trash:
		v.carry(ch.rec)
		ch.takeNode, ch.lock, ch.rec.claim = true, takeLock, nil
		ch.rec.place, ch.rec.end = inTrash, nil
	case driver.Release:
		ch.rec.claim = nil
		ch.holdOrFree(at)
	default: // Update
		if !v.held() {
			ch.holdOrFree(at)
		}
	}
	ch.rec.remember(op, at)
	return ch, nil
}

// holdOrFree plans the lock of a job that nobody holds.
func (ch *change) holdOrFree(at instant) {
	if ch.rec.holdAlways || at.millis() < ch.rec.holdUntil {
		ch.lock, ch.owner = putLock, holdOwner
		return
	}
	ch.lock = takeLock
}

// write changes what an op may change of any job.
func (ch *change) write(op *driver.Op, at instant) *driver.Result {
	r := ch.rec
	if op.Status != nil {
		r.status = *op.Status
	}
	names := slices.Clone(r.attached)
	for _, a := range op.Attach {
		i, known := slices.BinarySearch(names, a.Name)
		switch {
		case a.Delete && known:
			names = slices.Delete(names, i, i+1)
		case a.Delete:
			continue
		case !known:
			names = slices.Insert(names, i, a.Name)
		}
		ch.attach = append(ch.attach, a)
	}
	if len(names) > MaxAttachments {
		return &driver.Result{Kind: job.Invalid, Message: fmt.Sprintf("the job would have %d attached records: want at most %d", len(names), MaxAttachments)}
	}
	r.attached = names
	if h := op.Hold; h != nil {
		r.holdAlways, r.holdUntil = h.Always, millis(h.Until)
		if h.For > 0 {
			r.holdUntil = at.wall.Add(h.For).UnixMilli()
		}
	}
	return nil
}

func (b *board) decideExtend(op *driver.Op, v *view, ch *change) (*change, *driver.Result) {
	c := ch.rec.claim
	if c == nil {
		// Another program's claim has no lease, and is not ours to give one.
		return nil, &driver.Result{Kind: job.Precondition, Message: "the claim was made by another program, and has no lease", Owner: v.owner()}
	}
	c.lease, c.noExpiry = op.Lease, op.NoExpiry
	if op.NoExpiry {
		c.lease = 0
	}
	ch.changed, ch.quiet = false, true
	ch.rec.position, ch.rec.changedAt = 0, 0 // it is no change of the version
	return ch, nil
}

func (b *board) decideRemove(op *driver.Op, v *view, ch *change, at instant) {
	v.carry(ch.rec)
	r := ch.rec
	ch.takeNode, ch.lock, r.claim = true, takeLock, nil
	r.place, r.holdAlways, r.holdUntil, r.limits = ended, false, 0, nil
	r.end = &ending{outcome: outcomeOf(op), stamped: true}
	if op.Precondition.ByToken() {
		r.end.token = op.Token
	}
	e := op.Ending
	keep := e != nil && e.Keep > 0
	if keep {
		r.end.until, r.end.data, r.end.kept = at.wall.Add(e.Keep).UnixMilli(), e.Data, e.KeepPosting
	} else {
		r.status = nil
	}
	if !keep || !e.KeepPosting {
		r.extra = nil
	}
	if !keep || !e.KeepAttached {
		ch.dropAttached(v)
	}
}

// dropAttached takes all attached records away.
func (ch *change) dropAttached(v *view) {
	ch.attach, ch.drop, ch.rec.attached = nil, nil, nil
	if v.rec != nil {
		ch.drop = v.rec.attached
	}
}

// decideOff decides ops on jobs that are off the board.
func (b *board) decideOff(op *driver.Op, v *view, at instant) (*change, *driver.Result) {
	state := v.state(at)
	switch {
	case op.Kind == driver.Restore && state != job.Trashed:
		return nil, v.refuse(at, job.NotFound, "there is no such job in the trash")
	case state != job.Trashed && state != job.Complete || v.rec == nil:
		return nil, v.refuse(at, job.NotFound, "there is no such job in the trash or among the ended ones")
	case op.Version != 0 && op.Version != v.version():
		return nil, v.refuse(at, job.Aborted, "the job was changed meanwhile")
	}
	ch := &change{rec: v.rec.clone(), event: op.Event, reason: op.Reason, changed: true}
	if r := ch.write(op, at); r != nil {
		return nil, r
	}
	ch.outTrash = v.rec.trash
	ch.rec.trash = ""
	if op.Kind == driver.Restore {
		ch.rec.place, ch.rec.end = onBoard, nil
		ch.holdOrFree(at)
	} else {
		ch.dropAttached(v)
		stamps := ch.rec.stamps
		ch.rec = &record{place: purged, stamps: stamps}
	}
	ch.rec.remember(op, at)
	return ch, nil
}
