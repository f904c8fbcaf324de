package drivertest

import (
	"sync/atomic"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var inboxChecks = []check{
	{name: "inbox/pages", run: inboxPages},
	{name: "inbox/post", run: inboxPost},
	{name: "inbox/waits", run: inboxWaits},
	{name: "inbox/refuse", run: inboxRefuse},
	{name: "inbox/invalid", run: inboxInvalid},
	{name: "inbox/wakes", run: inboxWakes},
	{name: "hosts/inbox", run: ofCrowd((*crowd).takeIn)},
	{name: "hosts/wakes", run: hostsWakes},
}

// hasInbox reports whether the driver has an inbox, and the harness leaves postings in it.
func (e *env) hasInbox() bool {
	e.Helper()
	if !e.caps().Inbox || e.suite.harness.Leave == nil {
		e.Logf("the driver does not say that it has an inbox, or nothing can be left in it here")
		return false
	}
	return true
}

// leave has postings left for the check's board.
func (e *env) leave(ids ...job.ID) {
	e.Helper()
	e.suite.harness.Leave(e.T, e.name, ids)
}

// inbox returns what waits. It asks for at most so many postings at a time; 0: for all.
func (e *env) inbox(most int) (list []driver.Record) {
	e.Helper()
	for req := (driver.ScanRequest{Set: driver.InboxPostings, Limit: most}); ; {
		next := ""
		for page, err := range e.driver.Scan(e.Context(), e.name, req) {
			if err != nil {
				e.Fatalf("a scan of the inbox: %v", err)
			}
			list, next = append(list, page.Records...), page.Next
		}
		if req.After = next; next == "" {
			return list
		}
	}
}

// waiting waits until so many postings are in the inbox, and returns them.
func (e *env) waiting(n int) (list []driver.Record) {
	e.Helper()
	e.eventually(itoa(uint64(n))+" postings wait in the inbox", func() bool { //nolint:gosec // it is small
		list = e.inbox(0)
		return len(list) == n
	})
	return list
}

// incoming is the op that posts what waits.
func incoming(left *driver.Record) driver.Op {
	p := &driver.Posting{ID: left.Posting.ID, Name: "left", Encoding: job.JSON, Details: []byte(`{}`)}
	p.Digest = digest(p)
	op := postOp(p)
	op.Inbox = left.Posting.Sequence
	return op
}

// told waits until a watch that begins now is told that postings wait.
func (e *env) told() {
	e.Helper()
	for changes, err := range e.driver.Watch(e.Context(), e.name, e.status.Position) {
		if err != nil {
			e.Fatalf("a watch: %v", err)
		}
		if changes.Inbox {
			return
		}
	}
}

func inboxPages(e *env) {
	if !e.hasInbox() {
		return
	}
	ids := []job.ID{newID(), newID(), newID()}
	for _, id := range ids {
		e.leave(id)
	}
	e.waiting(len(ids))
	numbers := map[uint64]bool{}
	for i, r := range e.inbox(1) {
		if r.Posting.ID != ids[i] || len(r.Posting.Details) < 2 || r.Posting.Details[0] != '{' || r.Posting.Sequence == 0 {
			e.Errorf("posting %d in the inbox is %+v: want that of job %v, with a number and a JSON object", i+1, r.Posting, ids[i])
		}
		numbers[r.Posting.Sequence] = true
		e.state(r.Posting.ID, job.Unknown, "it waits in the inbox")
	}
	if len(numbers) != len(ids) {
		e.Errorf("%d postings have %d numbers", len(ids), len(numbers))
	}
	e.told()
}

// inboxPost checks that a posting is taken out in the step that posts it, and only once.
func inboxPost(e *env) {
	if !e.hasInbox() {
		return
	}
	id := newID()
	e.leave(id)
	op := incoming(&e.waiting(1)[0])
	op.Request = random16()
	r := e.must(op)
	e.again(op, &r, "the same once more")
	e.state(id, job.Unclaimed, "it was posted")
	e.waiting(0)
	other := postOp(posting("other"))
	other.Inbox = op.Inbox
	e.refused(other, job.NotFound, "what it is about has left the inbox")
	e.state(other.Job, job.Unknown, "it was not posted")
	e.must(plain(driver.Remove, id))
	e.must(plain(driver.Purge, id))
	e.refused(op, job.NotFound, "it was posted before its job was purged")
	e.state(id, job.Unknown, "it was purged")

	second := newID()
	e.leave(second, second)
	list := e.waiting(2)
	e.must(incoming(&list[0]))
	if r := e.do(incoming(&list[1])); r.Kind != job.NoKind || !r.Repeated {
		e.Errorf("the same job left twice: %v, want the second one Repeated", outcome(&r))
	}
	e.waiting(0)
}

// inboxWaits checks that what is refused for the board's sake waits on.
func inboxWaits(e *env) {
	if !e.hasInbox() || !e.keyed() {
		return
	}
	first := postKeyed(openKey("a"))
	e.must(first)
	e.leave(newID())
	op := incoming(&e.waiting(1)[0])
	op.Keys = []driver.Key{openKey("a")}
	e.keyTaken(op, "a", first.Job, "another job has the key")
	e.waiting(1)
	e.told() // a watcher that comes now
	e.must(plain(driver.Remove, first.Job))
	e.must(op)
	e.waiting(0)
}

func inboxRefuse(e *env) {
	if !e.hasInbox() {
		return
	}
	for _, reason := range []string{"", "it makes no sense"} {
		id := newID()
		e.leave(id)
		left := e.waiting(1)
		refuse := driver.Op{Kind: driver.Refuse, Job: id, Inbox: left[0].Posting.Sequence, Reason: reason}
		if r := e.do(refuse); r.Kind != job.NoKind || r.Position != 0 {
			e.Errorf("a Refuse: %v at position %d, want it done without one", outcome(&r), r.Position)
		}
		e.waiting(0)
		e.refused(refuse, job.NotFound, "it does not wait any more")
		e.refused(incoming(&left[0]), job.NotFound, "it was refused")
		e.state(id, job.Unknown, "it was refused")
	}
}

func inboxInvalid(e *env) {
	if !e.hasInbox() {
		return
	}
	post := postOp(posting("job"))
	e.refused(driver.Op{Kind: driver.Refuse, Job: newID()}, job.Invalid, "it is about no posting")
	post.Inbox = 1 << 63
	e.refused(post, job.Invalid, "a number that is too high")
	update := plain(driver.Update, e.post().ID)
	update.Inbox = 1
	e.refused(update, job.Invalid, "an op that posts nothing")
}

// takeIn has all hosts post what waits, at once.
func (c *crowd) takeIn() {
	e := c.hosts[0]
	if !e.hasInbox() {
		return
	}
	ids := make([]job.ID, 20)
	for i := range ids {
		ids[i] = newID()
	}
	e.leave(ids...)
	for _, h := range c.hosts {
		h.waiting(len(ids))
	}
	var done atomic.Int64
	together(len(c.hosts), func(i int) {
		for _, left := range c.hosts[i].inbox(0) {
			switch r := c.hosts[i].do(incoming(&left)); {
			case r.Kind == job.NoKind && !r.Repeated:
				done.Add(1)
			case r.Kind != job.NoKind && r.Kind != job.NotFound:
				c.Errorf("what several hosts post from the inbox: %v, want it done, Repeated or NOT_FOUND", outcome(&r))
			}
		}
	})
	if done.Load() != int64(len(ids)) {
		c.Errorf("%d of %d postings were posted for the first time: want each once", done.Load(), len(ids))
	}
	for _, h := range c.hosts {
		h.waiting(0)
	}
}
