package board

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// send has the store claim up to count of the entries, which the index has
// reserved for this call. It gives back the reservations of those not claimed, but
// for those that notTwice and recheck took out.
func (c *claimer) send(ctx context.Context, entries []*index.Entry, count int) error {
	if len(entries) > 0 {
		kept, err := c.recheck(ctx, c.notTwice(entries))
		if entries = c.untimed(kept); err != nil || len(entries) == 0 {
			return err
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
		defer c.board.flight.unlock(taken, s)
		if len(taken) == 0 && !c.remember {
			return
		}
		op := c.op(chosen, count)
		c.board.tap.asks(c, chosen, false)
		c.board.metrics.Asked.Add(1)
		r = c.askStore(ctx, &op)
		back = c.learnSkipped(ctx, byID, taken, &r)
	}()
	c.board.index.Return(append(back, busy...)...) // after unlock: it may wake a call that claims them
	switch r.Kind {
	case job.NoKind:
		if c.remember { // it would have told of what came of an earlier try
			c.doubt = nil
		}
		return nil
	case job.Unavailable, job.OutcomeUnknown, job.Interrupted:
		if len(c.claims) > 0 {
			c.away = true
			return nil // better those than none; the next call meets the rest
		}
	case job.QuotaExceeded:
		if len(c.claims) > 0 {
			c.ended = true // it would find the same at every other job
			return nil
		}
	default:
	}
	err := &job.Error{Op: "claim", Kind: callKind(r.Kind), Message: r.Message, Owner: r.Owner, Err: errStore}
	if r.Kind == job.OutcomeUnknown {
		c.doubt = err
	}
	return err
}

// notTwice takes jobs out that this call has claimed already, and that came back between
// its rounds since somebody broke the claim: an answer has each job once. They stay
// reserved until release, as Take would offer them again and again.
func (c *claimer) notTwice(entries []*index.Entry) []*index.Entry {
	if len(c.claims) == 0 {
		return entries
	}
	return slices.DeleteFunc(entries, func(e *index.Entry) bool {
		again := slices.ContainsFunc(c.claims, func(claim job.Claim) bool { return claim.ID == e.ID })
		if again {
			c.late = append(c.late, e.ID)
		}
		return again
	})
}

// recheck asks the policies once more if one of them looks at the time. Jobs that
// they deny now stay reserved until release; Take would offer them again and again.
// After an error, which denies, it has given all back: the jobs are there for whoever
// comes once the policy works again.
func (c *claimer) recheck(ctx context.Context, entries []*index.Entry) (kept []*index.Entry, err error) {
	if !c.rules.byTime() {
		return entries, nil
	}
	allowed := make([]bool, len(entries))
	if err := c.judge(ctx, entries, allowed); err != nil {
		ids := make([]job.ID, len(entries))
		for i, e := range entries {
			ids[i] = e.ID
		}
		c.board.index.Return(ids...)
		return nil, err
	}
	for i, e := range entries {
		if allowed[i] {
			kept = append(kept, e)
		} else {
			c.late = append(c.late, e.ID)
		}
	}
	return kept, nil
}

// release gives back what notTwice and recheck took out.
func (c *claimer) release() {
	if len(c.late) > 0 {
		c.board.index.Return(c.late...)
		c.late = nil
	}
}

// hold takes the in-flight locks of those jobs that are free, and returns the others
// as busy. If none is free, it waits for all up to busyTime: most operations end soon.
func (c *claimer) hold(ctx context.Context, ids []job.ID) (taken, busy []job.ID, s stay) {
	taken, busy, s = c.board.flight.try(ids)
	if len(taken) > 0 || len(busy) == 0 {
		return taken, busy, s
	}
	c.board.flight.done(s)
	ctx, cancel := context.WithTimeout(ctx, busyTime)
	defer cancel()
	if s, err := c.board.flight.lock(ctx, busy); err == nil {
		return busy, nil, s
	}
	return c.board.flight.try(ids)
}

// busyTime is how long a claim waits for jobs with an operation under way.
const busyTime = 50 * time.Millisecond

// callKind turns the kind of an item's error into that of a whole call: a claim has no
// items.
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
		op.Request = c.board.random.next()
	}
	candidates := make([]driver.Candidate, len(entries))
	records := make([][]byte, len(entries))
	now := time.Now()
	for i, e := range entries {
		s := c.board.currentOf(e)
		records[i] = s.claimed(now, c.lease, c.most > c.begins && len(c.claims)+i >= c.begins)
		c.board.setStatus(e, records[i], ownPriority(e)) // as it is once the claim is granted
		limits, rates := c.counters(e)
		candidates[i] = driver.Candidate{
			Job: e.ID, Version: e.Version, Nonce: c.board.random.next(), Status: &records[i], Limits: limits, Rates: rates, Most: timeoutOf(e),
		}
	}
	op.Claim = &driver.ClaimSpec{
		Candidates: candidates, Count: max(count, 1), Owner: c.owner, Lease: c.lease, NoExpiry: c.noExpiry,
		Parts: driver.Details, Remember: c.remember, More: len(c.claims) > 0,
	}
	c.asked = true
	return op
}

// claimed is the status record of a job that is claimed once more; ahead of the time at
// which its handler can begin, or not.
func (s *currentJob) claimed(now time.Time, lease time.Duration, ahead bool) []byte {
	after := s.status
	after.Attempt++
	if after.Ahead = after.Attempt; !ahead {
		after.Begin()
	}
	after.Exhausted, after.Cancel = false, false
	after.Present = record.Attempt{Begun: now.UTC(), Lease: lease}
	after.Requeue()
	if after.StartedAt.IsZero() && after.Operations.Len() == 0 {
		after.StartedAt = now.UTC()
	}
	return after.Encode()
}

// askStore sends the op. It goes on for a while after the caller has gone, since what
// was granted must be known to be given back. A caller with a request id may have made the
// call again by then at another server, which has said that there is nothing: so from then on
// the store is only asked what came of the op, and does not carry it out.
func (c *claimer) askStore(ctx context.Context, op *driver.Op) driver.Result {
	limit := time.Now().Add(untold)
	if deadline, ok := ctx.Deadline(); ok {
		limit = deadline.Add(afterwards)
	}
	patient, cancel := context.WithDeadline(context.WithoutCancel(ctx), limit)
	defer cancel()
	if !c.remember {
		return c.board.send(patient, c.opened, []driver.Op{*op})[0]
	}
	r := c.board.send(ctx, c.opened, []driver.Op{*op})[0] // what has not begun by then does not begin
	if r.Kind == job.OutcomeUnknown && ctx.Err() != nil {
		asked := *op.Claim
		asked.Candidates = nil
		op.Claim = &asked
		r = c.board.send(patient, c.opened, []driver.Op{*op})[0]
	}
	return r
}

// afterwards is how long boardd goes on for a caller that has gone: to learn what was
// granted, and to give it back.
const afterwards = 5 * time.Second

// learnSkipped takes in the store's answer to a claim. It adds the granted claims to
// c, and tells the index of them and of the candidates that the store passed over. It
// returns the jobs of taken whose reservations are to be given back.
func (c *claimer) learnSkipped(ctx context.Context, byID map[job.ID]*index.Entry, taken []job.ID, r *driver.Result) []job.ID {
	left := make(map[job.ID]struct{}, len(taken))
	for _, id := range taken {
		left[id] = struct{}{}
	}
	if r.Repeated { // the answer has those, too, that this call got before
		c.claims, c.steps, c.stands, c.resumed, c.bytes = nil, nil, nil, nil, 0
	}
	news, before := make([]*index.Entry, 0, len(r.Claims)), len(c.claims)
	c.claims, c.steps = slices.Grow(c.claims, len(r.Claims)), slices.Grow(c.steps, len(r.Claims))
	for i := range r.Claims {
		claimed := &r.Claims[i]
		if !r.Repeated {
			c.board.waited(byID[claimed.Job]) // before it becomes the claimed one
		}
		e := c.entryClaimed(byID[claimed.Job], claimed, r.Repeated)
		if e == nil {
			continue
		}
		if !r.Repeated { // an earlier claim may have lapsed: then it ends no reservation
			delete(left, claimed.Job)
		}
		if rec := claimed.Record; e.Version != 0 && (rec == nil || isOpen(rec.State)) {
			news = append(news, e)
		}
		c.keep(e, claimed)
	}
	back, unclear := c.passOver(r.Skipped, left)
	c.board.index.PutAll(news)
	c.board.reread(context.WithoutCancel(ctx), unclear...)
	for _, id := range taken {
		if _, ok := left[id]; ok {
			back = append(back, id)
		}
	}
	c.board.tap.answered(taken, r)
	once := c.remember && !c.opened.Capabilities.AnswersClose // another try may have been told of these alone
	if len(r.Claims) > 0 && (r.Repeated || once) {
		c.ended = true
	}
	if r.Kind == job.NoKind && !r.Repeated {
		c.board.metrics.Claimed.Add(int64(len(r.Claims)))
		for i := range c.claims[before:] {
			if c.claims[before+i].Ahead {
				c.board.metrics.Ahead.Add(1)
			}
		}
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
		c.board.metrics.Passed.Add(1)
		switch {
		case gone.Record != nil:
			c.board.absorb(gone.Record)
			if overKey(gone) {
				c.board.index.Refused(gone.Job)
			}
			// A record that is no news to the index did not end the reservation.
			back = append(back, gone.Job)
		case gone.Kind == job.Corrupt:
			c.board.log.Warn("a job's record in the store cannot be read; it is offered to nobody", "job", gone.Job.String(), "problem", gone.Message)
		case gone.Kind == job.QuotaExceeded:
			back = append(back, gone.Job)
		default:
			unclear = append(unclear, gone.Job)
		}
	}
	return back, unclear
}

// entryClaimed returns a job's entry as it is after the claim; one with nothing but
// the id if nothing else is known of the job.
func (c *claimer) entryClaimed(e *index.Entry, claimed *driver.Claimed, repeated bool) *index.Entry {
	now := time.Now()
	if e == nil || repeated {
		if claimed.Record == nil {
			if e, _ = c.board.index.Get(claimed.Job); e == nil {
				return &index.Entry{ID: claimed.Job} // an answer to an old request, whose job is gone
			}
			return e
		}
		return c.board.entryOf(claimed.Record, now)
	}
	e.Position, e.Version, e.Held, e.Amends = claimed.Position, claimed.Version, false, true
	if !claimed.At.IsZero() {
		e.ModifiedAt = claimed.At
	}
	e.Claim = &index.Claim{Owner: c.owner, Token: claimed.Token, NoExpiry: c.noExpiry && claimed.Lease == 0, Since: claimed.At}
	if !e.Claim.NoExpiry {
		e.Claim.Ends = now.Add(claimed.Lease)
	}
	return e
}

func (c *claimer) keep(e *index.Entry, claimed *driver.Claimed) {
	j, s := jobAndStatus(e)
	var steps Steps
	if claimed.Record != nil {
		showDetails(j, &claimed.Record.Posting)
		if s.Operations.Len() > 0 {
			steps = stepsOf(claimed.Record, &s)
			c.bytes += steps.Size()
		}
		c.bytes += len(claimed.Record.Posting.Details)
	}
	claim := job.Claim{
		ID: claimed.Job, Owner: c.owner, Token: claimed.Token, Lease: claimed.Lease, Attempt: j.Attempt, Ahead: s.IsAhead(), Job: j,
	}
	if claimed.Lease > 0 {
		claim.LeaseExpiresAt = expiresAt(claimed.At, claimed.Lease)
		j.LeaseExpiresAt = claim.LeaseExpiresAt
	}
	c.claims, c.steps, c.stands = append(c.claims, claim), append(c.steps, steps), append(c.stands, e.Position)
	if steps.Len() > 0 && s.ResultBytes > 0 {
		c.resumed = append(c.resumed, len(c.claims)-1)
	}
}

// contention is how often other hosts, or other programs, take jobs from the head of
// this board's order at the same time. Each claim offers the store so many candidates
// more than it wants, and is granted the first that are free. Without them it would
// have to ask the store again for every job that somebody else claimed first.
type contention struct {
	// level is in parts of a candidate. It rises by how many were gone, and falls
	// by a part with each operation that lost none.
	level atomic.Int64
}

// contentionParts is how many operations without a loss it takes to offer one
// candidate less.
const contentionParts = 16

// spare returns how many candidates to offer beyond those that are wanted.
func (r *contention) spare() int {
	return int((r.level.Load() + contentionParts - 1) / contentionParts)
}

// met notes how many candidates of one operation were gone.
func (r *contention) met(gone int) {
	for {
		level := r.level.Load()
		next := max(level-1, 0)
		if gone > 0 {
			next = min(level+int64(gone)*contentionParts, maxSpare*contentionParts)
		}
		if r.level.CompareAndSwap(level, next) {
			return
		}
	}
}
