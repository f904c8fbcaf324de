package drivertest

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func claimNonceAgain(e *env) {
	p := e.post()
	version := e.readParts(p.ID, 0).Version
	op := claimOp("w", long, p.ID)
	op.Request = random16()
	op.Claim.Candidates[0].Version = version
	first := e.must(op)
	for range 2 {
		r := e.do(op)
		if r.Kind != job.NoKind || len(r.Claims) != 1 || r.Claims[0].Token != first.Claims[0].Token {
			e.Errorf("a claim whose answer was lost, again: got %v with %+v, want the same token", outcome(&r), r.Claims)
			return
		}
		if left := r.Claims[0].Lease; left <= 0 || left > long {
			e.Errorf("a claim again: %v of the lease are left, of %v", left, long)
		}
	}
	if rec := e.read(p.ID); rec.Version != first.Claims[0].Version {
		e.Errorf("a claim again raised the version from %d to %d", first.Claims[0].Version, rec.Version)
	}
	e.must(byToken(driver.Release, first.Claims[0]))
	e.taken(op, job.Aborted, "its claim has ended, and the version is another one")
}

func claimRemembered(e *env) {
	list := e.posts(4)
	op := claimOp("w", long, list[0].ID, list[1].ID)
	op.Request, op.Claim.Remember = random16(), true
	first := e.must(op)
	// The retry of a host that was restarted has other nonces and candidates.
	retry := claimOp("w", long, list[2].ID, list[3].ID)
	retry.Request, retry.Claim.Remember, retry.Claim.Parts = op.Request, true, driver.Details
	r := e.do(retry)
	if !r.Repeated || !sameTokens(r.Claims, first.Claims) {
		e.Errorf("the same request again: got %v with %d claims, want the %d of the first answer, Repeated",
			outcome(&r), len(r.Claims), len(first.Claims))
	}
	for _, c := range r.Claims {
		if c.Record == nil || len(c.Record.Posting.Details) == 0 {
			e.Errorf("the answer given again has no record with details, as was asked for")
		}
	}
	for _, p := range list[2:] {
		e.state(p.ID, job.Unclaimed, "a candidate of a claim that was answered before")
	}
	e.must(byToken(driver.Remove, first.Claims[0]))
	if r := e.do(retry); !r.Repeated || !sameTokens(r.Claims, first.Claims) {
		e.Errorf("the same request again after one of its jobs ended: got %v with %d claims, want the first answer", outcome(&r), len(r.Claims))
	}
	retry.Request = random16()
	if r := e.do(retry); r.Repeated || len(r.Claims) != 2 {
		e.Errorf("another request: got %v with %d claims, want 2 new ones", outcome(&r), len(r.Claims))
	}
}

func sameTokens(a, b []driver.Claimed) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Job != b[i].Job || a[i].Token != b[i].Token {
			return false
		}
	}
	return true
}

func claimRememberedMore(e *env) {
	list := e.posts(3)
	request := random16()
	ask := func(more bool, id job.ID) driver.Result {
		op := claimOp("w", long, id)
		op.Request, op.Claim.Remember, op.Claim.More = request, true, more
		return e.do(op)
	}
	// Nothing claimed: nothing is kept.
	if r := ask(false, newID()); r.Repeated || len(r.Claims) != 0 {
		e.Errorf("a claim of an unknown job: got %v with %d claims", outcome(&r), len(r.Claims))
	}
	first := ask(false, list[0].ID)
	if first.Repeated || len(first.Claims) != 1 {
		e.Fatalf("after an answer without claims the same request got %v with %d claims, want a new one", outcome(&first), len(first.Claims))
	}
	second := ask(true, list[1].ID)
	if second.Repeated || len(second.Claims) != 1 || second.Claims[0].Job != list[1].ID {
		e.Fatalf("More: got %v with %d claims, want the new one only", outcome(&second), len(second.Claims))
	}
	all := ask(false, list[2].ID)
	if !all.Repeated || !sameTokens(all.Claims, []driver.Claimed{first.Claims[0], second.Claims[0]}) {
		e.Errorf("the request again after More: got %v with %d claims, want both", outcome(&all), len(all.Claims))
	}
	if !e.caps().AnswersClose {
		e.Logf("the driver does not say that an answer which was given again takes no more claims")
		return
	}
	late := ask(true, list[2].ID)
	if !late.Repeated || !sameTokens(late.Claims, all.Claims) {
		e.Errorf("More, after the answer was given again: got %v with %d claims, want the same answer once more", outcome(&late), len(late.Claims))
	}
}
