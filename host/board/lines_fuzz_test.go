package board

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/job"
)

// FuzzImportLine takes any lines for those of an export. What is taken in can be read whole again.
func FuzzImportLine(f *testing.F) {
	from := start(f, openStore(f), Spec{History: time.Hour})
	lived(f, from)
	lines, _ := export(f, from)
	f.Add(lines)
	for line := range bytes.Lines(lines) {
		f.Add(line)
	}
	to := start(f, openStore(f), Spec{History: time.Hour})
	if err := to.Pause(f.Context(), "import"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := to.Import(t.Context(), text, 1)
		if job.KindOf(err) == job.Internal {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		for line := range bytes.Lines(text) {
			i := importer{board: to, opened: to.readiness.opened.Load(), taking: taking{random: &to.random, now: time.Now()}}
			if err := i.take(bytes.TrimSuffix(line, []byte("\n")), 1); err != nil {
				t.Fatalf("%q was taken in, and is refused now: %v", line, err)
			}
			for _, op := range i.ops {
				wholeAgain(t, to, op.Job)
			}
		}
	})
}

// wholeAgain reads a job whole, and what that says, if the board still knows it.
func wholeAgain(t *testing.T, b *Board, id job.ID) {
	t.Helper()
	r, err := b.Get(t.Context(), []job.ID{id}, GetOptions{AsItWas: true})
	if err == nil {
		err = r[0].Err
	}
	if job.KindOf(err) == job.NotFound {
		return
	}
	if err != nil {
		t.Fatalf("job %v cannot be read: %v", id, err)
	}
	if _, err := b.ReadAsItWas(r[0].Job.AsItWas); err != nil {
		t.Fatalf("job %v as it was is refused: %v\n%s", id, err, r[0].Job.AsItWas.Record)
	}
}

// FuzzAsItWas takes any text for a job as it was. One that is read is written in a form that is
// read as the same job, and can be posted.
func FuzzAsItWas(f *testing.F) {
	from := start(f, openStore(f), Spec{History: time.Hour})
	for _, a := range whole(f, from, lived(f, from)...) {
		f.Add(a.Record)
	}
	to := start(f, openStore(f), Spec{History: time.Hour})
	f.Fuzz(func(t *testing.T, text []byte) {
		read := func(text []byte) (*WholeJob, error) {
			return to.ReadAsItWas(&job.AsItWas{Format: job.AsItWasFormat, Record: text, SHA256: hexSum(text)})
		}
		w, err := read(text)
		if err != nil {
			if job.KindOf(err) != job.Invalid {
				t.Fatalf("%q: %v, want INVALID", text, err)
			}
			return
		}
		rec, err := w.line.record()
		if err != nil {
			t.Fatal(err)
		}
		again, err := asItWas(rec)
		if err != nil {
			t.Fatalf("%q was read, and cannot be written: %v", text, err)
		}
		back, err := read(again.Record)
		if err != nil {
			t.Fatalf("%q was written as %s, and that is refused: %v", text, again.Record, err)
		}
		if diff := cmp.Diff(w.Shown, back.Shown); diff != "" {
			t.Fatalf("%q is another job once it is written:\n%s", text, diff)
		}
		r, err := to.PostAsItWas(t.Context(), []*WholeJob{w})
		if err == nil {
			err = r[0].Err
		}
		if job.KindOf(err) == job.Internal {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil {
			wholeAgain(t, to, w.Shown.ID)
		}
	})
}

// FuzzLeftPosting takes any text for a posting that somebody left in the store, and posts it.
func FuzzLeftPosting(f *testing.F) {
	for _, text := range []string{
		`{}`,
		`{"name": "x", "details": {"a": 1.50}, "priority": "HIGH", "labels": {"k": "v"}, "maxAttempts": 3, "timeout": "30s", "notBefore": "2026-01-02T03:04:05Z"}`,
		`{"name": "x", "book": {"uuid": "b", "name": "n"}, "unique": {"key": "k", "window": "1.5s", "onConflict": "REPLACE"}, "batch": "night"}`,
		`{"name": "x", "operations": [{"name": "o", "input": {"a": null}, "priority": -1}]}`,
		`{"name": "x", "after": [{"uuid": "00000000-0000-0000-0000-000000000001", "statuses": ["SUCCESS", "ERROR"]}]}`,
		`{"name": "x", "timeout": "1e9s"} {}`,
	} {
		f.Add([]byte(text))
	}
	b := start(f, openStore(f), Spec{History: time.Hour})
	n := job.ID{}
	f.Fuzz(func(t *testing.T, text []byte) {
		for i := len(n) - 1; i >= 0; i-- {
			if n[i]++; n[i] != 0 {
				break
			}
		}
		p, err := new(leftPosting).posting(n, text)
		if err == nil {
			var r []JobResult
			if r, err = b.Post(t.Context(), []job.Posting{p}); err == nil {
				err = r[0].Err
			}
		}
		if job.KindOf(err) == job.Internal {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil {
			wholeAgain(t, b, n)
		}
	})
}
