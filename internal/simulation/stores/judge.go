package stores

import (
	"bytes"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A verdict is what the contract says of an op in the state that the book has.
type verdict struct {
	kind      job.Kind
	owner     string
	remaining time.Duration
	message   string // of QuotaExceeded: the key
	repeat    *deed  // the op was done before
	present   *entry // a Post came again: the job that it made
}

// judge says what is right of an op that is no Claim.
func (b *Book) judge(op *driver.Op) verdict {
	if op.Kind == driver.Post {
		return b.judgePost(op)
	}
	if d := b.repeated(op); d != nil {
		return verdict{repeat: d}
	}
	e := b.find(op.Job)
	switch {
	case e == nil:
		return verdict{kind: job.NotFound}
	case op.Kind == driver.Restore || op.Kind == driver.Purge:
		return judgeOff(op, e)
	case e.state == job.Complete:
		if byToken := op.Precondition == driver.HeldByToken || op.Precondition == driver.Lapsed; byToken && e.by == op.Token {
			return verdict{kind: job.LeaseLost}
		}
		return verdict{kind: job.NotFound}
	}
	if v := judgeHolder(op, e); v.kind != job.NoKind {
		return v
	}
	switch {
	case e.state == job.Trashed:
		return verdict{kind: job.NotFound}
	case op.Version != 0 && op.Version != e.version:
		return verdict{kind: job.Aborted}
	case op.Kind == driver.Release && e.claim == nil:
		return verdict{kind: job.NotClaimed}
	}
	return verdict{}
}

func (b *Book) judgePost(op *driver.Op) verdict {
	e := b.find(op.Posting.ID)
	switch {
	case e == nil:
		if key := b.full(op.Limits, nil); key != "" {
			return verdict{kind: job.QuotaExceeded, message: key}
		}
		return verdict{}
	case e.posting.Digest == op.Posting.Digest:
		return verdict{present: e}
	}
	return verdict{kind: job.AlreadyExists}
}

func judgeOff(op *driver.Op, e *entry) verdict {
	switch {
	case e.state == job.Unclaimed || op.Kind == driver.Restore && e.state == job.Complete:
		return verdict{kind: job.NotFound}
	case op.Version != 0 && op.Version != e.version:
		return verdict{kind: job.Aborted}
	}
	return verdict{}
}

// judgeHolder looks at the precondition on the claim of a job that has not ended.
func judgeHolder(op *driver.Op, e *entry) verdict {
	c := e.claim
	if c == nil {
		switch op.Precondition {
		case driver.HeldByToken, driver.Lapsed:
			return verdict{kind: job.LeaseLost}
		case driver.HeldByOwner, driver.Held:
			return verdict{kind: job.NotClaimed}
		case driver.Free, driver.Whatever:
		}
		return verdict{}
	}
	switch op.Precondition {
	case driver.HeldByToken:
		if op.Token != c.token || !e.live() {
			return verdict{kind: job.LeaseLost, owner: c.owner}
		}
	case driver.Lapsed:
		switch {
		case op.Token != c.token:
			return verdict{kind: job.LeaseLost, owner: c.owner}
		case c.endless:
			return verdict{kind: job.Precondition}
		case e.live():
			return verdict{kind: job.Precondition, remaining: time.Until(c.ends)}
		}
	case driver.HeldByOwner:
		if !e.live() {
			return verdict{kind: job.NotClaimed}
		}
		if op.Owner != c.owner {
			return verdict{kind: job.NotOwner, owner: c.owner}
		}
	case driver.Held:
		if op.Owner != "" && op.Owner != c.owner {
			return verdict{kind: job.NotOwner, owner: c.owner}
		}
	case driver.Free:
		if e.live() {
			return verdict{kind: job.AlreadyClaimed, owner: c.owner}
		}
	case driver.Whatever:
	}
	return verdict{}
}

// judgeCandidate says what is right of one candidate of a claim; again: an earlier try
// of the op made the claim.
func (b *Book) judgeCandidate(c *driver.Candidate) (v verdict, again bool) {
	e := b.find(c.Job)
	switch {
	case e == nil || e.state != job.Unclaimed:
		return verdict{kind: job.NotFound}, false
	case e.live() && e.claim.token.Nonce == c.Nonce:
		return verdict{}, true
	case e.live():
		return verdict{kind: job.AlreadyClaimed, owner: e.claim.owner}, false
	case c.Version != 0 && c.Version != e.version:
		return verdict{kind: job.Aborted}, false
	case e.held || b.wall().Before(e.notBefore):
		return verdict{kind: job.NotEligible}, false
	}
	if key := b.full(c.Limits, e); key != "" {
		return verdict{kind: job.QuotaExceeded, message: key}, false
	}
	return verdict{}, false
}

// write carries out an op that judge allowed. r is the store's answer, for the numbers
// that only the store gives.
func (b *Book) write(op *driver.Op, r *driver.Result) {
	e := b.find(op.Job)
	if op.Kind == driver.Post {
		e = &entry{posting: *op.Posting, counts: op.Limits}
		e.posting.CreatedAt = r.At
		if r.Record != nil {
			e.posting.Sequence = r.Record.Posting.Sequence
		}
		b.jobs = append(b.jobs, e)
	}
	b.position = r.Position
	e.position = r.Position
	if op.Kind == driver.Extend {
		e.modified = r.At
		e.claim.endless, e.claim.ends = op.NoExpiry, time.Now().Add(op.Lease)
		return
	}
	e.version, e.modified = r.Version, r.At
	e.change(op, b.wall())
	d := &deed{op: *op, job: e.posting.ID, at: time.Now(), answer: *r}
	d.known = endsByToken(op) || op.Kind != driver.Post && op.Request != [16]byte{}
	switch op.Kind {
	case driver.Post:
		e.state = job.Unclaimed
		return // it is known by its digest
	case driver.Restore:
		e.state, e.ended = job.Unclaimed, time.Time{}
	case driver.Release:
		e.claim = nil
	case driver.Trash:
		e.claim, e.state, e.ended = nil, job.Trashed, r.At
	case driver.Remove:
		b.end(op, e, r.At)
		d.ended = e
	case driver.Purge:
		b.purge(e)
	}
	if d.known || d.ended != nil {
		b.deeds = append(b.deeds, d)
		b.forget()
	}
}

// change writes what any op may carry.
func (e *entry) change(op *driver.Op, wall time.Time) {
	if op.Status != nil {
		e.status = bytes.Clone(*op.Status)
	}
	for _, a := range op.Attach {
		if a.Delete {
			delete(e.attached, a.Name)
		} else {
			if e.attached == nil {
				e.attached = map[string]string{}
			}
			e.attached[a.Name] = string(a.Data)
		}
	}
	if h := op.Hold; h != nil {
		e.held, e.notBefore = h.Always, h.Until
		if h.For > 0 {
			e.notBefore = wall.Add(h.For)
		}
	}
}

// end takes a job off the board for good.
func (b *Book) end(op *driver.Op, e *entry, at time.Time) {
	e.state, e.claim, e.ended, e.outcome = job.Complete, nil, at, outcomeOf(op)
	e.held, e.notBefore, e.tombstone = false, time.Time{}, true
	if op.Precondition == driver.HeldByToken || op.Precondition == driver.Lapsed {
		e.by = op.Token
	}
	if op.Ending == nil || op.Ending.Keep == 0 {
		e.status, e.attached, e.posting = nil, nil, bare(e.posting)
		return
	}
	k := op.Ending
	e.final, e.until, e.data = true, time.Now().Add(k.Keep), bytes.Clone(k.Data)
	e.size = int64(len(e.data) + len(e.status))
	if k.KeepPosting {
		e.size += int64(len(e.posting.Details) + len(e.posting.Extra))
	} else {
		e.posting = bare(e.posting)
	}
	if !k.KeepAttached {
		e.attached = nil
	}
	for _, data := range e.attached {
		e.size += int64(len(data))
	}
	b.finals = append(b.finals, e)
}

// purge takes everything away but the deeds.
func (b *Book) purge(e *entry) {
	same := func(o *entry) bool { return o == e }
	b.jobs, b.finals = slices.DeleteFunc(b.jobs, same), slices.DeleteFunc(b.finals, same)
	e.final = false
}

// claimed writes one claim that the store made.
func (b *Book) claimed(op *driver.Op, c *driver.Candidate, got *driver.Claimed) {
	e := b.find(c.Job)
	e.claim = &claim{
		owner: op.Claim.Owner, token: got.Token, endless: op.Claim.NoExpiry, ends: time.Now().Add(op.Claim.Lease), counts: c.Limits,
	}
	e.version, e.position, e.modified = got.Version, got.Position, b.wall()
	if c.Status != nil {
		e.status = bytes.Clone(*c.Status)
	}
	b.position = got.Position
	b.tokens = append(b.tokens, got.Token)
}

// remember keeps the answer to a claim.
func (b *Book) remember(op *driver.Op, r *driver.Result) {
	if d := b.repeated(op); d != nil {
		for _, c := range r.Claims {
			if !slices.ContainsFunc(d.answer.Claims, func(k driver.Claimed) bool { return k.Token == c.Token }) {
				d.answer.Claims = append(slices.Clip(d.answer.Claims), c)
			}
		}
	} else {
		b.deeds = append(b.deeds, &deed{op: *op, known: true, at: time.Now(), answer: *r})
	}
	b.forget()
}
