package store

import (
	"context"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
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
			if err := c.answer.prepare(ctx, b, spec.Candidates); err != nil {
				return driver.Failed(err)
			}
			if c.answer.given {
				return c.givenAgain(ctx)
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
		if len(spec.Candidates[next].Limits)+len(spec.Candidates[next].Rates) > 0 {
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
		if c.answer.given {
			return c.givenAgain(ctx)
		}
	}
	at := c.now()
	r.At = at.wall
	c.mu.Lock()
	r.Position = at.shown(c.horizon)
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
	var plan transition.Plan
	a := newAttempt(c.board, candidate.Job, c.begin)
	a.known, a.search = true, anywhere
	opens := c.answer != nil && !c.answer.there // the claim makes the answer's node
	tries := 0
	r := a.run(ctx, func(v *view, at instant) (*change, *driver.Result, error) {
		if tries++; tries > 1 && c.answer != nil && !opens { // refused, perhaps since the answer was given again
			if given, err := c.given(ctx); err != nil || given != nil {
				return nil, given, err
			}
		}
		f := v.facts(at, a.fresh)
		var gone driver.Skipped
		plan, gone = transition.Candidate(c.op, candidate, &f)
		claimed := plan.Do == 0 && !plan.Reread && gone.Kind == job.NoKind // by an earlier try
		if opens && (a.fresh || claimed) {
			// The first try was refused, perhaps since there is an answer already.
			if again, err := c.again(ctx); err != nil || again != nil {
				return nil, again, err
			}
		}
		switch {
		case plan.Reread:
			return nil, nil, nil
		case claimed:
			got = v
			return nil, &driver.Result{}, nil
		case plan.Do == 0:
			if problem := c.unreadable(candidate.Job); problem != "" && gone.Kind == job.NotFound {
				gone.Kind, gone.Message = job.Corrupt, problem
			}
			o.gone = &gone
			return nil, &driver.Result{Kind: gone.Kind}, nil
		}
		ch, refused := c.changeOf(c.op, &plan, v, at)
		if refused == nil {
			ch.answer = c.answer
		}
		if opens && refused == nil {
			ch.answer.first(candidate, ch.rec.claim)
		}
		return ch, refused, nil
	}, func(v *view, w written) driver.Result {
		got = v
		w.finish(&plan, v)
		if opens {
			c.answer.there = true
		}
		return driver.Result{}
	})
	switch {
	case r.Repeated:
		return outcome{failed: &r}
	case r.Kind == job.NoKind:
		granted := plan.Claimed()
		if err := c.parts(ctx, &granted, got, details); err != nil {
			failed := driver.Failed(&job.Error{Kind: job.OutcomeUnknown, Message: "the job was claimed, and cannot be read", Err: err})
			return outcome{failed: &failed}
		}
		return outcome{claimed: &granted}
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

// given returns the answer if another try of this op was given it, or nil.
func (c *claiming) given(ctx context.Context) (*driver.Result, error) {
	kept := &answer{request: c.op.Request}
	if err := kept.load(ctx, c.board); err != nil {
		return nil, err
	}
	if !kept.there { // it is gone with the board, or with the window
		return &driver.Result{Kind: job.Aborted, Message: "what was kept of the claim is gone"}, nil
	}
	if !kept.given {
		return nil, nil
	}
	return c.again(ctx)
}

// givenAgain is the result of an op that adds to an answer which was given again.
func (c *claiming) givenAgain(ctx context.Context) driver.Result {
	r, err := c.again(ctx)
	if err == nil && r == nil {
		err = job.Errorf(job.OutcomeUnknown, "what was kept of the claim is gone")
	}
	if err != nil {
		return driver.Failed(err)
	}
	return *r
}

// again returns the answer that an earlier try of this op was given, or nil.
func (c *claiming) again(ctx context.Context) (*driver.Result, error) {
	kept := &answer{request: c.op.Request}
	if err := kept.give(ctx, c.board); err != nil || !kept.there {
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
