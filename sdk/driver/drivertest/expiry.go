package drivertest

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var expiryChecks = []check{
	{name: "expiry/token", run: expiryToken, waits: true},
	{name: "expiry/not-before", run: expiryNotBefore, waits: true},
	{name: "expiry/lapsed", run: expiryLapsed, waits: true},
	{name: "expiry/claimed-again", run: expiryClaimedAgain, waits: true},
	{name: "expiry/extended", run: expiryExtended, waits: true},
	{name: "expiry/hold", run: expiryHold, waits: true},
}

// expiryToken checks that a token is worth nothing once its lease ran out,
// though nobody else has claimed the job.
func expiryToken(e *env) {
	var claims []driver.Claimed
	for range tokenOps {
		claims = append(claims, e.claimFor(e.post().ID, "w", job.MinLease))
	}
	e.lapse()
	for i, kind := range tokenOps {
		before := e.read(claims[i].Job)
		e.refused(byToken(kind, claims[i]), job.LeaseLost, "its lease ran out")
		e.unchanged(&before, "an op after the lease ran out")
		if before.Holder != nil && before.Holder.Remaining > 0 {
			e.Errorf("the lease ran out, and has %v left", before.Holder.Remaining)
		}
	}
	byOwner := plain(driver.Remove, claims[0].Job)
	byOwner.Precondition, byOwner.Owner = driver.HeldByOwner, "w"
	e.refused(byOwner, job.NotClaimed, "its lease ran out")
}

// expiryNotBefore checks that a lease counts until its end.
func expiryNotBefore(e *env) {
	const lease = 2 * time.Second
	id := e.post().ID
	begun := time.Now()
	c := e.claimFor(id, "w", lease)
	lapsed := byToken(driver.Release, c)
	lapsed.Precondition = driver.Lapsed
	aside := byToken(driver.Trash, c)
	aside.Precondition = driver.Lapsed
	early := func(r driver.Result) bool { return r.Kind == job.Precondition }
	for time.Since(begun) < lease-lease/4 {
		ops := []driver.Result{e.do(lapsed), e.do(aside)}
		taken := e.do(claimOp("another", long, id))
		if since := time.Since(begun); since >= lease-50*time.Millisecond {
			if !early(ops[0]) || !early(ops[1]) || len(taken.Claims) > 0 { // rightly: it had run out by then
				e.Logf("this machine is too slow to tell")
				return
			}
			break
		}
		if !early(ops[0]) || !early(ops[1]) || len(taken.Claims) > 0 {
			e.Errorf("%v after a claim for %v: the release of a lapsed claim got %v, its trashing %v, and another claim %d jobs: want none",
				time.Since(begun), lease, outcome(&ops[0]), outcome(&ops[1]), len(taken.Claims))
			return
		}
		if ops[0].Remaining <= 0 || ops[0].Remaining > lease {
			e.Errorf("the rest of the lease is %v, says the refusal: want more than 0 and at most %v", ops[0].Remaining, lease)
		}
		e.wait(lease / 8)
	}
	e.eventually("a claim of 2s that can be released as lapsed", func() bool { r := e.do(lapsed); return r.Kind == job.NoKind })
}

func expiryLapsed(e *env) {
	list := e.posts(4)
	var claims []driver.Claimed
	for _, p := range list {
		claims = append(claims, e.claimFor(p.ID, "w", job.MinLease))
	}
	e.lapse()
	want := []job.State{job.Unclaimed, job.Complete, job.Trashed, job.Claimed}
	for i, kind := range []driver.OpKind{driver.Release, driver.Remove, driver.Trash, driver.Update} {
		op := byToken(kind, claims[i])
		op.Precondition, op.Event, op.Request = driver.Lapsed, job.Expired, random16()
		first := e.must(op)
		e.again(op, &first, "the same again")
		e.state(list[i].ID, want[i], "after its lapsed claim was ended")
	}
	// The worker that comes late learns that it lost its lease.
	e.refused(byToken(driver.Release, claims[0]), job.LeaseLost, "its lapsed claim was released by somebody else")
	e.refused(byToken(driver.Trash, claims[2]), job.LeaseLost, "its lapsed claim was ended by somebody else")
	e.refused(byToken(driver.Remove, claims[0]), job.LeaseLost, "its lapsed claim was released by somebody else")
	e.claim(list[0].ID, "another")
	again := byToken(driver.Trash, claims[0])
	again.Precondition = driver.Lapsed
	e.refused(again, job.LeaseLost, "the lapsed claim has ended, and the job is another's")
	e.state(list[0].ID, job.Claimed, "by another")
}

func expiryClaimedAgain(e *env) {
	p := e.post()
	old := e.claimFor(p.ID, "w", job.MinLease)
	version := e.readParts(p.ID, 0).Version
	e.lapse()
	op := claimOp("another", long, p.ID)
	op.Claim.Candidates[0].Version = version - 1
	if version > 1 {
		e.taken(op, job.Aborted, "the claim has lapsed, and the version is an old one")
	}
	op.Claim.Candidates[0].Version = version
	r := e.must(op)
	if len(r.Claims) != 1 {
		e.Fatalf("a job whose claim has lapsed was passed over: %s", goneKinds(r.Skipped))
	}
	if now := r.Claims[0].Token; now.Generation == old.Token.Generation && now.Epoch <= old.Token.Epoch {
		e.Errorf("the next claim has epoch %d, the lapsed one had %d: want it to grow", now.Epoch, old.Token.Epoch)
	}
	for _, kind := range tokenOps {
		if r := e.refused(byToken(kind, old), job.LeaseLost, "another has the job"); r.Owner != "another" {
			e.Errorf("LeaseLost names %q as the present owner, want another", r.Owner)
		}
	}
	lapsed := byToken(driver.Release, old)
	lapsed.Precondition = driver.Lapsed
	e.refused(lapsed, job.LeaseLost, "another has the job")
	e.must(byToken(driver.Remove, r.Claims[0]))
}

// expiryExtended checks that extensions keep a claim alive past its first end.
func expiryExtended(e *env) {
	const lease = 2 * time.Second
	id, granted := e.post().ID, time.Now()
	c := e.claimFor(id, "w", lease)
	for range 2 {
		op := byToken(driver.Extend, c)
		op.Lease = lease
		begun := time.Now()
		r := e.do(op)
		switch late := time.Since(granted) >= lease; {
		case late:
			e.Logf("this machine is too slow to tell")
			return
		case r.Kind != job.NoKind:
			e.Errorf("an extension in time: got %v", outcome(&r))
			return
		}
		granted = begun
		e.wait(lease/2 + lease/8)
		if rec := e.read(c.Job); time.Since(begun) < lease && (rec.Holder == nil || rec.Holder.Remaining <= 0) {
			e.Errorf("a lease extended in time ran out: %+v", rec.Holder)
		}
	}
	if r := e.do(byToken(driver.Remove, c)); r.Kind != job.NoKind && time.Since(granted) < lease {
		e.Errorf("a consumption in time: got %v", outcome(&r))
	}
}

// expiryHold checks that a held job may be claimed when its time has come.
func expiryHold(e *env) {
	until, whileFor := e.post(), e.post()
	const held = time.Second
	op := plain(driver.Update, until.ID)
	op.Hold = &driver.Hold{Until: time.Now().Add(held)}
	e.must(op)
	op = plain(driver.Update, whileFor.ID)
	op.Hold = &driver.Hold{For: held}
	r := e.must(op)
	if r.NotBefore.IsZero() {
		e.Errorf("an op with a hold did not say when it ends")
	}
	for _, p := range []*driver.Posting{until, whileFor} {
		e.eventually("a job whose hold of a second is over can be claimed", func() bool {
			return len(e.do(claimOp("w", long, p.ID)).Claims) == 1
		})
	}
}
