package drivertest

import (
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A repeatable is an op whose answer may be lost.
type repeatable struct {
	name    string
	prepare func(e *env) (job.ID, driver.Op) // where to, and the op
	later   func(e *env, id job.ID)          // what happens to the job after it
}

func claimThen(kind driver.OpKind, must driver.Precondition) func(e *env) (job.ID, driver.Op) {
	return func(e *env) (job.ID, driver.Op) {
		p := e.post()
		op := byToken(kind, e.claim(p.ID, "w"))
		op.Precondition, op.Owner = must, "w"
		return p.ID, op
	}
}

func free(kind driver.OpKind, must driver.Precondition) func(e *env) (job.ID, driver.Op) {
	return func(e *env) (job.ID, driver.Op) {
		op := plain(kind, e.post().ID)
		op.Precondition = must
		return op.Job, op
	}
}

func inTrash(kind driver.OpKind) func(e *env) (job.ID, driver.Op) {
	return func(e *env) (job.ID, driver.Op) {
		p := e.post()
		e.must(plain(driver.Trash, p.ID))
		return p.ID, plain(kind, p.ID)
	}
}

// versioned makes the op ask for the version that the job has.
func versioned(prepare func(e *env) (job.ID, driver.Op)) func(e *env) (job.ID, driver.Op) {
	return func(e *env) (job.ID, driver.Op) {
		id, op := prepare(e)
		op.Version = e.readParts(id, 0).Version
		return id, op
	}
}

func claimAgain(e *env, id job.ID)   { e.claim(id, "another") }
func restoreIt(e *env, id job.ID)    { e.must(plain(driver.Restore, id)) }
func purgeIt(e *env, id job.ID)      { e.must(plain(driver.Purge, id)) }
func updateIt(e *env, id job.ID)     { e.must(plain(driver.Update, id)) }
func consumeIt(e *env, id job.ID)    { e.must(plain(driver.Remove, id)) }
func restoreTake(e *env, id job.ID)  { restoreIt(e, id); claimAgain(e, id) }
func claimConsume(e *env, id job.ID) { e.must(byToken(driver.Remove, e.claim(id, "another"))) }

var transitions = []repeatable{
	{"update-by-token", claimThen(driver.Update, driver.HeldByToken), updateIt},
	{"update-by-token-at-version", versioned(claimThen(driver.Update, driver.HeldByToken)), consumeIt},
	{"update", free(driver.Update, driver.Whatever), claimAgain},
	{"update-at-version", versioned(free(driver.Update, driver.Whatever)), claimConsume},
	{"release-by-token", claimThen(driver.Release, driver.HeldByToken), claimAgain},
	{"release-by-token-then-consumed", claimThen(driver.Release, driver.HeldByToken), claimConsume},
	{"release-by-token-then-purged", claimThen(driver.Release, driver.HeldByToken), func(e *env, id job.ID) { consumeIt(e, id); purgeIt(e, id) }},
	{"release-by-token-at-version", versioned(claimThen(driver.Release, driver.HeldByToken)), updateIt},
	{"release-by-owner", claimThen(driver.Release, driver.HeldByOwner), claimAgain},
	{"release-by-person", claimThen(driver.Release, driver.Held), claimAgain},
	{"remove-by-token", claimThen(driver.Remove, driver.HeldByToken), purgeIt},
	{"remove-by-owner", claimThen(driver.Remove, driver.HeldByOwner), purgeIt},
	{"remove-by-person", claimThen(driver.Remove, driver.Held), purgeIt},
	{"remove-free", versioned(free(driver.Remove, driver.Free)), purgeIt},
	{"aside-by-token", claimThen(driver.Trash, driver.HeldByToken), restoreTake},
	{"aside-by-token-then-purged", claimThen(driver.Trash, driver.HeldByToken), purgeIt},
	{"aside-by-owner", claimThen(driver.Trash, driver.HeldByOwner), restoreIt},
	{"aside-free", free(driver.Trash, driver.Free), restoreTake},
	{"restore", versioned(inTrash(driver.Restore)), claimAgain},
	{"purge", versioned(inTrash(driver.Purge)), nil},
}

func retryChecks() []check {
	list := []check{
		{name: "retry/extend", run: retryExtend},
		{name: "retry/other-request", run: retryOtherRequest},
		{name: "retry/in-a-batch", run: retryInABatch},
		{name: "retry/other-endings", run: retryOtherEndings},
	}
	for _, t := range transitions {
		list = append(list, check{name: "retry/" + t.name, run: t.check})
	}
	return list
}

// check makes the repeatable, and repeats it at once and after the job was
// changed by somebody else.
func (t repeatable) check(e *env) {
	id, op := t.prepare(e)
	op.Request = random16()
	first := e.must(op)
	before := e.read(id)
	e.again(op, &first, "at once")
	e.again(op, &first, "and once more")
	e.unchanged(&before, "a retry")
	if t.later == nil {
		return
	}
	t.later(e, id)
	before = e.read(id)
	e.again(op, &first, "after the job was changed since")
	e.unchanged(&before, "a retry")
}

func retryExtend(e *env) {
	c := e.claim(e.post().ID, "w")
	op := byToken(driver.Extend, c)
	op.Request = random16()
	for range 3 {
		if r := e.do(op); r.Kind != job.NoKind || r.Lease <= 0 {
			e.Errorf("an extension, again: got %v with a lease of %v, want it done", outcome(&r), r.Lease)
		}
	}
}

// retryOtherRequest checks that only the same request is recognised.
func retryOtherRequest(e *env) {
	id := e.post().ID
	op := plain(driver.Remove, id)
	op.Request = random16()
	e.must(op)
	other := op
	other.Request = random16()
	e.refused(other, job.NotFound, "another request to remove a job that was removed")
	elsewhere := op
	elsewhere.Job = e.post().ID
	r := e.do(elsewhere)
	if r.Kind != job.NoKind || r.Repeated {
		e.Errorf("the same request for another job: got %v, want it done for the first time", outcome(&r))
	}
	e.again(op, nil, "at last")
}

// retryInABatch repeats a whole batch, of which a part was done.
func retryInABatch(e *env) {
	list := e.posts(8)
	var ops []driver.Op
	for i, p := range list {
		op := plain(driver.Remove, p.ID)
		if i%2 == 0 {
			op = byToken(driver.Remove, e.claim(p.ID, "w"))
		}
		op.Request = random16()
		ops = append(ops, op)
	}
	e.apply(ops[:4]...)
	for i, r := range e.apply(ops...) {
		if r.Kind != job.NoKind || r.Repeated != (i < 4) {
			e.Errorf("item %d of a batch of which the first 4 were done: got %v", i, outcome(&r))
		}
	}
}

// ending is what a token may do to its claim, and no two of them are the same.
type ending struct {
	kind    driver.OpKind
	outcome job.Outcome // NoOutcome: no Op.Ending
}

// gaveUp is that the last attempt was given up.
var gaveUp = ending{driver.Trash, job.Failed}

var endings = []ending{
	{driver.Release, job.NoOutcome},
	{driver.Remove, job.NoOutcome},
	{driver.Remove, job.Canceled},
	{driver.Remove, job.Failed},
	{driver.Trash, job.NoOutcome},
	gaveUp,
}

func (n ending) op(c driver.Claimed) driver.Op {
	op := byToken(n.kind, c)
	if n.outcome != job.NoOutcome {
		op.Ending = &driver.Ending{Outcome: n.outcome}
	}
	return op
}

// retryOtherEndings checks every pair of endings by one token: when it has made the one, it is
// told that it did so, and not that it did the other, wherever the job has come to.
func retryOtherEndings(e *env) {
	list := endings
	if !e.caps().Endings {
		e.Logf("the driver does not say that it tells a last attempt that was given up from a job that was trashed")
		list = slices.DeleteFunc(slices.Clone(list), func(n ending) bool { return n == gaveUp })
	}
	for _, first := range list {
		for _, other := range list {
			if other == first {
				continue
			}
			c := e.claim(e.post().ID, "w")
			r := e.must(first.op(c))
			lost := func(kind job.Kind, where string) {
				e.Helper()
				before := e.read(c.Job)
				for range 2 {
					e.refused(other.op(c), kind, "this token made another ending, "+where)
					e.unchanged(&before, "another ending, "+where)
					e.again(first.op(c), &r, where)
				}
			}
			lost(job.LeaseLost, "and nobody had the job since")
			switch first.kind {
			case driver.Trash:
				restoreIt(e, c.Job)
			case driver.Remove:
				purgeIt(e, c.Job)
				lost(job.NotFound, "and the job was purged")
				continue
			}
			theirs := e.claim(c.Job, "another")
			lost(job.LeaseLost, "and another has the job")
			e.must(list[len(list)-1].op(theirs))
			lost(job.LeaseLost, "and another ended its claim")
			purgeIt(e, c.Job)
			lost(job.NotFound, "and the job was purged")
		}
	}
}
