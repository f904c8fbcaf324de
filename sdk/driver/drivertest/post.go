package drivertest

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var postChecks = []check{
	{name: "post/stands", run: postStands},
	{name: "post/again", run: postAgain},
	{name: "post/other-digest", run: postOtherDigest},
	{name: "post/sequence", run: postSequence},
	{name: "post/copies", run: postCopies},
	{name: "post/parts", run: postParts},
	{name: "post/hold", run: postHold},
	{name: "post/acknowledged", run: postAcknowledged},
}

// samePosting compares what was posted with what is read.
func (e *env) samePosting(got *driver.Posting, want *driver.Posting, details bool) {
	e.Helper()
	if got.ID != want.ID || got.Name != want.Name || got.Priority != want.Priority || got.Book != want.Book ||
		got.Encoding != want.Encoding || got.Digest != want.Digest || !bytes.Equal(got.Extra, want.Extra) {
		e.Errorf("the posting came back as %+v, want %+v", *got, *want)
	}
	if details && e.caps().ByteExact && !bytes.Equal(got.Details, want.Details) {
		e.Errorf("the details came back as %.200q, want %.200q", got.Details, want.Details)
	}
	if details && len(got.Details) == 0 {
		e.Errorf("the details were asked for and did not come")
	}
	if !details && got.Details != nil {
		e.Errorf("the details came though nobody asked for them")
	}
}

func postStands(e *env) {
	p := posting("a job")
	p.Priority, p.Book = job.High, job.Book{UUID: "0b1d", Name: "a book"}
	p.Digest = digest(p)
	op := postOp(p)
	status := []byte("first status")
	op.Status = &status
	r := e.must(op)
	if r.Record == nil {
		e.Fatalf("Post: the result has no Record")
	}
	e.samePosting(&r.Record.Posting, p, false)
	rec := e.state(p.ID, job.Unclaimed, "after its post")
	e.samePosting(&rec.Posting, p, true)
	if !bytes.Equal(rec.Status, status) || rec.Holder != nil || rec.Held || !rec.NotBefore.IsZero() {
		e.Errorf("after its post the job is %+v: want status %q, no holder and no hold", rec, status)
	}
	if rec.Version != r.Version || rec.Position != r.Position {
		e.Errorf("the job has version %d and position %d, its post said %d and %d", rec.Version, rec.Position, r.Version, r.Position)
	}
	if rec.Posting.CreatedAt.IsZero() || rec.Posting.Sequence == 0 || rec.ModifiedAt.IsZero() {
		e.Errorf("the store did not set all of CreatedAt, Sequence and ModifiedAt: %+v", rec)
	}
}

func postAgain(e *env) {
	p := e.post()
	for range 2 {
		r := e.do(postOp(p))
		if r.Kind != job.NoKind || !r.Repeated || r.Record == nil || r.Record.State != job.Unclaimed {
			e.Errorf("an equal posting again: got %v with record %+v, want it Repeated with the job as it stands", outcome(&r), r.Record)
		}
	}
	c := e.claim(p.ID, "w")
	if r := e.do(postOp(p)); !r.Repeated || r.Record == nil || r.Record.State != job.Claimed {
		e.Errorf("an equal posting of a claimed job: got %v with record %+v, want it Repeated and CLAIMED", outcome(&r), r.Record)
	}
	e.state(p.ID, job.Claimed, "after it was posted again")
	e.must(byToken(driver.Remove, c))
	if r := e.do(postOp(p)); !r.Repeated || r.Record == nil || r.Record.State != job.Complete {
		e.Errorf("an equal posting of a job that ended: got %v with record %+v, want it Repeated and COMPLETE", outcome(&r), r.Record)
	}
	e.state(p.ID, job.Complete, "after it was posted again")
}

func postOtherDigest(e *env) {
	p := e.post()
	other := *p
	other.Name, other.Details = "another name", []byte(`{"other":true}`)
	other.Digest = digest(&other)
	r := e.refused(postOp(&other), job.AlreadyExists, "another posting has the uuid")
	if r.Record == nil || r.Record.Posting.Digest != p.Digest {
		e.Errorf("AlreadyExists came without the job as it stands")
	}
	rec := e.read(p.ID)
	e.samePosting(&rec.Posting, p, true)
	e.must(byToken(driver.Remove, e.claim(p.ID, "w")))
	e.refused(postOp(&other), job.AlreadyExists, "another posting had the uuid, and the job ended within the window")
}

func postSequence(e *env) {
	var last uint64
	for range 20 {
		p := e.post()
		rec := e.readParts(p.ID, 0)
		if rec.Posting.Sequence <= last {
			e.Errorf("a later post has sequence %d, an earlier one %d: want it to grow", rec.Posting.Sequence, last)
		}
		last = rec.Posting.Sequence
	}
}

// postCopies checks that a driver keeps nothing of its caller's buffers.
func postCopies(e *env) {
	p := posting("copied")
	want := *p
	want.Details, want.Extra = bytes.Clone(p.Details), bytes.Clone(p.Extra)
	status := []byte("status")
	op := postOp(p)
	op.Status = &status
	if e.caps().Attachments {
		op.Attach = []driver.Attachment{{Name: "a", Data: []byte("attached")}}
	}
	e.must(op)
	overwrite(p.Details, p.Extra, status)
	for _, a := range op.Attach {
		overwrite(a.Data)
	}
	rec := e.read(want.ID)
	e.samePosting(&rec.Posting, &want, true)
	if string(rec.Status) != "status" {
		e.Errorf("the caller used its buffer again, and the status became %q", rec.Status)
	}
	if e.caps().Attachments && (len(rec.Attached) != 1 || string(rec.Attached[0].Data) != "attached") {
		e.Errorf("the caller used its buffer again, and the attached records became %+v", rec.Attached)
	}
}

func overwrite(buffers ...[]byte) {
	for _, b := range buffers {
		for i := range b {
			b[i] = 'x'
		}
	}
}

func postParts(e *env) {
	p := posting("parts")
	op := postOp(p)
	if e.caps().Attachments {
		op.Attach = []driver.Attachment{{Name: "log/2", Data: []byte("b")}, {Name: "log/1", Data: []byte("a")}, {Name: "zero"}}
	}
	e.must(op)
	for _, parts := range []driver.Parts{0, driver.Details, driver.Attached, driver.Details | driver.Attached} {
		rec := e.readParts(p.ID, parts)
		e.samePosting(&rec.Posting, p, parts&driver.Details != 0)
		if !e.caps().Attachments {
			continue
		}
		if want := parts&driver.Attached != 0; (len(rec.Attached) == 3) != want || (len(rec.Attached) == 0) == want {
			e.Errorf("read with parts %b: got %d attached records", parts, len(rec.Attached))
		}
	}
	if rec := e.read(p.ID); e.caps().Attachments {
		for i, name := range []string{"log/1", "log/2", "zero"} {
			if rec.Attached[i].Name != name {
				e.Errorf("attached record %d is %q, want %q: they sort as bytes", i, rec.Attached[i].Name, name)
			}
		}
	}
}

func postHold(e *env) {
	until := time.Now().Add(time.Hour)
	for _, c := range []struct {
		what string
		hold driver.Hold
		want bool
	}{
		{"until in an hour", driver.Hold{Until: until}, true},
		{"for an hour", driver.Hold{For: time.Hour}, true},
		{"always", driver.Hold{Always: true}, true},
		{"none", driver.Hold{}, false},
		{"until an hour ago", driver.Hold{Until: until.Add(-2 * time.Hour)}, false},
	} {
		p := posting("held")
		op := postOp(p)
		op.Hold = &c.hold
		r := e.must(op)
		rec := e.state(p.ID, job.Unclaimed, "posted with a hold "+c.what)
		if rec.Held != c.hold.Always {
			e.Errorf("posted with a hold %s: Held is %v", c.what, rec.Held)
		}
		if timed := !c.hold.Until.IsZero() || c.hold.For > 0; timed && c.want {
			near(e, "Record.NotBefore", rec.NotBefore, until)
			near(e, "Result.NotBefore", r.NotBefore, until)
		}
		if c.want {
			e.taken(claimOp("w", long, p.ID), job.NotEligible, "it is held "+c.what)
		} else {
			e.claim(p.ID, "w")
		}
	}
	p := posting("held wrongly")
	op := postOp(p)
	op.Hold = &driver.Hold{Always: true, For: time.Second}
	e.refused(op, job.Invalid, "a hold of two sorts")
	e.state(p.ID, job.Unknown, "refused")
}

// near checks a time of the store's clock against one of ours, roughly: the
// clocks may differ.
func near(e *env, what string, got, want time.Time) {
	e.Helper()
	if d := got.Sub(want).Abs(); d > 5*time.Minute {
		e.Errorf("%s is %v, want about %v", what, got, want)
	}
}

// postAcknowledged checks that everything that was acknowledged is there.
func postAcknowledged(e *env) {
	for _, p := range e.posts(200) {
		rec := e.state(p.ID, job.Unclaimed, "after its post was acknowledged")
		e.samePosting(&rec.Posting, p, true)
	}
	for range 50 {
		p := e.post()
		e.state(p.ID, job.Unclaimed, "after its post was acknowledged")
	}
}
