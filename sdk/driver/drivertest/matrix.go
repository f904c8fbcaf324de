package drivertest

import (
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The columns of the matrix: where a job stands when an op comes. In each, "me"
// claimed the job first, where there is one, and the op has that claim's token
// and owner.
var columns = []struct {
	name  string
	after func(e *env, c driver.Claimed) // what happened after my claim
}{
	{"unknown", nil},
	{"unclaimed", func(e *env, c driver.Claimed) { e.broken(c) }},
	{"held", func(e *env, c driver.Claimed) {
		e.broken(c)
		op := plain(driver.Update, c.Job)
		op.Hold = &driver.Hold{Always: true}
		e.must(op)
	}},
	{"mine", func(*env, driver.Claimed) {}},
	{"theirs", func(e *env, c driver.Claimed) {
		e.broken(c)
		e.claim(c.Job, "them")
	}},
	{"lapsed", nil},
	{"trashed", func(e *env, c driver.Claimed) { e.must(plain(driver.Trash, c.Job)) }},
	{"consumed", func(e *env, c driver.Claimed) { e.must(byToken(driver.Remove, c)) }},
	{"consumed-by-them", func(e *env, c driver.Claimed) {
		e.broken(c)
		e.must(byToken(driver.Remove, e.claim(c.Job, "them")))
	}},
	{"purged", func(e *env, c driver.Claimed) {
		e.must(plain(driver.Trash, c.Job))
		e.must(plain(driver.Purge, c.Job))
	}},
}

// broken ends a claim as a person does.
func (e *env) broken(c driver.Claimed) {
	e.Helper()
	op := plain(driver.Release, c.Job)
	op.Precondition = driver.Held
	e.must(op)
}

// The matrix: what each op, with each precondition, gets in each column.
var matrix = table(`
                      unknown unclaimed held  mine  theirs lapsed trashed consumed c-by-them purged
Post                  ok      same      same  same  same   same   same    same     same      ok
Post other digest     ok      exists    exists exists exists exists exists exists  exists    ok
Claim                 none    ok        wait  taken taken  ok     none    none     none      none
Extend Whatever       inv     inv       inv   inv   inv    inv    inv     inv      inv       inv
Extend HeldByToken    none    lost      lost  ok    lost   lost   lost    lost     none      none
Extend HeldByOwner    none    free      free  ok    other  free   free    none     none      none
Extend Lapsed         inv     inv       inv   inv   inv    inv    inv     inv      inv       inv
Extend Held           inv     inv       inv   inv   inv    inv    inv     inv      inv       inv
Extend Free           inv     inv       inv   inv   inv    inv    inv     inv      inv       inv
Update Whatever       none    ok        ok    ok    ok     ok     none    none     none      none
Update HeldByToken    none    lost      lost  ok    lost   lost   lost    lost     none      none
Update HeldByOwner    none    free      free  ok    other  free   free    none     none      none
Update Lapsed         none    lost      lost  early lost   ok     lost    lost     none      none
Update Held           none    free      free  ok    other  ok     free    none     none      none
Update Free           none    ok        ok    taken taken  ok     none    none     none      none
Release Whatever      none    free      free  ok    ok     ok     none    none     none      none
Release HeldByToken   none    lost      lost  ok    lost   lost   lost    lost     none      none
Release HeldByOwner   none    free      free  ok    other  free   free    none     none      none
Release Lapsed        none    lost      lost  early lost   ok     lost    lost     none      none
Release Held          none    free      free  ok    other  ok     free    none     none      none
Release Free          none    free      free  taken taken  ok     none    none     none      none
Remove Whatever       none    ok        ok    ok    ok     ok     none    none     none      none
Remove HeldByToken    none    lost      lost  ok    lost   lost   lost    same     none      none
Remove HeldByOwner    none    free      free  ok    other  free   free    none     none      none
Remove Lapsed         none    lost      lost  early lost   ok     lost    lost     none      none
Remove Held           none    free      free  ok    other  ok     free    none     none      none
Remove Free           none    ok        ok    taken taken  ok     none    none     none      none
Trash Whatever     none    ok        ok    ok    ok     ok     none    none     none      none
Trash HeldByToken  none    lost      lost  ok    lost   lost   lost    lost     none      none
Trash HeldByOwner  none    free      free  ok    other  free   free    none     none      none
Trash Lapsed       none    lost      lost  early lost   ok     lost    lost     none      none
Trash Held         none    free      free  ok    other  ok     free    none     none      none
Trash Free         none    ok        ok    taken taken  ok     none    none     none      none
Restore Whatever      none    none      none  none  none   none   ok      none     none      none
Restore HeldByToken   inv     inv       inv   inv   inv    inv    inv     inv      inv       inv
Restore Held          inv     inv       inv   inv   inv    inv    inv     inv      inv       inv
Purge Whatever        none    none      none  none  none   none   ok      ok       ok        none
Purge HeldByToken     inv     inv       inv   inv   inv    inv    inv     inv      inv       inv
Purge Free            inv     inv       inv   inv   inv    inv    inv     inv      inv       inv
`)

// The words of the matrix. "ok" is done for the first time, "same" Repeated.
var words = map[string]job.Kind{
	"ok": job.NoKind, "same": job.NoKind, "none": job.NotFound, "lost": job.LeaseLost, "free": job.NotClaimed,
	"other": job.NotOwner, "taken": job.AlreadyClaimed, "early": job.Precondition, "inv": job.Invalid,
	"exists": job.AlreadyExists, "wait": job.NotEligible,
}

// A row is one op of the matrix; want has a word for each column.
type row struct {
	kind  driver.OpKind
	must  driver.Precondition
	other bool // a posting with another digest
	want  []string
}

// table reads the matrix; its first line is for people.
func table(text string) []row {
	lines := strings.Split(strings.TrimSpace(text), "\n")[1:]
	rows := make([]row, len(lines))
	for i, line := range lines {
		fields := strings.Fields(line)
		r := &rows[i]
		r.want = fields[len(fields)-len(columns):]
		for n, name := range opNames {
			if fields[0] == name {
				r.kind = driver.OpKind(n)
			}
		}
		for n, name := range mustNames {
			if fields[1] == name {
				r.must = driver.Precondition(n)
			}
		}
		r.other = fields[1] == "other"
	}
	return rows
}

// matrixChecks is a check for each column.
func matrixChecks() []check {
	var list []check
	for i, c := range columns {
		list = append(list, check{name: "matrix/" + c.name, run: func(e *env) { e.column(i) }, waits: c.name == "lapsed"})
	}
	return list
}

// A cell is one job, put where its column says, and the op that comes.
type cell struct {
	row     *row
	posting *driver.Posting
	mine    driver.Claimed
}

func (e *env) column(i int) {
	var cells []cell
	for n := range matrix {
		c := cell{row: &matrix[n], posting: posting("cell")}
		c.mine = driver.Claimed{Job: c.posting.ID, Token: job.Token{Generation: e.status.Generation, Epoch: 1, Nonce: random16()}}
		lapsed := columns[i].name == "lapsed"
		switch {
		case lapsed:
			e.must(postOp(c.posting))
			c.mine = e.claimFor(c.posting.ID, "me", job.MinLease)
		case columns[i].after != nil:
			e.must(postOp(c.posting))
			c.mine = e.claim(c.posting.ID, "me")
			columns[i].after(e, c.mine)
		}
		cells = append(cells, c)
	}
	if columns[i].name == "lapsed" {
		e.lapse()
	}
	for _, c := range cells {
		e.cell(&c, c.row.want[i])
	}
}

// op makes the op that comes.
func (c *cell) op() driver.Op {
	switch c.row.kind {
	case driver.Post:
		p := *c.posting
		if c.row.other {
			p.Name = "another name"
			p.Digest = digest(&p)
		}
		return postOp(&p)
	case driver.Claim:
		return claimOp("me too", long, c.posting.ID)
	}
	op := plain(c.row.kind, c.posting.ID)
	op.Precondition, op.Token, op.Owner = c.row.must, c.mine.Token, "me"
	if op.Kind == driver.Extend {
		op.Lease = long
	}
	return op
}

func (e *env) cell(c *cell, word string) {
	e.Helper()
	want, known := words[word]
	if !known {
		e.Fatalf("the matrix has the word %q", word)
	}
	before := e.read(c.posting.ID)
	op := c.op()
	r := e.do(op)
	kind, record := r.Kind, r.Record
	if op.Kind == driver.Claim && kind == job.NoKind && len(r.Skipped) == 1 {
		kind, record = r.Skipped[0].Kind, r.Skipped[0].Record
	}
	if kind != want || kind == job.NoKind && r.Repeated != (word == "same") {
		e.Errorf("%s: got %v, want %v (%s)", describe(&op), outcome(&driver.Result{Kind: kind, Repeated: r.Repeated, Message: r.Message}), want, word)
		return
	}
	if word == "ok" {
		return
	}
	e.unchanged(&before, describe(&op))
	standing := before.State != job.Unknown && before.State != job.Complete
	if standing && kind != job.Invalid && word != "same" && record == nil {
		e.Errorf("%s: was refused as %v without the job as it stands", describe(&op), kind)
	}
	if kind == job.NotOwner && r.Owner != "them" {
		e.Errorf("%s: NotOwner names %q, want them", describe(&op), r.Owner)
	}
	if word == "early" && (r.Remaining <= 0 || r.Remaining > long) {
		e.Errorf("%s: came %v before its time, says the result: want more than 0 and at most %v", describe(&op), r.Remaining, long)
	}
}
