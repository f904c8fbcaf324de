package store_test

import (
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// imports are three jobs of another store: an open one, one in its trash, and one that ended.
func imports() []driver.Op {
	ops := make([]driver.Op, 3)
	for i := range ops {
		id, created := job.ID(random16()), time.Now().Add(-100*time.Hour).UTC().Truncate(time.Microsecond)
		ops[i] = driver.Op{
			Kind: driver.Post, Job: id, Request: random16(), Event: job.Posted, Reason: "imported",
			Posting: &driver.Posting{ID: id, Name: text("imported %d", i), Priority: job.High, Encoding: job.JSON, Details: []byte(`{"a": 1}`), Extra: []byte("x"), Digest: random16()},
			Import:  &driver.Import{CreatedAt: created},
		}
		if i > 0 {
			then := driver.Op{Kind: driver.Trash, Job: id, Event: job.TrashedEvent}
			if i == 2 {
				then.Kind, then.Event = driver.Remove, job.ConsumedEvent
				then.Ending = &driver.Ending{Outcome: job.Failed, Keep: time.Hour, Data: []byte("final"), KeepPosting: true}
			}
			ops[i].Import.EndedAt, ops[i].Import.Then = created.Add(time.Hour+time.Microsecond), &then
		}
	}
	return ops
}

// imported checks that a host sees the jobs as they were in the other store.
func (k *desk) imported(ops []driver.Op, what string) {
	k.Helper()
	for i, want := range []job.State{job.Unclaimed, job.Trashed, job.Complete} {
		op := &ops[i]
		records, err := k.driver.Read(k.Context(), k.name, []job.ID{op.Job}, driver.Details|driver.FinalData)
		if err != nil {
			k.Fatal(err)
		}
		r := &records[0]
		p := &r.Posting
		if r.State != want || p.Name != op.Posting.Name || p.Priority != job.High || string(p.Details) != `{"a": 1}` || string(p.Extra) != "x" || p.Digest != op.Posting.Digest {
			k.Errorf("%s: an imported job is %v, %+v: want %v, %+v", what, r.State, *p, want, op.Posting)
		}
		if !p.CreatedAt.Equal(op.Import.CreatedAt) || !r.EndedAt.Equal(op.Import.EndedAt) {
			k.Errorf("%s: an imported job was posted at %v and ended at %v: want %v, %v", what, p.CreatedAt, r.EndedAt, op.Import.CreatedAt, op.Import.EndedAt)
		}
	}
}

// TestImport takes in jobs of another store beside TaskFlow, which sees the open one alone, and
// works on it, and beside another host.
func TestImport(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	b := sit(t, openWith(t, settingsOf(p.z.Servers(), nil)), "/taskflow/jobs", nil)
	b.watch()
	ops := imports()
	for i, r := range p.driver.Apply(t.Context(), p.name, ops) {
		if r.Kind != job.NoKind {
			t.Fatalf("import %d: %v %s", i, r.Kind, r.Message)
		}
	}
	p.imported(ops, "the host that took them in")
	b.sees(ops[0].Job, job.Unclaimed, "another host's import")
	b.sees(ops[1].Job, job.Trashed, "another host's import")
	b.sees(ops[2].Job, job.Complete, "another host's import")
	b.imported(ops, "another host")
	sit(t, openWith(t, settingsOf(p.z.Servers(), nil)), "/taskflow/jobs", nil).imported(ops, "a host that came later")
	list, err := p.python.List(false)
	if err != nil || len(list) != 1 || list[0].UUID != ops[0].Job.String() || list[0].Name != "imported 0" {
		t.Errorf("TaskFlow lists %+v, %v: want the open job alone", list, err)
	}
	if found := p.examine(); len(found) > 0 {
		t.Errorf("an examination finds %q", found)
	}
	p.must(driver.Op{Kind: driver.Restore, Job: ops[1].Job})
	for _, op := range ops[:2] {
		id := op.Job.String()
		p.until("TaskFlow claims an imported job", func() bool { return p.python.Claim(id, "python", 0) == nil })
		b.sees(op.Job, job.Claimed, "TaskFlow claimed an imported job")
		if got := b.read(op.Job).Posting.CreatedAt; !got.Equal(op.Import.CreatedAt) {
			t.Errorf("a claimed job was posted at %v: want %v", got, op.Import.CreatedAt)
		}
		if err := p.python.End("consume", id, "python"); err != nil {
			t.Error(err)
		}
		b.until("TaskFlow consumed an imported job", func() bool { return b.read(op.Job).State == job.Complete })
	}
}

// TestImportIntoAFullBoard takes in what is in the trash or has ended where there is no room for
// an open job.
func TestImportIntoAFullBoard(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/full/jobs", map[string]any{"max_jobs": 1})
	k.post("the only one", `{}`, nil)
	ops := imports()
	k.kind(ops[0], job.QuotaExceeded, "an open job more than max_jobs")
	k.must(ops[1])
	k.must(ops[2])
}
