package drivertest

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var removeChecks = []check{
	{name: "remove/consumes", run: removeConsumes},
	{name: "remove/outcomes", run: removeOutcomes},
	{name: "remove/cancels", run: removeCancels},
	{name: "remove/final", run: removeFinal},
	{name: "remove/purge-final", run: removePurgeFinal},
}

func removeConsumes(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	r := e.must(byToken(driver.Remove, c))
	rec := e.state(p.ID, job.Complete, "consumed")
	if rec.Outcome != job.Consumed || rec.EndedAt.IsZero() || rec.Holder != nil || rec.Posting.Digest != p.Digest {
		e.Errorf("consumed: the job is %+v: want CONSUMED with a time, no holder, and the posting's digest", rec)
	}
	if rec.Position != r.Position || rec.Version != r.Version {
		e.Errorf("consumed: position %d and version %d, the op said %d and %d", rec.Position, rec.Version, r.Position, r.Version)
	}
	e.taken(claimOp("w", long, p.ID), job.NotFound, "it was consumed")
	for _, kind := range []driver.OpKind{driver.Extend, driver.Update, driver.Release, driver.Trash} {
		e.refused(byToken(kind, c), job.LeaseLost, "this token consumed the job")
	}
	e.state(p.ID, job.Complete, "consumed")
}

func removeOutcomes(e *env) {
	for _, want := range []job.Outcome{job.Consumed, job.Canceled, job.Failed} {
		p := e.post()
		c := e.claim(p.ID, "w")
		op := byToken(driver.Remove, c)
		op.Ending = &driver.Ending{Outcome: want}
		e.must(op)
		if rec := e.state(p.ID, job.Complete, "removed"); rec.Outcome != want {
			e.Errorf("removed as %v: the outcome is %v", want, rec.Outcome)
		}
		other := byToken(driver.Remove, c)
		other.Ending = &driver.Ending{Outcome: want%3 + 1}
		e.refused(other, job.LeaseLost, "this token ended the job with another outcome")
	}
}

func removeCancels(e *env) {
	free, taken := e.post(), e.post()
	c := e.claim(taken.ID, "w")
	for _, id := range []job.ID{free.ID, taken.ID} {
		op := plain(driver.Remove, id)
		op.Ending = &driver.Ending{Outcome: job.Canceled}
		e.must(op)
		if rec := e.state(id, job.Complete, "canceled"); rec.Outcome != job.Canceled {
			e.Errorf("canceled: the outcome is %v", rec.Outcome)
		}
	}
	e.refused(byToken(driver.Remove, c), job.NotFound, "a person canceled the job")
	e.refused(byToken(driver.Extend, c), job.NotFound, "a person canceled the job")
}

func removeFinal(e *env) {
	for _, ending := range []driver.Ending{
		{Outcome: job.Consumed, Keep: time.Hour, Data: []byte("history"), KeepPosting: true, KeepAttached: true},
		{Outcome: job.Failed, Keep: time.Hour, Data: []byte("history")},
	} {
		p := posting("kept")
		post := postOp(p)
		status := []byte("attempts: 3")
		post.Status = &status
		if e.caps().Attachments {
			post.Attach = []driver.Attachment{{Name: "log", Data: []byte("line")}}
		}
		e.must(post)
		op := byToken(driver.Remove, e.claim(p.ID, "w"))
		op.Ending = &ending
		e.must(op)
		rec := e.state(p.ID, job.Complete, "removed with a final record")
		if !bytes.Equal(rec.Final, ending.Data) || !bytes.Equal(rec.Status, status) || rec.Outcome != ending.Outcome {
			e.Errorf("the final record is %q with status %q and outcome %v: want %q, %q, %v",
				rec.Final, rec.Status, rec.Outcome, ending.Data, status, ending.Outcome)
		}
		if ending.KeepPosting {
			e.samePosting(&rec.Posting, p, true)
		} else if len(rec.Posting.Details) > 0 {
			e.Errorf("the details were kept though nobody asked for it")
		}
		if want := ending.KeepAttached && e.caps().Attachments; want != (len(rec.Attached) == 1) {
			e.Errorf("KeepAttached %v: got %d attached records", ending.KeepAttached, len(rec.Attached))
		}
		if rec := e.readParts(p.ID, 0); rec.Final != nil || rec.Posting.Details != nil || rec.Attached != nil {
			e.Errorf("read without parts: got %d bytes of final record, %d of details, %d attached records",
				len(rec.Final), len(rec.Posting.Details), len(rec.Attached))
		}
	}
}

func removePurgeFinal(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	op := byToken(driver.Remove, c)
	op.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: []byte("secret"), KeepPosting: true}
	first := e.must(op)
	purge := plain(driver.Purge, p.ID)
	purge.Request = random16()
	r := e.must(purge)
	e.state(p.ID, job.Unknown, "purged")
	e.again(purge, &r, "a purge again")
	e.again(op, &first, "the ending of a job that was purged since, again")
	e.refused(plain(driver.Purge, p.ID), job.NotFound, "it was purged before")
	e.must(postOp(p))
	e.state(p.ID, job.Unclaimed, "posted again after a purge")
}
