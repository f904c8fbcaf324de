package seeded

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// driverBugs are wrong drivers that the conformance suite of drivers does not list.
func driverBugs() []Bug {
	return []Bug{
		{Name: "consume-not-done", Where: Driver, Doc: "acknowledges every fourth removal and does not make it", Checker: "posts", open: on(driver.Remove, 4, notDone)},
		{Name: "trash-not-done", Where: Driver, Doc: "acknowledges every third trashing and does not make it", Checker: "linear", open: on(driver.Trash, 3, notDone)},
		{Name: "restore-not-done", Where: Driver, Doc: "acknowledges restoring and does not do it", Checker: "linear", open: on(driver.Restore, 1, notDone)},
		{Name: "purge-not-done", Where: Driver, Doc: "acknowledges purging and does not do it", Checker: "linear", open: on(driver.Purge, 1, notDone)},
		{Name: "extend-not-done", Where: Driver, Doc: "acknowledges an extension and does not make it", Checker: "linear", open: on(driver.Extend, 1, notExtended)},
		{Name: "refused-and-done", Where: Driver, Doc: "says of every fifth post that the store is away, and makes it", Checker: "refusals", open: on(driver.Post, 5, doneAndRefused)},
		{Name: "claimed-and-refused", Where: Driver, Doc: "says of every eighth claim that the store is away, and makes it", Checker: "linear", open: on(driver.Claim, 8, doneAndRefused)},
		{Name: "short-lease", Where: Driver, Doc: "grants a lease and keeps half of it", Checker: "linear", open: on(driver.Claim, 1, shortLease)},
		{Name: "timeout-not-kept", Where: Driver, Doc: "says that a lease is cut to the job's timeout, and keeps the whole", Checker: "timeouts", open: on(driver.Claim, 1, timeoutNotKept)},
		{Name: "timeout-anew", Where: Driver, Doc: "counts a job's timeout anew with each extension", Checker: "timeouts", open: on(driver.Extend, 1, timeoutAnew)},
		{Name: "ticks-lost", Where: Driver, Doc: "drops the job of every second tick of a schedule once it has acknowledged it", Checker: "ticks", open: on(driver.Post, 1, lost(isTick, every(2)))},
		{Name: "ticks-forgotten", Where: Driver, Doc: "keeps no number with a key, by which a tick would be known again", Checker: "ticks", open: on(driver.Post, 1, forgottenTick(every(2)))},
		{Name: "limit-exceeded", Where: Driver, Doc: "does not look at the limits of every third post", Checker: "limits", Limit: 10, open: on(driver.Post, 3, unlimited)},
		{Name: "batch-uncounted", Where: Driver, Doc: "does not count every fourth job of a batch", Checker: "batches", open: on(driver.Post, 1, uncounted(every(4)))},
		{Name: "batch-follows-early", Where: Driver, Doc: "lets a job follow a batch that has open jobs", Checker: "batches", open: followsEarly},
		{Name: "batch-then-lost", Where: Driver, Doc: "drops every second job that follows a batch once it has acknowledged it", Checker: "batches", open: on(driver.Post, 1, lost(follows, every(2)))},
	}
}

// isTick reports whether an op posts the job of a schedule's tick.
func isTick(op *driver.Op) bool {
	return slices.ContainsFunc(op.Keys, func(k driver.Key) bool { return k.Number > 0 })
}

// follows reports whether an op posts the job that follows a batch.
func follows(op *driver.Op) bool { return op.Emptied != "" }

// lost drops some jobs of a kind once they are posted.
func lost(is func(*driver.Op) bool, some func() bool) func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		r := d.Apply(ctx, board, []driver.Op{op})[0]
		if is(&op) && r.Kind == job.NoKind && some() {
			d.Apply(ctx, board, []driver.Op{{Kind: driver.Remove, Job: op.Job, Event: job.ConsumedEvent}})
			d.Apply(ctx, board, []driver.Op{{Kind: driver.Purge, Job: op.Job, Event: job.PurgedEvent}})
		}
		return r
	}
}

// forgottenTick loses some answers as well, as right drivers may: the ticks are tried again then.
// It loses them when somebody has purged the job, for until then a tick is known by its job.
func forgottenTick(lost func() bool) func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		tick := isTick(&op)
		op.Keys = slices.Clone(op.Keys)
		for i := range op.Keys {
			op.Keys[i].Number = 0
		}
		r := d.Apply(ctx, board, []driver.Op{op})[0]
		if tick && lost() {
			awaitPurge(ctx, d, board, op.Job)
			return driver.Result{Kind: job.OutcomeUnknown, Message: "the answer was lost"}
		}
		return r
	}
}

// awaitPurge waits until a job is gone, or until that has taken too long: a quarter of them stays.
func awaitPurge(ctx context.Context, d driver.Driver, board string, id job.ID) {
	for range 100 {
		records, err := d.Read(ctx, board, []job.ID{id}, 0)
		if err != nil || len(records) == 1 && records[0].State == job.Unknown || sleep.For(ctx, 20*time.Millisecond) != nil {
			return
		}
	}
}

func unlimited(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	op.Limits = nil
	return d.Apply(ctx, board, []driver.Op{op})[0]
}

func uncounted(forgets func() bool) func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	return func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		if op.Group != "" && forgets() {
			op.Group = ""
		}
		return d.Apply(ctx, board, []driver.Op{op})[0]
	}
}

// followsEarly says that batches are closed and empty, and does not look when a job follows.
func followsEarly(ctx context.Context, c driver.Config) (driver.Driver, error) {
	d, err := memdriver.Open(ctx, c)
	asked := &wrongOp{Driver: d, kind: driver.Tally, nth: 1, wrong: func(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
		r := d.Apply(ctx, board, []driver.Op{op})[0]
		if r.Group != nil {
			r.Group.Consumed += r.Group.Open
			r.Group.Open = 0
		}
		return r
	}}
	return &wrongOp{Driver: asked, kind: driver.Post, nth: 1, wrong: unconditional}, err
}

func unconditional(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	op.Emptied = ""
	return d.Apply(ctx, board, []driver.Op{op})[0]
}

func notDone(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	records, err := d.Read(ctx, board, []job.ID{op.Job}, 0)
	if err != nil || len(records) != 1 || records[0].State == job.Unknown {
		return d.Apply(ctx, board, []driver.Op{op})[0]
	}
	return driver.Result{Position: records[0].Position, Version: records[0].Version, At: time.Now()}
}

func notExtended(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	r := notDone(ctx, d, board, op)
	r.Lease = op.Lease
	return r
}

func doneAndRefused(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	d.Apply(ctx, board, []driver.Op{op})
	return driver.Result{Kind: job.Unavailable, Message: "the store is away"}
}

func shortLease(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	c := *op.Claim
	granted := c.Lease
	c.Lease /= 2
	op.Claim = &c
	r := d.Apply(ctx, board, []driver.Op{op})[0]
	r.Claims = slices.Clone(r.Claims)
	for i := range r.Claims {
		r.Claims[i].Lease = granted
	}
	return r
}

func timeoutNotKept(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	c := *op.Claim
	c.Candidates = slices.Clone(c.Candidates)
	most := map[job.ID]time.Duration{}
	for i := range c.Candidates {
		most[c.Candidates[i].Job] = c.Candidates[i].Most
		c.Candidates[i].Most = 0
	}
	op.Claim = &c
	r := d.Apply(ctx, board, []driver.Op{op})[0]
	r.Claims = slices.Clone(r.Claims)
	for i := range r.Claims {
		if m := most[r.Claims[i].Job]; m > 0 {
			r.Claims[i].Lease = min(r.Claims[i].Lease, m)
		}
	}
	return r
}

func timeoutAnew(ctx context.Context, d driver.Driver, board string, op driver.Op) driver.Result {
	if op.Most > 0 {
		op.Lease, op.Most = min(op.Lease, op.Most), 0
	}
	return d.Apply(ctx, board, []driver.Op{op})[0]
}
