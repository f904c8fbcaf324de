package drivertest

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var leaseChecks = []check{
	{name: "lease/extend", run: leaseExtend},
	{name: "lease/needs-token", run: leaseNeedsToken},
	{name: "lease/invalid", run: leaseInvalid},
	{name: "lease/shorter", run: leaseShorter, waits: true},
	{name: "lease/update", run: leaseUpdate, waits: true},
}

func leaseExtend(e *env) {
	p := e.post()
	c := e.claimFor(p.ID, "w", time.Minute)
	before := e.read(p.ID)
	r := e.must(byToken(driver.Extend, c))
	if r.Lease <= time.Minute || r.Lease > long {
		e.Errorf("extended to %v: the lease granted is %v", long, r.Lease)
	}
	if r.Version != before.Version || r.Position <= before.Position {
		e.Errorf("an extension left version %d and position %d, before it was %d and %d: want the version as it was, and the position to grow",
			r.Version, r.Position, before.Version, before.Position)
	}
	rec := e.state(p.ID, job.Claimed, "extended")
	if rec.Version != before.Version || rec.Holder.Token != c.Token || rec.Holder.Remaining <= time.Minute {
		e.Errorf("extended: the job is at version %d with holder %+v", rec.Version, *rec.Holder)
	}
	byOwner := driver.Op{Kind: driver.Extend, Job: p.ID, Precondition: driver.HeldByOwner, Owner: "w", NoExpiry: true, Event: job.Extended}
	if r := e.must(byOwner); r.Lease != 0 {
		e.Errorf("extended without expiry: the lease granted is %v, want 0", r.Lease)
	}
	if rec := e.read(p.ID); rec.Holder == nil || !rec.Holder.NoExpiry {
		e.Errorf("extended without expiry: the holder is %+v", rec.Holder)
	}
}

func leaseNeedsToken(e *env) {
	p := e.post()
	c := e.claimFor(p.ID, "w", time.Minute)
	for what, wrong := range wrongTokens(c.Token) {
		op := byToken(driver.Extend, c)
		op.Token = wrong
		r := e.refused(op, job.LeaseLost, what)
		if r.Kind == job.LeaseLost && r.Owner != "w" {
			e.Errorf("LeaseLost names %q as the present owner, want w", r.Owner)
		}
	}
	rec := e.state(p.ID, job.Claimed, "after extensions that were refused")
	if rec.Holder.Remaining > time.Minute {
		e.Errorf("an extension with a wrong token was refused, and the lease has %v left", rec.Holder.Remaining)
	}
	op := driver.Op{Kind: driver.Extend, Job: p.ID, Precondition: driver.HeldByOwner, Owner: "another", Lease: long}
	if r := e.refused(op, job.NotOwner, "another owner"); r.Owner != "w" {
		e.Errorf("NotOwner names %q, want w", r.Owner)
	}
	for _, must := range []driver.Precondition{driver.Whatever, driver.Held, driver.Free} {
		op := driver.Op{Kind: driver.Extend, Job: p.ID, Precondition: must, Lease: long}
		e.refused(op, job.Invalid, "an extension needs a token or an owner")
	}
}

func leaseInvalid(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	for _, lease := range []time.Duration{0, -time.Second} {
		op := byToken(driver.Extend, c)
		op.Lease = lease
		e.refused(op, job.Invalid, "a lease of "+lease.String())
	}
	e.must(byToken(driver.Extend, c))
}

// leaseShorter checks that an extension counts from now, so that it can end a
// lease sooner than it would have.
func leaseShorter(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	op := byToken(driver.Extend, c)
	op.Lease = job.MinLease
	e.must(op)
	e.lapse()
	e.refused(byToken(driver.Remove, c), job.LeaseLost, "the lease was made shorter, and ran out")
	e.claim(p.ID, "another")
}

// leaseUpdate checks that an update of a claimed job leaves the lease as it is: whoever only
// says how far the work has come does not hold the job for longer.
func leaseUpdate(e *env) {
	p := e.post()
	c := e.claimFor(p.ID, "w", 4*job.MinLease)
	e.wait(job.MinLease)
	status := []byte("at work")
	update := byToken(driver.Update, c)
	update.Lease, update.Status = 0, &status
	e.must(update)
	if rec := e.read(p.ID); rec.Holder == nil || rec.Holder.Remaining > 3*job.MinLease+job.MinLease/4 {
		e.Errorf("after a quarter of the lease and an update the holder is %+v, want at most three quarters left", rec.Holder)
	}
	e.wait(3*job.MinLease + job.MinLease/4)
	e.refused(byToken(driver.Remove, c), job.LeaseLost, "the lease ran out, whatever was updated meanwhile")
	e.claim(p.ID, "another")
}
