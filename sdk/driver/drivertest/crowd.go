package drivertest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// crowdHosts is how many drivers a check of several hosts opens on one store.
const crowdHosts = 4

// A crowd is one board at which several hosts work at once, and what they did.
type crowd struct {
	*env                 // the first host
	hosts  []*env        // all of them
	latest atomic.Uint64 // the highest position that was acknowledged

	mu     sync.Mutex
	deeds  []deed
	remain map[job.ID]bool // jobs that nobody touched since they were posted, and whether they are held
}

// A deed is a change that was acknowledged.
type deed struct {
	event    job.EventType
	job      job.ID
	position driver.Position
}

// alone makes a crowd of the check's own driver.
func (e *env) alone() *crowd { return newCrowd(e) }

func newCrowd(hosts ...*env) *crowd {
	return &crowd{env: hosts[0], hosts: hosts, remain: map[job.ID]bool{}}
}

// crowd opens a board with several drivers on one store. It returns nil, and says
// why, where the harness knows of no store for several.
func (e *env) crowd(change func(*driver.BoardSpec)) *crowd {
	e.Helper()
	if e.suite.harness.Hosts == nil {
		e.Logf("the harness has no store for several drivers at once")
		return nil
	}
	if e.suite.harness.OneHost {
		e.Logf("the driver declares that a store is for one driver at a time")
		return nil
	}
	if e.status.Durability == driver.Volatile {
		e.Logf("the store declares that it keeps nothing when it stops, so that each driver has its own")
		return nil
	}
	open := e.suite.harness.Hosts(e.T)
	var hosts []*env
	for range crowdHosts {
		d, err := open()
		if err != nil {
			e.Fatalf("a driver on a store that others have open: %v. A driver that has its store for itself declares OneHost", err)
		}
		hosts = append(hosts, &env{T: e.T, suite: e.suite, driver: d, name: e.name + "-crowd"})
	}
	e.Cleanup(func() { // after the board was dropped
		for _, h := range hosts[1:] {
			h.close()
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), time.Minute)
		defer cancel()
		if err := hosts[0].driver.DropBoard(ctx, hosts[0].name); err != nil {
			e.Errorf("DropBoard(%q): %v", hosts[0].name, err)
		}
		hosts[0].close()
	})
	for _, h := range hosts {
		h.join(change)
	}
	return newCrowd(hosts...)
}

// join opens the crowd's board on one host.
func (e *env) join(change func(*driver.BoardSpec)) {
	e.Helper()
	spec := e.suite.spec(e.name)
	if change != nil {
		change(&spec)
	}
	e.name = spec.Name
	var err error
	if e.status, err = e.driver.OpenBoard(e.Context(), spec); err != nil {
		e.Fatalf("OpenBoard(%q): %v", spec.Name, err)
	}
}

func (e *env) close() {
	if err := e.driver.Close(); err != nil {
		e.Errorf("Close: %v", err)
	}
}

// apply applies ops on one host and notes what was done. A change that was asked
// for after another was acknowledged comes after it in the board's history.
func (c *crowd) apply(host int, ops ...driver.Op) []driver.Result {
	e := c.hosts[host%len(c.hosts)]
	for i := range ops {
		if ops[i].Request == [16]byte{} {
			ops[i].Request = random16()
		}
	}
	before := driver.Position(c.latest.Load())
	results := e.driver.Apply(e.Context(), e.name, ops)
	if len(results) != len(ops) {
		e.Errorf("Apply of %d ops returned %d results: want one for each", len(ops), len(results))
		return make([]driver.Result, len(ops))
	}
	for i := range results {
		op, r := &ops[i], &results[i]
		switch {
		case r.Kind != job.NoKind || r.Repeated:
		case op.Kind == driver.Claim:
			for _, claimed := range r.Claims {
				c.note(deed{op.Event, claimed.Job, claimed.Position}, before)
			}
		default:
			id := op.Job
			if op.Posting != nil {
				id = op.Posting.ID
			}
			c.note(deed{op.Event, id, r.Position}, before)
		}
	}
	return results
}

func (c *crowd) note(d deed, before driver.Position) {
	if d.position <= before {
		c.Errorf("%v of a job was asked for when position %d was acknowledged, and is at position %d: want a later one", d.event, before, d.position)
	}
	for old := c.latest.Load(); uint64(d.position) > old && !c.latest.CompareAndSwap(old, uint64(d.position)); {
		old = c.latest.Load()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds = append(c.deeds, d)
	if d.event != job.Posted {
		delete(c.remain, d.job)
	}
}

// must is apply for ops that have to be done.
func (c *crowd) must(host int, ops ...driver.Op) []driver.Result {
	results := c.apply(host, ops...)
	for i := range results {
		if results[i].Kind != job.NoKind {
			c.Errorf("%s, with several at work: got %v, want it done", describe(&ops[i]), outcome(&results[i]))
		}
	}
	return results
}

// The traffic of a crowd.
const (
	crowdWriters = 6
	crowdRounds  = 10
	crowdSingles = 40 // posts of one job each, beside the writers
)

// traffic has many writers work side by side, spread over the hosts, and waits
// for them.
func (c *crowd) traffic() {
	together(crowdWriters+2, func(i int) {
		if i >= crowdWriters {
			for range crowdSingles {
				c.stay(i, posting("single"), nil)
			}
			return
		}
		for round := range crowdRounds {
			c.lives(i, round)
		}
	})
}

// stay posts a job that nobody touches, or several in one call. The first one is
// held, if hold is not nil.
func (c *crowd) stay(host int, p *driver.Posting, hold *driver.Hold, more ...*driver.Posting) {
	ops := []driver.Op{postOp(p)}
	ops[0].Hold = hold
	for _, p := range more {
		ops = append(ops, postOp(p))
	}
	c.mu.Lock()
	for i := range ops {
		c.remain[ops[i].Posting.ID] = hold != nil && i == 0
	}
	c.mu.Unlock()
	c.must(host, ops...)
}

// lives posts three jobs in one call, of which one is held, and leads the others
// through their lives.
func (c *crowd) lives(host, round int) {
	held, first, second := posting("held"), posting("first"), posting("second")
	holds := []*driver.Hold{{For: time.Hour}, {Always: true}, {Until: time.Now().Add(time.Hour)}}
	c.stay(host, held, holds[round%len(holds)], first, second)
	if round%4 == 3 {
		return // these are left as they are
	}
	claim := func(id job.ID) (driver.Claimed, bool) {
		r := c.must(host, claimOp("host "+itoa(uint64(host)), long, id))[0]
		if len(r.Claims) != 1 {
			c.Errorf("a job that was just posted, and that nobody else wants, could not be claimed: passed over as %s", goneKinds(r.Skipped))
			return driver.Claimed{}, false
		}
		return r.Claims[0], true
	}
	if claimed, ok := claim(first.ID); ok {
		c.must(host, byToken(driver.Remove, claimed))
	}
	cancel := func(id job.ID) driver.Op {
		op := plain(driver.Remove, id)
		op.Event, op.Ending = job.CanceledEvent, &driver.Ending{Outcome: job.Canceled}
		return op
	}
	switch round % 4 {
	case 0:
		c.must(host, cancel(held.ID), cancel(second.ID))
	case 1:
		c.must(host, plain(driver.Trash, second.ID))
		c.must(host, plain(driver.Purge, second.ID))
	case 2:
		if claimed, ok := claim(second.ID); ok {
			c.must(host, byToken(driver.Release, claimed))
		}
	}
}

// untouched checks that the jobs that nobody touched are as they were posted, for
// every host.
func (c *crowd) untouched() {
	ids := make([]job.ID, 0, len(c.remain))
	for id := range c.remain {
		ids = append(ids, id)
	}
	for n, h := range c.hosts {
		records, err := h.driver.Read(h.Context(), h.name, ids, 0)
		if err != nil || len(records) != len(ids) {
			h.Errorf("Read of %d jobs on host %d: got %d and %v", len(ids), n, len(records), err)
			continue
		}
		wrong := 0
		for i := range records {
			if problem := notAsPosted(&records[i], c.remain[ids[i]]); problem != "" {
				if wrong++; wrong <= 3 {
					h.Errorf("a job that was posted and that nobody touched %s, says host %d", problem, n)
				}
			}
		}
		if wrong > 3 {
			h.Errorf("%d of %d jobs that nobody touched are not as they were posted, says host %d", wrong, len(ids), n)
		}
	}
}

// notAsPosted says how a job differs from one that was posted and not touched.
func notAsPosted(r *driver.Record, held bool) string {
	switch {
	case r.State == job.Claimed && r.Holder != nil:
		return "is CLAIMED by " + r.Holder.Owner
	case r.State != job.Unclaimed:
		return "is " + r.State.String()
	case held && !r.Held && r.NotBefore.IsZero():
		return "is not held, and was posted so"
	case !held && (r.Held || !r.NotBefore.IsZero()):
		return "is held, and was posted without"
	}
	return ""
}

// free claims some of the untouched jobs: those that are not held, and no others.
func (c *crowd) free() {
	var ids []job.ID
	for id := range c.remain {
		if len(ids) < max(1, c.caps().MaxCandidates) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		held := c.remain[id]
		r := c.must(0, claimOp("the last one", long, id))[0]
		switch {
		case held && len(r.Claims) != 0:
			c.Errorf("a job that is held could be claimed")
		case held && (len(r.Skipped) != 1 || r.Skipped[0].Kind != job.NotEligible):
			c.Errorf("a claim of a job that is held: passed over as %s, want NOT_ELIGIBLE", goneKinds(r.Skipped))
		case !held && len(r.Claims) != 1:
			c.Errorf("a job that nobody touched could not be claimed: passed over as %s", goneKinds(r.Skipped))
		}
	}
}
