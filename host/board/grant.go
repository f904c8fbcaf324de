package board

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// send has the store claim up to count of the entries, which the index has
// reserved for this call.
func (c *claimer) send(ctx context.Context, entries []*index.Entry, count int) error {
	if len(entries) > 0 {
		if entries = c.recheck(ctx, entries); len(entries) == 0 {
			return nil
		}
	}
	ids := make([]job.ID, len(entries))
	byID := make(map[job.ID]*index.Entry, len(entries))
	for i, e := range entries {
		ids[i], byID[e.ID] = e.ID, e
	}
	taken, busy, s := c.hold(ctx, ids)
	chosen := make([]*index.Entry, len(taken))
	for i, id := range taken {
		chosen[i] = byID[id]
	}
	var r driver.Result
	var back []job.ID
	func() {
		defer c.flight.unlock(taken, s)
		if len(taken) == 0 && !c.remember {
			return
		}
		op := c.op(chosen, count)
		c.tap.asks(c, chosen, false)
		c.metrics.Asked.Add(1)
		r = c.ask(ctx, &op)
		back = c.learn(ctx, byID, taken, &r)
	}()
	c.index.Return(append(back, busy...)...) // when they are free: it may wake somebody
	switch r.Kind {
	case job.NoKind:
		return nil
	case job.Unavailable, job.OutcomeUnknown, job.Interrupted:
		if len(c.claims) > 0 {
			return nil // better those than none; the next call meets the rest
		}
	case job.QuotaExceeded:
		if len(c.claims) > 0 {
			c.ended = true // it would find the same at every other job
			return nil
		}
	default:
	}
	return &job.Error{Op: "claim", Kind: callKind(r.Kind), Message: r.Message, Owner: r.Owner, Err: errStore}
}

// recheck asks policies that look at the time once more. What they take out
// stays reserved until release, or it would be offered again and again.
func (c *claimer) recheck(ctx context.Context, entries []*index.Entry) (kept []*index.Entry) {
	if !c.rules.byTime() {
		return entries
	}
	allowed := make([]bool, len(entries))
	if c.judge(ctx, entries, allowed) != nil {
		clear(allowed) // a failure denies
	}
	for i, e := range entries {
		if allowed[i] {
			kept = append(kept, e)
		} else {
			c.late = append(c.late, e.ID)
		}
	}
	return kept
}

// release gives back what recheck took out.
func (c *claimer) release() {
	if len(c.late) > 0 {
		c.index.Return(c.late...)
		c.late = nil
	}
}

// hold takes those of the jobs that have no operation under way. If all have, it
// waits a moment: mostly they are about to be done.
func (c *claimer) hold(ctx context.Context, ids []job.ID) (taken, busy []job.ID, s stay) {
	taken, busy, s = c.flight.try(ids)
	if len(taken) > 0 || len(busy) == 0 {
		return taken, busy, s
	}
	c.flight.done(s)
	ctx, cancel := context.WithTimeout(ctx, busyTime)
	defer cancel()
	if s, err := c.flight.lock(ctx, busy); err == nil {
		return busy, nil, s
	}
	return c.flight.try(ids)
}

// busyTime is how long a claim waits for jobs with an operation under way.
const busyTime = 50 * time.Millisecond

// callKind makes a kind of an item one of a whole call: a claim has no items.
func callKind(k job.Kind) job.Kind {
	if k == job.OutcomeUnknown {
		return job.Unavailable
	}
	return k
}

// op makes the store's op of the entries.
func (c *claimer) op(entries []*index.Entry, count int) driver.Op {
	op := driver.Op{Kind: driver.Claim, Request: c.request, Event: job.ClaimedEvent}
	if !c.remember {
		op.Request = c.random.next()
	}
	candidates := make([]driver.Candidate, len(entries))
	records := make([][]byte, len(entries))
	now := time.Now()
	for i, e := range entries {
		s := c.standingOf(e)
		records[i] = s.claimed(now, c.lease)
		c.setStatus(e, records[i], ownPriority(e)) // for when the claim is granted
		candidates[i] = driver.Candidate{
			Job: e.ID, Version: e.Version, Nonce: c.random.next(), Status: &records[i], Limits: c.limits(e),
		}
	}
	op.Claim = &driver.ClaimSpec{
		Candidates: candidates, Count: max(count, 1), Owner: c.owner, Lease: c.lease, NoExpiry: c.noExpiry,
		Parts: driver.Details, Remember: c.remember, More: c.asked,
	}
	c.asked = true
	return op
}

// claimed is the status record of a job that is claimed once more.
func (s *currentJob) claimed(now time.Time, lease time.Duration) []byte {
	after := s.status
	after.attempt++
	after.exhausted, after.cancel = false, false
	after.present = attempt{begun: now.UTC(), lease: lease}
	after.requeue()
	if after.startedAt.IsZero() && after.operations.len() == 0 {
		after.startedAt = now.UTC()
	}
	return after.encode()
}

// ask sends the op. It goes on for a while after the caller has gone, since what
// was granted must be known to be given back.
func (c *claimer) ask(ctx context.Context, op *driver.Op) driver.Result {
	limit := time.Now().Add(untold)
	if deadline, ok := ctx.Deadline(); ok {
		limit = deadline.Add(afterwards)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), limit)
	defer cancel()
	return c.Board.send(ctx, c.opened, []driver.Op{*op})[0]
}

// afterwards is how long boardd works on what a caller that has gone left.
const afterwards = 5 * time.Second

// learn tells the index what came of a claim, and keeps the claims. It returns
// the jobs whose reservations are to be given back.
func (c *claimer) learn(ctx context.Context, byID map[job.ID]*index.Entry, taken []job.ID, r *driver.Result) []job.ID {
	left := make(map[job.ID]struct{}, len(taken))
	for _, id := range taken {
		left[id] = struct{}{}
	}
	news := make([]*index.Entry, 0, len(r.Claims))
	c.claims, c.steps = slices.Grow(c.claims, len(r.Claims)), slices.Grow(c.steps, len(r.Claims))
	for i := range r.Claims {
		claimed := &r.Claims[i]
		if !r.Repeated {
			c.waited(byID[claimed.Job]) // before it becomes the claimed one
		}
		e := c.entryClaimed(byID[claimed.Job], claimed, r.Repeated)
		if e == nil {
			continue
		}
		delete(left, claimed.Job)
		if rec := claimed.Record; e.Version != 0 && (rec == nil || isOpen(rec.State)) {
			news = append(news, e)
		}
		c.keep(e, claimed)
	}
	back, unclear := c.passOver(r.Skipped, left)
	c.index.PutAll(news)
	c.reread(context.WithoutCancel(ctx), unclear...)
	for _, id := range taken {
		if _, ok := left[id]; ok {
			back = append(back, id)
		}
	}
	c.tap.answered(taken, r)
	if r.Repeated && len(r.Claims) > 0 {
		c.ended = true
	}
	if r.Kind == job.NoKind && !r.Repeated {
		c.metrics.Claimed.Add(int64(len(r.Claims)))
	}
	return append(back, unclear...)
}

// passOver corrects what the index knows of candidates that the store did not
// claim, and takes them out of left. It returns those whose reservations are to
// be given back, and those of which the store did not say how they stand.
func (c *claimer) passOver(list []driver.Skipped, left map[job.ID]struct{}) (back, unclear []job.ID) {
	for i := range list {
		gone := &list[i]
		if _, ok := left[gone.Job]; !ok {
			continue
		}
		delete(left, gone.Job)
		c.passed++
		c.metrics.Passed.Add(1)
		switch {
		case gone.Record != nil:
			c.absorb(gone.Record)
			if overKey(gone) {
				c.index.Refused(gone.Job)
			}
			back = append(back, gone.Job) // if that was no news, the reservation would stay
		case gone.Kind == job.Corrupt:
			c.log.Warn("a job's record in the store cannot be read; it is offered to nobody", "job", gone.Job.String(), "problem", gone.Message)
		case gone.Kind == job.QuotaExceeded:
			back = append(back, gone.Job)
		default:
			unclear = append(unclear, gone.Job)
		}
	}
	return back, unclear
}

// entryClaimed returns a job's entry as it is after the claim, nil if nothing is
// known of it.
func (c *claimer) entryClaimed(e *index.Entry, claimed *driver.Claimed, repeated bool) *index.Entry {
	now := time.Now()
	if e == nil || repeated {
		if claimed.Record == nil {
			if e, _ = c.index.Get(claimed.Job); e == nil {
				return &index.Entry{ID: claimed.Job} // an answer to an old request, whose job is gone
			}
			return e
		}
		return c.entryOf(claimed.Record, now)
	}
	e.Position, e.Version, e.Held, e.Amends = claimed.Position, claimed.Version, false, true
	if !claimed.At.IsZero() {
		e.ModifiedAt = claimed.At
	}
	e.Claim = &index.Claim{Owner: c.owner, Token: claimed.Token, NoExpiry: c.noExpiry, Since: claimed.At}
	if !c.noExpiry {
		e.Claim.Ends = now.Add(claimed.Lease)
	}
	return e
}

func (c *claimer) keep(e *index.Entry, claimed *driver.Claimed) {
	j, s := jobAndStatus(e)
	var steps Steps
	if claimed.Record != nil {
		showDetails(j, &claimed.Record.Posting)
		if s.operations.len() > 0 {
			steps = stepsOf(claimed.Record, &s)
			c.bytes += steps.Size()
		}
		c.bytes += len(claimed.Record.Posting.Details)
	}
	claim := job.Claim{
		ID: claimed.Job, Owner: c.owner, Token: claimed.Token, Lease: claimed.Lease, Attempt: j.Attempt, Job: j,
	}
	if claimed.Lease > 0 {
		claim.LeaseExpiresAt = expiresAt(claimed.At, claimed.Lease)
		j.LeaseExpiresAt = claim.LeaseExpiresAt
	}
	c.claims, c.steps = append(c.claims, claim), append(c.steps, steps)
	if steps.Len() > 0 && s.resultBytes > 0 {
		c.resumed = append(c.resumed, len(c.claims)-1)
	}
}
