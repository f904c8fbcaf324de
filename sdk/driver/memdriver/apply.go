package memdriver

import (
	"bytes"
	"cmp"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
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
		return driver.Result{Kind: job.Precondition, Message: transition.Observed}
	}
	if r, refused := b.passage.Refuses(op, b.generation); refused {
		return r
	}
	now := time.Now()
	b.forget(now)
	switch op.Kind {
	case driver.Claim:
		return b.claim(op, now)
	case driver.Tally:
		moves, r := transition.Count(op, b.sum)
		b.raise(moves)
		return r
	default:
	}
	f := b.facts(transition.JobOf(op), now)
	if key, ok := transition.KeyOf(op); ok {
		f.Stamp = b.past.stamp(key)
	}
	if op.Replaces != nil {
		if r, done := b.replace(op, &f, now); !done {
			return r
		}
	}
	plan, r := transition.Decide(op, &f)
	if plan.Do == 0 {
		return r
	}
	if name, by, _ := transition.Taken(op, now, b); name != "" {
		return driver.Result{Kind: job.AlreadyExists, Message: name, Taken: by, Record: b.find(by, now, 0)}
	}
	if r, early := transition.Early(op, b.sum); early {
		return r
	}
	e := b.subject(op)
	r, full := b.carryOut(op, &plan, e, now, now)
	if op.Import != nil && op.Import.Then != nil {
		r = b.then(op, &plan, r, e, now)
	}
	switch {
	case full != "":
		return transition.Full(full)
	case op.Kind == driver.Post:
		r.Record = b.find(plan.Job, now, 0)
	}
	return r
}

// then carries out what an imported job went through, and returns the answer to the import.
func (b *board) then(op *driver.Op, posted *transition.Plan, r driver.Result, e *entry, now time.Time) driver.Result {
	plan := transition.Then(op, posted)
	then, _ := b.carryOut(op.Import.Then, &plan, e, now, op.Import.EndedAt)
	return transition.Imported(&plan, r, then)
}

// replace takes the job away that a post replaces, if both can be done; otherwise r says
// why not.
func (b *board) replace(op *driver.Op, posted *transition.Facts, now time.Time) (r driver.Result, done bool) {
	id := op.Replaces.Job
	other := transition.Replaced{Facts: b.facts(id, now)}
	e := b.jobs[id]
	if e != nil {
		other.Posting, other.Claim = e.limits, e.holder.counts()
	}
	if r, done = transition.Replace(op, posted, &other, now, b, b.sum); !done {
		return r, false
	}
	plan, _ := transition.Decide(op.Replaces, &other.Facts)
	b.carryOut(op.Replaces, &plan, e, now, now)
	return r, true
}

// facts is what is known of a job.
func (b *board) facts(id job.ID, now time.Time) transition.Facts {
	f := transition.FactsOf(b.find(id, now, 0), now.Round(0))
	f.Generation = b.generation
	if p := b.ended[id]; p != nil {
		f.EndedBy = p.token
	}
	return f
}

// subject returns the job that an op changes, which for a Post is a new one.
func (b *board) subject(op *driver.Op) *entry {
	if op.Kind == driver.Post {
		p := *op.Posting
		e := &entry{record: driver.Record{Posting: p}, details: bytes.Clone(p.Details), limits: copyLimits(transition.Counted(op))}
		e.record.Posting.Details, e.record.Posting.Extra = nil, bytes.Clone(p.Extra)
		return e
	}
	if e := b.jobs[op.Job]; e != nil {
		return e
	}
	return &entry{record: b.ended[op.Job].record}
}

// carryOut writes a plan, or returns in full the key of the limit or rate that forbids it. at is when
// the change is said to have been.
func (b *board) carryOut(op *driver.Op, plan *transition.Plan, e *entry, now, at time.Time) (r driver.Result, full string) {
	before := e.holder
	moves := plan.Moves(e.limits, before.counts())
	if full = transition.Room(plan.Within, moves, b.sum); full != "" {
		return r, full
	}
	if full, _ = transition.Paced(plan.Rates, now, b); full != "" {
		return r, full
	}
	b.raise(moves)
	b.take(op.Keys, plan.Job, now)
	b.pace(plan.Rates, plan.Job, now)
	b.position++
	if plan.Do == driver.Claim {
		b.epoch++
	}
	r = transition.Finish(plan, plan.Version, b.position, b.epoch, at)
	e.write(plan)
	switch plan.Do {
	case driver.Post:
		b.sequence++
		e.record.Posting.CreatedAt, e.record.Posting.Sequence = r.At, b.sequence
		if op.Import != nil {
			e.record.Posting.CreatedAt = op.Import.CreatedAt.Round(0)
		}
		b.jobs[plan.Job] = e
	case driver.Claim:
		e.holder = newHolder(&plan.Holder, copyLimits(plan.Within), now)
	case driver.Extend:
		e.holder = newHolder(&plan.Holder, before.counts(), now)
	case driver.Trash:
		e.record.EndedAt = r.At
	case driver.Restore:
		e.record.EndedAt = time.Time{}
	case driver.Remove:
		b.end(plan, e, now)
	case driver.Purge:
		b.purge(plan, e)
	}
	b.tell(op, plan, e, before, now)
	return r, ""
}

// write applies the parts of a plan that are the same for every kind of op.
func (e *entry) write(plan *transition.Plan) {
	if plan.EndsClaim {
		e.holder = nil
	}
	r := &e.record
	r.State, r.Version, r.Position, r.ModifiedAt = plan.State, plan.Version, plan.Position, plan.At
	r.Held, r.NotBefore = plan.Held, plan.NotBefore
	if plan.Status != nil {
		r.Status = bytes.Clone(*plan.Status)
	}
	for _, a := range plan.Attach {
		if a.Delete {
			delete(e.attached, a.Name)
			continue
		}
		if e.attached == nil {
			e.attached = map[string][]byte{}
		}
		e.attached[a.Name] = bytes.Clone(a.Data)
	}
}

// tell remembers a change, for retries and for watchers. before is who held the
// job until then.
func (b *board) tell(op *driver.Op, plan *transition.Plan, e *entry, before *holder, now time.Time) {
	b.remember(plan, now)
	owner := ""
	if h := cmp.Or(e.holder, before); h != nil {
		owner = h.owner
	}
	b.events.add(driver.Change{
		Event: op.Event, Job: plan.Job, Position: plan.Position, At: plan.At,
		Reason: op.Reason, Owner: owner, Record: e.view(now, 0),
	})
	b.bell.Ring()
}

func copyLimits(limits []driver.Limit) []driver.Limit {
	return append([]driver.Limit(nil), limits...)
}
