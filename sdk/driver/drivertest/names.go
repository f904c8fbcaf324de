package drivertest

import (
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var nameChecks = []check{
	{name: "names/jobs", run: namesOfJobs},
	{name: "names/owners", run: namesOfOwners},
	{name: "names/boards", run: namesOfBoards},
	{name: "names/uuids", run: namesOfUUIDs},
}

// oddNames are texts that somebody's store has tripped over.
var oddNames = []string{
	"a b", "with:colons:in it", "a/b/../c", "{braces}", "%s%d%n", "*", "?[a-z]", "quote\"s'and`such", "back\\slash",
	"line\nbreak\r\n", "tab\tand\x00nul\x7f\x01", "\u202eright to left", "z\u200bero width", "é", "e\u0301", "日本語",
	"\U0001F600", "Case", "case", " leading and trailing ", ".", "..", ".trash", "zookeeper", "<script>alert(1)</script>",
	"null", "true", "0", "-1", "1e400", strings.Repeat("x", 200), strings.Repeat("é", 100),
}

func namesOfJobs(e *env) {
	var list []*driver.Posting
	for _, name := range append([]string{strings.Repeat("n", job.MaxName)}, oddNames...) {
		p := posting(name)
		p.Book = job.Book{UUID: name, Name: name}
		p.Digest = digest(p)
		op := postOp(p)
		op.Reason = name
		e.must(op)
		list = append(list, p)
	}
	for _, p := range list {
		rec := e.read(p.ID)
		e.samePosting(&rec.Posting, p, true)
	}
}

func namesOfOwners(e *env) {
	for _, owner := range append([]string{strings.Repeat("o", job.MaxOwner)}, oddNames...) {
		p := e.post()
		c := e.claim(p.ID, owner)
		if rec := e.state(p.ID, job.Claimed, "claimed by "+owner); rec.Holder.Owner != owner {
			e.Errorf("claimed by %q, and the holder is %q", owner, rec.Holder.Owner)
		}
		if gone := e.taken(claimOp("w", long, p.ID), job.AlreadyClaimed, "held by "+owner); gone.Owner != owner {
			e.Errorf("AlreadyClaimed names %q, want %q", gone.Owner, owner)
		}
		op := plain(driver.Update, p.ID)
		op.Precondition, op.Owner = driver.HeldByOwner, owner+" "
		if len(owner) < job.MaxOwner {
			e.refused(op, job.NotOwner, "an owner with one space more")
		}
		op.Owner, op.Request = owner, [16]byte{}
		e.must(op)
		e.must(byToken(driver.Remove, c))
	}
}

// namesOfBoards opens boards with odd names beside each other.
func namesOfBoards(e *env) {
	boards := map[string]*driver.Posting{}
	for _, odd := range oddNames {
		name := e.name[:min(len(e.name), 60)] + odd
		if len(name) > driver.MaxBoardName {
			name = strings.ToValidUTF8(name[:driver.MaxBoardName], "")
		}
		b := &env{T: e.T, suite: e.suite, driver: e.driver, name: name}
		b.openBoard(nil)
		if list, _ := b.scan(driver.ScanRequest{}); len(list) > 0 {
			e.Errorf("the new board %q has %d jobs", name, len(list))
		}
		boards[b.name] = b.post()
	}
	for name, p := range boards {
		b := &env{T: e.T, suite: e.suite, driver: e.driver, name: name}
		b.state(p.ID, job.Unclaimed, "on board "+name)
		list, _ := b.scan(driver.ScanRequest{})
		if len(list) != 1 {
			e.Errorf("board %q has %d jobs, want its own one", name, len(list))
		}
	}
	for _, name := range []string{"", strings.Repeat("b", driver.MaxBoardName+1)} {
		_, err := e.driver.OpenBoard(e.Context(), driver.BoardSpec{Name: name})
		e.wantKind(err, job.Invalid, "OpenBoard with a name of "+itoa(uint64(len(name)))+" bytes")
	}
}

// namesOfUUIDs posts jobs whose uuids differ in one bit, or look like markers.
func namesOfUUIDs(e *env) {
	ids := []job.ID{{15: 1}, {0: 1}, {0: 0x80}, {15: 0x80}, {8: '/', 9: ':', 10: 0, 11: '\n'}}
	var full job.ID
	for i := range full {
		full[i] = 0xff
	}
	ids = append(ids, full)
	for _, id := range ids {
		p := posting("odd uuid")
		p.ID = id
		p.Digest = digest(p)
		e.must(postOp(p))
	}
	list, _ := e.scan(driver.ScanRequest{})
	want := map[job.ID]job.State{}
	for _, id := range ids {
		want[id] = job.Unclaimed
	}
	e.exactly(list, want, "a board with odd uuids")
	p := posting("no uuid")
	p.ID = job.ID{}
	e.refused(postOp(p), job.Invalid, "the uuid of all zeros")
}
