package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// Apply carries out a batch in one transaction, so that one commit serves all of it.
// Each op is decided by itself, and one that is refused changes nothing; but if the
// database fails, none of them is done.
func (s *store) Apply(ctx context.Context, name string, ops []driver.Op) []driver.Result {
	results := make([]driver.Result, len(ops))
	var sound []driver.Op
	var places []int
	for i := range ops {
		if err := ops[i].Check(capabilities()); err != nil {
			results[i] = driver.Failed(err)
			continue
		}
		sound, places = append(sound, ops[i]), append(places, i)
	}
	if len(sound) == 0 {
		return results
	}
	answers, err := s.apply(ctx, name, sound)
	for i, place := range places {
		if err != nil {
			results[place] = driver.Failed(err)
		} else {
			results[place] = answers[i]
		}
	}
	return results
}

func (s *store) apply(ctx context.Context, name string, ops []driver.Op) ([]driver.Result, error) {
	b, err := s.board(name)
	if err != nil {
		return nil, err
	}
	if b.Observe {
		return nil, job.Errorf(job.Precondition, transition.Observed)
	}
	select {
	case b.watch.turns <- struct{}{}:
		defer func() { <-b.watch.turns }()
	case <-ctx.Done():
		return nil, interrupted(ctx)
	}
	t, err := s.enter(ctx, b, needsOf(ops))
	if err != nil {
		return nil, err
	}
	defer t.leave()
	if err := t.readAgain(ops); err != nil {
		return nil, failed(ctx, err)
	}
	t.buryPast()
	results := make([]driver.Result, len(ops))
	for i := range ops {
		results[i] = t.apply(&ops[i])
	}
	queue := &pgx.Batch{}
	t.queueWrites(queue)
	t.queueWanted(queue)
	if t.overfull() {
		if err := send(ctx, t.conn, queue); err != nil {
			return nil, failed(ctx, err)
		}
		queue = &pgx.Batch{}
		if err := t.makeRoom(); err != nil {
			return nil, failed(ctx, err)
		}
	}
	t.repeats = t.repeats || slices.ContainsFunc(results, func(r driver.Result) bool { return r.Repeated })
	return results, t.commit(queue)
}

// commit writes the board's row, commits, and tells whoever waits for changes. An answer that repeats
// one commits as well, though there is nothing to write: what it tells of may wait for a standby still,
// and this COMMIT waits for that, too.
func (t *batch) commit(queue *pgx.Batch) error {
	t.queueHead(queue)
	if queue.Len() == 0 && !t.anchored && !t.repeats {
		return nil // nothing was changed: leave ends the transaction
	}
	err := t.store.commit(t.ctx, t.conn, queue)
	if err == nil {
		t.board.watch.inbox.drop(slices.Concat(t.settled, t.refused))
		if t.swept != nil {
			t.board.watch.swept.Store(t.swept)
		}
		if t.finals != nil {
			t.board.watch.finals.Store(t.finals)
		}
		if len(t.changes.out) > 0 {
			t.board.watch.memo.set(t.head.position, t.changes.out)
		}
	}
	if t.head.position != t.before.position { // even if nobody knows: a watcher sees what is there
		t.board.watch.Ring()
		t.news.add(t.board.id)
	}
	return err
}

// apply is where the state machine decides.
func (t *batch) apply(op *driver.Op) driver.Result {
	if answer, refused := t.head.passage.Refuses(op, t.head.generation); refused {
		return answer
	}
	switch op.Kind {
	case driver.Claim:
		return t.claim(op)
	case driver.Refuse:
		return t.refuse(op)
	case driver.Tally:
		return t.tally(op)
	default:
	}
	r := t.find(transition.JobOf(op))
	if r != nil && r.damage != nil {
		return driver.Failed(&job.Error{Kind: job.Corrupt, Message: "the job's row cannot be read", Err: r.damage})
	}
	f := t.facts(r)
	if key, ok := transition.KeyOf(op); ok {
		if k := t.kept[key]; k != nil {
			f.Stamp = k.Stamp
		}
	}
	if op.Inbox != 0 && !t.left[int64(op.Inbox)] { //nolint:gosec // checked
		if plan, answer := transition.Decide(op, &f); plan.Do == 0 {
			return answer
		}
		return notLeft(op)
	}
	if op.Replaces != nil {
		if answer, done := t.replace(op, &f); !done {
			return answer
		}
	}
	plan, answer := transition.Decide(op, &f)
	if plan.Do == 0 {
		if answer.Kind == job.NoKind {
			t.settle(op)
		}
		return answer // refused, or done before
	}
	if refused, taken := t.keyTaken(op); taken {
		return refused
	}
	if answer, early := transition.Early(op, t.sum); early {
		return answer
	}
	if plan.Do == driver.Post {
		r = posted(op)
	}
	answer, full := t.carryOut(op, &plan, r, t.head.now)
	if op.Import != nil && op.Import.Then != nil {
		answer = t.then(op, &plan, r, answer)
	}
	switch {
	case full != "":
		return transition.Full(full)
	case plan.Do == driver.Post:
		t.settle(op)
		answer.Record = r.shown()
	}
	return answer
}

// replace takes the job away that a post replaces, if both can be done; otherwise answer
// says why not.
func (t *batch) replace(op *driver.Op, posted *transition.Facts) (answer driver.Result, done bool) {
	r := t.find(op.Replaces.Job)
	if r != nil && r.damage != nil {
		return driver.Failed(&job.Error{Kind: job.Corrupt, Message: "the row of the job that is replaced cannot be read", Err: r.damage}), false
	}
	other := transition.Replaced{Facts: t.facts(r)}
	if r != nil {
		other.Posting, other.Claim = r.limits, r.claimLimits
	}
	if answer, done = transition.Replace(op, posted, &other, t.head.now, t, t.sum); !done {
		return answer, false
	}
	t.apply(op.Replaces)
	return answer, true
}

// tally answers with what a group counts. It changes no job, so the board's position stays:
// no watcher would be told of another one.
func (t *batch) tally(op *driver.Op) driver.Result {
	moves, answer := transition.Count(op, t.sum)
	if len(moves) > 0 {
		t.draw()
	} else if op.Close || op.Forget {
		t.repeats = true // it may have been done before
	}
	for _, m := range moves {
		t.moved[m.Key] += m.By
	}
	return answer
}

// find returns a job as it stands in this batch; nil: there is none.
func (t *batch) find(id job.ID) *row {
	if r := t.rows[id]; r != nil && !r.gone {
		return r
	}
	return nil
}

// shown is a copy of the record, for an answer: a later op of the batch may change the
// row.
func (r *row) shown() *driver.Record {
	record := r.Record
	if r.Holder != nil {
		h := *r.Holder
		record.Holder = &h
	}
	return &record
}

// Show is the job for transition.Facts.
func (r *row) Show() *driver.Record { return r.shown() }

// facts are what the state machine has to know of a job; r is nil where there is none.
func (t *batch) facts(r *row) transition.Facts {
	if r == nil {
		return transition.Facts{Now: t.head.now, Generation: t.head.generation}
	}
	f := transition.FactsOf(&r.Record, t.head.now)
	f.Generation, f.EndedBy, f.Job = t.head.generation, r.endedBy, r
	return f
}

// posted is the row of a new job. Its bytes are the driver's own: the op's buffers are
// the caller's again when Apply has returned.
func posted(op *driver.Op) *row {
	r := &row{Record: driver.Record{Posting: *op.Posting}, limits: transition.Counted(op)}
	r.Posting.Details, r.Posting.Extra = nil, bytes.Clone(op.Posting.Extra)
	return r
}

// then carries out what an imported job went through, and returns the answer to the import.
func (t *batch) then(op *driver.Op, posted *transition.Plan, r *row, answer driver.Result) driver.Result {
	plan := transition.Then(op, posted)
	last, _ := t.carryOut(op.Import.Then, &plan, r, op.Import.EndedAt)
	return transition.Imported(&plan, answer, last)
}

// carryOut makes what was planned of the rows, or returns the key of a limit or rate that keeps
// it from being done. r shows the job after it. at is when the change is said to have been.
func (t *batch) carryOut(op *driver.Op, plan *transition.Plan, r *row, at time.Time) (answer driver.Result, full string) {
	moves := plan.Moves(r.limits, r.claimLimits)
	if full = transition.Room(plan.Within, moves, t.sum); full != "" {
		return answer, full
	}
	if full, _ = transition.Paced(plan.Rates, t.head.now, t); full != "" {
		return answer, full
	}
	for _, m := range moves {
		t.moved[m.Key] += m.By
	}
	t.take(op.Keys, plan.Job)
	t.pace(plan.Rates)
	owner := r.owner()
	if plan.Do != driver.Post {
		t.count(r, -1)
	}
	position := t.next()
	answer = transition.Finish(plan, plan.Version, position, uint64(position), at)
	if plan.Do == driver.Post {
		r.Posting.CreatedAt, r.Posting.Sequence = plan.At, uint64(position)
		if op.Import != nil {
			r.Posting.CreatedAt = op.Import.CreatedAt.Round(0)
		}
		t.rows[plan.Job] = r
	}
	r.change(plan, t.head.now)
	stamp := t.remember(plan)
	t.touch(r)
	switch plan.Do {
	case driver.Purge:
		r.Outcome, r.gone = job.Purged, true
		t.wipe(r, true, true)
	case driver.Remove:
		t.attach(r, plan.Attach)
		t.end(r, plan, stamp)
		t.count(r, 1)
	case driver.Post:
		t.put(r, details, append([]byte{}, op.Posting.Details...))
		t.attach(r, plan.Attach)
		t.count(r, 1)
	default:
		t.attach(r, plan.Attach)
		t.count(r, 1)
	}
	if len(t.changes.out) == 0 {
		t.changes = *newWriter(1 << 10)
	}
	t.changes.change(op, r, owner)
	return answer, ""
}

// change does to the row what a plan may do to any job.
func (r *row) change(plan *transition.Plan, now time.Time) {
	r.State, r.Version, r.Position, r.ModifiedAt = plan.State, plan.Version, plan.Position, plan.At
	r.Held, r.NotBefore = plan.Held, plan.NotBefore
	if plan.Status != nil {
		r.Status = bytes.Clone(*plan.Status)
	}
	if plan.EndsClaim {
		r.Holder, r.claimLimits, r.lease, r.ends = nil, nil, 0, 0
	}
	switch plan.Do {
	case driver.Claim, driver.Extend:
		h := plan.Holder
		r.Holder, r.lease, r.ends = &h, int64(h.Remaining), 0
		if r.lease > 0 {
			r.ends = now.UnixNano() + r.lease
		}
		if plan.Do == driver.Claim {
			r.claimLimits = plan.Within
		}
	case driver.Trash, driver.Remove:
		r.EndedAt = plan.At
	case driver.Restore:
		r.EndedAt = time.Time{}
	}
}
