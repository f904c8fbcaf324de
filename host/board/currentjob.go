package board

import (
	"context"
	"errors"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// currentJob is a job as the board knows it when it is about to change it.
type currentJob struct {
	entry     *index.Entry // as it stands or, in the trash, stood
	state     job.State
	outcome   job.Outcome // of a job that has ended
	status    record.Status
	notBefore time.Time // of its posting; known only of a job in the trash
	ranOut    bool      // the planned op trashes it because its attempts ran out
	unbegun   bool      // it gives back what was given ahead and has not begun
	refunds   bool      // and its attempt is not used up
}

func (b *Board) currentOf(e *index.Entry) currentJob {
	s := currentJob{entry: e, state: job.Unclaimed}
	if e.Claim != nil {
		s.state = job.Claimed
	}
	if len(e.Status) > 0 {
		s.status, _ = record.ReadStatus(e.Status) // one that cannot be read counts as empty, and was reported when it came
	}
	return s
}

// loseUnbegun is LoseUnbegun of the status that the job is to have, and notes what came of
// it for the metrics.
func (s *currentJob) loseUnbegun(after *record.Status) bool {
	s.unbegun = after.IsAhead()
	s.refunds = after.LoseUnbegun()
	return s.refunds
}

// limit returns after how many attempts the job goes to the trash; 0: never.
func (b *Board) limit(e *index.Entry) int32 {
	if e.MaxAttempts > 0 {
		return e.MaxAttempts
	}
	return b.spec.Retry.MaxAttempts
}

// backoff returns how long a job waits after an attempt that failed.
func (b *Board) backoff(attempt int32) time.Duration {
	wait := b.spec.Retry.Backoff
	for ; attempt > 1 && wait > 0 && wait < b.spec.Retry.MaxBackoff; attempt-- {
		wait *= 2
	}
	return min(wait, b.spec.Retry.MaxBackoff)
}

// alteration changes jobs, with one op each. It keeps the index up to date, and plans
// an op anew where another caller changed the job in between.
type alteration struct {
	board  *Board
	opened *driver.BoardStatus
	ids    []job.ID
	errs   []error // one per item; those that are set before are left alone

	// plan makes the op for an item; s is nil if the job is not known. An error
	// becomes the item's, and nothing is sent for it.
	plan func(i int, s *currentJob) (driver.Op, error)
	// enough says whether what the index knows, s (nil: nothing), is enough for
	// plan; otherwise the store is asked first.
	enough func(i int, s *currentJob) bool
	// repeats says which other endings an earlier try of the call may have been.
	// It may be nil: none.
	repeats func(i int, s *currentJob) []endingOp
	// gaveUp says how an item gives its claim up, if it does so by its token. It may be nil:
	// none does.
	gaveUp func(i int) How
	// done is told of each answer. It may be nil.
	done func(i int, s *currentJob, r *driver.Result)
}

// tries bounds how often an op is planned anew because the job changed.
const tries = 8

// run carries the alteration out. The error is about the whole call.
func (a *alteration) run(ctx context.Context) error {
	ids, of := make([]job.ID, 0, len(a.ids)), make([]int, 0, len(a.ids))
	for i, id := range a.ids {
		if a.errs[i] == nil {
			ids, of = append(ids, id), append(of, i)
		}
	}
	return a.board.rounds(ctx, ids, func(items []int) (news []*index.Entry) {
		todo := make([]int, len(items))
		for i, at := range items {
			todo[i] = of[at]
		}
		for try := 0; len(todo) > 0 && try < tries; try++ {
			todo, news = a.round(ctx, todo, try > 0, news)
		}
		return news
	})
}

// runOne is run for an alteration of one job; the error is that of its item, or
// of the whole call.
func (a *alteration) runOne(ctx context.Context) error {
	if err := a.run(ctx); err != nil {
		return err
	}
	if errors.Is(a.errs[0], errUnchanged) {
		return nil
	}
	return a.errs[0]
}

// round sends one op for each item. It returns the items that must be planned anew,
// and news with the entries added that are to be put into the index.
func (a *alteration) round(ctx context.Context, items []int, again bool, news []*index.Entry) ([]int, []*index.Entry) {
	for _, i := range items {
		a.errs[i] = nil // of the round before
	}
	present := a.look(ctx, items, again)
	ops, of := make([]driver.Op, 0, len(items)), make([]int, 0, len(items))
	for k, i := range items {
		if a.errs[i] != nil {
			continue
		}
		op, err := a.plan(i, present[k])
		if a.errs[i] = err; err != nil {
			continue
		}
		op.Job = a.ids[i]
		if op.Request == ([16]byte{}) {
			op.Request = a.board.random.next()
		}
		ops, of = append(ops, op), append(of, k)
	}
	if len(ops) == 0 {
		return nil, news
	}
	var anew []int
	results := a.board.send(ctx, a.opened, ops)
	if a.repeats != nil {
		a.board.recognise(ctx, a.opened, ops, results, func(n int) []endingOp { return a.repeats(items[of[n]], present[of[n]]) })
	}
	if a.gaveUp != nil {
		recall(ops, results, func(n int) How { return a.gaveUp(items[of[n]]) })
	}
	for n := range results {
		k := of[n]
		i, r := items[k], &results[n]
		if r.Kind == job.LeaseLost {
			r.Message = ofBefore(ops[n].Token, a.opened.Generation, r.Message)
		}
		a.errs[i] = itemError(a.ids[i], r)
		if e := a.board.learn(present[k], &ops[n], r); e != nil {
			news = append(news, e)
		}
		if r.Kind == job.Aborted || setAside(&ops[n], r) {
			anew = append(anew, i)
		} else if a.done != nil {
			a.done(i, present[k], r)
		}
	}
	return anew, news
}

// setAside reports whether an op that was made for a job as it stood on the board was
// refused since the job had gone into the trash meanwhile: it is not unknown.
func setAside(op *driver.Op, r *driver.Result) bool {
	return r.Kind == job.NotFound && op.Version != 0 && r.Record != nil && r.Record.State == job.Trashed
}

// look returns what is known of each item's job: from the index where that is
// enough, else from the store.
func (a *alteration) look(ctx context.Context, items []int, again bool) []*currentJob {
	present, store := make([]*currentJob, len(items)), make([]currentJob, len(items))
	var ids []job.ID
	var of []int
	for k, i := range items {
		if e, ok := a.board.index.Get(a.ids[i]); ok {
			store[k] = a.board.currentOf(e)
			present[k] = &store[k]
		}
		if again || !a.enough(i, present[k]) {
			ids, of = append(ids, a.ids[i]), append(of, k)
		}
	}
	if len(ids) == 0 {
		return present
	}
	before := a.board.index.Sightings(ids)
	records, err := a.board.read(ctx, ids, 0)
	if err != nil {
		for _, k := range of {
			a.errs[items[k]] = &job.Error{Job: a.ids[items[k]], Kind: job.Unavailable, Message: "the store cannot be asked how the job stands: nothing was changed", Err: err}
		}
		return present
	}
	now := time.Now()
	for n := range records {
		rec, k := &records[n], of[n]
		a.board.absorb(rec)
		present[k] = nil
		if rec.State == job.Unknown {
			a.board.missing(ids[n], before[n])
			if rec.Corrupt != "" {
				a.errs[items[k]] = corrupt(ids[n], rec.Corrupt)
			}
			continue
		}
		store[k] = a.board.currentOf(a.board.entryOf(rec, now))
		store[k].state, store[k].outcome = rec.State, rec.Outcome
		if rec.State == job.Trashed {
			ext, _ := record.ReadExtra(rec.Posting.Extra) // one that cannot be read was reported with the entry
			store[k].notBefore = ext.NotBefore
		}
		present[k] = &store[k]
	}
	return present
}

// learn tells the index what came of an op, or returns the entry to put there.
func (b *Board) learn(s *currentJob, op *driver.Op, r *driver.Result) *index.Entry {
	if r.Kind == job.LeaseLost {
		b.metrics.StaleTokens.Add(1)
	}
	if r.Record != nil && (r.Kind != job.NoKind || r.Repeated) {
		b.absorb(r.Record)
		return nil
	}
	switch r.Kind {
	case job.NoKind:
		if !r.Repeated {
			b.observe(s, op)
		}
	case job.NotFound:
		if s != nil {
			b.missing(op.Job, index.Sighting{Known: true, Position: s.entry.Position})
		}
		return nil
	default:
		return nil
	}
	switch op.Kind {
	case driver.Remove, driver.Trash, driver.Purge:
		if s != nil {
			b.takeOff(s.entry, r.Position)
			return nil
		}
		b.index.Remove(op.Job, r.Position)
		return nil
	case driver.Extend:
		if s != nil && s.entry.Claim != nil && s.entry.Claim.Token == op.Token {
			claim := *s.entry.Claim
			claim.NoExpiry, claim.Ends = op.NoExpiry, time.Now().Add(r.Lease)
			b.index.Touch(op.Job, r.Position, r.Version, claim)
		}
		return nil
	case driver.Release, driver.Restore, driver.Update:
		if s == nil || r.Repeated { // what came after the first time is not known here
			return nil
		}
		e := b.after(s.entry, op, r)
		if e.Amends = op.Kind != driver.Restore; !e.Amends && e.Held {
			if after := rareOf(e.Extra).after; len(after) > 0 {
				b.waiting.add(e.ID, after) // it was forgotten while the job was in the trash
			}
		}
		return e
	case driver.Post, driver.Claim:
	}
	return nil
}

// after returns an entry as it is after an op that left the job open.
func (b *Board) after(e *index.Entry, op *driver.Op, r *driver.Result) *index.Entry {
	e.Position, e.Version = r.Position, r.Version
	if !r.At.IsZero() {
		e.ModifiedAt = r.At
	}
	if op.Status != nil {
		b.setStatus(e, *op.Status, ownPriority(e))
	}
	if op.Hold != nil {
		e.NotBefore, e.Held = r.NotBefore, op.Hold.Always
	}
	if op.Kind != driver.Update {
		e.Claim = nil
	}
	return e
}

// attemptOf returns the record of an entry's present claim as if the claim ended now.
func attemptOf(s *record.Status, e *index.Entry) record.Attempt {
	if e == nil || e.Claim == nil {
		return record.Attempt{}
	}
	a := record.Attempt{Owner: shorten.To(e.Claim.Owner, job.MaxOwner), Ended: time.Now().UTC()}
	if !e.Claim.Foreign { // else s.Present is of an earlier claim
		a.Begun, a.Lease = s.Present.Begun, s.Present.Lease
	}
	return a
}
