package main

import (
	"bytes"
	"context"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// Apply carries out a batch in one transaction, so that one sync of the disk serves all
// of it. Each op is decided by itself, and one that is refused changes nothing; but if
// the database fails, none of them is done.
func (s *store) Apply(ctx context.Context, name string, ops []driver.Op) []driver.Result {
	results := make([]driver.Result, len(ops))
	b, err := s.board(name)
	if err == nil && b.Observe {
		err = job.Errorf(job.Precondition, transition.Observed)
	}
	if err == nil {
		err = s.write(ctx, func(q *session) error {
			t, err := s.onBoard(q, b)
			if err != nil {
				return err
			}
			t.forget()
			for i := range ops {
				results[i] = t.apply(&ops[i])
			}
			t.forget()
			t.save()
			return nil
		})
	}
	if err != nil {
		for i := range ops {
			results[i] = driver.Failed(err)
		}
	}
	return results
}

// apply is where the state machine decides. What it needs to know of the job is read,
// and what it plans is written, in one transaction; so it does not matter who else is
// at work.
func (t *tx) apply(op *driver.Op) driver.Result {
	if err := op.Check(driver.CapabilityAll()); err != nil {
		return driver.Failed(err)
	}
	switch op.Kind {
	case driver.Claim:
		return t.claim(op)
	case driver.Tally:
		moves, answer := transition.Count(op, t.sum)
		t.raise(moves)
		return answer
	default:
	}
	r := t.find(transition.JobOf(op))
	f := t.facts(r)
	if key, ok := transition.KeyOf(op); ok {
		kept, _ := t.kept(key)
		f.Stamp = kept.Stamp
	}
	if op.Replaces != nil {
		if answer, done := t.replace(op, &f); !done {
			return answer
		}
	}
	plan, answer := transition.Decide(op, &f)
	if plan.Do == 0 {
		return answer // refused, or done before
	}
	if name, by, _ := transition.Taken(op, t.now, t); name != "" {
		refused := driver.Result{Kind: job.AlreadyExists, Message: name, Taken: by}
		if has := t.find(by); has != nil {
			refused.Record = &has.Record
		}
		return refused
	}
	if answer, early := transition.Early(op, t.sum); early {
		return answer
	}
	if plan.Do == driver.Post {
		r = posted(op)
	}
	answer, full := t.carryOut(op, &plan, r, t.now)
	if op.Import != nil && op.Import.Then != nil {
		answer = t.then(op, &plan, r, answer)
	}
	switch {
	case full != "":
		return transition.Full(full)
	case plan.Do == driver.Post:
		answer.Record = &r.Record
	}
	return answer
}

// replace takes the job away that a post replaces, if both can be done; otherwise answer
// says why not.
func (t *tx) replace(op *driver.Op, posted *transition.Facts) (answer driver.Result, done bool) {
	r := t.find(op.Replaces.Job)
	other := transition.Replaced{Facts: t.facts(r)}
	if r != nil {
		other.Posting, other.Claim = r.Limits, r.ClaimLimits
	}
	if answer, done = transition.Replace(op, posted, &other, t.now, t, t.sum); !done {
		return answer, false
	}
	t.apply(op.Replaces)
	return answer, true
}

// facts are what the state machine has to know of a job; r is nil where there is none.
func (t *tx) facts(r *row) transition.Facts {
	if r == nil {
		return transition.Facts{Now: t.now, Generation: t.generation}
	}
	f := transition.FactsOf(&r.Record, t.now)
	f.Generation, f.EndedBy = t.generation, r.EndedBy
	return f
}

// posted is the row of a new job. Its bytes are the driver's own: the op's buffers are
// the caller's again when Apply has returned.
func posted(op *driver.Op) *row {
	r := &row{Record: driver.Record{Posting: *op.Posting}, Limits: transition.Counted(op)}
	r.Posting.Details, r.Posting.Extra = nil, bytes.Clone(op.Posting.Extra)
	return r
}

// then carries out what an imported job went through, and returns the answer to the import.
func (t *tx) then(op *driver.Op, posted *transition.Plan, r *row, answer driver.Result) driver.Result {
	plan := transition.Then(op, posted)
	last, _ := t.carryOut(op.Import.Then, &plan, r, op.Import.EndedAt)
	return transition.Imported(&plan, answer, last)
}

// carryOut writes what was planned, or returns the key of a limit or rate that keeps it from
// being done. r shows the job after it. at is when the change is said to have been.
func (t *tx) carryOut(op *driver.Op, plan *transition.Plan, r *row, at time.Time) (answer driver.Result, full string) {
	moves := plan.Moves(r.Limits, r.ClaimLimits)
	if full = transition.Room(plan.Within, moves, t.sum); full != "" {
		return answer, full
	}
	if full, _ = transition.Paced(plan.Rates, t.now, t); full != "" {
		return answer, full
	}
	t.raise(moves)
	t.take(op.Keys, plan.Job)
	t.pace(plan.Rates, plan.Job)
	owner := r.owner()
	t.position++
	if plan.Do == driver.Claim {
		t.epoch++
	}
	answer = transition.Finish(plan, plan.Version, t.position, t.epoch, at)
	if plan.Do == driver.Post {
		t.sequence++
		r.Posting.CreatedAt, r.Posting.Sequence = t.now, t.sequence
		if op.Import != nil {
			r.Posting.CreatedAt = op.Import.CreatedAt
		}
	}
	r.change(plan, t)
	stamp := t.remember(plan)
	switch plan.Do {
	case driver.Purge:
		r.Outcome = job.Purged
		t.purge(plan.Job)
	case driver.Remove:
		t.attach(plan.Job, plan.Attach)
		t.end(r, plan, stamp)
		r.save(t)
	case driver.Post:
		r.save(t)
		t.put(plan.Job, details, op.Posting.Details)
		t.attach(plan.Job, plan.Attach)
	default:
		r.save(t)
		t.attach(plan.Job, plan.Attach)
	}
	t.tell(op, r, owner)
	return answer, ""
}

// sum returns what a limit or a group counts.
func (t *tx) sum(key string) int64 { return t.count(counterOf(key), key) }

// raise moves what limits and groups count. What counts nothing has no row.
func (t *tx) raise(moves transition.Moves) {
	for _, m := range moves {
		t.exec("INSERT INTO counts VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n", t.board, counterOf(m.Key), m.Key, m.By)
		t.exec("DELETE FROM counts WHERE board = ? AND what = ? AND name = ? AND n = 0", t.board, counterOf(m.Key), m.Key)
	}
}

// counterOf is the sort of a counter.
func counterOf(key string) string {
	if transition.OfGroup(key) {
		return "group"
	}
	return "limit"
}

// owner returns who holds the job, if anybody does.
func (r *row) owner() string {
	if r.Holder == nil {
		return ""
	}
	return r.Holder.Owner
}

// change does to the row what a plan may do to any job.
func (r *row) change(plan *transition.Plan, t *tx) {
	r.State, r.Version, r.Position, r.ModifiedAt = plan.State, plan.Version, plan.Position, plan.At
	r.Held, r.NotBefore = plan.Held, plan.NotBefore
	if plan.Status != nil {
		r.Status = bytes.Clone(*plan.Status)
	}
	if plan.EndsClaim {
		r.Holder, r.ClaimLimits, r.lease, r.ends = nil, nil, 0, 0
	}
	switch plan.Do {
	case driver.Claim, driver.Extend:
		h := plan.Holder
		r.Holder, r.lease, r.ends = &h, h.Remaining, t.clock+h.Remaining
		if plan.Do == driver.Claim {
			r.ClaimLimits = plan.Within
		}
	case driver.Trash, driver.Remove:
		r.EndedAt = plan.At
	case driver.Restore:
		r.EndedAt = time.Time{}
	}
}
