package drivertest

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// moveAgain checks that a board which receives goes on from behind what the other store's has
// come to meanwhile, with what it has, claims too.
func moveAgain(e *env) {
	id := random16()
	e.receive(id)
	op, c := e.heldOp(movedOp(id), long)
	e.must(op)
	m := driver.Move{Step: driver.Receive, ID: id, Generation: e.status.Generation, Position: e.status.Position + farAhead}
	for _, what := range []string{"Receive with a later position", "the same once more", "Receive with an earlier position"} {
		if err := e.mover().MoveBoard(e.Context(), e.name, m); err != nil {
			e.Fatalf("%s: %v", what, err)
		}
		before := e.status.Position
		e.openAgain()
		if m.Position > before && e.status.Position <= m.Position || e.status.Position < before || e.status.Generation != m.Generation {
			e.Errorf("%s %d, in generation %d, has the board at %d, in %d: want it beyond that and where it was, %d",
				what, m.Position, m.Generation, e.status.Position, e.status.Generation, before)
		}
		if what == "the same once more" {
			m.Position = 1
		}
	}
	e.refused(postOp(posting("p")), job.Unavailable, "the board receives still")
	e.state(op.Job, job.Claimed, "the board received again")
	reached := e.status.Position
	other := movedOp(id)
	for _, op := range []driver.Op{other, movedOp(id), movedOp(id)} {
		r := e.must(op)
		if r.Position <= reached {
			e.Errorf("an import after that is at position %d: want it beyond %d", r.Position, reached)
		}
		reached = r.Position
	}
	m.Position = reached - 1 // what was imported counts the positions here up, and tokens there went on, too
	if err := e.mover().MoveBoard(e.Context(), e.name, m); err != nil {
		e.Fatalf("Receive with a position that imports have gone beyond: %v", err)
	}
	reached = m.Position
	e.openAgain()
	e.step(driver.Admit, id)
	e.must(byToken(driver.Extend, c))
	if next := e.claim(other.Job, "w"); next.Token.Epoch <= uint64(reached) {
		e.Errorf("a token after the move has epoch %d: want it above %d", next.Token.Epoch, reached)
	}
}

// follow makes an op one that has an imported job follow the other store.
func follow(op driver.Op, id [16]byte) driver.Op {
	op.Request, op.Import = random16(), &driver.Import{Move: id}
	return op
}

// moveFollows checks that imported jobs follow what becomes of them in the other store, as
// long as the board receives, and for that move alone.
func moveFollows(e *env) {
	id := random16()
	e.receive(id)
	var jobs []driver.Op
	for range 4 {
		jobs = append(jobs, movedOp(id))
		e.must(jobs[len(jobs)-1])
	}
	update := plain(driver.Update, jobs[0].Job)
	status := []byte("later")
	update.Status, update.Hold = &status, &driver.Hold{Always: true}
	if e.caps().Attachments {
		update.Attach = []driver.Attachment{{Name: "log/1", Data: []byte("a line")}}
	}
	e.refused(update, job.Unavailable, "an update of no move on a board that receives")
	e.refused(follow(update, random16()), job.Precondition, "an update of another move")
	before := e.read(jobs[0].Job)
	following := follow(update, id)
	r := e.must(following)
	e.again(following, &r, "the update came again")
	after := e.readParts(jobs[0].Job, driver.Attached)
	if string(after.Status) != "later" || !after.Held || after.Posting.Sequence != before.Posting.Sequence || len(after.Attached) != len(update.Attach) {
		e.Errorf("the imported job is %+v: want the status, the hold and the attached record of its update, and its place", after)
	}
	for _, kind := range []driver.OpKind{driver.Trash, driver.Restore} {
		e.must(follow(plain(kind, jobs[1].Job), id))
	}
	e.state(jobs[1].Job, job.Unclaimed, "it was restored in the other store")
	e.must(follow(plain(driver.Trash, jobs[1].Job), id))
	e.must(follow(plain(driver.Purge, jobs[1].Job), id))
	e.state(jobs[1].Job, job.Unknown, "it was purged in the other store")
	e.refused(follow(plain(driver.Trash, jobs[1].Job), id), job.NotFound, "a job that is not there follows")
	moveFollowsEndings(e, id, jobs[2], jobs[3])
	e.step(driver.Admit, id)
	e.refused(follow(plain(driver.Trash, jobs[0].Job), id), job.Precondition, "a job follows after Admit")
	e.state(jobs[0].Job, job.Unclaimed, "the move has ended")
}

// moveFollowsEndings is the part of moveFollows about jobs that leave the board.
func moveFollowsEndings(e *env, id [16]byte, ends, aside driver.Op) {
	token := job.Token{Generation: e.status.Generation, Epoch: 7, Nonce: random16()}
	status := []byte("at the end")
	op := follow(plain(driver.Update, ends.Job), id)
	op.Status = &status
	op.Import.EndedAt = past(time.Minute)
	op.Import.Then = &driver.Op{
		Kind: driver.Remove, Job: ends.Job, Precondition: driver.HeldByToken, Token: token, Event: job.ConsumedEvent,
		Ending: &driver.Ending{Outcome: job.Failed, Keep: time.Hour, Data: []byte("final"), KeepPosting: true},
	}
	e.must(op)
	rec := e.readParts(ends.Job, driver.FinalData|driver.Details)
	if rec.State != job.Complete || rec.Outcome != job.Failed || string(rec.Final) != "final" || string(rec.Status) != "at the end" ||
		rec.EndedBy != token || len(rec.Posting.Details) == 0 || !rec.EndedAt.Truncate(time.Microsecond).Equal(op.Import.EndedAt) {
		e.Errorf("a job that failed in the other store at %v is %+v", op.Import.EndedAt, rec)
	}
	op = follow(plain(driver.Update, aside.Job), id)
	op.Import.EndedAt = past(time.Minute)
	op.Import.Then = &driver.Op{Kind: driver.Trash, Job: aside.Job, Event: job.TrashedEvent}
	e.must(op)
	if rec := e.state(aside.Job, job.Trashed, "trashed in the other store"); !rec.EndedAt.Truncate(time.Microsecond).Equal(op.Import.EndedAt) {
		e.Errorf("a job that was trashed in the other store at %v was so at %v", op.Import.EndedAt, rec.EndedAt)
	}
}

// moveFollowsClaims checks that a job which was imported without its claim gets it, with its
// token, what it counts and a whole lease.
func moveFollowsClaims(e *env) {
	id := random16()
	e.receive(id)
	post := movedOp(id)
	e.must(post)
	held, c := e.heldOp(movedOp(id), long)
	then := held.Import.Then
	then.Job = post.Job
	c.Job = post.Job
	if e.caps().Limits {
		then.Limits = []driver.Limit{{Key: "claims", Max: 0}}
	}
	status := []byte("claimed")
	op := follow(plain(driver.Update, post.Job), id)
	op.Status = &status
	op.Import.EndedAt, op.Import.Then = held.Import.EndedAt, then
	older := op
	moved, claim := *op.Import, *then
	claim.Token.Generation--
	moved.Then, older.Import = &claim, &moved
	e.refused(older, job.Precondition, "a claim of an earlier generation")
	e.must(op)
	e.again(op, nil, "the claim came again")
	rec := e.state(post.Job, job.Claimed, "claimed in the other store")
	h := rec.Holder
	if string(rec.Status) != "claimed" || h.Owner != then.Owner || h.Token != then.Token || h.Remaining < long/2 || h.Remaining > long ||
		!h.Since.Truncate(time.Microsecond).Equal(op.Import.EndedAt) {
		e.Errorf("a job that was claimed in the other store is %+v, held by %+v", rec, h)
	}
	another := op
	another.Request = random16()
	e.refused(another, job.AlreadyClaimed, "somebody holds the job")
	if e.caps().Limits {
		e.stands("claims", 1, "the claim came along")
	}
	e.step(driver.Admit, id)
	e.must(byToken(driver.Extend, c))
	e.must(byToken(driver.Remove, c))
	if e.caps().Limits {
		e.stands("claims", 0, "the claim has ended")
	}
}
