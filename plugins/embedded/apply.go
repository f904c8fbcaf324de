package embedded

import (
	"context"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// Apply hands the ops to the committer, which carries them out together with
// those of other callers, and answers when they are on the disk.
func (s *Store) Apply(ctx context.Context, name string, ops []driver.Op) []driver.Result {
	b, err := s.board(name)
	if err == nil && b.spec.Load().Observe {
		err = &job.Error{Kind: job.Precondition, Message: transition.Observed}
	}
	if err != nil {
		return failAll(make([]driver.Result, len(ops)), err)
	}
	results := make([]driver.Result, 0, len(ops))
	for len(ops) > 0 {
		n, volume := firstPart(ops)
		results = append(results, s.applyPart(ctx, b, ops[:n], volume)...)
		ops = ops[n:]
	}
	return results
}

func failAll(results []driver.Result, err error) []driver.Result {
	for i := range results {
		results[i] = driver.Failed(err)
	}
	return results
}

// firstPart returns how many ops one transaction should carry, and roughly how
// many bytes they write.
func firstPart(ops []driver.Op) (n, volume int) {
	for n < len(ops) && n < maxGroup {
		size := opVolume(&ops[n])
		if n > 0 && volume+size > maxVolume {
			break
		}
		volume += size
		n++
	}
	return n, volume
}

func opVolume(op *driver.Op) int {
	n := 256
	if op.Posting != nil {
		n += len(op.Posting.Details) + len(op.Posting.Extra)
	}
	if op.Replaces != nil {
		n += opVolume(op.Replaces)
	}
	if op.Ending != nil {
		n += len(op.Ending.Data)
	}
	if op.Import != nil && op.Import.Then != nil {
		n += opVolume(op.Import.Then)
	}
	if op.Claim != nil {
		n += 256 * op.Claim.Count
	}
	for i := range op.Attach {
		n += len(op.Attach[i].Data)
	}
	return n
}

func (s *Store) applyPart(ctx context.Context, b *board, ops []driver.Op, volume int) []driver.Result {
	results := make([]driver.Result, len(ops))
	checked := make([]error, len(ops))
	can := capabilities()
	for i := range ops {
		checked[i] = checkOp(&ops[i], can)
	}
	err := s.committer.do(ctx, len(ops), volume, func(t *txn) {
		if b.dropped.Load() {
			failAll(results, notOpen(b.name))
			return
		}
		v := t.board(b)
		for i := range ops {
			if checked[i] != nil {
				results[i] = driver.Failed(checked[i])
				continue
			}
			results[i] = v.apply(&ops[i])
		}
	})
	if isNoRoom(err) {
		return s.shrink(ctx, b, ops)
	}
	if err != nil {
		return failAll(results, err)
	}
	return results
}

// shrink answers ops for which together the disk had no room. It tries again with only
// those that make no board larger.
func (s *Store) shrink(ctx context.Context, b *board, ops []driver.Op) []driver.Result {
	results := failAll(make([]driver.Result, len(ops)), errNoRoom)
	var rest []driver.Op
	var at []int
	for i := range ops {
		if !grows(&ops[i], 0) {
			rest, at = append(rest, ops[i]), append(at, i)
		}
	}
	if len(rest) == 0 {
		return results
	}
	again := make([]driver.Result, len(rest))
	err := s.committer.do(ctx, len(rest), 0, func(t *txn) {
		if b.dropped.Load() {
			failAll(again, notOpen(b.name))
			return
		}
		v := t.board(b)
		for i := range rest {
			if err := checkOp(&rest[i], capabilities()); err != nil {
				again[i] = driver.Failed(err)
				continue
			}
			again[i] = v.apply(&rest[i])
		}
	})
	if isNoRoom(err) {
		err = &job.Error{Kind: job.Unavailable, Message: noRoomYet, Err: err}
	}
	if err != nil {
		failAll(again, err)
	}
	for i, n := range at {
		results[n] = again[i]
	}
	return results
}

// apply carries out one op. It writes only after everything is checked, so that
// an op that is refused leaves nothing behind.
func (v *boardTx) apply(op *driver.Op) driver.Result {
	if r, refused := v.state.passage.Refuses(op, v.state.generation); refused {
		return r
	}
	switch op.Kind {
	case driver.Claim:
		return v.claim(op)
	case driver.Tally:
		return v.tally(op)
	default:
	}
	if op.Replaces != nil {
		if r, done := v.replace(op); !done {
			return r
		}
	}
	s, err := v.lookup(transition.JobOf(op))
	if err != nil {
		return driver.Failed(&job.Error{Kind: job.Corrupt, Message: "the job's record cannot be read", Err: err})
	}
	f := v.facts(s, op.Owner)
	f.Stamp = v.stamp(op, s)
	plan, r := transition.Decide(op, &f)
	if plan.Do == 0 {
		return r
	}
	if len(op.Keys) > 0 {
		if r, refused := v.taken(op); refused {
			return r
		}
	}
	if r, early := transition.Early(op, v.limit); early {
		return r
	}
	if key := v.noRoom(&plan, &s.job); key != "" {
		return transition.Full(key)
	}
	if grows(op, len(s.job.status)) && v.crowded() {
		return driver.Failed(errNoRoom)
	}
	v.take(op.Keys, plan.Job)
	switch plan.Do {
	case driver.Post:
		r := v.post(op, &plan, s)
		if op.Import != nil && op.Import.Then != nil {
			return v.then(op, &plan, s, r)
		}
		return r
	case driver.Purge:
		return v.purge(op, &plan, s)
	}
	r = v.change(op, &plan, s)
	if op.Import != nil && op.Import.Then != nil {
		r = v.then(op, &plan, s, r)
		r.Record = nil // which a Post alone shows
	}
	return r
}

// replace takes the job away that a post replaces, if both can be done; otherwise r says
// why not.
func (v *boardTx) replace(op *driver.Op) (r driver.Result, done bool) {
	s, err := v.lookup(transition.JobOf(op))
	if err != nil {
		return driver.Failed(&job.Error{Kind: job.Corrupt, Message: "the job's record cannot be read", Err: err}), false
	}
	posted := v.facts(s, "")
	posted.Stamp = v.stamp(op, s)
	if plan, r := transition.Decide(op, &posted); plan.Do == 0 {
		return r, false // which shows the job, and that is good until the next lookup
	}
	if v.crowded() { // what follows is the post, which would be refused
		return driver.Failed(errNoRoom), false
	}
	if s, err = v.lookup(op.Replaces.Job); err != nil {
		return driver.Failed(&job.Error{Kind: job.Corrupt, Message: "the record of the job that is replaced cannot be read", Err: err}), false
	}
	other := transition.Replaced{Facts: v.facts(s, ""), Posting: limitsOf(s.job.limits), Claim: limitsOf(s.job.holder.limits)}
	if r, done = transition.Replace(op, &posted, &other, v.at.steady, v, v.limit); !done {
		return r, false
	}
	return r, v.apply(op.Replaces).Kind == job.NoKind
}

// change carries out a plan for a job that is on the board or in the trash.
func (v *boardTx) change(op *driver.Op, plan *transition.Plan, s *subject) driver.Result {
	j := &s.job
	owner := j.holder.owner
	result := v.step(plan, j)
	v.leave(plan)
	n := v.note(op, owner)
	switch plan.Do {
	case driver.Remove:
		v.end(op, plan, j, n)
		return result
	case driver.Trash:
		v.setAside(j, n)
		return result
	case driver.Restore:
		v.restore(s, n)
		return result
	}
	v.log.job(n, j, false)
	v.save(j)
	return result
}

// step changes in a job's record what a plan may change of any job.
func (v *boardTx) step(plan *transition.Plan, j *jobRecord) driver.Result {
	if plan.EndsClaim {
		v.endClaim(j)
	}
	j.position, j.modified = v.next(), v.at.wall.UnixNano()
	result := transition.Finish(plan, plan.Version, driver.Position(j.position), j.position, timeOf(j.modified))
	j.version = plan.Version
	j.held, j.notBefore = plan.Held, nanos(plan.NotBefore)
	if plan.Status != nil {
		j.status = *plan.Status
	}
	v.attach(&j.posting, plan.Attach)
	if plan.Do == driver.Claim || plan.Do == driver.Extend {
		v.hold(plan, j)
	}
	if plan.Counts != 0 {
		v.count(j.limits, plan.Counts)
		v.stand(plan, j)
	}
	return result
}

// leave keeps the stamp of an op. That of an ending lies in what is left of the job.
func (v *boardTx) leave(plan *transition.Plan) {
	if plan.Stamp.Kind != 0 && plan.Do != driver.Remove {
		v.remember(answerOf(&plan.Stamp))
	}
}

// subject is the job that an op is about, as the transaction sees it.
type subject struct {
	tx    *boardTx
	at    ref
	job   jobRecord   // on the board or in the trash
	ended endedRecord // otherwise, where something is left
	bare  bool        // of ended, only the tombstone is still to be seen
}

// Show shows the job, or nil if there is none.
func (s *subject) Show() *driver.Record {
	switch {
	case s.live():
		return s.job.public(s.tx.at)
	case s.bare:
		stone := s.ended.stripped()
		return stone.public(0)
	case s.gone():
		return s.ended.public(0)
	}
	return nil
}

func (s *subject) open() bool { return s.at.set() == refOpen }

func (s *subject) trashed() bool { return s.at.set() == refTrash }

func (s *subject) live() bool { return s.open() || s.trashed() }

// gone reports whether the job ended and is still remembered.
func (s *subject) gone() bool { return s.at.set() == refTombstone || s.at.set() == refFinal }

// lookup finds a job, unless its record cannot be read. What it returns is good
// until the next lookup.
func (v *boardTx) lookup(id job.ID) (*subject, error) {
	s := &v.found
	*s = subject{tx: v, at: v.ref(id)}
	switch {
	case s.live():
		if err := v.load(s.at, &s.job); err != nil {
			return nil, err
		}
	case s.gone():
		if err := v.loadEnded(s.at, &s.ended); err != nil {
			return nil, err
		}
		if !v.stands(&s.ended) {
			s.at, s.ended = 0, endedRecord{}
		} else if s.at.set() == refFinal && !s.ended.keeps(v.at) {
			s.bare = true
		}
	}
	return s, nil
}

// stands reports whether what is left of an ended job is still to be seen: the
// clean-up may be behind.
func (v *boardTx) stands(e *endedRecord) bool { return v.board.stands(e, v.at) }

func (b *board) stands(e *endedRecord, at instant) bool {
	return b.remembers(e.at, at.steady) || e.keeps(at)
}

// note is what a change says beside the job.
func (v *boardTx) note(op *driver.Op, owner []byte) note {
	return note{event: op.Event, at: v.at.wall.UnixNano(), reason: op.Reason, owner: owner}
}
