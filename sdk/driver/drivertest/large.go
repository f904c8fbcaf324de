package drivertest

import (
	"bytes"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var largeChecks = []check{
	{name: "large/details", run: largeDetails},
	{name: "large/records", run: largeRecords},
	{name: "large/candidates", run: largeCandidates},
	{name: "large/bytes", run: largeBytes},
}

// object makes a JSON object of n bytes.
func object(n int) []byte {
	return append(append([]byte(`{"d":"`), bytes.Repeat([]byte("x"), n-8)...), `"}`...)
}

func largeDetails(e *env) {
	most := e.caps().MaxDetails
	if most < 1<<10 {
		e.Errorf("the board takes details of up to %d bytes: want at least 1024", most)
		return
	}
	p := posting("large")
	p.Details = object(most)
	p.Digest = digest(p)
	e.must(postOp(p))
	rec := e.read(p.ID)
	e.samePosting(&rec.Posting, p, true)
	c := e.claim(p.ID, "w")
	e.must(byToken(driver.Trash, c))
	rec = e.state(p.ID, job.Trashed, "set aside")
	e.samePosting(&rec.Posting, p, true)
	over := posting("too large")
	over.Details = object(most + 1)
	over.Digest = digest(over)
	if r := e.refused(postOp(over), job.Invalid, "one byte more than the board takes"); r.Message == "" {
		e.Errorf("Invalid came without a message that says what would be right")
	}
	e.state(over.ID, job.Unknown, "refused")
}

func largeRecords(e *env) {
	most := e.caps().MaxRecord
	if most < 1<<10 {
		e.Errorf("the board takes records of up to %d bytes: want at least 1024", most)
		return
	}
	data, over := bytes.Repeat([]byte{0xff}, most), bytes.Repeat([]byte{0xff}, most+1)
	p := posting("large")
	p.Extra = data
	p.Digest = digest(p)
	post := postOp(p)
	post.Status = &data
	e.must(post)
	if rec := e.read(p.ID); !bytes.Equal(rec.Posting.Extra, data) || !bytes.Equal(rec.Status, data) {
		e.Errorf("an Extra and a Status of %d bytes came back as %d and %d", most, len(rec.Posting.Extra), len(rec.Status))
	}
	update := plain(driver.Update, p.ID)
	update.Status = &over
	e.refused(update, job.Invalid, "a status that is too large")
	claim := claimOp("w", long, p.ID)
	claim.Claim.Candidates[0].Status = &over
	e.refused(claim, job.Invalid, "a claim's status that is too large")
	if e.caps().Attachments {
		update = plain(driver.Update, p.ID)
		update.Attach = []driver.Attachment{{Name: "a", Data: over}}
		e.refused(update, job.Invalid, "an attached record that is too large")
		update.Attach[0].Data, update.Request = data, [16]byte{}
		e.must(update)
	}
	remove := plain(driver.Remove, p.ID)
	remove.Ending = &driver.Ending{Outcome: job.Consumed, Keep: long, Data: over}
	e.refused(remove, job.Invalid, "a final record that is too large")
	e.state(p.ID, job.Unclaimed, "after ops that were refused")
	remove.Ending = &driver.Ending{Outcome: job.Consumed, Keep: long, Data: data}
	e.must(remove)
	if rec := e.state(p.ID, job.Complete, "removed"); !bytes.Equal(rec.Final, data) {
		e.Errorf("a final record of %d bytes came back with %d", most, len(rec.Final))
	}
	extra := posting("too large")
	extra.Extra = over
	e.refused(postOp(extra), job.Invalid, "an Extra that is too large")
}

func largeCandidates(e *env) {
	most := e.caps().MaxCandidates
	if most < 1 {
		e.Errorf("the board takes %d candidates: want at least 1", most)
		return
	}
	ids := make([]job.ID, most+1)
	for i := range ids {
		ids[i] = newID()
	}
	ids[most-1] = e.post().ID
	op := claimOp("w", long, ids...)
	e.refused(op, job.Invalid, "more candidates than the board takes")
	e.state(ids[most-1], job.Unclaimed, "refused")
	op.Claim.Candidates, op.Request = op.Claim.Candidates[:most], [16]byte{}
	r := e.must(op)
	if len(r.Claims) != 1 || r.Claims[0].Job != ids[most-1] || len(r.Skipped) != most-1 {
		e.Errorf("of %d candidates the last was on the board: got %d claims and %d passed over", most, len(r.Claims), len(r.Skipped))
	}
}

// largeBytes checks that records come back as they were, whatever is in them.
func largeBytes(e *env) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, data := range [][]byte{all, {0}, {'\n'}, {0xff, 0xfe}, []byte("null"), {0xc0, 0x80}} {
		p := posting("bytes")
		p.Extra = data
		p.Digest = digest(p)
		op := postOp(p)
		op.Status = &data
		e.must(op)
		rec := e.read(p.ID)
		if !bytes.Equal(rec.Status, data) || !bytes.Equal(rec.Posting.Extra, data) {
			e.Errorf("status and Extra %q came back as %q and %q", data, rec.Status, rec.Posting.Extra)
		}
	}
}
