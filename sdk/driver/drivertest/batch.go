package drivertest

import (
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var batchChecks = []check{
	{name: "batch/goes-on", run: batchGoesOn},
	{name: "batch/mixed", run: batchMixed},
	{name: "batch/large", run: batchLarge},
	{name: "batch/empty", run: batchEmpty},
}

// batchGoesOn checks that an item that fails stops no other.
func batchGoesOn(e *env) {
	list := e.posts(10)
	var ops []driver.Op
	for i, p := range list {
		op := plain(driver.Remove, p.ID)
		switch i % 3 {
		case 0:
			op.Job = newID() // not known
		case 1:
			op.Precondition, op.Token = driver.HeldByToken, job.Token{Generation: 1, Epoch: 1, Nonce: random16()}
		}
		op.Request = random16()
		ops = append(ops, op)
	}
	want := []job.Kind{job.NotFound, job.LeaseLost, job.NoKind}
	for i, r := range e.apply(ops...) {
		if r.Kind != want[i%3] {
			e.Errorf("item %d of a batch: got %v, want %v: each item stands by itself", i, outcome(&r), want[i%3])
		}
		state := job.Unclaimed
		if i%3 == 2 {
			state = job.Complete
		}
		e.state(list[i].ID, state, "after a batch of which some items failed")
	}
}

// batchMixed checks that results are in order, with ops of every kind.
func batchMixed(e *env) {
	jobs := e.posts(8)
	held := make([]driver.Claimed, 4)
	for i := range held {
		held[i] = e.claim(jobs[i].ID, "w")
	}
	e.must(plain(driver.Trash, jobs[4].ID))
	e.must(plain(driver.Trash, jobs[5].ID))
	fresh := posting("fresh")
	ops := []driver.Op{
		postOp(fresh), byToken(driver.Extend, held[0]), byToken(driver.Release, held[1]), byToken(driver.Remove, held[2]),
		byToken(driver.Trash, held[3]), plain(driver.Restore, jobs[4].ID), plain(driver.Purge, jobs[5].ID),
		claimOp("w", long, jobs[6].ID), plain(driver.Update, jobs[7].ID), plain(driver.Update, newID()),
	}
	for i := range ops {
		ops[i].Request = random16()
	}
	positions := map[driver.Position]bool{}
	for i, r := range e.apply(ops...) {
		switch {
		case i == len(ops)-1:
			if r.Kind != job.NotFound {
				e.Errorf("item %d: got %v, want NOT_FOUND", i, outcome(&r))
			}
			continue
		case r.Kind != job.NoKind:
			e.Errorf("item %d, %s: got %v, want it done", i, describe(&ops[i]), outcome(&r))
		case positions[r.Position]:
			e.Errorf("item %d, %s: position %d is another item's too", i, describe(&ops[i]), r.Position)
		}
		positions[r.Position] = true
		if (len(r.Claims) == 1) != (ops[i].Kind == driver.Claim) || (r.Lease > 0) != (ops[i].Kind == driver.Extend) {
			e.Errorf("item %d, %s: got the result of another op: %+v", i, describe(&ops[i]), r)
		}
	}
	want := []job.State{job.Claimed, job.Unclaimed, job.Complete, job.Trashed, job.Unclaimed, job.Unknown, job.Claimed, job.Unclaimed}
	for i, state := range want {
		e.state(jobs[i].ID, state, "after a mixed batch, job "+itoa(uint64(i)))
	}
	e.state(fresh.ID, job.Unclaimed, "posted in a mixed batch")
}

func batchLarge(e *env) {
	n := max(1, e.caps().MaxBatch)
	ops := make([]driver.Op, n)
	for i := range ops {
		ops[i] = postOp(posting("one of many"))
		ops[i].Request = random16()
	}
	for i, r := range e.apply(ops...) {
		if r.Kind != job.NoKind || r.Record == nil || r.Record.Posting.ID != ops[i].Posting.ID {
			e.Fatalf("item %d of a batch of %d, which the board declares to take: got %v", i, n, outcome(&r))
		}
	}
	ids := make([]job.ID, n)
	for i := range ops {
		ids[n-1-i] = ops[i].Posting.ID
	}
	ids = slices.Concat(ids, []job.ID{newID(), ids[0]})
	records, err := e.driver.Read(e.Context(), e.name, ids, 0)
	if err != nil || len(records) != len(ids) {
		e.Fatalf("Read of %d jobs: got %d and %v", len(ids), len(records), err)
	}
	for i, id := range ids {
		want := job.Unclaimed
		if i == n {
			want = job.Unknown
		}
		if records[i].Posting.ID != id || records[i].State != want {
			e.Errorf("Read: record %d is job %v, %v: want %v, %v, in the order asked for", i, records[i].Posting.ID, records[i].State, id, want)
		}
	}
}

func batchEmpty(e *env) {
	if results := e.apply(); len(results) != 0 {
		e.Errorf("Apply of no ops returned %d results", len(results))
	}
	records, err := e.driver.Read(e.Context(), e.name, nil, 0)
	if err != nil || len(records) != 0 {
		e.Errorf("Read of no jobs: got %d records and %v", len(records), err)
	}
}
