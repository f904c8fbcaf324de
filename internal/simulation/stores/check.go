package stores

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Answered compares the answer to an op with what the contract says, and writes what
// was done. It has to be called at the moment at which the store decided.
func (b *Book) Answered(op *driver.Op, r *driver.Result) error {
	b.forget()
	if op.Kind == driver.Claim {
		return b.answeredClaim(op, r)
	}
	v := b.judge(op)
	switch {
	case v.repeat != nil:
		return sameAnswer(r, &v.repeat.answer)
	case v.present != nil:
		e := v.present
		if r.Kind != job.NoKind || !r.Repeated || r.Position != e.position || r.Version != e.version || !r.At.Equal(e.posting.CreatedAt) {
			return fmt.Errorf("a posting that is there came again: got %s, want it repeated with version %d and position %d", tell(r), e.version, e.position)
		}
		return e.compare(r.Record, 0)
	case r.Repeated:
		return fmt.Errorf("an op that was not done before is answered as a repetition: %s", tell(r))
	case r.Kind != v.kind:
		return fmt.Errorf("got %s, want %s", tell(r), v.kind.String())
	case v.kind != job.NoKind:
		return b.refused(op, r, &v)
	}
	if err := b.grown(r); err != nil {
		return err
	}
	e := b.find(op.Job)
	switch want := e.versionAfter(op); {
	case r.Version != want:
		return fmt.Errorf("the version after it is %d, want %d", r.Version, want)
	case op.Kind == driver.Extend && r.Lease != leaseOf(op):
		return fmt.Errorf("the lease is %v, want %v", r.Lease, leaseOf(op))
	}
	b.write(op, r)
	if op.Kind == driver.Post {
		return b.find(op.Posting.ID).compare(r.Record, 0)
	}
	return nil
}

// versionAfter is the version that an op leaves; e is nil before a Post.
func (e *entry) versionAfter(op *driver.Op) uint64 {
	switch {
	case e == nil:
		return 1
	case op.Kind == driver.Extend:
		return e.version
	}
	return e.version + 1
}

func leaseOf(op *driver.Op) time.Duration {
	if op.NoExpiry {
		return 0
	}
	return op.Lease
}

// refused compares what a refusal says besides its kind.
func (b *Book) refused(op *driver.Op, r *driver.Result, v *verdict) error {
	switch {
	case v.owner != "" && r.Owner != v.owner:
		return fmt.Errorf("the refusal names the owner %q, want %q", r.Owner, v.owner)
	case r.Remaining != v.remaining:
		return fmt.Errorf("the refusal says that %v remain of the lease, want %v", r.Remaining, v.remaining)
	case v.kind == job.QuotaExceeded:
		if r.Message != v.message {
			return fmt.Errorf("the limit %q is said to be reached, want %q", r.Message, v.message)
		}
		return nil
	}
	id := op.Job
	if op.Kind == driver.Post {
		id = op.Posting.ID
	}
	e := b.find(id)
	if e == nil {
		if r.Record != nil {
			return fmt.Errorf("the refusal shows a job that is not known: %+v", r.Record)
		}
		return nil
	}
	return e.compare(r.Record, 0)
}

// grown checks that a change has a time and a later position than all others.
func (b *Book) grown(r *driver.Result) error {
	switch {
	case r.Position <= b.position:
		return fmt.Errorf("the change has position %d, and an earlier one %d", r.Position, b.position)
	case !r.At.Equal(b.wall()):
		return fmt.Errorf("the change is of %v, want %v", r.At, b.wall())
	}
	return nil
}

// sameAnswer compares the answer to an op that came again with the first one.
func sameAnswer(r, first *driver.Result) error {
	if r.Kind != job.NoKind || !r.Repeated || r.Position != first.Position || r.Version != first.Version ||
		!r.At.Equal(first.At) || !r.NotBefore.Equal(first.NotBefore) {
		return fmt.Errorf("an op that was done came again: got %s, want it repeated as it was answered first: %s", tell(r), tell(first))
	}
	return nil
}

func (b *Book) answeredClaim(op *driver.Op, r *driver.Result) error {
	if d := b.repeated(op); d != nil && (!op.Claim.More || d.given) {
		d.given = true
		switch {
		case r.Kind != job.NoKind || !r.Repeated || r.Position != d.answer.Position || !r.At.Equal(d.answer.At):
			return fmt.Errorf("a claim that was made came again: got %s, want it repeated as it was answered first: %s", tell(r), tell(&d.answer))
		case !slices.EqualFunc(r.Claims, d.answer.Claims, sameClaim):
			return fmt.Errorf("a claim that was made came again: got %+v, want %+v", r.Claims, d.answer.Claims)
		}
		return nil
	}
	if r.Kind != job.NoKind || r.Repeated {
		return fmt.Errorf("got %s, want a claim to be done, now", tell(r))
	}
	claims, skipped := r.Claims, r.Skipped
	for i := range op.Claim.Candidates {
		if len(r.Claims)-len(claims) == op.Claim.Count {
			break
		}
		c := &op.Claim.Candidates[i]
		v, again := b.judgeCandidate(c)
		var err error
		if v.kind == job.NoKind {
			err = b.granted(op, c, claims, again)
			claims = claims[min(1, len(claims)):]
		} else {
			err = b.passedOver(c, &v, skipped)
			skipped = skipped[min(1, len(skipped)):]
		}
		if err != nil {
			return fmt.Errorf("candidate %d: %w", i+1, err)
		}
	}
	if len(claims) > 0 || len(skipped) > 0 {
		return fmt.Errorf("%d claims and %d candidates passed over are too many", len(claims), len(skipped))
	}
	if op.Claim.Remember && len(r.Claims) > 0 {
		b.remember(op, r)
	}
	return nil
}

func sameClaim(a, b driver.Claimed) bool {
	return a.Job == b.Job && a.Token == b.Token && a.Lease == b.Lease && a.Version == b.Version && a.Position == b.Position && a.At.Equal(b.At)
}

// granted compares the next of the claims with what has to be granted.
func (b *Book) granted(op *driver.Op, c *driver.Candidate, claims []driver.Claimed, again bool) error {
	e := b.find(c.Job)
	if len(claims) == 0 || claims[0].Job != c.Job {
		return fmt.Errorf("it was not claimed: want it claimed by %s", op.Claim.Owner)
	}
	got := &claims[0]
	if again {
		want := driver.Claimed{Job: c.Job, Token: e.claim.token, Version: e.version, Position: e.position, Lease: time.Until(e.claim.ends), At: got.At}
		if e.claim.endless {
			want.Lease = 0
		}
		if !sameClaim(*got, want) {
			return fmt.Errorf("an earlier try made the claim: got %+v, want %+v", *got, want)
		}
		return nil
	}
	lease := op.Claim.Lease
	if op.Claim.NoExpiry {
		lease = 0
	}
	switch {
	case got.Lease != lease:
		return fmt.Errorf("the lease is %v, want %v", got.Lease, lease)
	case got.Version != e.version+1:
		return fmt.Errorf("the version after it is %d, want %d", got.Version, e.version+1)
	case got.Token.Nonce != c.Nonce || got.Token.Generation != b.generation:
		return fmt.Errorf("the token is %v, want generation %d and the nonce %x", got.Token, b.generation, c.Nonce)
	}
	for _, t := range b.tokens {
		if t.Generation > got.Token.Generation || t.Generation == got.Token.Generation && t.Epoch >= got.Token.Epoch {
			return fmt.Errorf("the token is of generation %d, epoch %d, and an earlier one of %d, %d", got.Token.Generation, got.Token.Epoch, t.Generation, t.Epoch)
		}
	}
	if err := b.grown(&driver.Result{Position: got.Position, At: got.At}); err != nil {
		return err
	}
	b.claimed(op, c, got)
	return nil
}

func (b *Book) passedOver(c *driver.Candidate, v *verdict, skipped []driver.Skipped) error {
	if len(skipped) == 0 || skipped[0].Job != c.Job {
		return fmt.Errorf("it was claimed: want it passed over as %s", v.kind.String())
	}
	s := &skipped[0]
	switch {
	case s.Kind != v.kind:
		return fmt.Errorf("it was passed over as %s, want %s", s.Kind.String(), v.kind.String())
	case v.owner != "" && s.Owner != v.owner:
		return fmt.Errorf("it names the owner %q, want %q", s.Owner, v.owner)
	case v.kind == job.QuotaExceeded && s.Message != v.message:
		return fmt.Errorf("the limit %q is said to be reached, want %q", s.Message, v.message)
	}
	if e := b.find(c.Job); e != nil {
		return e.compare(s.Record, 0)
	}
	return nil
}

// compare compares a record with the job.
func (e *entry) compare(r *driver.Record, parts driver.Parts) error {
	if r == nil {
		return fmt.Errorf("job %v is not shown", e.posting.ID[:2])
	}
	state := e.state
	if e.claim != nil {
		state = job.Claimed
	}
	p, q := &r.Posting, &e.posting
	switch {
	case r.State != state || r.Outcome != e.outcome:
		return fmt.Errorf("the job is %v %v, want %v %v", r.State, r.Outcome, state, e.outcome)
	case r.Version != e.version || r.Position != e.position:
		return fmt.Errorf("the job is at version %d, position %d: want %d, %d", r.Version, r.Position, e.version, e.position)
	case p.ID != q.ID || p.Digest != q.Digest || p.Name != q.Name || p.Priority != q.Priority || !bytes.Equal(p.Extra, q.Extra) ||
		p.Sequence != q.Sequence || !p.CreatedAt.Equal(q.CreatedAt):
		return fmt.Errorf("the posting is %+v, want %+v", *p, *q)
	case parts&driver.Details != 0 && !bytes.Equal(p.Details, q.Details):
		return fmt.Errorf("the details are %q, want %q", p.Details, q.Details)
	case !bytes.Equal(r.Status, e.status):
		return fmt.Errorf("the status is %q, want %q", r.Status, e.status)
	case r.Held != e.held || !r.NotBefore.Equal(e.notBefore):
		return fmt.Errorf("the job is held: %v, until %v: want %v, %v", r.Held, r.NotBefore, e.held, e.notBefore)
	case !r.ModifiedAt.Equal(e.modified) || !r.EndedAt.Equal(e.ended):
		return fmt.Errorf("the job was changed at %v and ended at %v, want %v and %v", r.ModifiedAt, r.EndedAt, e.modified, e.ended)
	case parts&driver.FinalData != 0 && !bytes.Equal(r.Final, e.data):
		return fmt.Errorf("the final record is %q, want %q", r.Final, e.data)
	}
	if parts&driver.Attached != 0 {
		if err := e.compareAttached(r.Attached); err != nil {
			return err
		}
	}
	return e.compareHolder(r.Holder)
}

func (e *entry) compareAttached(list []driver.Attachment) error {
	if len(list) != len(e.attached) {
		return fmt.Errorf("%d records are attached, want %d", len(list), len(e.attached))
	}
	for _, a := range list {
		if want, known := e.attached[a.Name]; !known || want != string(a.Data) {
			return fmt.Errorf("the attached record %s is %q, want %q", a.Name, a.Data, want)
		}
	}
	return nil
}

func (e *entry) compareHolder(h *driver.Holder) error {
	c := e.claim
	if c == nil || h == nil {
		if c != nil || h != nil {
			return fmt.Errorf("the holder is %+v, want %+v", h, c)
		}
		return nil
	}
	if h.Owner != c.owner || h.Token != c.token || h.NoExpiry != c.endless {
		return fmt.Errorf("the holder is %+v, want %+v", *h, *c)
	}
	if left := time.Until(c.ends); !c.endless && max(0, h.Remaining) != max(0, left) {
		return fmt.Errorf("%v remain of the lease, want %v", h.Remaining, left)
	}
	return nil
}

// tell is an answer for people.
func tell(r *driver.Result) string {
	var b strings.Builder
	b.WriteString(r.Kind.String())
	if r.Message != "" {
		b.WriteString(" (" + r.Message + ")")
	}
	if r.Repeated {
		b.WriteString(", repeated")
	}
	if r.Kind == job.NoKind {
		fmt.Fprintf(&b, ", version %d, position %d", r.Version, r.Position)
	}
	for _, c := range r.Claims {
		fmt.Fprintf(&b, ", claims job %d with epoch %d for %v", c.Job[1], c.Token.Epoch, c.Lease)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, ", passes over job %d: %v", s.Job[1], s.Kind)
	}
	return b.String()
}
