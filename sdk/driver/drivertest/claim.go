package drivertest

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var claimChecks = []check{
	{name: "claim/stands", run: claimStands},
	{name: "claim/order", run: claimOrder},
	{name: "claim/passed-over", run: claimPassedOver},
	{name: "claim/version", run: claimVersion},
	{name: "claim/held-back", run: claimHeldBack},
	{name: "claim/status", run: claimStatus},
	{name: "claim/parts", run: claimParts},
	{name: "claim/nonce-again", run: claimNonceAgain},
	{name: "claim/remembered", run: claimRemembered},
	{name: "claim/remembered-more", run: claimRememberedMore},
	{name: "claim/no-expiry", run: claimNoExpiry},
	{name: "claim/invalid", run: claimInvalid},
}

func claimStands(e *env) {
	p := e.post()
	before := e.read(p.ID)
	c := e.claim(p.ID, "worker one")
	if c.Lease <= 0 || c.Lease > long {
		e.Errorf("the lease granted is %v, asked for %v", c.Lease, long)
	}
	if c.Version <= before.Version || c.Position <= before.Position || c.At.IsZero() {
		e.Errorf("the claim has version %d, position %d and time %v; the job had %d and %d before: want them to grow",
			c.Version, c.Position, c.At, before.Version, before.Position)
	}
	rec := e.state(p.ID, job.Claimed, "after its claim")
	h := rec.Holder
	if h.Owner != "worker one" || h.Token != c.Token || h.Foreign || h.NoExpiry || h.Remaining <= 0 || h.Remaining > long {
		e.Errorf("the holder is %+v: want worker one with token %+v and at most %v left", *h, c.Token, long)
	}
	if rec.Version != c.Version || rec.Position != c.Position {
		e.Errorf("the job has version %d and position %d, its claim said %d and %d", rec.Version, rec.Position, c.Version, c.Position)
	}
	gone := e.taken(claimOp("worker two", long, p.ID), job.AlreadyClaimed, "another holds it")
	if gone.Owner != "worker one" || gone.Record == nil {
		e.Errorf("AlreadyClaimed names owner %q and record %v: want worker one, and the job as it stands", gone.Owner, gone.Record)
	}
	e.taken(claimOp("worker one", long, p.ID), job.AlreadyClaimed, "the same owner holds it by another claim")
	if rec := e.read(p.ID); rec.Holder == nil || rec.Holder.Token != c.Token || rec.Version != c.Version {
		e.Errorf("claims that were refused changed the job: %+v", rec)
	}
}

func claimOrder(e *env) {
	list := e.posts(6)
	order := []int{4, 1, 5, 0, 3, 2}
	ids := make([]job.ID, len(order))
	for i, n := range order {
		ids[i] = list[n].ID
	}
	held := e.claim(ids[1], "another")
	op := claimOp("w", long, ids...)
	op.Claim.Count = 3
	r := e.must(op)
	want := []job.ID{ids[0], ids[2], ids[3]}
	if len(r.Claims) != 3 {
		e.Fatalf("asked for 3 of 6 candidates, one of them taken: got %d claims", len(r.Claims))
	}
	for i := range want {
		if r.Claims[i].Job != want[i] {
			e.Errorf("claim %d is of job %v, want %v: the candidates are in order", i, r.Claims[i].Job, want[i])
		}
	}
	if len(r.Skipped) != 1 || r.Skipped[0].Job != held.Job || r.Skipped[0].Kind != job.AlreadyClaimed {
		e.Errorf("passed over: %+v; want only the one that is taken", r.Skipped)
	}
	for _, id := range ids[4:] {
		e.state(id, job.Unclaimed, "more candidates than asked for")
	}
	seen := map[uint64]bool{held.Token.Epoch: true}
	for _, c := range r.Claims {
		if seen[c.Token.Epoch] {
			e.Errorf("two claims have epoch %d", c.Token.Epoch)
		}
		seen[c.Token.Epoch] = true
	}
}

func claimPassedOver(e *env) {
	free, taken, trashed, done, held := e.post(), e.post(), e.post(), e.post(), e.post()
	e.claim(taken.ID, "another")
	e.must(plain(driver.Trash, trashed.ID))
	e.must(plain(driver.Remove, done.ID))
	update := plain(driver.Update, held.ID)
	update.Hold = &driver.Hold{Always: true}
	e.must(update)
	unknown := newID()
	op := claimOp("w", long, unknown, taken.ID, trashed.ID, done.ID, held.ID, free.ID)
	r := e.must(op)
	if len(r.Claims) != 1 || r.Claims[0].Job != free.ID {
		e.Errorf("claimed %+v: want the free job only", r.Claims)
	}
	want := []driver.Skipped{
		{Job: unknown, Kind: job.NotFound},
		{Job: taken.ID, Kind: job.AlreadyClaimed},
		{Job: trashed.ID, Kind: job.NotFound},
		{Job: done.ID, Kind: job.NotFound},
		{Job: held.ID, Kind: job.NotEligible},
	}
	if len(r.Skipped) != len(want) {
		e.Fatalf("passed over %d candidates (%s), want %d", len(r.Skipped), goneKinds(r.Skipped), len(want))
	}
	for i, w := range want {
		if r.Skipped[i].Job != w.Job || r.Skipped[i].Kind != w.Kind {
			e.Errorf("passed over: candidate %d as %v, want %v", i, r.Skipped[i].Kind, w.Kind)
		}
	}
	e.state(unknown, job.Unknown, "a candidate that is not known")
	e.state(trashed.ID, job.Trashed, "a candidate in the trash")
}

func claimVersion(e *env) {
	p := e.post()
	old := e.readParts(p.ID, 0).Version
	e.must(plain(driver.Update, p.ID))
	present := e.readParts(p.ID, 0).Version
	if present <= old {
		e.Errorf("an update left version %d after %d: want it to grow", present, old)
	}
	op := claimOp("w", long, p.ID)
	op.Claim.Candidates[0].Version = old
	if gone := e.taken(op, job.Aborted, "the candidate's version is an old one"); gone.Record == nil || gone.Record.Version != present {
		e.Errorf("Aborted came without the job as it stands")
	}
	op.Claim.Candidates[0].Version = present + 1
	e.taken(op, job.Aborted, "the candidate's version is one that never was")
	e.state(p.ID, job.Unclaimed, "not claimed")
	op.Claim.Candidates[0].Version = present
	if r := e.must(op); len(r.Claims) != 1 {
		e.Errorf("with the present version the job was passed over: %s", goneKinds(r.Skipped))
	}
}

func claimHeldBack(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	release := byToken(driver.Release, c)
	release.Hold = &driver.Hold{For: time.Hour}
	e.must(release)
	e.taken(claimOp("w", long, p.ID), job.NotEligible, "it was released with a hold of an hour")
	update := plain(driver.Update, p.ID)
	update.Hold = &driver.Hold{Always: true}
	e.must(update)
	e.taken(claimOp("w", long, p.ID), job.NotEligible, "it is held")
	update.Hold = &driver.Hold{}
	update.Request = [16]byte{}
	e.must(update)
	e.claim(p.ID, "w")
}

func claimStatus(e *env) {
	p := posting("status")
	op := postOp(p)
	first := []byte("posted")
	op.Status = &first
	e.must(op)
	c := e.claim(p.ID, "w")
	if rec := e.read(p.ID); !bytes.Equal(rec.Status, first) {
		e.Errorf("a claim without a status left %q, want %q as before", rec.Status, first)
	}
	e.must(byToken(driver.Release, c))
	claim := claimOp("w", long, p.ID)
	second := []byte("claimed once")
	claim.Claim.Candidates[0].Status = &second
	claim.Claim.Parts = driver.Details
	r := e.must(claim)
	if len(r.Claims) != 1 || r.Claims[0].Record == nil || !bytes.Equal(r.Claims[0].Record.Status, second) {
		e.Errorf("the claim's record does not show the status that it wrote: %+v", r.Claims)
	}
	if rec := e.read(p.ID); !bytes.Equal(rec.Status, second) {
		e.Errorf("a claim that writes the status left %q, want %q", rec.Status, second)
	}
}

func claimParts(e *env) {
	for _, parts := range []driver.Parts{0, driver.Details, driver.Details | driver.Attached} {
		p := posting("parts")
		post := postOp(p)
		if e.caps().Attachments {
			post.Attach = []driver.Attachment{{Name: "a", Data: []byte("b")}}
		}
		e.must(post)
		op := claimOp("w", long, p.ID)
		op.Claim.Parts = parts
		r := e.must(op)
		if len(r.Claims) != 1 {
			e.Fatalf("a free job was passed over: %s", goneKinds(r.Skipped))
		}
		rec := r.Claims[0].Record
		if parts == 0 {
			continue
		}
		if rec == nil {
			e.Fatalf("a claim that asks for parts %b came without a record", parts)
		}
		e.samePosting(&rec.Posting, p, true)
		if rec.State != job.Claimed || rec.Version != r.Claims[0].Version {
			e.Errorf("the claim's record is %v at version %d: want it CLAIMED at %d", rec.State, rec.Version, r.Claims[0].Version)
		}
		if want := parts&driver.Attached != 0 && e.caps().Attachments; want != (len(rec.Attached) == 1) {
			e.Errorf("a claim that asks for parts %b has %d attached records", parts, len(rec.Attached))
		}
	}
}

func claimNoExpiry(e *env) {
	p := e.post()
	op := claimOp("w", 0, p.ID)
	op.Claim.NoExpiry = true
	r := e.must(op)
	if len(r.Claims) != 1 || r.Claims[0].Lease != 0 {
		e.Fatalf("a claim without expiry: got %+v, want one with lease 0", r.Claims)
	}
	rec := e.state(p.ID, job.Claimed, "claimed without expiry")
	if !rec.Holder.NoExpiry {
		e.Errorf("claimed without expiry: the holder is %+v", *rec.Holder)
	}
	lapsed := byToken(driver.Release, r.Claims[0])
	lapsed.Precondition = driver.Lapsed
	e.refused(lapsed, job.Precondition, "the claim never runs out")
	extend := byToken(driver.Extend, r.Claims[0])
	if r := e.must(extend); r.Lease <= 0 || r.Lease > long {
		e.Errorf("extended to %v: the lease granted is %v", long, r.Lease)
	}
	if rec := e.read(p.ID); rec.Holder == nil || rec.Holder.NoExpiry || rec.Holder.Remaining <= 0 {
		e.Errorf("extended by a lease: the holder is %+v", rec.Holder)
	}
}

func claimInvalid(e *env) {
	p := e.post()
	for what, change := range map[string]func(*driver.ClaimSpec){
		"no owner":         func(c *driver.ClaimSpec) { c.Owner = "" },
		"no lease":         func(c *driver.ClaimSpec) { c.Lease = 0 },
		"a negative lease": func(c *driver.ClaimSpec) { c.Lease = -time.Second },
	} {
		op := claimOp("w", long, p.ID)
		change(op.Claim)
		e.refused(op, job.Invalid, what)
	}
	e.state(p.ID, job.Unclaimed, "after claims that were wrong")
}
