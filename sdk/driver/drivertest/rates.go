package drivertest

import (
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var rateChecks = []check{
	{name: "rates/claims", run: ratesClaims},
	{name: "rates/refused", run: ratesRefused},
	{name: "rates/period", run: ratesPeriod, waits: true},
	{name: "rates/race", run: ratesRace},
	{name: "rates/restart", run: restarted(ratesRestart)},
}

// paced reports whether the driver counts rates.
func (e *env) paced() bool {
	e.Helper()
	if !e.caps().Rates {
		e.Logf("the driver does not say that it counts rates")
	}
	return e.caps().Rates
}

// pacedClaim is a claim of jobs under the rate "paced", whose period is the longest: it does
// not end within a test, but once in 31 days.
func pacedClaim(most int64, ids ...job.ID) driver.Op {
	return claimWithin(driver.Rate{Key: "paced", Per: driver.MaxPeriod, Max: most}, ids...)
}

func claimWithin(rate driver.Rate, ids ...job.ID) driver.Op {
	op := claimOp("w", long, ids...)
	for i := range op.Claim.Candidates {
		op.Claim.Candidates[i].Rates = []driver.Rate{rate}
	}
	return op
}

// ratesClaims checks that claims count whatever becomes of them, and once each.
func ratesClaims(e *env) {
	if !e.paced() {
		return
	}
	list := e.posts(6)
	op := pacedClaim(3, list[0].ID, list[1].ID, list[2].ID, list[3].ID)
	r := e.must(op)
	if len(r.Claims) != 3 || len(r.Skipped) != 1 || r.Skipped[0].Kind != job.QuotaExceeded || r.Skipped[0].Message != "paced" {
		e.Fatalf("four candidates at a rate of three: got %d claims, passed over %+v", len(r.Claims), r.Skipped)
	}
	e.state(list[3].ID, job.Unclaimed, "over the rate")
	if again := e.do(op); len(again.Claims) < 3 {
		e.Errorf("the claim again: got %d claims, want the same three", len(again.Claims))
	}
	if more := e.must(pacedClaim(4, list[3].ID, list[4].ID)); len(more.Claims) != 1 {
		e.Errorf("two candidates at a rate of four, with three claims made twice: got %d claims, want 1", len(more.Claims))
	}
	for i, kind := range []driver.OpKind{driver.Release, driver.Trash, driver.Remove} {
		e.must(byToken(kind, r.Claims[i]))
		e.taken(pacedClaim(4, list[4].ID), job.QuotaExceeded, "claims of this period have ended, the last one by "+describe(&driver.Op{Kind: kind}))
	}
	e.taken(pacedClaim(4, list[0].ID), job.QuotaExceeded, "a job that was given back counts again")
	if other := e.must(claimWithin(driver.Rate{Key: "other", Per: driver.MaxPeriod, Max: 1}, list[4].ID)); len(other.Claims) != 1 {
		e.Errorf("another key: passed over as %s, want it claimed", goneKinds(other.Skipped))
	}
	e.claim(list[5].ID, "without a rate")
}

// ratesRefused checks that what is not granted counts for nothing.
func ratesRefused(e *env) {
	if !e.paced() {
		return
	}
	list := e.posts(4)
	both := pacedClaim(2, list[0].ID, list[1].ID)
	for i := range both.Claim.Candidates {
		c := &both.Claim.Candidates[i]
		c.Rates = append(c.Rates, driver.Rate{Key: "one", Per: driver.MaxPeriod, Max: 1})
	}
	r := e.must(both)
	if len(r.Claims) != 1 || len(r.Skipped) != 1 || r.Skipped[0].Message != "one" {
		e.Fatalf("two candidates at two rates, of two and of one: got %d claims, passed over %+v", len(r.Claims), r.Skipped)
	}
	if e.caps().Limits {
		limited := pacedClaim(2, list[1].ID)
		limited.Claim.Candidates[0].Limits = []driver.Limit{{Key: "nothing", Max: 0}}
		if r := e.must(limited); len(r.Claims) != 0 || len(r.Skipped) != 1 || r.Skipped[0].Message != "nothing" {
			e.Errorf("a limit of nothing: got %d claims, passed over %+v", len(r.Claims), r.Skipped)
		}
	}
	e.taken(pacedClaim(2, list[0].ID), job.AlreadyClaimed, "claimed before")
	if r := e.must(pacedClaim(2, list[2].ID)); len(r.Claims) != 1 {
		e.Errorf("refused claims have counted: passed over as %s", goneKinds(r.Skipped))
	}
	e.taken(pacedClaim(2, list[3].ID), job.QuotaExceeded, "the rate is used up")
}

// ratesPeriod checks that a rate grants more when a period is over, and not before.
func ratesPeriod(e *env) {
	if !e.paced() {
		return
	}
	const per = time.Second
	list := e.posts(3)
	begun, granted := time.Now(), 0
	for _, p := range list {
		e.eventually("a rate grants more in the next period", func() bool {
			r := e.must(claimWithin(driver.Rate{Key: "second", Per: per, Max: 1}, p.ID))
			if len(r.Claims) == 0 && (len(r.Skipped) != 1 || r.Skipped[0].Kind != job.QuotaExceeded) {
				e.Errorf("a claim at a rate: passed over %+v", r.Skipped)
				return true
			}
			if len(r.Claims) == 0 {
				e.wait(per / 10)
			}
			return len(r.Claims) > 0
		})
		granted++
		if most := int(time.Since(begun)/per) + 2; granted > most {
			e.Errorf("%d claims in %v, at a rate of one a second: want at most %d", granted, time.Since(begun), most)
		}
	}
}

func ratesRace(e *env) {
	if !e.paced() {
		return
	}
	list := e.posts(16)
	got := make([]int, len(list))
	together(len(list), func(i int) { got[i] = len(e.do(pacedClaim(5, list[i].ID)).Claims) })
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != 5 {
		e.Errorf("16 claims at once at a rate of 5: %d were granted", sum)
	}
}

// ratesRestart checks that what a period has had is known after a restart.
func ratesRestart(e *env, restart func()) {
	if !e.paced() {
		return
	}
	list := e.posts(4)
	r := e.must(pacedClaim(3, list[0].ID, list[1].ID))
	for _, c := range r.Claims {
		e.must(byToken(driver.Remove, c))
	}
	restart()
	if r := e.must(pacedClaim(3, list[2].ID, list[3].ID)); len(r.Claims) != 1 {
		e.Errorf("after a restart %d of two jobs were claimed, at a rate of three of which two were used: want 1", len(r.Claims))
	}
}

// rates checks that hosts count together.
func (c *crowd) rates() {
	if !c.paced() {
		return
	}
	const most = 5
	var granted atomic.Int64
	jobs := make([]job.ID, 6*len(c.hosts))
	for i := range jobs {
		jobs[i] = c.hosts[i%len(c.hosts)].post().ID
	}
	together(len(jobs), func(i int) {
		for _, claimed := range c.must(i, pacedClaim(most, jobs[i]))[0].Claims {
			granted.Add(1)
			c.must(i, byToken(driver.Remove, claimed))
		}
	})
	if granted.Load() != most {
		c.Errorf("at a rate of %d several hosts made %d claims", most, granted.Load())
	}
}
