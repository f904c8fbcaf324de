package drivertest

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var timeoutChecks = []check{
	{name: "timeout/claim", run: timeoutClaim},
	{name: "timeout/extend", run: timeoutExtend},
	{name: "timeout/ends", run: timeoutEnds, waits: true},
	{name: "timeout/invalid", run: timeoutInvalid},
}

// timed reports whether the driver sees to how long a claim may stand.
func (e *env) timed() bool {
	e.Helper()
	if !e.caps().Timeouts {
		e.Logf("the driver does not say that it ends claims which stand for too long")
	}
	return e.caps().Timeouts
}

// claimAtMost claims a job that may be held for so long; no lease: without expiry.
func (e *env) claimAtMost(id job.ID, lease, most time.Duration) driver.Claimed {
	e.Helper()
	op := claimOp("w", lease, id)
	op.Claim.NoExpiry = lease == 0
	op.Claim.Candidates[0].Most = most
	return e.granted(op)
}

// leased checks that a lease was granted whole, and that the job shows it.
func (e *env) leased(id job.ID, granted, want time.Duration, why string) {
	e.Helper()
	if granted > want || granted < want-time.Minute {
		e.Errorf("%s: the lease granted is %v, want %v", why, granted, want)
	}
	r := e.state(id, job.Claimed, why)
	if h := r.Holder; h == nil || h.NoExpiry || h.Remaining > want || h.Remaining < want-2*time.Minute {
		e.Errorf("%s: the holder is %+v, want %v left", why, h, want)
	}
}

func timeoutClaim(e *env) {
	if !e.timed() {
		return
	}
	for _, tt := range []struct {
		why               string
		lease, most, want time.Duration
	}{
		{"a claim that may stand for less than its lease", 2 * time.Hour, time.Hour, time.Hour},
		{"a claim that may stand for longer than its lease", time.Hour, 2 * time.Hour, time.Hour},
		{"a claim without expiry that may stand for an hour", 0, time.Hour, time.Hour},
	} {
		p := e.post()
		c := e.claimAtMost(p.ID, tt.lease, tt.most)
		e.leased(p.ID, c.Lease, tt.want, tt.why)
	}
}

func timeoutExtend(e *env) {
	if !e.timed() {
		return
	}
	p := e.post()
	c := e.claimAtMost(p.ID, 10*time.Minute, time.Hour)
	for _, tt := range []struct {
		why         string
		lease, want time.Duration
	}{
		{"extended beyond the time that the claim may stand for", 2 * time.Hour, time.Hour},
		{"extended for a part of that", 20 * time.Minute, 20 * time.Minute},
		{"extended without expiry", 0, time.Hour},
	} {
		op := byToken(driver.Extend, c)
		op.Lease, op.NoExpiry, op.Most = tt.lease, tt.lease == 0, time.Hour
		r := e.must(op)
		e.leased(p.ID, r.Lease, tt.want, tt.why)
	}
}

// timeoutEnds checks that extensions keep no claim beyond its time.
func timeoutEnds(e *env) {
	if !e.timed() {
		return
	}
	p := e.post()
	c := e.claimAtMost(p.ID, long, job.MinLease)
	op := byToken(driver.Extend, c)
	op.Lease, op.Most = long, job.MinLease
	if r := e.do(op); r.Kind == job.NoKind && r.Lease > job.MinLease {
		e.Errorf("a claim that may stand for %v was extended for %v", job.MinLease, r.Lease)
	}
	e.lapse()
	e.refused(op, job.LeaseLost, "the claim has stood for as long as it may")
	e.refused(byToken(driver.Remove, c), job.LeaseLost, "the claim has stood for as long as it may")
	e.claim(p.ID, "another")
}

func timeoutInvalid(e *env) {
	if !e.timed() {
		return
	}
	p := e.post()
	for _, most := range []time.Duration{-time.Second, job.MinLease - 1} {
		op := claimOp("w", long, p.ID)
		op.Claim.Candidates[0].Most = most
		e.refused(op, job.Invalid, "a claim that may stand for "+most.String())
	}
	c := e.claim(p.ID, "w")
	op := byToken(driver.Extend, c)
	op.Most = -time.Second
	e.refused(op, job.Invalid, "an extension of a claim that may stand for "+op.Most.String())
}
