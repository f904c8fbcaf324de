package drivertest

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var importChecks = []check{
	{name: "import/open", run: importOpen},
	{name: "import/again", run: importAgain},
	{name: "import/trashed", run: importTrashed},
	{name: "import/ended", run: importEnded},
	{name: "import/final", run: importFinal},
	{name: "import/order", run: importOrder},
	{name: "import/limits", run: importLimits},
	{name: "import/keys", run: importKeys},
	{name: "import/watch", run: importWatch},
	{name: "import/invalid", run: importInvalid},
}

// imports reports whether the driver takes jobs in. Of one that does not nothing is asked: a
// driver older than imports can't refuse what it does not see.
func (e *env) imports() bool {
	e.Helper()
	if !e.caps().Imports {
		e.Logf("the driver does not say that it takes in jobs of other stores")
	}
	return e.caps().Imports
}

// past is a time so long ago, as every store can keep it.
func past(ago time.Duration) time.Time {
	return time.Now().Add(-ago).UTC().Truncate(time.Microsecond)
}

// importOp is an import of a job that was posted so long ago.
func importOp(age time.Duration) driver.Op {
	op := postOp(posting("imported"))
	status := []byte("status")
	op.Status = &status
	op.Import = &driver.Import{CreatedAt: past(age)}
	return op
}

// after has an imported job gone through a Trash or Remove so long ago.
func after(op driver.Op, kind driver.OpKind, ago time.Duration) driver.Op {
	then := plain(kind, op.Job)
	op.Import.EndedAt, op.Import.Then = past(ago), &then
	return op
}

// imported carries out an import and returns the job. A tombstone need not say when its job
// was posted.
func (e *env) imported(op driver.Op, want job.State) driver.Record {
	e.Helper()
	r := e.must(op)
	rec := e.state(op.Job, want, "imported")
	if r.Record == nil || r.Record.State != want || r.Record.Posting.ID != op.Job {
		e.Errorf("the import shows %+v: want the job, %v", r.Record, want)
	}
	if r.Version != rec.Version || r.Position != rec.Position {
		e.Errorf("the import was answered with version %d, position %d, and the job has %d, %d", r.Version, r.Position, rec.Version, rec.Position)
	}
	got := rec.Posting.CreatedAt
	if unsaid := got.IsZero() && rec.State == job.Complete; !unsaid && !got.Truncate(time.Microsecond).Equal(op.Import.CreatedAt) {
		e.Errorf("the imported job was posted at %v: want %v", got, op.Import.CreatedAt)
	}
	if got := rec.EndedAt; op.Import.Then != nil && !got.Truncate(time.Microsecond).Equal(op.Import.EndedAt) {
		e.Errorf("the imported job ended at %v: want %v", got, op.Import.EndedAt)
	}
	return rec
}

func importOpen(e *env) {
	if !e.imports() {
		return
	}
	op := importOp(400 * 24 * time.Hour)
	op.Hold = &driver.Hold{Until: time.Now().Add(time.Hour)}
	if e.caps().Attachments {
		op.Attach = []driver.Attachment{{Name: "log/1", Data: []byte("a line")}}
	}
	rec := e.imported(op, job.Unclaimed)
	if string(rec.Status) != "status" || rec.NotBefore.IsZero() || !sameAttached(rec.Attached, op.Attach) || len(rec.Posting.Details) == 0 {
		e.Errorf("the imported job is %+v: want its status, hold, details and attached records", rec)
	}
	e.taken(claimOp("w", long, op.Job), job.NotEligible, "an imported job is held back")
	open := importOp(time.Hour)
	e.imported(open, job.Unclaimed)
	c := e.claim(open.Job, "w")
	e.must(byToken(driver.Remove, c))
}

// importAgain checks that an import that comes again changes nothing, whatever became of
// its job meanwhile.
func importAgain(e *env) {
	if !e.imports() {
		return
	}
	for _, op := range []driver.Op{
		importOp(time.Hour), after(importOp(time.Hour), driver.Trash, time.Minute), after(importOp(time.Hour), driver.Remove, time.Minute),
	} {
		r := e.must(op)
		e.again(op, &r, "imported again")
		other := op
		p := *op.Posting
		p.Name = "another"
		p.Digest = digest(&p)
		other.Posting = &p
		e.refused(other, job.AlreadyExists, "another posting has the uuid of an imported job")
	}
	op := importOp(time.Hour)
	e.must(op)
	e.must(plain(driver.Trash, op.Job))
	e.again(op, nil, "imported again after it went to the trash")
	e.state(op.Job, job.Trashed, "imported again after it went to the trash")
	posted := postOp(op.Posting)
	e.again(posted, nil, "posted after it was imported")
}

func importTrashed(e *env) {
	if !e.imports() {
		return
	}
	op := after(importOp(2*time.Hour), driver.Trash, time.Hour)
	op.Hold = &driver.Hold{Always: true}
	rec := e.imported(op, job.Trashed)
	if string(rec.Status) != "status" || !rec.Held || len(rec.Posting.Details) == 0 {
		e.Errorf("the imported job is %+v: want its status, hold and details", rec)
	}
	counts, err := e.driver.Count(e.Context(), e.name)
	if err != nil || counts.Trashed != 1 || counts.Open != 0 {
		e.Errorf("after the import of a trashed job there are %+v, %v", counts, err)
	}
	e.must(plain(driver.Restore, op.Job))
	e.state(op.Job, job.Unclaimed, "put back")
	e.must(plain(driver.Trash, op.Job))
	e.must(plain(driver.Purge, op.Job))
	e.state(op.Job, job.Unknown, "purged")
}

// importEnded checks that the retry of an ending that was made in another store is answered.
func importEnded(e *env) {
	if !e.imports() {
		return
	}
	op := after(importOp(time.Hour), driver.Remove, time.Minute)
	then := op.Import.Then
	then.Precondition, then.Token = driver.HeldByToken, job.Token{Generation: 7, Epoch: 12, Nonce: random16()}
	rec := e.imported(op, job.Complete)
	if rec.Outcome != job.Consumed || rec.Status != nil || len(rec.Posting.Details) > 0 {
		e.Errorf("the imported job is %+v: want a tombstone alone, CONSUMED", rec)
	}
	e.again(*then, nil, "the ending that was made in another store, once more")
	other := *then
	other.Ending = &driver.Ending{Outcome: job.Failed}
	e.refused(other, job.LeaseLost, "the token ended the job in another way")
	stale := *then
	stale.Token.Nonce = random16()
	e.refused(stale, job.NotFound, "another token of a job that ended")
	counts, err := e.driver.Count(e.Context(), e.name)
	if err != nil || counts.Ended != 1 || counts.Open != 0 {
		e.Errorf("after the import of an ended job there are %+v, %v", counts, err)
	}
	canceled := after(importOp(time.Hour), driver.Remove, time.Minute)
	canceled.Import.Then.Ending = &driver.Ending{Outcome: job.Canceled}
	if rec := e.imported(canceled, job.Complete); rec.Outcome != job.Canceled {
		e.Errorf("the imported job ended %v, want %v", rec.Outcome, job.Canceled)
	}
}

// importFinal checks that a final record comes along, however long ago the job ended.
func importFinal(e *env) {
	if !e.imports() {
		return
	}
	const days = 24 * time.Hour
	op := after(importOp(41*days), driver.Remove, 40*days)
	op.Import.Then.Ending = &driver.Ending{Outcome: job.Failed, Keep: time.Hour, Data: []byte("final"), KeepPosting: true, KeepAttached: true}
	if e.caps().Attachments {
		op.Attach = []driver.Attachment{{Name: "log/1", Data: []byte("a line")}}
	}
	rec := e.imported(op, job.Complete)
	if rec.Outcome != job.Failed || string(rec.Final) != "final" || string(rec.Status) != "status" || !sameAttached(rec.Attached, op.Attach) {
		e.Errorf("the imported job is %+v: want all that was kept of it", rec)
	}
	if !bytes.Equal(rec.Posting.Extra, op.Posting.Extra) || len(rec.Posting.Details) == 0 {
		e.Errorf("the imported job has %+v left of its posting: want all of it", rec.Posting)
	}
	counts, err := e.driver.Count(e.Context(), e.name)
	if err != nil || counts.Finals != 1 || counts.FinalBytes < int64(len("finalstatus")) {
		e.Errorf("after the import of a final record there are %+v, %v", counts, err)
	}
	e.again(op, nil, "imported again")
}

// importOrder checks that jobs are in the order of their imports, in one batch and after it.
func importOrder(e *env) {
	if !e.imports() {
		return
	}
	var ops []driver.Op
	for i := range min(8, max(1, e.caps().MaxBatch)) {
		op := importOp(time.Hour - time.Duration(i)*time.Minute)
		op.Request = random16()
		ops = append(ops, op)
	}
	for i, r := range e.apply(ops...) {
		if r.Kind != job.NoKind || r.Repeated {
			e.Fatalf("import %d of a batch: %v", i, outcome(&r))
		}
	}
	last := postOp(posting("posted"))
	e.must(last)
	sequence := uint64(0)
	for i, op := range append(ops, last) {
		rec := e.read(op.Job)
		if rec.Posting.Sequence <= sequence {
			e.Errorf("job %d has sequence %d, and the one before %d: want them to grow", i, rec.Posting.Sequence, sequence)
		}
		sequence = rec.Posting.Sequence
	}
}

func importLimits(e *env) {
	if !e.imports() || !e.caps().Limits {
		return
	}
	limit := driver.Limit{Key: "open", Max: 1}
	for _, op := range []driver.Op{
		importOp(time.Hour), importOp(time.Hour), after(importOp(time.Hour), driver.Trash, time.Minute), after(importOp(time.Hour), driver.Remove, time.Minute),
	} {
		op.Limits = []driver.Limit{limit}
		e.must(op)
	}
	counts, err := e.driver.Count(e.Context(), e.name)
	if err != nil || counts.Limits["open"] != 2 {
		e.Errorf("two open jobs, a trashed and an ended one were imported, and %+v, %v are counted: want 2", counts.Limits, err)
	}
	post := postOp(posting("posted"))
	post.Limits = []driver.Limit{limit}
	e.refused(post, job.QuotaExceeded, "imported jobs are above the limit")
}

func importKeys(e *env) {
	if !e.imports() || !e.keyed() {
		return
	}
	op := importOp(time.Hour)
	op.Keys = []driver.Key{openKey("a")}
	e.must(op)
	e.keyTaken(postKeyed(openKey("a")), "a", op.Job, "an imported job has the key")
	second := importOp(time.Hour)
	second.Keys = op.Keys
	e.keyTaken(second, "a", op.Job, "an import of a job whose key another one has")
	ended := after(importOp(time.Hour), driver.Remove, time.Minute)
	ended.Keys = []driver.Key{{Name: "b", For: time.Hour}}
	e.must(ended)
	e.keyTaken(postKeyed(openKey("b")), "b", ended.Job, "an imported job that ended has the key for a time")
}

// importWatch checks that watchers are told where an imported job stands.
func importWatch(e *env) {
	if !e.imports() {
		return
	}
	first := e.must(postOp(posting("before")))
	f := e.follow(first.Position)
	ops := []driver.Op{
		importOp(time.Hour), after(importOp(time.Hour), driver.Trash, time.Minute), after(importOp(time.Hour), driver.Remove, time.Minute),
	}
	for i, want := range []job.State{job.Unclaimed, job.Trashed, job.Complete} {
		r := e.must(ops[i])
		f.until(e, r.Position)
		seen := f.seen(ops[i].Job)
		if len(seen) == 0 || seen[len(seen)-1].Record == nil || seen[len(seen)-1].Record.State != want {
			e.Errorf("the changes of an import are %+v: want the last to show the job %v", seen, want)
			continue
		}
		if first := seen[0]; first.Sparse || first.Record.Posting.Name != ops[i].Posting.Name {
			e.Errorf("the first change of an import is %+v: want it with the whole posting", first)
		}
	}
}

func importInvalid(e *env) {
	if !e.imports() {
		return
	}
	for why, change := range map[string]func(op *driver.Op){
		"no time of the post":         func(op *driver.Op) { op.Import.CreatedAt = time.Time{} },
		"no time of the end":          func(op *driver.Op) { op.Import.EndedAt = time.Time{} },
		"another job ended":           func(op *driver.Op) { op.Import.Then.Job = newID() },
		"a release is no end":         func(op *driver.Op) { op.Import.Then.Kind = driver.Release },
		"an end by an owner":          func(op *driver.Op) { op.Import.Then.Precondition, op.Import.Then.Owner = driver.HeldByOwner, "w" },
		"an end that changes a state": func(op *driver.Op) { op.Import.Then.Status = op.Status },
		"an end of a version":         func(op *driver.Op) { op.Import.Then.Version = 1 },
		"an end with a wrong outcome": func(op *driver.Op) { op.Import.Then.Ending = &driver.Ending{Outcome: job.Purged} },
	} {
		op := after(importOp(time.Hour), driver.Remove, time.Minute)
		change(&op)
		e.refused(op, job.Invalid, why)
		e.state(op.Job, job.Unknown, why)
	}
}
