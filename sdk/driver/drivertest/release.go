package drivertest

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var releaseChecks = []check{
	{name: "release/gives-back", run: releaseGivesBack},
	{name: "release/by-owner", run: releaseByOwner},
	{name: "release/by-person", run: releaseByPerson},
	{name: "update/changes", run: updateChanges},
	{name: "update/version", run: updateVersion},
	{name: "update/attached", run: updateAttached},
	{name: "update/hold-of-claimed", run: updateHoldOfClaimed},
}

func releaseGivesBack(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	op := byToken(driver.Release, c)
	status := []byte("one attempt")
	op.Status, op.Reason = &status, "it was too hard"
	r := e.must(op)
	rec := e.state(p.ID, job.Unclaimed, "released")
	if rec.Holder != nil || !bytes.Equal(rec.Status, status) || rec.Version != r.Version || rec.Version <= c.Version {
		e.Errorf("released: the job is %+v: want no holder, status %q and version %d above %d", rec, status, r.Version, c.Version)
	}
	e.samePosting(&rec.Posting, p, true)
	e.claim(p.ID, "another")
}

func releaseByOwner(e *env) {
	p := e.post()
	op := plain(driver.Release, p.ID)
	op.Precondition, op.Owner = driver.HeldByOwner, "w"
	e.refused(op, job.NotClaimed, "nobody holds the job")
	e.claim(p.ID, "another")
	if r := e.refused(op, job.NotOwner, "another holds the job"); r.Owner != "another" {
		e.Errorf("NotOwner names %q, want another", r.Owner)
	}
	op.Owner = "another"
	e.must(op)
	e.state(p.ID, job.Unclaimed, "released by its owner's name")
}

func releaseByPerson(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	op := plain(driver.Release, p.ID)
	op.Precondition, op.Owner = driver.Held, "somebody"
	if r := e.refused(op, job.NotOwner, "it is held by another than expected"); r.Owner != "w" {
		e.Errorf("NotOwner names %q, want w", r.Owner)
	}
	op.Owner = ""
	e.must(op)
	e.state(p.ID, job.Unclaimed, "released by a person")
	e.refused(byToken(driver.Remove, c), job.LeaseLost, "a person released the job")
	op.Request = [16]byte{}
	e.refused(op, job.NotClaimed, "nobody holds the job")
}

func updateChanges(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	before := e.read(p.ID)
	op := byToken(driver.Update, c)
	status := []byte("half done")
	op.Status = &status
	r := e.must(op)
	rec := e.state(p.ID, job.Claimed, "updated")
	if !bytes.Equal(rec.Status, status) || rec.Holder.Token != c.Token || rec.Version != r.Version || rec.Version <= before.Version {
		e.Errorf("updated: the job is %+v: want status %q, the same token, and version %d above %d", rec, status, r.Version, before.Version)
	}
	e.must(byToken(driver.Update, c)) // changes nothing but the version
	if rec := e.read(p.ID); !bytes.Equal(rec.Status, status) || rec.Version <= r.Version {
		e.Errorf("updated without a change: status %q at version %d, want %q above %d", rec.Status, rec.Version, status, r.Version)
	}
	empty := []byte{}
	op = byToken(driver.Update, c)
	op.Status = &empty
	e.must(op)
	if rec := e.read(p.ID); len(rec.Status) != 0 {
		e.Errorf("updated to an empty status: it is %q", rec.Status)
	}
	e.must(byToken(driver.Remove, c))
}

func updateVersion(e *env) {
	p := e.post()
	version := e.readParts(p.ID, 0).Version
	for _, kind := range []driver.OpKind{driver.Update, driver.Remove, driver.Trash} {
		op := plain(kind, p.ID)
		op.Version = version + 1
		if r := e.refused(op, job.Aborted, "another version"); r.Record == nil || r.Record.Version != version {
			e.Errorf("%s: Aborted came without the job as it stands", describe(&op))
		}
	}
	op := plain(driver.Update, p.ID)
	op.Version = version
	r := e.must(op)
	op.Request = [16]byte{}
	e.refused(op, job.Aborted, "the version of before")
	aside := plain(driver.Trash, p.ID)
	aside.Version = r.Version
	r = e.must(aside)
	restore := plain(driver.Restore, p.ID)
	restore.Version = version
	e.refused(restore, job.Aborted, "the version of before")
	restore.Version = r.Version
	e.must(restore)
}

func updateAttached(e *env) {
	if !e.caps().Attachments {
		e.Logf("the store keeps no attached records")
		return
	}
	p := e.post()
	attach := func(list ...driver.Attachment) {
		op := plain(driver.Update, p.ID)
		op.Attach = list
		e.must(op)
	}
	attach(driver.Attachment{Name: "b", Data: []byte("1")}, driver.Attachment{Name: "a/x-1_2.3", Data: []byte("2")})
	attach(driver.Attachment{Name: "b", Data: []byte("3")}, driver.Attachment{Name: "never", Delete: true})
	attach(driver.Attachment{Name: "c", Data: []byte{0, 255, 10}}, driver.Attachment{Name: "a/x-1_2.3", Delete: true})
	want := []driver.Attachment{{Name: "b", Data: []byte("3")}, {Name: "c", Data: []byte{0, 255, 10}}}
	if rec := e.read(p.ID); !sameAttached(rec.Attached, want) {
		e.Errorf("attached records are %+v, want %+v", rec.Attached, want)
	}
	c := e.claim(p.ID, "w")
	e.must(byToken(driver.Release, c))
	if rec := e.read(p.ID); !sameAttached(rec.Attached, want) {
		e.Errorf("after a claim and a release the attached records are %+v, want %+v", rec.Attached, want)
	}
	for _, name := range []string{"", "Ä", "A", "a b", string(bytes.Repeat([]byte("x"), 129))} {
		op := plain(driver.Update, p.ID)
		op.Attach = []driver.Attachment{{Name: name, Data: []byte("x")}}
		e.refused(op, job.Invalid, "an attached record named "+name)
	}
}

// updateHoldOfClaimed checks that a hold of a claimed job counts when the claim
// ends.
func updateHoldOfClaimed(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	op := plain(driver.Update, p.ID)
	op.Hold = &driver.Hold{For: time.Hour}
	e.must(op)
	e.must(byToken(driver.Extend, c))
	e.must(byToken(driver.Release, c))
	e.taken(claimOp("w", long, p.ID), job.NotEligible, "it was held while it was claimed")
}
