package drivertest

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var trafficChecks = []check{
	{name: "traffic/holds", run: func(e *env) { e.alone().holds() }},
	{name: "traffic/watchers", run: func(e *env) { e.alone().watchers() }},
	{name: "traffic/tries", run: func(e *env) { e.alone().tries() }},
	{name: "traffic/keys", run: func(e *env) { e.alone().keyRace() }},
}

// hostsChecks have several drivers on one store at once.
var hostsChecks = []check{
	{name: "hosts/holds", run: ofCrowd((*crowd).holds)},
	{name: "hosts/watchers", run: ofCrowd((*crowd).watchers)},
	{name: "hosts/trashed", run: ofCrowd((*crowd).trashed)},
	{name: "hosts/snapshot", run: ofCrowd(func(c *crowd) { c.hosts[len(c.hosts)-1].snapshot(c.hosts...) })},
	{name: "hosts/moved", run: ofCrowd((*crowd).moved)},
	{name: "hosts/tries", run: ofCrowd((*crowd).tries)},
	{name: "hosts/keys", run: ofCrowd((*crowd).keyRace)},
	{name: "hosts/race", run: ofCrowd((*crowd).race)},
	{name: "hosts/tokens", run: ofCrowd((*crowd).tokens)},
	{name: "hosts/limits", run: ofCrowd((*crowd).limits)},
	{name: "hosts/rates", run: ofCrowd((*crowd).rates)},
	{name: "hosts/expiry", run: ofCrowd((*crowd).expiry), waits: true},
	{name: "hosts/one", run: hostsOne},
}

// ofCrowd makes a check of what several hosts do together.
func ofCrowd(run func(*crowd)) func(*env) {
	return func(e *env) {
		if c := e.crowd(nil); c != nil {
			run(c)
		}
	}
}

// holds checks that what is posted beside each other stays apart: each job is as
// it was posted, held or not.
func (c *crowd) holds() {
	c.traffic()
	c.untouched()
	c.free()
	c.untouched()
}

// watchers checks that whoever watches is told of every change, in the order of
// their positions, and may go on from each on every host.
func (c *crowd) watchers() {
	list := c.witnesses()
	c.traffic()
	c.testify(list)
}

// trashed checks that whoever watches on another host is told of a job that went to the trash as
// it was there, though it was put back or purged at once: its status says why it went.
func (c *crowd) trashed() {
	const jobs = 8
	last := c.hosts[len(c.hosts)-1]
	f := last.follow(last.status.Position)
	var ids []job.ID
	var end driver.Position
	for n := range jobs {
		id := c.post().ID
		aside := byToken(driver.Trash, c.claim(id, "w"))
		status := []byte("why " + itoa(uint64(n)))
		aside.Status, aside.Event = &status, job.TrashedEvent
		c.must(0, aside)
		away := plain(driver.Purge, id)
		if n%2 == 0 {
			away = plain(driver.Restore, id)
		}
		end = c.must(0, away)[0].Position
		ids = append(ids, id)
	}
	f.until(last, end)
	for n, id := range ids {
		seen := f.seen(id)
		i := slices.IndexFunc(seen, func(change driver.Change) bool { return change.Event == job.TrashedEvent })
		if i < 0 {
			c.Errorf("another host was not told that a job went to the trash: %d changes", len(seen))
			continue
		}
		if rec := seen[i].Record; rec == nil || rec.State != job.Trashed || string(rec.Status) != "why "+itoa(uint64(n)) { //nolint:gosec // not negative
			c.Errorf("another host was told that a job went to the trash with the record %+v: want it in the trash with the status %q", rec, "why "+itoa(uint64(n))) //nolint:gosec // likewise
		}
	}
}

// hostsOne checks that a driver which declares so really has its store for itself.
func hostsOne(e *env) {
	if e.suite.harness.Hosts == nil || !e.suite.harness.OneHost {
		return // the checks beside this one say what there is to say
	}
	open := e.suite.harness.Hosts(e.T)
	first, err := open()
	if err != nil {
		e.Fatalf("a driver on a store of its own: %v", err)
	}
	h := &env{T: e.T, suite: e.suite, driver: first, name: e.name + "-alone"}
	e.Cleanup(h.close)
	h.join(nil)
	second, err := open()
	if err == nil {
		_, err = second.OpenBoard(e.Context(), e.suite.spec(h.name))
		if closed := second.Close(); closed != nil {
			e.Logf("Close of the second driver: %v", closed)
		}
	}
	if err == nil {
		e.Errorf("the driver declares that a store is for one at a time, and a second one opened it")
	}
	h.post()
	if kind := job.KindOf(err); err != nil && kind == job.OutcomeUnknown {
		e.Errorf("a second driver on the store was refused as %v: it changed nothing", kind)
	}
}

// race has all hosts claim the same jobs at once, and then end one claim in several
// ways.
func (c *crowd) race() {
	for range 6 {
		p := c.post()
		winners := make([]*driver.Claimed, 8*len(c.hosts))
		together(len(winners), func(i int) {
			r := c.must(i, claimOp("worker "+itoa(uint64(i)), long, p.ID))[0]
			switch {
			case len(r.Claims) == 1:
				winners[i] = &r.Claims[0]
			case len(r.Skipped) != 1 || r.Skipped[0].Kind != job.AlreadyClaimed:
				c.Errorf("a claim that lost against another host's: passed over as %s, want ALREADY_CLAIMED", goneKinds(r.Skipped))
			}
		})
		var winner *driver.Claimed
		for _, w := range winners {
			if w != nil && winner != nil {
				c.Errorf("two claims on several hosts got one job: epochs %d and %d", winner.Token.Epoch, w.Token.Epoch)
			}
			if w != nil {
				winner = w
			}
		}
		if winner == nil {
			c.Errorf("none of %d claims on %d hosts got the job", len(winners), len(c.hosts))
			return
		}
		c.end(winner)
	}
}

// end ends a claim in three ways at once, each on another host.
func (c *crowd) end(claimed *driver.Claimed) {
	kinds := []driver.OpKind{driver.Release, driver.Remove, driver.Trash}
	var done [3]atomic.Int64
	together(12, func(i int) {
		switch r := c.apply(i, byToken(kinds[i%3], *claimed))[0]; r.Kind {
		case job.NoKind:
			done[i%3].Add(1)
		case job.LeaseLost:
		default:
			c.Errorf("one of many endings on several hosts: got %v, want it done, or LEASE_LOST", outcome(&r))
		}
	})
	ways := 0
	for i := range done {
		if done[i].Load() > 0 {
			ways++
		}
	}
	if ways != 1 {
		c.Errorf("several hosts ended one claim in %d ways: want 1", ways)
	}
}

// tokens checks that what one host granted is good on each other one, and that all
// have one generation.
func (c *crowd) tokens() {
	for n, h := range c.hosts {
		if h.status.Generation != c.status.Generation {
			c.Errorf("host %d says generation %d, host 0 says %d", n, h.status.Generation, c.status.Generation)
		}
	}
	var epoch uint64
	for n := range 2 * len(c.hosts) {
		p := c.hosts[n%len(c.hosts)].post()
		claimed := c.hosts[(n+1)%len(c.hosts)].claim(p.ID, "w")
		if claimed.Token.Generation != c.status.Generation || claimed.Token.Epoch <= epoch {
			c.Errorf("a claim has generation %d and epoch %d: want %d, and more than %d of the claim before, on whichever host",
				claimed.Token.Generation, claimed.Token.Epoch, c.status.Generation, epoch)
		}
		epoch = claimed.Token.Epoch
		for i := range c.hosts {
			c.must(i, byToken(driver.Extend, claimed))
		}
		c.must(n+2, byToken(driver.Remove, claimed))
		for i, h := range c.hosts {
			h.refused(byToken(driver.Extend, claimed), job.LeaseLost, "another host than "+itoa(uint64(i))+" may have ended the claim")
			h.again(byToken(driver.Remove, claimed), nil, "the ending again, on any host")
			h.again(postOp(p), nil, "the post again, on any host")
		}
	}
}

// limits checks that hosts count together.
func (c *crowd) limits() {
	if c.noLimits() {
		return
	}
	const most = 5
	var posted, granted atomic.Int64
	jobs := make([]job.ID, 6*len(c.hosts))
	together(len(jobs), func(i int) {
		op := postOp(posting("limited"))
		jobs[i] = op.Posting.ID
		op.Limits = []driver.Limit{{Key: "posts", Max: most}}
		switch r := c.apply(i, op)[0]; r.Kind {
		case job.NoKind:
			posted.Add(1)
		case job.QuotaExceeded:
			free := postOp(op.Posting)
			c.must(i, free)
		default:
			c.Errorf("a post under a limit on one of several hosts: got %v", outcome(&r))
		}
	})
	together(len(jobs), func(i int) { granted.Add(int64(len(c.must(i, limitedClaim(most, jobs[i]))[0].Claims))) })
	if posted.Load() != most || granted.Load() != most {
		c.Errorf("under a limit of %d several hosts made %d posts and %d claims", most, posted.Load(), granted.Load())
	}
	for n, h := range c.hosts {
		c.eventually("host "+itoa(uint64(n))+" counts what all have done", func() bool {
			counts, err := h.driver.Count(h.Context(), h.name)
			return err == nil && counts.Limits["posts"] == most && counts.Limits["claims"] == most
		})
	}
}

// expiry checks that an extension counts on every host, and that each may end a claim
// that has lapsed, and no other one.
func (c *crowd) expiry() {
	p := c.post()
	claimed := c.claimFor(p.ID, "w", job.MinLease)
	extend := byToken(driver.Extend, claimed)
	extend.Lease = 2 * job.MinLease
	before := time.Now()
	c.must(1, extend)
	lapsed := byToken(driver.Release, claimed)
	lapsed.Precondition, lapsed.Event = driver.Lapsed, job.Expired
	n := 1
	c.eventually("a claim that another host has extended lapses", func() bool {
		n++
		switch r := c.apply(n, lapsed)[0]; r.Kind {
		case job.NoKind:
			return true
		case job.Precondition:
		default:
			c.Errorf("the release of a claim that has not lapsed: got %v, want PRECONDITION", outcome(&r))
			return true
		}
		return false
	})
	if passed := time.Since(before); passed < extend.Lease {
		c.Errorf("a lease of %v was over on another host after %v", extend.Lease, passed)
	}
	for _, h := range c.hosts {
		h.refused(byToken(driver.Extend, claimed), job.LeaseLost, "its lease ran out, says another host")
	}
	c.hosts[0].claim(p.ID, "the next one")
}
