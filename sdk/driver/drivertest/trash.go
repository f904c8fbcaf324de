package drivertest

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var trashChecks = []check{
	{name: "trash/keeps-everything", run: trashKeepsEverything},
	{name: "trash/by-person", run: trashByPerson},
	{name: "trash/purge", run: trashPurge},
	{name: "trash/keeps-hold", run: trashKeepsHold},
}

func trashKeepsEverything(e *env) {
	p := posting("to the trash")
	post := postOp(p)
	status := []byte("posted")
	post.Status = &status
	if e.caps().Attachments {
		post.Attach = []driver.Attachment{{Name: "log", Data: []byte("line")}}
	}
	e.must(post)
	sequence := e.readParts(p.ID, 0).Posting.Sequence
	c := e.claim(p.ID, "w")
	op := byToken(driver.Trash, c)
	after := []byte("given up")
	op.Status = &after
	e.must(op)
	rec := e.state(p.ID, job.Trashed, "set aside")
	if rec.Holder != nil || rec.EndedAt.IsZero() || !bytes.Equal(rec.Status, after) {
		e.Errorf("set aside: the job is %+v: want no holder, a time, and status %q", rec, after)
	}
	check := func(rec *driver.Record) {
		e.Helper()
		e.samePosting(&rec.Posting, p, true)
		if rec.Posting.Sequence != sequence {
			e.Errorf("the job's sequence became %d, was %d", rec.Posting.Sequence, sequence)
		}
		if e.caps().Attachments && (len(rec.Attached) != 1 || string(rec.Attached[0].Data) != "line") {
			e.Errorf("its attached records became %+v", rec.Attached)
		}
	}
	check(&rec)
	e.taken(claimOp("w", long, p.ID), job.NotFound, "it is in the trash")
	e.must(plain(driver.Restore, p.ID))
	rec = e.state(p.ID, job.Unclaimed, "restored")
	if !rec.EndedAt.IsZero() || !bytes.Equal(rec.Status, after) {
		e.Errorf("restored: the job ended at %v and has status %q: want neither an end nor another status", rec.EndedAt, rec.Status)
	}
	check(&rec)
	e.refused(byToken(driver.Remove, c), job.LeaseLost, "its claim ended with the trash")
	e.claim(p.ID, "w")
}

func trashByPerson(e *env) {
	free, taken := e.post(), e.post()
	e.claim(taken.ID, "w")
	op := func(id job.ID) driver.Op {
		op := plain(driver.Trash, id)
		op.Precondition = driver.Free
		return op
	}
	e.must(op(free.ID))
	e.state(free.ID, job.Trashed, "set aside by a person")
	if r := e.refused(op(taken.ID), job.AlreadyClaimed, "somebody holds the job"); r.Owner != "w" {
		e.Errorf("AlreadyClaimed names %q, want w", r.Owner)
	}
	e.state(taken.ID, job.Claimed, "not set aside")
	if r := e.refused(op(free.ID), job.NotFound, "it is in the trash already"); r.Record == nil || r.Record.State != job.Trashed {
		e.Errorf("NotFound came without a record that shows the job in the trash")
	}
}

func trashPurge(e *env) {
	p := e.post()
	if r := e.refused(plain(driver.Purge, p.ID), job.NotFound, "it is on the board"); r.Record == nil || r.Record.State != job.Unclaimed {
		e.Errorf("NotFound came without a record that shows the job on the board")
	}
	e.refused(plain(driver.Restore, p.ID), job.NotFound, "it is on the board")
	c := e.claim(p.ID, "w")
	aside := e.must(byToken(driver.Trash, c))
	e.must(plain(driver.Purge, p.ID))
	e.state(p.ID, job.Unknown, "purged")
	e.refused(plain(driver.Restore, p.ID), job.NotFound, "it was purged")
	e.again(byToken(driver.Trash, c), &aside, "the ending by this token, of a job that was purged since")
	e.refused(byToken(driver.Extend, c), job.NotFound, "it was purged")
	e.must(postOp(p))
	rec := e.state(p.ID, job.Unclaimed, "posted again")
	e.samePosting(&rec.Posting, p, true)
	e.refused(byToken(driver.Extend, c), job.LeaseLost, "a token from before the purge")
}

func trashKeepsHold(e *env) {
	p := e.post()
	aside := plain(driver.Trash, p.ID)
	aside.Hold = &driver.Hold{For: time.Hour}
	e.must(aside)
	e.must(plain(driver.Restore, p.ID))
	e.taken(claimOp("w", long, p.ID), job.NotEligible, "it was set aside with a hold of an hour")
	e.must(plain(driver.Trash, p.ID))
	restore := plain(driver.Restore, p.ID)
	restore.Hold = &driver.Hold{}
	e.must(restore)
	e.claim(p.ID, "w")
}
