package drivertest

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var limitChecks = []check{
	{name: "limits/posts", run: limitsPosts},
	{name: "limits/claims", run: limitsClaims},
	{name: "limits/lapsed", run: limitsLapsed, waits: true},
	{name: "limits/race", run: limitsRace},
}

// noLimits says that the store declares no limits.
func (e *env) noLimits() bool {
	if !e.caps().Limits {
		e.Logf("the store counts no limits")
	}
	return !e.caps().Limits
}

// stands checks what a limit's key stands at.
func (e *env) stands(key string, want int64, why string) {
	e.Helper()
	counts, err := e.driver.Count(e.Context(), e.name)
	if err != nil || counts.Limits[key] != want {
		e.Errorf("%s: limit %q stands at %d, want %d (%v)", why, key, counts.Limits[key], want, err)
	}
}

func limitedPost(weight, most int64) driver.Op {
	op := postOp(posting("limited"))
	op.Limits = []driver.Limit{{Key: "jobs", Max: 3}, {Key: "bytes", Weight: weight, Max: most}}
	return op
}

func limitsPosts(e *env) {
	if e.noLimits() {
		return
	}
	first := limitedPost(40, 100)
	e.must(first)
	e.again(first, nil, "an equal posting counts once")
	e.stands("bytes", 40, "one post, made twice")
	second := limitedPost(60, 100)
	e.must(second)
	third := limitedPost(1, 100)
	if r := e.refused(third, job.QuotaExceeded, "over the limit"); r.Message != "bytes" {
		e.Errorf("QuotaExceeded has the message %q, want the limit's key, bytes", r.Message)
	}
	e.state(third.Posting.ID, job.Unknown, "over the limit")
	e.stands("jobs", 2, "a post that was refused by another limit")
	e.must(plain(driver.Trash, second.Posting.ID))
	e.stands("bytes", 40, "a job was set aside")
	third.Request = [16]byte{}
	e.must(third)
	e.must(plain(driver.Restore, second.Posting.ID))
	e.stands("bytes", 101, "a job was restored over the limit")
	e.must(plain(driver.Remove, second.Posting.ID))
	e.must(byToken(driver.Remove, e.claim(first.Posting.ID, "w")))
	e.stands("bytes", 1, "jobs were removed")
	e.must(plain(driver.Trash, third.Posting.ID))
	e.must(plain(driver.Purge, third.Posting.ID))
	e.stands("bytes", 0, "everything is gone")
	e.stands("jobs", 0, "everything is gone")
}

func limitedClaim(most int64, ids ...job.ID) driver.Op {
	op := claimOp("w", long, ids...)
	for i := range op.Claim.Candidates {
		op.Claim.Candidates[i].Limits = []driver.Limit{{Key: "claims", Max: most}}
	}
	return op
}

func limitsClaims(e *env) {
	if e.noLimits() {
		return
	}
	list := e.posts(5)
	op := limitedClaim(2, list[0].ID, list[1].ID, list[2].ID)
	r := e.must(op)
	if len(r.Claims) != 2 || len(r.Skipped) != 1 || r.Skipped[0].Kind != job.QuotaExceeded || r.Skipped[0].Message != "claims" {
		e.Fatalf("three candidates under a limit of two: got %d claims, passed over %+v", len(r.Claims), r.Skipped)
	}
	e.state(list[2].ID, job.Unclaimed, "over the limit")
	again := e.do(op)
	if len(again.Claims) < 2 {
		e.Errorf("the claim again: got %d claims, want the same two", len(again.Claims))
	}
	e.stands("claims", 2, "two claims, made twice")
	for i, kind := range []driver.OpKind{driver.Release, driver.Trash} {
		e.must(byToken(driver.Extend, r.Claims[i]))
		e.must(byToken(kind, r.Claims[i]))
		e.stands("claims", int64(1-i), describe(&driver.Op{Kind: kind}))
	}
	next := e.must(limitedClaim(1, list[3].ID))
	e.taken(limitedClaim(1, list[4].ID), job.QuotaExceeded, "over the limit")
	e.must(byToken(driver.Remove, next.Claims[0]))
	e.stands("claims", 0, "all claims ended")
}

// limitsLapsed checks that a lapsed claim counts until it is ended, and that
// one that takes its place counts instead of it.
func limitsLapsed(e *env) {
	if e.noLimits() {
		return
	}
	list := e.posts(2)
	op := limitedClaim(1, list[0].ID)
	op.Claim.Lease = job.MinLease
	e.must(op)
	e.lapse()
	e.stands("claims", 1, "a claim has lapsed, and nobody ended it")
	e.taken(limitedClaim(1, list[1].ID), job.QuotaExceeded, "a lapsed claim counts")
	r := e.must(limitedClaim(1, list[0].ID))
	if len(r.Claims) != 1 {
		e.Fatalf("a claim that takes the place of a lapsed one: passed over as %s", goneKinds(r.Skipped))
	}
	e.stands("claims", 1, "a claim took the place of a lapsed one")
	e.must(byToken(driver.Release, r.Claims[0]))
	e.stands("claims", 0, "it was released")
}

func limitsRace(e *env) {
	if e.noLimits() {
		return
	}
	list := e.posts(16)
	got := make([]int, len(list))
	together(len(list), func(i int) { got[i] = len(e.do(limitedClaim(5, list[i].ID)).Claims) })
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != 5 {
		e.Errorf("16 claims at once under a limit of 5: %d were granted", sum)
	}
	e.stands("claims", 5, "16 claims at once")
}
