package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// poison writes a posting that TaskFlow could not read.
func (p *python) poison() job.ID {
	p.t.Helper()
	id := p.post("poison")
	p.ok(p.client.HSet(p.t.Context(), p.namespace+"listings", id.String(), "\x90"))
	return id
}

// TestPoisonNamed has ops name postings that cannot be read: none may be claimed
// or changed, and none may keep an op from the others.
func TestPoisonNamed(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	p := newPython(t, server, "octavia_jobboard")
	poison := p.poison()
	for name, op := range map[string]driver.Op{
		"update":    {Kind: driver.Update, Job: poison, Hold: &driver.Hold{Always: true}},
		"remove":    {Kind: driver.Remove, Job: poison},
		"set aside": {Kind: driver.Trash, Job: poison},
	} {
		if r := b.do(op); r.Kind != job.Corrupt || r.Message == "" {
			t.Errorf("%s: %v, %q; want CORRUPT and what is wrong", name, r.Kind, r.Message)
		}
	}
	for name, id := range map[string]job.ID{"another program's": p.post("good"), "our own": b.post("good")} {
		if r := b.tryClaim(poison, "w", time.Hour); len(r.Claims) != 0 || len(r.Skipped) != 1 || r.Skipped[0].Kind != job.Corrupt || r.Skipped[0].Message == "" {
			t.Errorf("the claim of a posting that cannot be read: %+v", r)
		}
		c := b.claim(id, "w")
		b.must(tokenOp(driver.Remove, c))
		if rec := b.read(id); rec.State != job.Complete {
			t.Errorf("%s job: %v", name, rec.State)
		}
	}
	p.claim(poison, "py", 0)
	if r := b.do(driver.Op{Kind: driver.Release, Job: poison, Precondition: driver.Held}); r.Kind != job.Corrupt {
		t.Errorf("the release of another program's claim: %v, want CORRUPT", r.Kind)
	}
	p.trash(poison)
	for name, kind := range map[string]driver.OpKind{"restore": driver.Restore, "purge": driver.Purge} {
		if r := b.do(driver.Op{Kind: kind, Job: poison}); r.Kind != job.Corrupt {
			t.Errorf("%s: %v, want CORRUPT", name, r.Kind)
		}
	}
	if got := server.Command("HGET", "octavia_jobboard:trash", poison.String()); !strings.HasSuffix(got, "\x90") {
		t.Errorf("the posting is %q now", got)
	}
}

// TestClaimAmongUnread claims from a long list of jobs that nobody has read yet,
// in which every third cannot be. What is claimed before the first of them is met
// has to be the same afterwards, also for a claim that is remembered.
func TestClaimAmongUnread(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	p := newPython(t, server, "octavia_jobboard")
	spec := &driver.ClaimSpec{Owner: "w", Lease: time.Hour, Count: 40, Remember: true}
	bad := map[job.ID]bool{}
	for i := range 60 {
		var id job.ID
		switch {
		case i%3 == 2:
			id = p.poison()
			bad[id] = true
		case i < 5:
			id = b.post("ours")
		default:
			id = p.post("theirs")
		}
		spec.Candidates = append(spec.Candidates, driver.Candidate{Job: id, Nonce: [16]byte{byte(i + 1)}})
	}
	op := driver.Op{Kind: driver.Claim, Claim: spec, Request: [16]byte{7}}
	r := b.must(op)
	if len(r.Claims) != 40 || len(r.Skipped) != 19 { // the last candidate is not asked for
		t.Fatalf("%d claims and %d passed over, want 40 and 19", len(r.Claims), len(r.Skipped))
	}
	at := 0
	for _, c := range r.Claims {
		for bad[spec.Candidates[at].Job] {
			at++
		}
		if c.Job != spec.Candidates[at].Job || c.Token.Nonce != spec.Candidates[at].Nonce || c.Lease <= 0 {
			t.Errorf("claim %d is of %v with %+v for %v", at, c.Job, c.Token, c.Lease)
		}
		at++
	}
	for _, gone := range r.Skipped {
		if !bad[gone.Job] || gone.Kind != job.Corrupt {
			t.Errorf("%v was passed over as %v", gone.Job, gone.Kind)
		}
	}
	if again := b.must(op); !again.Repeated || len(again.Claims) != len(r.Claims) {
		t.Errorf("asked again: %d claims, repeated %v", len(again.Claims), again.Repeated)
	}
	for _, c := range r.Claims {
		b.must(tokenOp(driver.Remove, c))
	}
}
