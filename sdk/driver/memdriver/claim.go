package memdriver

import (
	"bytes"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func (b *board) claim(op *driver.Op, now time.Time) driver.Result {
	spec := op.Claim
	if spec.Remember && !spec.More {
		if s := b.past.stamps[stampKey{stamp: op.Request}]; s != nil {
			return b.answerAgain(s, spec, now)
		}
	}
	r := driver.Result{Position: b.position, At: now.Round(0)}
	for i := range spec.Candidates {
		if len(r.Claims) == spec.Count {
			break
		}
		c := &spec.Candidates[i]
		if gone := b.take(op, c, now); gone != nil {
			r.Skipped = append(r.Skipped, *gone)
			continue
		}
		e := b.jobs[c.Job]
		claimed := driver.Claimed{
			Job: c.Job, Token: e.holder.token, Version: e.record.Version, Position: e.record.Position, At: now.Round(0),
		}
		if !e.holder.noExpiry {
			claimed.Lease = e.holder.ends.Sub(now)
		}
		if spec.Parts != 0 {
			claimed.Record = e.view(now, spec.Parts)
		}
		r.Claims = append(r.Claims, claimed)
		r.Position = b.position
	}
	if spec.Remember && len(r.Claims) > 0 {
		b.rememberAnswer(op.Request, r.Claims, now)
	}
	return r
}

// take claims one candidate, or says why not.
func (b *board) take(op *driver.Op, c *driver.Candidate, now time.Time) *driver.Skipped {
	e := b.jobs[c.Job]
	if e == nil || e.record.State == job.Trashed {
		return &driver.Skipped{Job: c.Job, Kind: job.NotFound, Record: b.find(c.Job, now, 0)}
	}
	gone := &driver.Skipped{Job: c.Job, Record: e.view(now, 0)}
	if h := e.live(now); h != nil {
		if h.token.Nonce == c.Nonce {
			return nil // by an earlier try of this op
		}
		gone.Kind, gone.Owner = job.AlreadyClaimed, h.owner
		return gone
	}
	if c.Version != 0 && c.Version != e.record.Version {
		gone.Kind = job.Aborted
		return gone
	}
	if e.waits(now) {
		gone.Kind = job.NotEligible
		return gone
	}
	if e.holder != nil { // a claim that lapsed counts no longer
		b.raise(e.holder.limits, -1)
		defer func(old *holder) {
			if e.holder == old {
				b.raise(old.limits, 1)
			}
		}(e.holder)
	}
	if key := b.full(c.Limits); key != "" {
		gone.Kind, gone.Message = job.QuotaExceeded, key
		return gone
	}
	b.hold(op, c, e, now)
	return nil
}

func (b *board) hold(op *driver.Op, c *driver.Candidate, e *entry, now time.Time) {
	b.raise(c.Limits, 1)
	b.epoch++
	h := &holder{
		owner: op.Claim.Owner, token: job.Token{Generation: b.generation, Epoch: b.epoch, Nonce: c.Nonce},
		lease: op.Claim.Lease, noExpiry: op.Claim.NoExpiry, since: now.Round(0), limits: copyLimits(c.Limits),
	}
	if h.noExpiry {
		h.lease = 0
	}
	h.ends = now.Add(h.lease)
	e.holder = h
	if c.Status != nil {
		e.record.Status = bytes.Clone(*c.Status)
	}
	b.changed(op, e, now, h.owner)
}

// answerAgain gives a remembered answer.
func (b *board) answerAgain(s *stamp, spec *driver.ClaimSpec, now time.Time) driver.Result {
	r := driver.Result{Repeated: true, Position: s.result.Position, At: s.result.At, Claims: slices.Clone(s.result.Claims)}
	if spec.Parts != 0 {
		for i := range r.Claims {
			r.Claims[i].Record = b.find(r.Claims[i].Job, now, spec.Parts)
		}
	}
	return r
}

// rememberAnswer adds claims to the answer that is kept under request.
func (b *board) rememberAnswer(request [16]byte, claims []driver.Claimed, now time.Time) {
	key := stampKey{stamp: request}
	s := b.past.stamps[key]
	if s == nil {
		s = &stamp{key: key, at: now, result: driver.Result{Position: b.position, At: now.Round(0)}}
		b.past.add(s)
	}
	for _, c := range claims {
		c.Record = nil
		known := slices.ContainsFunc(s.result.Claims, func(k driver.Claimed) bool { return k.Token == c.Token })
		if !known {
			s.result.Claims = append(s.result.Claims, c)
		}
	}
	b.forget(now)
}
