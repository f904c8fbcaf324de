package store

import (
	"context"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A claiming is one op of claims at work.
type claiming struct {
	*board
	op     *driver.Op
	begin  func() bool
	answer *answer // what is kept for a retry; nil: nothing is
}

// An outcome is what became of one candidate: claimed, passed over, or failed.
type outcome struct {
	claimed *driver.Claimed
	gone    *driver.Skipped
	failed  *driver.Result
}

// claim goes through the candidates in order. As many as are still wanted are
// tried side by side, each in a transaction of its own.
func (b *board) claim(ctx context.Context, op *driver.Op, begin func() bool) driver.Result {
	c := &claiming{board: b, op: op, begin: begin}
	spec := op.Claim
	if spec.Remember {
		c.answer = &answer{request: op.Request}
		if spec.More {
			if err := c.addTo(ctx); err != nil {
				return driver.Failed(err)
			}
		}
	}
	var r harvest
	for next := 0; next < len(spec.Candidates) && len(r.Claims) < spec.Count; {
		n := min(spec.Count-len(r.Claims), len(spec.Candidates)-next)
		if c.answer != nil && !c.answer.there {
			n = 1 // the first claim makes the answer's node, or finds one of an earlier try
			if spec.Count > 1 {
				c.answer.plan(spec.Candidates[next+1:])
			}
		}
		if len(spec.Candidates[next].Limits) > 0 {
			n = 1 // the first in line gets what room there is
		}
		if failed := r.gather(c.some(ctx, spec.Candidates[next:next+n])); failed != nil {
			if failed.Repeated || len(r.Claims) == 0 {
				return *failed
			}
			break // what was claimed is told; the rest lapses if it was claimed at all
		}
		next += n
	}
	return c.finish(ctx, r.Result)
}

// A harvest is what a claim has got so far.
type harvest struct{ driver.Result }

// gather takes what became of candidates that were tried side by side, and returns
// the answer to an earlier try of the op, or else the first failure. One that failed
// says nothing of those beside it.
func (h *harvest) gather(list []outcome) (failed *driver.Result) {
	for _, o := range list {
		switch {
		case o.failed != nil && (failed == nil || o.failed.Repeated):
			failed = o.failed
		case o.failed != nil:
		case o.claimed != nil:
			h.Claims = append(h.Claims, *o.claimed)
		default:
			h.Skipped = append(h.Skipped, *o.gone)
		}
	}
	return failed
}

// addTo loads the answer that the op adds to, if there is one, and writes down
// what it is going to claim.
func (c *claiming) addTo(ctx context.Context) error {
	if err := c.answer.load(ctx, c.board); err != nil || !c.answer.there {
		return err
	}
	c.answer.plan(c.op.Claim.Candidates)
	return c.answer.prepare(ctx, c.board)
}

// finish keeps the answer and dates it.
func (c *claiming) finish(ctx context.Context, r driver.Result) driver.Result {
	if c.answer != nil && len(r.Claims) == 0 && !c.op.Claim.More {
		if again, err := c.again(ctx); err != nil || again != nil {
			if err != nil {
				return driver.Failed(err)
			}
			return *again
		}
	}
	if c.answer != nil && len(r.Claims) > 0 {
		if err := c.answer.complete(ctx, c.board, r.Claims); err != nil {
			return driver.Failed(&job.Error{Kind: job.OutcomeUnknown, Message: "jobs were claimed, and the answer could not be kept", Err: err})
		}
	}
	at := c.now()
	r.At = at.wall
	c.mu.Lock()
	r.Position = driver.Position(c.horizon)
	c.mu.Unlock()
	for _, claimed := range r.Claims {
		r.Position, r.At = claimed.Position, claimed.At
	}
	return r
}

// some tries candidates side by side.
func (c *claiming) some(ctx context.Context, list []driver.Candidate) []outcome {
	outcomes := make([]outcome, len(list))
	if len(list) == 1 {
		outcomes[0] = c.one(ctx, &list[0])
		return outcomes
	}
	done := make(chan struct{}, len(list))
	for i := range list {
		go func() {
			outcomes[i] = c.one(ctx, &list[i])
			done <- struct{}{}
		}()
	}
	for range list {
		<-done
	}
	return outcomes
}

// one claims a candidate, or says why not.
func (c *claiming) one(ctx context.Context, candidate *driver.Candidate) outcome {
	details := c.readAhead(ctx, candidate.Job)
	var o outcome
	var got *view
	a := newAttempt(c.board, candidate.Job, c.begin)
	a.known, a.search = true, anywhere
	make1 := c.answer != nil && !c.answer.there
	r := a.run(ctx, func(v *view, at instant) (*change, *driver.Result, error) {
		ch, gone := c.decide(candidate, v, at)
		if make1 && (a.fresh || ch == nil && gone == nil) {
			// The first try was refused, perhaps since there is an answer already.
			if again, err := c.again(ctx); err != nil || again != nil {
				return nil, again, err
			}
		}
		switch {
		case gone != nil:
			o.gone = gone
			return nil, &driver.Result{Kind: gone.Kind}, nil
		case ch == nil: // it was claimed by an earlier try
			got = v
			return nil, &driver.Result{Repeated: true}, nil
		}
		if make1 {
			ch.answer = c.answer
			ch.answer.first(candidate, ch.rec.claim)
		}
		return ch, nil, nil
	}, func(v *view, _ written) driver.Result {
		got = v
		if make1 {
			c.answer.there = true
		}
		return driver.Result{}
	})
	switch {
	case r.Repeated && r.Claims != nil:
		return outcome{failed: &r}
	case r.Kind == job.NoKind:
		o.gone, o.claimed = nil, c.granted(got)
		if err := c.parts(ctx, o.claimed, got, details); err != nil {
			failed := driver.Failed(&job.Error{Kind: job.OutcomeUnknown, Message: "the job was claimed, and cannot be read", Err: err})
			return outcome{failed: &failed}
		}
		return o
	case o.gone != nil && r.Kind == o.gone.Kind:
		return o
	case r.Kind == job.QuotaExceeded:
		return outcome{gone: c.noRoom(candidate, r.Message)}
	}
	return outcome{failed: &r}
}

// noRoom says that a candidate's limit has no room.
func (c *claiming) noRoom(candidate *driver.Candidate, key string) *driver.Skipped {
	g := &driver.Skipped{Job: candidate.Job, Kind: job.QuotaExceeded, Message: key}
	if v := c.known(candidate.Job); v != nil {
		g.Record = v.show(c.now(), 0)
	}
	return g
}

// granted returns the claim that stands on a job.
func (c *claiming) granted(v *view) *driver.Claimed {
	held := v.claim()
	g := &driver.Claimed{
		Job: v.id, Token: held.token, Version: v.version(), Position: driver.Position(v.rec.position), At: atMillis(v.rec.changedAt),
	}
	if !held.noExpiry {
		g.Lease = v.left(c.now())
	}
	return g
}

// readAhead begins to read a candidate's details, if they are asked for, while
// it is being claimed.
func (c *claiming) readAhead(ctx context.Context, id job.ID) <-chan read {
	v := c.known(id)
	if c.op.Claim.Parts&driver.Details == 0 || v == nil || v.node == "" {
		return nil
	}
	out := make(chan read, 1)
	go func() {
		data, err := c.details(ctx, v)
		out <- read{data, err}
	}()
	return out
}

type read struct {
	data []byte
	err  error
}

// parts adds what the caller wants of a claimed job.
func (c *claiming) parts(ctx context.Context, claimed *driver.Claimed, v *view, ahead <-chan read) error {
	parts := c.op.Claim.Parts
	if parts == 0 {
		return nil
	}
	r := v.show(c.now(), parts)
	if ahead != nil {
		if got := <-ahead; got.err == nil {
			r.Posting.Details = got.data
			parts &^= driver.Details
		}
	}
	claimed.Record = r
	return c.fill(ctx, r, v, parts)
}

// decide returns the change that claims a candidate; or why it is passed over;
// or neither, if it is claimed by an earlier try of the same op.
func (c *claiming) decide(candidate *driver.Candidate, v *view, at instant) (*change, *driver.Skipped) {
	if !v.onBoard() || v.state(at) == job.Unknown {
		g := &driver.Skipped{Job: candidate.Job, Kind: job.NotFound}
		if problem := c.unreadable(candidate.Job); problem != "" {
			g.Kind, g.Message = job.Corrupt, problem
		}
		if v.state(at) != job.Unknown {
			g.Record = v.show(at, 0)
		}
		return nil, g
	}
	gone := &driver.Skipped{Job: candidate.Job, Record: v.show(at, 0)}
	held := v.claim()
	switch {
	case v.live(at) && held != nil && held.token.Nonce == candidate.Nonce:
		return nil, nil
	case v.live(at):
		gone.Kind, gone.Owner = job.AlreadyClaimed, v.owner()
		return nil, gone
	case candidate.Version != 0 && candidate.Version != v.version():
		gone.Kind = job.Aborted
		return nil, gone
	case v.waits(at):
		gone.Kind = job.NotEligible
		return nil, gone
	}
	spec := c.op.Claim
	c.mu.Lock()
	short := c.settings.Claims == claimsSession
	c.mu.Unlock()
	ch := &change{
		rec: v.rec.clone(), lock: putLock, owner: spec.Owner, short: short, within: candidate.Limits,
		event: c.op.Event, reason: c.op.Reason, who: spec.Owner, changed: true,
	}
	ch.rec.claim = &claim{
		owner: spec.Owner, token: job.Token{Generation: at.generation, Nonce: candidate.Nonce},
		lease: spec.Lease, noExpiry: spec.NoExpiry, session: short, limits: sharesOf(candidate.Limits),
	}
	if spec.NoExpiry {
		ch.rec.claim.lease = 0
	}
	if candidate.Status != nil {
		ch.rec.status = *candidate.Status
	}
	return ch, nil
}

// again returns the answer that an earlier try of this op was given, or nil.
func (c *claiming) again(ctx context.Context) (*driver.Result, error) {
	kept := &answer{request: c.op.Request}
	if err := kept.load(ctx, c.board); err != nil || !kept.there {
		return nil, err
	}
	r := &driver.Result{Repeated: true, At: atMillis(kept.at), Claims: []driver.Claimed{}}
	for i := range kept.grants {
		g := kept.grants[i].claimed()
		r.Position = max(r.Position, g.Position)
		if parts := c.op.Claim.Parts; parts != 0 {
			v, err := c.steady(ctx, g.Job, recorded)
			if err != nil {
				return nil, err
			}
			g.Record = v.show(c.now(), parts)
			if err := c.fill(ctx, g.Record, v, parts); err != nil && !session.NoNode(err) {
				return nil, err
			}
		}
		r.Claims = append(r.Claims, g)
	}
	return r, nil
}
