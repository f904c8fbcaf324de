package drivertest

import (
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var keyChecks = []check{
	{name: "keys/open", run: keysOpen},
	{name: "keys/trash", run: keysTrash},
	{name: "keys/window", run: keysWindow, waits: true},
	{name: "keys/number", run: keysNumber},
	{name: "keys/several", run: keysSeveral},
	{name: "keys/invalid", run: keysInvalid},
	{name: "keys/many", run: keysMany},
	{name: "keys/replace", run: keysReplace},
	{name: "keys/replace-refused", run: keysReplaceRefused},
	{name: "keys/replace-limit", run: keysReplaceLimit},
}

// keyed reports whether the driver keeps keys.
func (e *env) keyed() bool {
	e.Helper()
	if !e.caps().Keys {
		e.Logf("the driver does not say that it keeps keys")
	}
	return e.caps().Keys
}

// postKeyed is a post that takes keys.
func postKeyed(keys ...driver.Key) driver.Op {
	op := postOp(posting("keyed"))
	op.Keys = keys
	return op
}

func openKey(name string) driver.Key { return driver.Key{Name: name, Open: true} }

// keyTaken checks that an op is refused because a job has a key.
func (e *env) keyTaken(op driver.Op, key string, by job.ID, why string) {
	e.Helper()
	r := e.refused(op, job.AlreadyExists, why)
	if r.Kind == job.AlreadyExists && (r.Taken != by || r.Message != key || r.Record != nil && r.Record.Posting.ID != by) {
		e.Errorf("%s: the key %q is said to be job %v's, which is shown as %+v: want %q, and job %v", why, r.Message, r.Taken, r.Record, key, by)
	}
	if op.Kind == driver.Post {
		e.state(op.Job, job.Unknown, why)
	}
}

func keysOpen(e *env) {
	if !e.keyed() {
		return
	}
	first := postKeyed(openKey("a"))
	e.must(first)
	if r := e.do(first); r.Kind != job.NoKind || !r.Repeated {
		e.Errorf("the post that has the key, once more: %v, want it Repeated", outcome(&r))
	}
	second := postKeyed(openKey("a"))
	e.keyTaken(second, "a", first.Job, "an unclaimed job has the key")
	e.must(postKeyed(openKey("b")))
	c := e.claim(first.Job, "w")
	e.keyTaken(second, "a", first.Job, "a claimed job has the key")
	e.must(byToken(driver.Remove, c))
	e.must(second)
	e.keyTaken(postKeyed(openKey("a")), "a", second.Job, "the next job has the key")
	e.must(plain(driver.Remove, second.Job))
	e.must(postKeyed(openKey("a")))
}

// keysTrash checks that a job in the trash leaves its key to others, and gets it back if it
// is free.
func keysTrash(e *env) {
	if !e.keyed() {
		return
	}
	first := postKeyed(openKey("a"))
	e.must(first)
	e.must(plain(driver.Trash, first.Job))
	second := postKeyed(openKey("a"))
	e.must(second)
	back := plain(driver.Restore, first.Job)
	back.Keys = first.Keys
	e.keyTaken(back, "a", second.Job, "another job has the key of one in the trash")
	e.state(first.Job, job.Trashed, "not put back")
	e.must(plain(driver.Remove, second.Job))
	back.Request = random16()
	r := e.must(back)
	e.again(back, &r, "put back once more")
	e.keyTaken(postKeyed(openKey("a")), "a", first.Job, "the job that was put back has the key")
}

// keysWindow checks that a key is had for a time, whatever becomes of the job, and not
// longer.
func keysWindow(e *env) {
	if !e.keyed() {
		return
	}
	long, short := driver.Key{Name: "a", For: time.Hour}, driver.Key{Name: "b", For: job.MinLease}
	first := postKeyed(long)
	e.must(first)
	e.keyTaken(postKeyed(long), "a", first.Job, "within the time of the key")
	e.must(plain(driver.Remove, first.Job))
	e.keyTaken(postKeyed(openKey("a")), "a", first.Job, "the job ended within the time of its key")
	e.must(plain(driver.Purge, first.Job))
	e.keyTaken(postKeyed(openKey("a")), "a", first.Job, "the job was purged within the time of its key")

	outlives, second := postKeyed(short), postKeyed(short)
	e.must(outlives)
	e.lapse()
	e.must(second)
	e.must(plain(driver.Remove, second.Job))
	e.must(plain(driver.Purge, second.Job))
	e.lapse()
	e.must(postKeyed(openKey("b")))
	e.state(outlives.Job, job.Unclaimed, "it outlived the time of its key")
}

// keysNumber checks that a key is taken with growing numbers only, for good.
func keysNumber(e *env) {
	if !e.keyed() {
		return
	}
	numbered := func(n uint64) driver.Op { return postKeyed(driver.Key{Name: "a", Number: n}) }
	first := numbered(5)
	e.must(first)
	for _, n := range []uint64{4, 5} {
		e.keyTaken(numbered(n), "a", first.Job, "the number "+itoa(n)+" after 5")
	}
	second := numbered(7)
	e.must(second)
	e.must(plain(driver.Remove, second.Job))
	e.must(plain(driver.Purge, second.Job))
	e.keyTaken(numbered(7), "a", second.Job, "the number of a job that was purged")
	e.must(numbered(8))
}

// keysSeveral checks that an op takes all its keys or none, and that of two posts in one
// batch only one takes a key.
func keysSeveral(e *env) {
	if !e.keyed() {
		return
	}
	first := postKeyed(openKey("b"))
	e.must(first)
	e.keyTaken(postKeyed(openKey("a"), openKey("b")), "b", first.Job, "one of two keys is had")
	e.must(postKeyed(openKey("a")))
	ops := []driver.Op{postKeyed(openKey("c")), postKeyed(openKey("c"))}
	results := e.apply(ops...)
	done := 0
	for i := range results {
		switch other := ops[1-i].Job; {
		case results[i].Kind == job.NoKind:
			done++
		case results[i].Kind != job.AlreadyExists || results[i].Taken != other:
			e.Errorf("two posts of one key in one batch: %v, the key is job %v's: want job %v's", outcome(&results[i]), results[i].Taken, other)
		}
	}
	if done != 1 {
		e.Errorf("of two posts of one key in one batch %d were done, want 1", done)
	}
}

func keysInvalid(e *env) {
	if !e.keyed() {
		return
	}
	long := make([]byte, driver.MaxKey+1)
	for i := range long {
		long[i] = 'k'
	}
	for why, keys := range map[string][]driver.Key{
		"without a name":     {{Open: true}},
		"with a long name":   {openKey(string(long))},
		"for less than none": {{Name: "a", For: -time.Second}},
		"twice":              {openKey("a"), openKey("a")},
		"too many":           {openKey("a"), openKey("b"), openKey("c"), openKey("d"), openKey("e")},
	} {
		e.refused(postKeyed(keys...), job.Invalid, "a key "+why)
	}
	e.must(postKeyed(openKey(string(long[1:]))))
}

// keysMany checks that keys of ended jobs are free, however many there were.
func keysMany(e *env) {
	if !e.keyed() {
		return
	}
	const jobs = 60
	for round := range 2 {
		var ops []driver.Op
		for i := range jobs {
			ops = append(ops, postKeyed(openKey("key "+itoa(uint64(i)))))
		}
		for i := range ops {
			e.must(ops[i])
		}
		for i := range ops {
			e.keyTaken(postKeyed(ops[i].Keys...), ops[i].Keys[0].Name, ops[i].Job, "round "+itoa(uint64(round)))
			e.must(plain(driver.Remove, ops[i].Job))
		}
	}
}

// replacing is a post that takes a key and the place of another job.
func replacing(other job.ID, keys ...driver.Key) driver.Op {
	op := postKeyed(keys...)
	op.Replaces = &driver.Op{
		Kind: driver.Remove, Job: other, Precondition: driver.Free, Ending: &driver.Ending{Outcome: job.Canceled},
		Event: job.CanceledEvent, Reason: "replaced",
	}
	return op
}

// replaces reports whether the driver replaces jobs.
func (e *env) replaces() bool {
	e.Helper()
	if !e.caps().Replaces {
		e.Logf("the driver does not say that it replaces jobs")
	}
	return e.caps().Replaces
}

// keysReplace checks that a post which replaces a job ends that one, in the same step and
// before, and has its key.
func keysReplace(e *env) {
	if !e.replaces() {
		return
	}
	f := e.follow(e.last())
	for _, key := range []driver.Key{openKey("a"), {Name: "b", For: time.Hour}} {
		first := postKeyed(key)
		e.must(first)
		second := replacing(first.Job, key)
		r := e.must(second)
		e.state(first.Job, job.Complete, "it was replaced")
		e.state(second.Job, job.Unclaimed, "it replaced another")
		e.again(second, &r, "the post that replaced a job, once more")
		e.keyTaken(postKeyed(key), key.Name, second.Job, "the job that replaced another has its key")
		f.until(e, r.Position)
		ended, came := f.seen(first.Job), f.seen(second.Job)
		if len(ended) != 2 || len(came) != 1 || ended[1].Event != job.CanceledEvent || ended[1].Position >= came[0].Position {
			e.Errorf("watchers were told %+v of the job that was replaced, and %+v of the other", ended, came)
		}
	}
}

// keysReplaceRefused checks that nothing changes if either half is refused.
func keysReplaceRefused(e *env) {
	if !e.replaces() {
		return
	}
	first := postKeyed(openKey("a"))
	before := e.must(first)
	refused := func(op driver.Op, kind job.Kind, taken job.ID, why string) {
		e.Helper()
		if r := e.refused(op, kind, why); r.Taken != taken {
			e.Errorf("%s: job %v is said to be in the way, want %v", why, r.Taken, taken)
		}
		e.state(op.Job, job.Unknown, why)
	}
	stale := replacing(first.Job, openKey("a"))
	stale.Replaces.Version = before.Version + 1
	refused(stale, job.Aborted, first.Job, "the job that it replaces is of another version")
	none := newID()
	refused(replacing(none, openKey("b")), job.NotFound, none, "there is no job that it replaces")
	other := postKeyed(openKey("c"))
	e.must(other)
	refused(replacing(first.Job, openKey("c")), job.AlreadyExists, other.Job, "a third job has its key")
	e.state(first.Job, job.Unclaimed, "nothing replaced it")
	c := e.claim(first.Job, "w")
	refused(replacing(first.Job, openKey("a")), job.AlreadyClaimed, first.Job, "the job that it replaces is claimed")
	e.state(first.Job, job.Claimed, "nothing replaced it")
	e.must(byToken(driver.Remove, c))
	refused(replacing(first.Job, openKey("a")), job.NotFound, first.Job, "the job that it replaces has ended")
	wrong := replacing(other.Job, openKey("c"))
	wrong.Replaces.Precondition = driver.Whatever
	refused(wrong, job.Invalid, job.ID{}, "it replaces a job whoever holds it")
}

// keysReplaceLimit checks that the place of a job that is replaced is free.
func keysReplaceLimit(e *env) {
	if !e.replaces() || !e.caps().Limits {
		return
	}
	one := []driver.Limit{{Key: "most", Max: 1}}
	first := postKeyed(openKey("a"))
	first.Limits = one
	e.must(first)
	second := replacing(first.Job, openKey("a"))
	second.Limits = one
	e.must(second)
	third := postKeyed()
	third.Limits = one
	e.refused(third, job.QuotaExceeded, "the job that replaced another counts")
	e.must(plain(driver.Remove, second.Job))
	e.must(third)
}

// keyRace checks that of posts of one key by several hosts at the same time exactly one is
// done, again and again, while jobs that have it end.
func (c *crowd) keyRace() {
	if !c.caps().Keys {
		return
	}
	const rounds, at = 10, 4
	for range rounds {
		var done atomic.Int32
		var has atomic.Pointer[job.ID]
		together(at, func(i int) {
			op := postKeyed(openKey("raced"))
			r := c.hosts[i%len(c.hosts)].settled(op)
			switch {
			case r.Kind == job.NoKind:
				done.Add(1)
				has.Store(&op.Job)
			case r.Kind != job.AlreadyExists:
				c.Errorf("a post of a key beside others: got %v", outcome(&r))
			}
		})
		if n := done.Load(); n != 1 {
			c.Fatalf("of %d posts of one key at the same time %d were done, want 1", at, n)
		}
		c.env.must(plain(driver.Remove, *has.Load()))
	}
}
