package board

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// export returns a board's lines.
func export(t testing.TB, b *Board) ([]byte, Exported) {
	t.Helper()
	var lines bytes.Buffer
	sum, err := b.Export(t.Context(), func(line []byte) error {
		lines.Write(line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines.Bytes(), sum
}

// lived has jobs in all states, with all that belongs to them, and returns their ids.
func lived(t testing.TB, b *Board) []job.ID {
	t.Helper()
	jobs := post(t, b,
		job.Posting{Name: "first", Details: []byte(`{ "a" : 1.50 }`), Priority: job.Low, Labels: []job.Label{{Key: "k", Value: "v"}}, Timeout: time.Hour},
		job.Posting{Name: "second", Unique: job.Unique{Key: "only"}, Operations: []job.NewOperation{{Name: "step", Input: []byte(`1`)}, {Name: "next"}}},
		job.Posting{Name: "later", NotBefore: time.Now().Add(24 * time.Hour)},
		job.Posting{Name: "trashed", Unique: job.Unique{Key: "for a day", Window: 24 * time.Hour}},
		job.Posting{Name: "done", Details: []byte(`{"b":2}`)},
		job.Posting{Name: "raw", Raw: &job.Raw{Encoding: job.Msgpack, Data: []byte{0x80}}},
		job.Posting{Name: "claimed"},
	)
	ids := make([]job.ID, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	second := claimOne(t, b, ClaimRequest{IDs: ids[1:2]})
	ref := Ref{ID: second.ID, Token: b.FormatToken(second.ID, second.Token)}
	if _, err := b.StartOperation(t.Context(), OperationRequest{Ref: ref, Status: job.OpRunning}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.FinishOperation(t.Context(), OperationRequest{Ref: ref, Status: job.OpSuccess, Result: []byte(`{"r":true}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.AppendLog(t.Context(), LogRequest{Ref: ref, Entries: []job.LogEntry{{Type: "info", Message: "half of it"}}}); err != nil {
		t.Fatal(err)
	}
	none := func(errs []error, err error) {
		t.Helper()
		if err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
	}
	none(b.Abandon(t.Context(), []Ref{ref}, AbandonOptions{Reason: "not today"}))
	none(b.Trash(t.Context(), nil, ids[3:4], "wrong"))
	done := claimOne(t, b, ClaimRequest{IDs: ids[4:5]})
	none(b.Consume(t.Context(), []Ref{{ID: done.ID, Token: b.FormatToken(done.ID, done.Token)}}))
	claimOne(t, b, ClaimRequest{IDs: ids[6:7], Owner: "has it"})
	post(t, b, job.Posting{Name: "waits", After: []job.Prerequisite{{ID: ids[0]}}})
	if _, err := b.PutBook(t.Context(), Book{UUID: "b1", Name: "a book", Content: []byte(`[1]`)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutSchedule(t.Context(), Schedule{Name: "nightly", Cron: "0 3 * * *", Job: job.Posting{Name: "report"}}, nil); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestExport brings a board with all that it can have to another store, twice.
func TestExport(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		from := start(t, openStore(t), Spec{History: 72 * time.Hour})
		ids := lived(t, from)
		lines, sum := export(t, from)
		if want := (Exported{Open: 6, Trashed: 1, Ended: 1, Documents: 2}); sum != want {
			t.Fatalf("the export has %+v, want %+v:\n%s", sum, want, lines)
		}
		time.Sleep(time.Hour)
		to := start(t, openStore(t), Spec{History: 72 * time.Hour})
		if _, err := to.Import(t.Context(), lines, 2); job.KindOf(err) != job.Precondition {
			t.Fatalf("import into a board that is not paused: %v", err)
		}
		if err := to.Pause(t.Context(), "import"); err != nil {
			t.Fatal(err)
		}
		for i, want := range []Imported{{Jobs: 8}, {Known: 8}} {
			if got, err := to.Import(t.Context(), lines, 2); err != nil || got != want {
				t.Fatalf("import %d: %+v, %v; want %+v", i+1, got, err, want)
			}
			// Before the index hears of them from the store.
			if c, err := to.Count(t.Context()); err != nil || c.Ready+c.Delayed != 6 || c.Claimed != 0 || c.Trashed != 1 {
				t.Fatalf("after import %d the board counts %+v, %v; want 6 open and 1 in the trash", i+1, c, err)
			}
		}
		synctest.Wait() // the index hears of them from the store
		sameJobs(t, from, to, ids[:6])
		claimed := shownJob(t, to, ids[6])
		if claimed.State != job.Unclaimed || claimed.Attempt != 1 || claimed.LastReason != ImportedReason || claimed.Attempts[0].Owner != "has it" {
			t.Errorf("the job that was claimed is %+v: want it open, with its attempt", claimed)
		}
		if got, want := claimOrder(t, to), claimOrder(t, from); !cmp.Equal(got, want) {
			t.Errorf("the claim order is %v, want %v", got, want)
		}
		for _, key := range []job.Unique{{Key: "only"}, {Key: "for a day", Window: time.Hour}} {
			r, err := to.Post(t.Context(), []job.Posting{{Name: "another", Unique: key}})
			if err != nil || r[0].Err != nil || !r[0].Existing {
				t.Errorf("a posting with the key %q of an imported job: %+v, %v", key.Key, r, err)
			}
		}
		if book, err := to.Book(t.Context(), "b1"); err != nil || string(book.Content) != "[1]" {
			t.Errorf("the book is %+v, %v", book, err)
		}
		if _, err := to.Schedule(t.Context(), "nightly"); err != nil {
			t.Error(err)
		}
		again, sum := export(t, to)
		if sum.Open != 6 || sum.Changed {
			t.Errorf("the export of the import has %+v:\n%s", sum, again)
		}
	})
}

// shownJob reads a job with all that belongs to it.
func shownJob(t *testing.T, b *Board, id job.ID) *job.Job {
	t.Helper()
	r, err := b.Get(t.Context(), []job.ID{id}, GetOptions{Details: true, Operations: true, Log: true})
	if err != nil || r[0].Err != nil {
		t.Fatal(err, r)
	}
	return r[0].Job
}

// sameJobs compares jobs, but for what is a board's own.
func sameJobs(t *testing.T, from, to *Board, ids []job.ID) {
	t.Helper()
	for _, id := range ids {
		want, got := shownJob(t, from, id), shownJob(t, to, id)
		want.Sequence, want.ModifiedAt = got.Sequence, got.ModifiedAt
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("job %s is another one after the import (-before +after):\n%s", want.Name, diff)
		}
	}
}

// claimOrder is the names of the open jobs in claim order.
func claimOrder(t *testing.T, b *Board) (names []string) {
	t.Helper()
	page, err := b.List(t.Context(), ListRequest{PageSize: MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range page.Jobs {
		names = append(names, j.Name)
	}
	return names
}

// TestImportSaysWhere checks that a wrong line is named, and nothing of the call is taken in.
func TestImportSaysWhere(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		from := start(t, openStore(t), Spec{})
		id := post(t, from, job.Posting{Name: "one"})[0].ID
		post(t, from, job.Posting{Name: "two"})
		lines, _ := export(t, from)
		to := start(t, openStore(t), Spec{})
		if err := to.Pause(t.Context(), "import"); err != nil {
			t.Fatal(err)
		}
		good := string(lines)
		for name, c := range map[string]struct{ lines, want string }{
			"no JSON":        {good + "nonsense\n", "line 12: want a line of an export"},
			"another field":  {good + `{"job":{"uuid":"x","extra":1}}`, "line 12: "},
			"no uuid":        {strings.ReplaceAll(good, id.String(), "x"), "line 10: job.uuid: "},
			"another state":  {strings.Replace(good, "UNCLAIMED", "READY", 1), "line 10: job.state: want UNCLAIMED or"},
			"a loss":         {good + `{"document":{"space":"settings","name":"losses","data":""}}`, "line 12: document: want a book"},
			"neither":        {good + `{}`, "line 12: want a job or a document"},
			"too many lines": {strings.Repeat(good, MaxImportLines/2+1), "at most 1000"},
			"wrong status":   {strings.Replace(good, `"digest"`, `"status":"AgIC","digest"`, 1), "line 10: job.status: "},
		} {
			_, err := to.Import(t.Context(), []byte(c.lines), 10)
			if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want INVALID with %q", name, err, c.want)
			}
		}
		if counts, err := to.Count(t.Context()); err != nil || counts.Ready != 0 {
			t.Errorf("after lines that were refused there are %+v, %v", counts, err)
		}
		if _, err := to.Import(t.Context(), lines, 1); err != nil {
			t.Fatal(err)
		}
		var line exportLine
		first, _, _ := bytes.Cut(lines, []byte("\n"))
		if err := json.Unmarshal(first, &line); err != nil {
			t.Fatal(err)
		}
		line.Job.Digest = bytes.Repeat([]byte{9}, 16)
		other, _ := json.Marshal(line)
		if _, err := to.Import(t.Context(), other, 7); job.KindOf(err) != job.AlreadyExists || !strings.Contains(err.Error(), "line 7: ") {
			t.Errorf("another posting of an imported uuid: %v", err)
		}
	})
}

// importedBy has boards take in lines one by one, with pauses, and look meanwhile, and resumes them.
func importedBy(t *testing.T, b *Board, lines []byte, meanwhile func()) {
	t.Helper()
	if err := b.Pause(t.Context(), "import"); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(lines) {
		if _, err := b.Import(t.Context(), line, 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Second)
		synctest.Wait()
		meanwhile()
	}
	if err := b.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestImportOfTicks: a schedule goes on where it was on the other board once all of it was taken
// in, on each host; ticks that were due before, and not posted, are posted then.
func TestImportOfTicks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"test", "another"} { // with the same uuids of ticks, and with others
		bubble(t, func(t *testing.T) {
			began, d := time.Now(), openStore(t)
			from := start(t, openStore(t), Spec{})
			putEvery(t, from, "minutely", time.Minute)
			time.Sleep(3*time.Minute + time.Second)
			for range 3 {
				consume(t, from, refOf(from, claimOne(t, from, ClaimRequest{})))
			}
			lines, _ := export(t, from)
			hosts := []*Board{start(t, d, Spec{Name: name}), start(t, d, Spec{Name: name})}
			time.Sleep(2 * time.Minute)
			ready := func() int {
				t.Helper()
				c, err := hosts[1].Count(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return int(c.Ready)
			}
			importedBy(t, hosts[0], lines, func() {
				if n := ready(); n != 0 {
					t.Fatalf("on %s %d jobs are posted %v after the beginning, during the import", name, n, time.Since(began))
				}
			})
			for range 3 {
				time.Sleep(time.Second)
				if n, want := ready(), int(time.Since(began)/time.Minute)-3; n != want {
					t.Fatalf("on %s there are %d jobs, want one for each of %d ticks since the export", name, n, want)
				}
				time.Sleep(time.Minute)
			}
			for i, b := range hosts {
				if n := b.Metrics().TicksMissed.Load(); n != 0 {
					t.Errorf("on %s host %d says %d times that ticks are left out", name, i, n)
				}
			}
		})
	}
}

// TestImportedScheduleHeardOfLate: a host that hears of an imported schedule only when the board was
// resumed reads first how far that is.
func TestImportedScheduleHeardOfLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		synctest.Wait()
		now := time.Now()
		b.ticked(t.Context(), "s", func(r *tickRecord) { r.At = now })
		for i := range 3 {
			r := scheduleRecord{
				Every: time.Minute, Job: job.Posting{Name: "tick"}, CatchUp: time.Hour, Anchor: now.Add(-30 * time.Minute), Since: now.Add(-30 * time.Minute),
				Imported: now.Add(time.Duration(i-3) * time.Minute),
			}
			data, err := r.encode()
			if err == nil {
				_, err = b.putDocument(t.Context(), driver.SettingSpace, driver.Document{Name: schedulePrefix + "s", Data: data})
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute + time.Second)
			if n, want := b.index.Count().Ready, int64(i)+1; n != want || b.Metrics().TicksMissed.Load() != 0 {
				t.Fatalf("%d jobs after %d ticks, and %d are said to be left out", n, want, b.Metrics().TicksMissed.Load())
			}
		}
	})
}

// leavesOut checks that a schedule posts nothing while the job of the tick before is open, which
// was posted in another store, and goes on when that has ended.
func leavesOut(t *testing.T, b *Board, id job.ID, end func()) {
	t.Helper()
	for range 2 {
		time.Sleep(time.Minute)
		synctest.Wait()
		if c := b.index.Count(); c.Ready+c.Claimed != 1 {
			t.Fatalf("%d jobs of the schedule are open, want the one that came along", c.Ready+c.Claimed)
		}
	}
	if _, err := b.TriggerSchedule(t.Context(), "s", job.ID{}); job.KindOf(err) != job.AlreadyExists {
		t.Errorf("the schedule is triggered beside its open job: %v", err)
	}
	if s, err := b.Schedule(t.Context(), "s"); err != nil || s.LastID != id || !strings.Contains(s.Problem, id.String()) {
		t.Errorf("the schedule is %+v, %v: want the job %s as its last one, and because of it a problem", s, err, id)
	}
	end()
	time.Sleep(time.Minute)
	synctest.Wait()
	if n := b.index.Count().Ready; n != 1 {
		t.Errorf("once the job has ended %d are open after a tick, want one", n)
	}
}

// skipping makes a schedule of which a tick is left out while a job is open, and returns its first.
func skipping(t *testing.T, b *Board) job.ID {
	t.Helper()
	s := Schedule{Name: "s", Every: time.Minute, Overlap: OverlapSkip, Job: job.Posting{Name: "tick"}}
	if _, err := b.PutSchedule(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(90 * time.Second)
	synctest.Wait()
	s, err := b.Schedule(t.Context(), "s")
	if err != nil || s.LastID == (job.ID{}) {
		t.Fatalf("the schedule has posted nothing: %+v, %v", s, err)
	}
	return s.LastID
}

// TestImportOfAnOpenTick: the job that a schedule has open comes along, and no other is posted
// beside it.
func TestImportOfAnOpenTick(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		from := start(t, openStore(t), Spec{})
		id := skipping(t, from)
		lines, _ := export(t, from)
		to := start(t, openStore(t), Spec{Name: "another"})
		importedBy(t, to, lines, func() {})
		leavesOut(t, to, id, func() { consume(t, to, refOf(to, claimOne(t, to, ClaimRequest{}))) })
	})
}

// TestImportOfADoneBatch: a batch that was done is done after the import, takes no more jobs, and
// is not followed once more.
func TestImportOfADoneBatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		from := start(t, openStore(t), Spec{History: time.Hour})
		if _, err := from.PutBatch(t.Context(), "b", &job.Posting{Name: "then"}, 0); err != nil {
			t.Fatal(err)
		}
		part := job.Posting{Name: "part", Batch: "b"}
		post(t, from, part)
		consume(t, from, refOf(from, claimOne(t, from, ClaimRequest{})))
		if _, err := from.CloseBatch(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		before, err := from.Batch(t.Context(), "b", time.Minute)
		if err != nil || !before.Done() {
			t.Fatalf("before the export: %+v, %v", before, err)
		}
		lines, _ := export(t, from)
		to := start(t, openStore(t), Spec{Name: "another", History: time.Hour})
		importedBy(t, to, lines, func() {})
		after, err := to.Batch(t.Context(), "b", time.Minute)
		if err != nil || !after.Done() || after.ThenID != before.ThenID || after.Group.Consumed != 1 {
			t.Errorf("after the import: %+v, %v; before the export: %+v", after, err, before)
		}
		if r, err := to.Post(t.Context(), []job.Posting{part}); err != nil || job.KindOf(r[0].Err) != job.NotEligible {
			t.Errorf("a posting of the batch that is closed: %+v, %v", r, err)
		}
		time.Sleep(time.Minute)
		done := true
		if list, _, err := to.Batches(t.Context(), "", 10, &done); err != nil || len(list) != 1 {
			t.Errorf("the batches that are done are %+v, %v", list, err)
		}
		if n := to.index.Count().Ready; n != 1 {
			t.Errorf("%d jobs are open, want the one that followed the batch", n)
		}
	})
}
