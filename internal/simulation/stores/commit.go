package stores

import (
	"maps"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A flight is an op between its decision and its commit.
type flight struct {
	op     *driver.Op
	host   int
	at     time.Time // when it was decided: a decision is good for that moment only
	skew   time.Duration
	after  uint64 // the store's revision then
	read   *row
	plan   transition.Plan
	answer driver.Result
}

// Apply is an op with nothing between its decision and its commit.
func (o *Optimist) Apply(host int, op *driver.Op) driver.Result {
	f := o.begin(host, op)
	return o.commit(f)
}

// begin decides an op by what the host believes. A claim is decided when it is
// committed, candidate by candidate.
func (o *Optimist) begin(host int, op *driver.Op) *flight {
	o.forget()
	f := &flight{op: op, host: host, at: time.Now(), skew: o.skew, after: o.revision}
	if op.Kind != driver.Claim && op.Check(driver.CapabilityAll()) == nil {
		o.decide(f)
	}
	return f
}

// decide fills in the plan or the answer, first by what the host believes and then, if
// that would refuse the op, by what is there.
func (o *Optimist) decide(f *flight) {
	id := transition.JobOf(f.op)
	r, believes := o.believed[f.host][id]
	for _, cached := range []bool{true, false} {
		if cached && !believes {
			continue
		}
		if !cached {
			r = o.rows[id]
			o.believed[f.host][id] = r
		}
		facts := o.facts(r, cached)
		if s := o.stampOf(f.op); s != nil {
			facts.Stamp = s.Stamp
		}
		op := *f.op
		if o.flaw == TokenUnchecked && op.Precondition == driver.HeldByToken {
			op.Precondition = driver.Held
			op.Owner = ""
		}
		if o.flaw == LapsedCountsAsHeld && facts.State == job.Claimed && facts.Holder.Remaining == 0 {
			facts.Holder.Remaining = 1
		}
		f.read = r
		f.plan, f.answer = transition.Decide(&op, &facts)
		if f.plan.Reread && o.flaw == BelievesRefusals {
			f.plan, f.answer.Record = transition.Plan{}, nil
			return
		}
		if !f.plan.Reread {
			return
		}
	}
}

// commit carries out what was decided, or decides again if it is not so any more.
func (o *Optimist) commit(f *flight) driver.Result {
	if err := f.op.Check(driver.CapabilityAll()); err != nil {
		return driver.Failed(err)
	}
	o.forget()
	if f.op.Kind == driver.Claim {
		return o.claim(f.host, f.op)
	}
	id := transition.JobOf(f.op)
	late := !f.at.Equal(time.Now()) || f.skew != o.skew
	for f.plan.Do != 0 && (o.rows[id] != f.read || late) && o.flaw != CommitsBlindly {
		delete(o.believed[f.host], id)
		late = false
		o.decide(f)
	}
	if f.plan.Do == 0 && (late || f.after != o.revision) && o.flaw != BelievesRefusals {
		delete(o.believed[f.host], id) // an answer is of the moment at which it is given
		f.after = o.revision
		o.decide(f)
		f.at, f.skew = time.Now(), o.skew
		return o.commit(f)
	}
	if f.plan.Do == 0 {
		return f.answer
	}
	if f.plan.Do != driver.Post && o.rows[id] == nil { // only where a flaw skips the look
		return driver.Result{Kind: job.NotFound}
	}
	r, full := o.carryOut(f.op, &f.plan)
	if full != "" {
		return transition.Full(full)
	}
	o.believed[f.host][id] = o.rows[id]
	if f.op.Kind == driver.Post {
		r.Record = o.rows[id].view(0)
	}
	return r
}

func (o *Optimist) claim(host int, op *driver.Op) driver.Result {
	spec := op.Claim
	s := o.stampOf(op)
	if s != nil && (!spec.More || s.given) {
		again := *s // a backup may have the one of before
		again.given = true
		o.stamps[slices.Index(o.stamps, s)] = &again
		return driver.Result{Repeated: true, Position: s.Position, At: s.At, Claims: s.claims}
	}
	r := driver.Result{At: o.wall()}
	for i := range spec.Candidates {
		if len(r.Claims) == spec.Count {
			break
		}
		plan, skipped := o.candidate(host, op, &spec.Candidates[i])
		if skipped.Kind != job.NoKind {
			r.Skipped = append(r.Skipped, skipped)
			continue
		}
		r.Claims = append(r.Claims, plan.Claimed())
	}
	r.Position = o.position
	if key, remember := transition.KeyOf(op); remember && len(r.Claims) > 0 {
		o.remember(key, s, &r)
	}
	o.persist()
	return r
}

// remember keeps the answer to a claim. s is what is kept already, or nil.
func (o *Optimist) remember(key transition.Key, s *stamp, r *driver.Result) {
	kept := &stamp{Stamp: transition.Stamp{Key: key, Kind: driver.Claim, Position: r.Position, At: r.At}, at: time.Now()}
	if s == nil {
		o.stamps = append(o.stamps, kept)
	} else {
		*kept = *s // a backup may have the old one
		o.stamps[slices.Index(o.stamps, s)] = kept
	}
	kept.claims = transition.Remember(slices.Clone(kept.claims), r.Claims)
	o.forget()
}

// candidate claims one candidate, by what the host believes at first.
func (o *Optimist) candidate(host int, op *driver.Op, c *driver.Candidate) (transition.Plan, driver.Skipped) {
	r, believes := o.believed[host][c.Job]
	facts := o.facts(r, true)
	var plan transition.Plan
	var skipped driver.Skipped
	if believes {
		plan, skipped = transition.Candidate(op, c, &facts)
	}
	if !believes || plan.Reread || plan.Do != 0 && o.rows[c.Job] != r {
		facts = o.facts(o.rows[c.Job], false)
		o.believed[host][c.Job] = o.rows[c.Job]
		plan, skipped = transition.Candidate(op, c, &facts)
	}
	if plan.Do != 0 {
		if _, full := o.carryOut(op, &plan); full != "" {
			return plan, facts.PassOver(c, job.QuotaExceeded, full)
		}
		o.believed[host][c.Job] = o.rows[c.Job]
	}
	return plan, skipped
}

// carryOut writes a plan, or returns the key of the limit that forbids it.
func (o *Optimist) carryOut(op *driver.Op, plan *transition.Plan) (r driver.Result, full string) {
	e := &row{record: driver.Record{}}
	if plan.Do == driver.Post {
		e.record.Posting, e.details, e.counts = *op.Posting, clone(op.Posting.Details), append(e.counts, op.Limits...)
		e.record.Posting.Details, e.record.Posting.Extra = nil, clone(op.Posting.Extra)
	} else {
		*e = *o.rows[plan.Job]
	}
	moves := plan.Moves(e.counts, e.claimCounts)
	within := plan.Within
	if o.flaw == FirstLimitOnly && len(within) > 1 {
		within = within[:1]
	}
	if full = transition.Room(within, moves, func(key string) int64 { return o.sums[key] }); full != "" {
		return r, full
	}
	for _, m := range moves {
		if m.By < 0 && (o.flaw == SumNotLowered && plan.Do == driver.Release || o.flaw == LapsedKeepsSum && plan.Do == driver.Claim) {
			continue
		}
		if o.sums[m.Key] += m.By; o.sums[m.Key] == 0 {
			delete(o.sums, m.Key)
		}
	}
	o.position++
	if plan.Do == driver.Claim && o.flaw != EpochStands {
		o.epoch++
	}
	version := plan.Version
	if o.flaw == VersionStands && plan.Do == driver.Update {
		version--
	}
	owner := ""
	if e.holder != nil {
		owner = e.holder.Owner
	}
	r = transition.Finish(plan, version, o.position, o.epoch, o.wall())
	o.write(plan, e)
	o.tell(op, plan, e, owner)
	if op.Kind != driver.Claim {
		o.persist()
	}
	return r, ""
}

func (o *Optimist) persist() {
	if o.flaw != AnswersBeforeDisk {
		o.keep()
	} else if o.position%8 == 0 {
		o.keep() // now and then
	}
}

// write changes the row e, which is new, as the plan says.
func (o *Optimist) write(plan *transition.Plan, e *row) {
	v := &e.record
	if plan.EndsClaim {
		e.holder, e.claimCounts = nil, nil
	}
	v.State, v.Version, v.Position, v.ModifiedAt = plan.State, plan.Version, plan.Position, plan.At
	v.Held, v.NotBefore = plan.Held, plan.NotBefore
	if plan.Status != nil {
		v.Status = clone(*plan.Status)
	}
	if len(plan.Attach) > 0 {
		e.attached = maps.Clone(e.attached)
		if e.attached == nil {
			e.attached = map[string][]byte{}
		}
	}
	for _, a := range plan.Attach {
		if a.Delete {
			delete(e.attached, a.Name)
		} else {
			e.attached[a.Name] = clone(a.Data)
		}
	}
	switch plan.Do {
	case driver.Post:
		o.sequence++
		v.Posting.CreatedAt, v.Posting.Sequence = plan.At, o.sequence
	case driver.Claim, driver.Extend:
		h := plan.Holder
		v.State, e.holder, e.ends = job.Unclaimed, &h, time.Now().Add(h.Remaining)
		if plan.Do == driver.Claim {
			e.claimCounts = append([]driver.Limit(nil), plan.Within...)
		}
	case driver.Trash:
		v.EndedAt = plan.At
		if o.flaw == TrashDropsAttached {
			e.attached = nil
		}
	case driver.Restore:
		v.EndedAt = time.Time{}
	case driver.Remove:
		o.end(plan, e)
	case driver.Purge:
		o.finals = slices.DeleteFunc(o.finals, func(id job.ID) bool { return id == plan.Job })
		o.drop(plan.Job)
		return
	}
	o.put(plan.Job, e)
	if plan.Do == driver.Remove && !e.tombstone && !e.final {
		o.drop(plan.Job)
	}
}

// end leaves of a job what the plan says.
func (o *Optimist) end(plan *transition.Plan, e *row) {
	v := &e.record
	v.EndedAt, v.Outcome, e.by, e.tombstone = plan.At, plan.Ending.Outcome, plan.EndedBy, o.flaw != NoTombstone
	if plan.Ending.Keep == 0 {
		v.Status, v.Posting, e.details, e.attached = nil, bare(v.Posting), nil, nil
		return
	}
	k := &plan.Ending
	e.final, e.until, v.Final = true, time.Now().Add(k.Keep), clone(k.Data)
	e.size = int64(len(v.Final) + len(v.Status))
	if k.KeepPosting {
		e.size += int64(len(e.details) + len(v.Posting.Extra))
	} else {
		v.Posting, e.details = bare(v.Posting), nil
	}
	if !k.KeepAttached {
		e.attached = nil
	}
	for _, data := range e.attached {
		e.size += int64(len(data))
	}
	o.finals = append(o.finals, plan.Job)
}

// tell remembers a change for retries and for watchers.
func (o *Optimist) tell(op *driver.Op, plan *transition.Plan, e *row, owner string) {
	s := &stamp{Stamp: plan.Stamp, at: time.Now()}
	if plan.Do == driver.Remove {
		s.ended, s.row = plan.Job, uint64(plan.Position)
	}
	if s.Kind != 0 && plan.Do != driver.Claim || plan.Do == driver.Remove {
		o.stamps = append(o.stamps, s)
		o.forget()
	}
	if e.holder != nil {
		owner = e.holder.Owner
	}
	if o.flaw == UpdateUntold && plan.Do == driver.Update && plan.Status == nil {
		return
	}
	o.changes = append(o.changes, driver.Change{
		Event: op.Event, Job: plan.Job, Position: plan.Position, At: plan.At, Owner: owner, Record: e.view(0),
	})
	if most := 12; len(o.changes) > most { // so that watchers come too late
		o.changes = o.changes[len(o.changes)-most:]
	}
}
