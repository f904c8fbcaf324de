package drivertest

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// invent makes up an op.
func (p *play) invent() twin[driver.Op] {
	c := p.cast[p.choose(len(p.cast))]
	switch p.choose(10) {
	case 0, 1:
		posting := *c.posting
		if p.choose(4) == 0 {
			posting.Name = "another name"
			posting.Digest = digest(&posting)
		}
		op := postOp(&posting)
		op.Keys = p.keys(c)
		if p.caps().Imports && p.choose(3) == 0 {
			p.importInto(c, &op)
		}
		return twin[driver.Op]{op, op}
	case 2, 3, 4:
		return p.inventClaim()
	}
	kinds := []driver.OpKind{
		driver.Extend, driver.Update, driver.Update, driver.Release, driver.Release, driver.Remove, driver.Trash, driver.Restore, driver.Purge,
	}
	op := plain(kinds[p.choose(len(kinds))], c.posting.ID)
	if op.Kind == driver.Extend {
		op.Lease, op.Most = p.lease(), p.most()
	}
	if op.Kind != driver.Restore && op.Kind != driver.Purge {
		musts := []driver.Precondition{driver.HeldByToken, driver.HeldByToken, driver.HeldByOwner, driver.Lapsed, driver.Held, driver.Free, driver.Whatever}
		op.Precondition = musts[p.choose(len(musts))]
	}
	op.Owner = p.owner()
	if op.Precondition == driver.Held && p.choose(2) == 0 {
		op.Owner = ""
	}
	if op.Kind != driver.Extend {
		p.decorate(&op)
	}
	if op.Kind == driver.Restore {
		op.Keys = p.keys(c)
	}
	return p.address(c, op)
}

// importInto makes an import of a post.
func (p *play) importInto(c *character, op *driver.Op) {
	p.decorate(op)
	op.Import = &driver.Import{CreatedAt: past(time.Hour)}
	if p.choose(2) == 0 {
		return
	}
	then := plain([]driver.OpKind{driver.Trash, driver.Remove}[p.choose(2)], op.Job)
	if p.choose(2) == 0 {
		token := job.Token{Generation: 1, Epoch: uint64(1 + p.choose(9)), Nonce: random16()} //nolint:gosec // it is not negative
		then.Precondition, then.Token = driver.HeldByToken, token
		c.tokens = append(c.tokens, twin[job.Token]{token, token})
	}
	if then.Kind == driver.Remove && p.choose(2) == 0 {
		then.Ending = &driver.Ending{Outcome: job.Outcome(1 + p.choose(3)), Keep: time.Hour, Data: []byte("final"), KeepAttached: p.choose(2) == 0}
	}
	op.Import.EndedAt, op.Import.Then = past(time.Second), &then
}

func (p *play) owner() string { return []string{"ann", "bob"}[p.choose(2)] }

// lease is a lease that runs out only where time is cheap.
func (p *play) lease() time.Duration {
	if p.suite.bubble && p.choose(2) == 0 {
		return job.MinLease
	}
	return long
}

// most is how long a claim may stand: at all, or for less than a long lease.
func (p *play) most() time.Duration {
	if !p.caps().Timeouts || p.choose(4) > 0 {
		return 0
	}
	return long / 2
}

// keys are what a job takes whenever it comes onto the board: few, so that jobs are in each
// other's way, and of this program only, as others were played on the same board.
func (p *play) keys(c *character) []driver.Key {
	part := slices.Index(p.cast, c)
	if !p.caps().Keys || part == 0 {
		return nil
	}
	mine := p.cast[0].posting.ID.String()
	keys := []driver.Key{{Name: mine + " " + itoa(uint64(part%2)), Open: true}} //nolint:gosec // it is not negative
	if p.choose(3) == 0 {
		keys = append(keys, driver.Key{Name: mine + " tick", Number: uint64(1 + p.choose(20))})
	}
	return keys
}

// decorate adds what an op may change.
func (p *play) decorate(op *driver.Op) {
	if p.choose(3) == 0 {
		status := []byte("status " + itoa(uint64(p.choose(100))))
		op.Status = &status
	}
	if p.choose(4) == 0 {
		op.Hold = []*driver.Hold{{}, {Always: true}, {For: time.Hour}}[p.choose(3)]
	}
	if p.caps().Attachments && p.choose(4) == 0 {
		op.Attach = []driver.Attachment{{Name: "a", Data: []byte(itoa(uint64(p.choose(9))))}, {Name: "b", Delete: p.choose(2) == 0}}
	}
	if op.Kind == driver.Trash && p.caps().Endings && p.choose(2) == 0 {
		op.Ending = &driver.Ending{Outcome: job.Failed}
	}
	if op.Kind == driver.Remove && p.choose(2) == 0 {
		op.Ending = &driver.Ending{Outcome: job.Outcome(1 + p.choose(3))}
		if p.choose(2) == 0 {
			op.Ending.Keep, op.Ending.Data = time.Hour, []byte("final")
			op.Ending.KeepAttached = p.choose(2) == 0
		}
	}
}

// address gives each side its own token and version.
func (p *play) address(c *character, op driver.Op) twin[driver.Op] {
	ops := twin[driver.Op]{op, op}
	if needsToken := op.Precondition == driver.HeldByToken || op.Precondition == driver.Lapsed; needsToken {
		t := twin[job.Token]{subject: job.Token{Generation: 1, Epoch: 1, Nonce: random16()}}
		t.model = t.subject
		if n := len(c.tokens); n > 0 {
			t = c.tokens[max(n-1-p.choose(3)/2, 0)]
		}
		ops.subject.Token, ops.model.Token = t.subject, t.model
	}
	if n := len(c.versions); n > 0 && p.choose(5) == 0 {
		v := c.versions[max(n-1-p.choose(3)/2, 0)]
		ops.subject.Version, ops.model.Version = v.subject, v.model
	}
	return ops
}

func (p *play) inventClaim() twin[driver.Op] {
	subject := driver.ClaimSpec{Owner: p.owner(), Lease: p.lease(), Count: 1 + p.choose(2), Remember: p.choose(3) == 0, More: p.choose(3) == 0}
	model := subject
	first := p.choose(len(p.cast))
	for i := range 1 + p.choose(len(p.cast)) {
		c := p.cast[(first+i)%len(p.cast)]
		candidate := driver.Candidate{Job: c.posting.ID, Nonce: random16(), Most: p.most()}
		if p.choose(4) == 0 {
			status := []byte("claimed " + itoa(uint64(p.choose(100))))
			candidate.Status = &status
		}
		other := candidate
		if n := len(c.versions); n > 0 && p.choose(3) == 0 {
			v := c.versions[max(n-1-p.choose(3)/2, 0)]
			candidate.Version, other.Version = v.subject, v.model
		}
		subject.Candidates = append(subject.Candidates, candidate)
		model.Candidates = append(model.Candidates, other)
	}
	op := func(spec *driver.ClaimSpec) driver.Op {
		return driver.Op{Kind: driver.Claim, Claim: spec, Event: job.ClaimedEvent}
	}
	return twin[driver.Op]{op(&subject), op(&model)}
}
