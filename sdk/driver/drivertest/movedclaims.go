package drivertest

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func moveHeld(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	e.noStep(driver.Receive, random16(), job.Precondition, "Receive of a board with a claim")
	e.must(byToken(driver.Remove, c))
	e.receive(random16())
}

// heldOp has an imported job held by a token of another store.
func (e *env) heldOp(op driver.Op, lease time.Duration) (driver.Op, driver.Claimed) {
	token := job.Token{Generation: e.status.Generation, Epoch: farAhead - 7, Nonce: random16()}
	op.Import.EndedAt = past(time.Minute)
	op.Import.Then = &driver.Op{
		Kind: driver.Claim, Job: op.Job, Owner: "who held it", Token: token, Lease: lease, NoExpiry: lease == 0, Event: job.ClaimedEvent,
	}
	return op, driver.Claimed{Job: op.Job, Token: token}
}

// moveClaims checks that a claim of another store comes along with its token and a whole
// lease.
func moveClaims(e *env) {
	id := random16()
	e.receive(id)
	op, c := e.heldOp(movedOp(id), long)
	endless, other := e.heldOp(movedOp(id), 0)
	lost, gone := e.heldOp(movedOp(id), long)
	older, _ := e.heldOp(movedOp(id), long)
	older.Import.Then.Token.Generation--
	e.refused(older, job.Precondition, "a claim of an earlier generation")
	for _, op := range []driver.Op{op, endless, lost} {
		r := e.must(op)
		if r.Record == nil || r.Record.State != job.Claimed {
			e.Errorf("the import of a claimed job shows %+v: want it CLAIMED", r.Record)
		}
		e.again(op, &r, "imported again")
	}
	rec := e.state(op.Job, job.Claimed, "imported with its claim")
	h := rec.Holder
	if h.Owner != "who held it" || h.Token != c.Token || h.NoExpiry || h.Foreign || h.Remaining < long/2 || h.Remaining > long {
		e.Errorf("the imported claim is %+v: want its owner, its token %+v and the whole lease of %v", h, c.Token, long)
	}
	if string(rec.Status) != "status" || len(rec.Posting.Details) == 0 {
		e.Errorf("the imported job is %+v: want its status and its details", rec)
	}
	if !h.Since.Truncate(time.Microsecond).Equal(op.Import.EndedAt) {
		e.Errorf("the imported claim was made at %v: want %v", h.Since, op.Import.EndedAt)
	}
	if h := e.state(endless.Job, job.Claimed, "imported with its claim").Holder; !h.NoExpiry {
		e.Errorf("the imported claim is %+v: want no expiry", h)
	}
	e.refused(byToken(driver.Extend, c), job.Unavailable, "the board still receives")
	e.step(driver.Admit, id)
	e.taken(claimOp("another", long, op.Job), job.AlreadyClaimed, "the imported claim stands")
	e.must(byToken(driver.Extend, c))
	e.must(byToken(driver.Remove, c))
	e.again(byToken(driver.Remove, c), nil, "the ending of an imported claim, once more")
	e.must(byToken(driver.Release, other))
	e.must(plain(driver.Trash, lost.Job))
	e.refused(byToken(driver.Remove, gone), job.LeaseLost, "the imported claim has ended")
	next := e.claim(endless.Job, "another")
	if next.Token.Generation < c.Token.Generation || next.Token.Epoch <= c.Token.Epoch {
		e.Errorf("the token after one of generation %d, epoch %d has %d, %d: want it to grow", c.Token.Generation, c.Token.Epoch, next.Token.Generation, next.Token.Epoch)
	}
}

// moveLapse checks that an imported claim lasts as long as its lease.
func moveLapse(e *env) {
	id := random16()
	e.receive(id)
	op, c := e.heldOp(movedOp(id), job.MinLease)
	e.must(op)
	lasting, running := e.heldOp(movedOp(id), long)
	e.must(lasting)
	e.step(driver.Admit, id)
	early := byToken(driver.Release, running)
	early.Precondition = driver.Lapsed
	e.refused(early, job.Precondition, "the lease of the imported claim runs")
	e.lapse()
	e.refused(byToken(driver.Extend, c), job.LeaseLost, "the lease of the imported claim has run out")
	e.claim(op.Job, "another")
	e.refused(byToken(driver.Remove, c), job.LeaseLost, "another has the job")
}

func moveLimits(e *env) {
	if !e.caps().Limits {
		return
	}
	id := random16()
	e.receive(id)
	var claims []driver.Claimed
	for range 3 {
		op, c := e.heldOp(movedOp(id), long)
		op.Limits = []driver.Limit{{Key: "open", Max: 1}}
		op.Import.Then.Limits = []driver.Limit{{Key: "claims", Max: 1}}
		e.must(op)
		claims = append(claims, c)
	}
	e.stands("open", 3, "three jobs were imported")
	e.stands("claims", 3, "with their claims")
	e.step(driver.Admit, id)
	e.must(byToken(driver.Release, claims[0]))
	e.must(byToken(driver.Remove, claims[1]))
	e.stands("open", 2, "one of the jobs has ended")
	e.stands("claims", 1, "two of the claims have ended")
	e.must(byToken(driver.Trash, claims[2]))
	e.stands("claims", 0, "all claims have ended")
}

// moveEndedBy checks that a board says by which token a job ended, so that it can come along.
func moveEndedBy(e *env) {
	p, kept, other := e.post(), e.post(), e.post()
	c, last := e.claim(p.ID, "w"), e.claim(kept.ID, "w")
	e.must(byToken(driver.Remove, c))
	final := byToken(driver.Remove, last)
	final.Ending = &driver.Ending{Outcome: job.Failed, Keep: time.Hour, Data: []byte("final")}
	e.must(final)
	e.must(plain(driver.Remove, other.ID))
	for id, want := range map[job.ID]job.Token{p.ID: c.Token, kept.ID: last.Token, other.ID: {}} {
		if got := e.readParts(id, driver.FinalData).EndedBy; got != want {
			e.Errorf("a job that ended by %+v is said to have ended by %+v", want, got)
		}
		if got := e.readParts(id, 0).EndedBy; got != (job.Token{}) {
			e.Errorf("a read without final records shows the token of an ending: %+v", got)
		}
	}
}
