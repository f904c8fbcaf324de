package boardtest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// operationsInOrder goes through a job's operations one after another.
func operationsInOrder(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	p := steps(3)
	p.Operations[1].Input = nil
	p.Operations[2].Priority = -7
	posted := h.post(p)
	if posted.OperationStatus != job.OpQueued || posted.OperationPriority != -7 {
		s.Fatalf("posted: %+v", posted)
	}
	claims, err := h.Claim(s.within(), board.ClaimRequest{Owner: "worker"})
	s.kind(err, job.NoKind)
	if len(claims.Claims) != 1 {
		s.Fatalf("%+v", claims)
	}
	if ops := claims.Steps[0].List(); len(ops) != 3 || ops[0].Name != "step" || string(ops[0].Input) != "0" || ops[1].Input != nil || ops[2].Priority != -7 {
		s.Fatalf("the claim's operations: %+v", ops)
	}
	r := h.ref(&claims.Claims[0])
	if j := h.get(r.ID); !j.StartedAt.IsZero() {
		s.Errorf("started before an operation was: %v", j.StartedAt)
	}
	if got := h.begin(r, 0, job.OpWaiting); got.Status != job.OpWaiting || got.JobStatus != job.OpWaiting || got.CancelRequested {
		s.Errorf("%+v", got)
	}
	h.begin(r, 0, job.OpRunning)
	h.begin(r, 0, job.OpRunning) // again
	_, err = h.StartOperation(s.within(), board.OperationRequest{Ref: r, Index: 1, Status: job.OpRunning})
	s.kind(err, job.Precondition)
	_, err = h.FinishOperation(s.within(), board.OperationRequest{Ref: r, Index: 2, Status: job.OpSuccess})
	s.kind(err, job.Precondition)
	h.finish(r, 0, job.OpSuccess, `{"n":1}`)
	h.finish(r, 0, job.OpSuccess, `{"n":1}`) // again
	_, err = h.FinishOperation(s.within(), board.OperationRequest{Ref: r, Index: 0, Status: job.OpSuccess, Result: []byte(`{"n":2}`)})
	s.kind(err, job.Precondition) // with another result
	_, err = h.FinishOperation(s.within(), board.OperationRequest{Ref: r, Index: 0, Status: job.OpError})
	s.kind(err, job.Precondition)
	j := h.shape(r.ID, "sqq", job.OpQueued)
	first := j.Operations[0]
	if string(first.Result) != `{"n":1}` || first.StartedAt.IsZero() || first.ExecutedAt.Before(first.StartedAt) || first.EndedAt.Before(first.ExecutedAt) {
		s.Errorf("finished: %+v", first)
	}
	if !j.StartedAt.Equal(first.StartedAt) && j.StartedAt.Sub(first.StartedAt).Abs() > time.Millisecond {
		s.Errorf("the job started at %v, its first operation at %v", j.StartedAt, first.StartedAt)
	}
	h.finish(r, 1, job.OpSuccess, "")
	h.begin(r, 2, job.OpRunning)
	if got := h.finish(r, 2, job.OpSuccess, `"done"`); got.JobStatus != job.OpSuccess {
		s.Errorf("%+v", got)
	}
	h.consume(r)
	h.consume(r) // again
	j = h.shape(r.ID, "sss", job.OpSuccess)
	if j.State != job.Complete || j.Outcome != job.Consumed || j.Owner != "worker" || string(j.Operations[2].Result) != `"done"` || j.OperationPriority != 0 {
		s.Errorf("in the history: %+v", j)
	}
}

// fencing: only the present claim changes anything.
func fencing(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	id := h.post(steps(2)).ID
	old := h.claim(id)
	s.kind(one(h.Release(s.within(), []job.ID{id}, "", "hangs")), job.NoKind)
	calls := map[string]func(r board.Ref) error{
		"start": func(r board.Ref) error {
			_, err := h.StartOperation(s.within(), board.OperationRequest{Ref: r, Status: job.OpRunning})
			return err
		},
		"finish": func(r board.Ref) error {
			_, err := h.FinishOperation(s.within(), board.OperationRequest{Ref: r, Status: job.OpSuccess})
			return err
		},
		"mark": func(r board.Ref) error {
			_, err := h.MarkOperations(s.within(), board.MarkRequest{Ref: r, Status: job.OpError})
			return err
		},
		"log": func(r board.Ref) error {
			_, err := h.AppendLog(s.within(), board.LogRequest{Ref: r, Entries: []job.LogEntry{{Message: "x"}}})
			return err
		},
	}
	for name, call := range calls {
		if got := job.KindOf(call(old)); got != job.LeaseLost {
			s.Errorf("%s by nobody's token: got %v", name, got)
		}
		if got := job.KindOf(call(board.Ref{ID: id, Owner: "worker"})); got != job.Invalid {
			s.Errorf("%s without a token: got %v", name, got)
		}
	}
	present := h.claim(id)
	for name, call := range calls {
		if got := job.KindOf(call(old)); got != job.LeaseLost {
			s.Errorf("%s by an old token: got %v", name, got)
		}
		wrong := present
		wrong.Owner = "somebody"
		if got := job.KindOf(call(wrong)); got != job.NotOwner {
			s.Errorf("%s by another owner: got %v", name, got)
		}
	}
	h.shape(id, "qq", job.OpQueued)
	h.consume(present)
	for name, call := range calls {
		if got := job.KindOf(call(present)); got != job.NotFound && got != job.LeaseLost {
			s.Errorf("%s after the end: got %v", name, got)
		}
	}
}

// resume: whoever claims a job next begins where the last one stopped.
func resume(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	id := h.post(steps(4)).ID
	lose := map[string]func(r board.Ref) error{
		"abandon": func(r board.Ref) error {
			zero := time.Duration(0)
			return one(h.Abandon(s.within(), []board.Ref{r}, board.AbandonOptions{RetryAfter: &zero}))
		},
		"release": func(r board.Ref) error { return one(h.Release(s.within(), []job.ID{r.ID}, "", "hangs")) },
		"trash": func(r board.Ref) error {
			if err := one(h.Trash(s.within(), []board.Ref{r}, nil, "bad")); err != nil {
				return err
			}
			return one(h.Restore(s.within(), []job.ID{r.ID}))
		},
	}
	done := 0
	for _, how := range []string{"abandon", "release", "trash"} {
		r := h.claim(id)
		h.begin(r, int32(done), job.OpRunning)
		h.finish(r, int32(done), job.OpSuccess, fmt.Sprint(done))
		if _, err := h.AppendLog(s.within(), board.LogRequest{Ref: r, Index: int32(done), Entries: []job.LogEntry{{Message: how}}}); err != nil {
			s.Fatal(err)
		}
		done++
		h.begin(r, int32(done), job.OpWaiting)
		s.kind(lose[how](r), job.NoKind)
		j := h.get(id)
		if got, want := shape(j), string(bytes.Repeat([]byte("s"), done))+string(bytes.Repeat([]byte("q"), 4-done)); got != want {
			s.Fatalf("after %s: %s, want %s", how, got, want)
		}
		if string(j.Operations[done-1].Result) != fmt.Sprint(done-1) || !j.Operations[done].StartedAt.IsZero() {
			s.Fatalf("after %s: %+v", how, j.Operations)
		}
	}
	// The claim brings the results of those before.
	claims, err := h.Claim(s.within(), board.ClaimRequest{Owner: "next"})
	s.kind(err, job.NoKind)
	if ops := claims.Steps[0].List(); string(ops[2].Result) != "2" || ops[3].Status != job.OpQueued {
		s.Fatalf("%+v", ops)
	}
	page, err := h.ReadLog(s.within(), id, 0, 0, 0)
	s.kind(err, job.NoKind)
	if len(page.Entries) != 3 || page.Entries[2].Serial != 3 || page.Entries[2].Message != "trash" || page.Entries[2].Index != 2 {
		s.Fatalf("the log: %+v", page.Entries)
	}
}

// failing: those behind a failed operation fail with the same result, and a
// restored job begins with the first that did not succeed.
func failing(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	for _, tt := range []struct {
		as      job.OperationStatus
		result  string
		want    string
		shape   string
		outcome job.Outcome
	}{
		{job.OpError, `{"why":"disk"}`, `{"why":"disk"}`, "seee", job.Failed},
		{job.OpError, "", "", "seee", job.Failed},
		{job.OpCanceled, "", `"Job canceled by request"`, "sccc", job.Canceled},
		{job.OpCanceled, `"enough"`, `"enough"`, "sccc", job.Canceled},
	} {
		id := h.post(steps(4)).ID
		r := h.claim(id)
		h.finish(r, 0, job.OpSuccess, `"kept"`)
		h.begin(r, 1, job.OpRunning)
		h.finish(r, 1, tt.as, tt.result)
		j := h.shape(id, tt.shape, tt.as)
		for i, op := range j.Operations {
			want := tt.want
			if i == 0 {
				want = `"kept"`
			}
			if string(op.Result) != want || op.EndedAt.IsZero() {
				s.Errorf("%v: operation %d: %s, want %s", tt.as, i, op.Result, want)
			}
		}
		h.consume(r)
		if j := h.shape(id, tt.shape, tt.as); j.Outcome != tt.outcome {
			s.Errorf("consumed after %v: %v", tt.as, j.Outcome)
		}
	}
	id := h.post(steps(2)).ID
	r := h.claim(id)
	h.finish(r, 0, job.OpSuccess, "1")
	h.finish(r, 1, job.OpError, "2")
	s.kind(one(h.Trash(s.within(), []board.Ref{r}, nil, "bad")), job.NoKind)
	h.shape(id, "se", job.OpError)
	s.kind(one(h.Restore(s.within(), []job.ID{id})), job.NoKind)
	if j := h.shape(id, "sq", job.OpQueued); string(j.Operations[0].Result) != "1" || j.Operations[1].Result != nil {
		s.Errorf("restored: %+v", j.Operations)
	}
}

// restart: another host finds everything byte for byte.
func restart(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	p := steps(3)
	p.Operations[1].Priority = 5
	p.Operations[2].Input = []byte(`{ "a" : [1, 2.50] }`)
	id := h.post(p).ID
	r := h.claim(id)
	h.finish(r, 0, job.OpSuccess, `{ "b":  1e3 }`)
	h.begin(r, 1, job.OpRunning)
	before := fmt.Sprintf("%+v", h.get(id).Operations)
	h.stop()
	h = s.start(board.Spec{})
	if after := fmt.Sprintf("%+v", h.get(id).Operations); after != before {
		s.Errorf("before %s\nafter  %s", before, after)
	}
	h.finish(r, 1, job.OpSuccess, "")
}

// priority: the line follows at once, and what was posted stays.
func priority(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	ids := make([]job.ID, 3)
	for i := range ids {
		ids[i] = h.post(steps(2)).ID
	}
	none := h.post(job.Posting{Name: "none"}).ID
	change := func(changed bool, message string, f func() ([]board.Change, error)) {
		s.Helper()
		got, err := f()
		s.kind(err, job.NoKind)
		if got[0].Err != nil || got[0].Changed != changed || got[0].Message != message {
			s.Fatalf("got %+v, want %v %q", got[0], changed, message)
		}
	}
	set := func(id job.ID, p int32) func() ([]board.Change, error) {
		return func() ([]board.Change, error) { return h.SetOperationPriority(s.within(), []job.ID{id}, p) }
	}
	change(true, fmt.Sprintf("Priorities of pending operations for job %s have been changed to -5", ids[2]), set(ids[2], -5))
	change(false, fmt.Sprintf("Job %s had no pending operations", none), set(none, 3))
	change(true, fmt.Sprintf("Priority of job %s has been changed to HIGH", ids[1]), func() ([]board.Change, error) {
		return h.SetPriority(s.within(), []job.ID{ids[1]}, job.High)
	})
	if j := h.get(ids[2]); j.OperationPriority != -5 || j.Operations[1].Priority != -5 {
		s.Errorf("%+v", j)
	}
	page, err := h.List(s.within(), board.ListRequest{})
	s.kind(err, job.NoKind)
	var order []job.ID
	for _, j := range page.Jobs {
		order = append(order, j.ID)
	}
	if want := []job.ID{ids[1], ids[2], ids[0], none}; fmt.Sprint(order) != fmt.Sprint(want) {
		s.Errorf("the line is %v, want %v", order, want)
	}
	r := h.claim(ids[0])
	h.begin(r, 0, job.OpRunning)
	change(true, fmt.Sprintf("Priorities of pending operations for job %s have been changed to 7", ids[0]), set(ids[0], 7))
	if ops := h.get(ids[0]).Operations; ops[0].Priority != 0 || ops[1].Priority != 7 {
		s.Errorf("a running operation's priority changed: %+v", ops)
	}
	h.finish(r, 0, job.OpSuccess, "")
	h.begin(r, 1, job.OpRunning)
	change(false, fmt.Sprintf("Job %s had no pending operations", ids[0]), set(ids[0], 8))
	h.finish(r, 1, job.OpSuccess, "")
	change(false, fmt.Sprintf("Job %s is finished", ids[0]), set(ids[0], 9))
	h.consume(r)
	change(false, fmt.Sprintf("Job %s is finished", ids[0]), set(ids[0], 9))
	r = h.claim(ids[1])
	h.begin(r, 0, job.OpWaiting)
	if _, err := h.Cancel(s.within(), []job.ID{ids[1]}, false); err != nil {
		s.Fatal(err)
	}
	change(false, fmt.Sprintf("Job %s is cancelling", ids[1]), set(ids[1], 9))
	for _, p := range []int32{job.MinOperationPriority - 1, job.MaxOperationPriority + 1} {
		_, err := h.SetOperationPriority(s.within(), ids[:1], p)
		s.kind(err, job.Invalid)
	}
	got, err := h.SetOperationPriority(s.within(), []job.ID{{99}}, 1)
	s.kind(err, job.NoKind)
	s.kind(got[0].Err, job.NotFound)
}
