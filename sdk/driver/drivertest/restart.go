package drivertest

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var restartChecks = []check{
	{name: "restart/keeps-everything", run: restarted(restartKeepsEverything)},
	{name: "restart/tokens", run: restarted(restartTokens)},
	{name: "restart/retries", run: restarted(restartRetries)},
	{name: "restart/leases", run: restarted(restartLeases), waits: true},
	{name: "restart/documents", run: restarted(restartDocuments)},
	{name: "restart/again-and-again", run: restarted(restartAgainAndAgain)},
}

// restarted gives a check a store that outlives its driver, and a way to open
// it again.
func restarted(run func(e *env, restart func())) func(*env) {
	return func(e *env) {
		if e.suite.harness.Store == nil {
			e.Logf("the harness has no store that outlives its driver")
			return
		}
		if e.status.Durability == driver.Volatile {
			e.Logf("the store declares that it keeps nothing when it stops")
			return
		}
		reopen := e.suite.harness.Store(e.T)
		r := &env{T: e.T, suite: e.suite, name: boardName("restarted")}
		var memory []byte
		start := func() {
			r.driver = reopen()
			spec := r.suite.spec(r.name)
			spec.Witness = memory
			status, err := r.driver.OpenBoard(r.Context(), spec)
			if err != nil {
				r.Fatalf("OpenBoard: %v", err)
			}
			if status.Loss != "" {
				r.Errorf("the store was closed in order, and says that it lost something: %s", status.Loss)
			}
			r.status, memory = status, status.Witness
		}
		start()
		e.Cleanup(func() {
			if err := r.driver.Close(); err != nil {
				r.Errorf("Close: %v", err)
			}
		})
		run(r, func() {
			e.Helper()
			if err := r.driver.Close(); err != nil {
				r.Errorf("Close: %v", err)
			}
			start()
		})
	}
}

// scatter leaves jobs in every state, and returns them.
func (e *env) scatter() []*driver.Posting {
	e.Helper()
	list := e.posts(40)
	for i, p := range list[:32] {
		c := e.claim(p.ID, "w")
		switch i % 4 {
		case 0:
			e.must(byToken(driver.Release, c))
		case 1:
			op := byToken(driver.Remove, c)
			op.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: []byte("final"), KeepPosting: true}
			e.must(op)
		case 2:
			e.must(byToken(driver.Trash, c))
		}
	}
	held := plain(driver.Update, list[39].ID)
	status := []byte("status")
	held.Hold, held.Status = &driver.Hold{Always: true}, &status
	if e.caps().Attachments {
		held.Attach = []driver.Attachment{{Name: "a", Data: []byte("b")}}
	}
	e.must(held)
	return list
}

func restartKeepsEverything(e *env, restart func()) {
	list := e.scatter()
	last := e.post()
	before := make([]driver.Record, len(list))
	for i, p := range list {
		before[i] = e.read(p.ID)
	}
	position := e.read(last.ID).Position
	restart()
	for i, p := range list {
		now := e.read(p.ID)
		if diff := difference(&before[i], &now); diff != "" {
			e.Errorf("after a restart a job is another: %s", diff)
		}
		if now.State != job.Complete {
			e.samePosting(&now.Posting, p, true)
		}
	}
	e.state(last.ID, job.Unclaimed, "posted last before a restart")
	if e.status.Position < position {
		e.Errorf("after a restart the board is at position %d, before it was at %d", e.status.Position, position)
	}
	p := e.post()
	if rec := e.read(p.ID); rec.Posting.Sequence <= before[39].Posting.Sequence || rec.Position <= position {
		e.Errorf("after a restart a post has sequence %d and position %d: want more than %d and %d",
			rec.Posting.Sequence, rec.Position, before[39].Posting.Sequence, position)
	}
}

func restartTokens(e *env, restart func()) {
	list := e.posts(3)
	kept, released := e.claim(list[0].ID, "w"), e.claim(list[1].ID, "w")
	e.must(byToken(driver.Release, released))
	highest := e.claim(list[2].ID, "w")
	generation := e.status.Generation
	restart()
	if e.status.Generation < generation {
		e.Errorf("after a restart the generation is %d, was %d", e.status.Generation, generation)
	}
	e.must(byToken(driver.Extend, kept))
	next := e.claim(list[1].ID, "w")
	if t := next.Token; t.Generation == highest.Token.Generation && t.Epoch <= highest.Token.Epoch {
		e.Errorf("after a restart a claim has epoch %d, before there was one with %d: want it to grow", t.Epoch, highest.Token.Epoch)
	}
	e.refused(byToken(driver.Extend, released), job.LeaseLost, "its claim ended before the restart")
	e.must(byToken(driver.Remove, kept))
}

func restartRetries(e *env, restart func()) {
	list := e.posts(4)
	byClaim := byToken(driver.Remove, e.claim(list[0].ID, "w"))
	byRequest := plain(driver.Remove, list[1].ID)
	byRequest.Request = random16()
	given := byToken(driver.Release, e.claim(list[2].ID, "w"))
	claim := claimOp("w", long, list[3].ID)
	claim.Request, claim.Claim.Remember = random16(), true
	ops := []driver.Op{byClaim, byRequest, given}
	var firsts []driver.Result
	for _, op := range ops {
		firsts = append(firsts, e.must(op))
	}
	answer := e.must(claim)
	restart()
	for i, op := range ops {
		e.again(op, &firsts[i], "after a restart")
	}
	e.again(postOp(list[0]), nil, "a post, after a restart")
	if r := e.do(claim); !r.Repeated || !sameTokens(r.Claims, answer.Claims) {
		e.Errorf("a remembered claim, after a restart: got %v with %d claims, want the same", outcome(&r), len(r.Claims))
	}
}

func restartLeases(e *env, restart func()) {
	list := e.posts(3)
	brief := e.claimFor(list[0].ID, "w", job.MinLease)
	lasting := e.claim(list[1].ID, "w")
	hold := plain(driver.Update, list[2].ID)
	hold.Hold = &driver.Hold{For: time.Hour}
	e.must(hold)
	restart()
	e.taken(claimOp("another", long, lasting.Job), job.AlreadyClaimed, "its lease still runs after a restart")
	e.taken(claimOp("another", long, list[2].ID), job.NotEligible, "it is held after a restart")
	if rec := e.read(lasting.Job); rec.Holder == nil || rec.Holder.Remaining <= 0 || rec.Holder.Remaining > long {
		e.Errorf("after a restart the holder is %+v, want at most %v left", rec.Holder, long)
	}
	e.eventually("a lease of a second runs out after a restart", func() bool {
		op := byToken(driver.Release, brief)
		op.Precondition = driver.Lapsed
		return e.do(op).Kind == job.NoKind
	})
}

func restartDocuments(e *env, restart func()) {
	v := e.put(e.shelf(), "kept", "one", 0)
	gone := e.put(e.shelf(), "gone", "one", 0)
	if err := e.driver.Documents().Delete(e.Context(), e.shelf(), "gone", gone); err != nil {
		e.Errorf("Delete: %v", err)
	}
	restart()
	doc, err := e.driver.Documents().Get(e.Context(), e.shelf(), "kept")
	if err != nil || string(doc.Data) != "one" || doc.Version != v {
		e.Errorf("after a restart: %+v, %v; want one at version %d", doc, err, v)
	}
	_, err = e.driver.Documents().Get(e.Context(), e.shelf(), "gone")
	e.wantKind(err, job.NotFound, "Get of a document deleted before a restart")
	if next := e.put(e.shelf(), "gone", "two", 0); next <= gone {
		e.Errorf("after a restart a document made again has version %d, before it had %d: want it to grow", next, gone)
	}
}

func restartAgainAndAgain(e *env, restart func()) {
	var all []*driver.Posting
	for range 4 {
		all = append(all, e.posts(5)...)
		restart()
		for _, p := range all {
			e.state(p.ID, job.Unclaimed, "acknowledged before a restart")
		}
	}
	list, _ := e.scan(driver.ScanRequest{})
	e.exactly(list, idsOf(all, job.Unclaimed), "a scan after restarts")
}
