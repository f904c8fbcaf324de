package boardtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

func (h *host) cancel(id job.ID, force, want bool, message string) {
	h.Helper()
	got, err := h.Cancel(h.within(), []job.ID{id}, force)
	h.kind(err, job.NoKind)
	if got[0].Err != nil || got[0].Changed != want || got[0].Message != fmt.Sprintf(message, id) {
		h.Fatalf("got %+v, want %v %q", got[0], want, fmt.Sprintf(message, id))
	}
}

const (
	wasCanceled    = "Job %s canceled"
	willBeCanceled = "Job %s will be canceled"
	noLonger       = "Job %s is no longer waiting in the queue"
)

// cancel: each stage of a job with each way to cancel it.
func cancel(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	bring := map[string]func(id job.ID){
		"queued":  func(job.ID) {},
		"claimed": func(id job.ID) { h.claim(id) },
		"waiting": func(id job.ID) { h.begin(h.claim(id), 0, job.OpWaiting) },
		"running": func(id job.ID) { h.begin(h.claim(id), 0, job.OpRunning) },
		"between": func(id job.ID) { h.finish(h.claim(id), 0, job.OpSuccess, "") },
		"done": func(id job.ID) {
			r := h.claim(id)
			h.finish(r, 0, job.OpSuccess, "")
			h.finish(r, 1, job.OpSuccess, "")
		},
		"failed":    func(id job.ID) { h.finish(h.claim(id), 0, job.OpError, "") },
		"canceling": func(id job.ID) { h.begin(h.claim(id), 0, job.OpWaiting); h.cancel(id, false, true, willBeCanceled) },
		"canceled":  func(id job.ID) { h.cancel(id, false, true, wasCanceled) },
		"trashed":   func(id job.ID) { s.kind(one(h.Trash(s.within(), nil, []job.ID{id}, "")), job.NoKind) },
		"consumed":  func(id job.ID) { h.consume(h.claim(id)) },
	}
	type answer struct {
		canceled bool
		message  string
		shape    string
		state    job.State
	}
	for _, tt := range []struct {
		stage         string
		plain, forced answer
	}{
		{"queued", answer{true, wasCanceled, "cc", job.Complete}, answer{true, wasCanceled, "cc", job.Complete}},
		{"claimed", answer{true, wasCanceled, "cc", job.Complete}, answer{true, wasCanceled, "cc", job.Complete}},
		{"between", answer{true, wasCanceled, "sc", job.Complete}, answer{true, wasCanceled, "sc", job.Complete}},
		{"waiting", answer{true, willBeCanceled, "gg", job.Claimed}, answer{true, willBeCanceled, "gg", job.Claimed}},
		{"running", answer{false, noLonger, "rq", job.Claimed}, answer{true, willBeCanceled, "gg", job.Claimed}},
		{"canceling", answer{false, noLonger, "gg", job.Claimed}, answer{true, willBeCanceled, "gg", job.Claimed}},
		{"done", answer{false, noLonger, "ss", job.Claimed}, answer{false, noLonger, "ss", job.Claimed}},
		{"failed", answer{false, noLonger, "ee", job.Claimed}, answer{false, noLonger, "ee", job.Claimed}},
		{"canceled", answer{false, noLonger, "cc", job.Complete}, answer{false, noLonger, "cc", job.Complete}},
		{"trashed", answer{false, noLonger, "qq", job.Trashed}, answer{false, noLonger, "qq", job.Trashed}},
		{"consumed", answer{false, noLonger, "ss", job.Complete}, answer{false, noLonger, "ss", job.Complete}},
	} {
		for force, want := range map[bool]answer{false: tt.plain, true: tt.forced} {
			id := h.post(steps(2)).ID
			bring[tt.stage](id)
			h.cancel(id, force, want.canceled, want.message)
			j := h.get(id)
			if shape(j) != want.shape || j.State != want.state {
				s.Errorf("%s, force %v: %s %s, want %s %s", tt.stage, force, shape(j), j.State, want.shape, want.state)
			}
			if want.state == job.Complete && want.canceled && (j.Outcome != job.Canceled || string(j.Operations[1].Result) != `"Job canceled by request"` || j.EndedAt.IsZero()) {
				s.Errorf("%s: %+v", tt.stage, j)
			}
		}
	}
	id := h.post(job.Posting{Name: "plain"}).ID
	h.cancel(id, false, true, wasCanceled)
	id = h.post(job.Posting{Name: "plain"}).ID
	r := h.claim(id)
	h.cancel(id, false, false, noLonger)
	h.cancel(id, true, true, willBeCanceled)
	if x, err := h.Extend(s.within(), []board.Ref{r}, 0); err != nil || x[0].Err != nil || !x[0].CancelRequested {
		s.Errorf("extended: %+v %v", x, err)
	}
	got, err := h.Cancel(s.within(), []job.ID{{99}}, false)
	s.kind(err, job.NoKind)
	s.kind(got[0].Err, job.NotFound)
}

// cancelWorker: the worker hears of it on each of its calls, and however its
// claim ends then, the job is canceled.
func cancelWorker(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	for name, end := range map[string]func(r board.Ref) error{
		"consume": func(r board.Ref) error { return one(h.Consume(s.within(), []board.Ref{r})) },
		"consume as canceled": func(r board.Ref) error {
			return one(h.ConsumeAs(s.within(), []board.Ref{r}, job.Canceled))
		},
		"abandon": func(r board.Ref) error { return one(h.Abandon(s.within(), []board.Ref{r}, board.AbandonOptions{})) },
		"finish and consume": func(r board.Ref) error {
			if _, err := h.FinishOperation(s.within(), board.OperationRequest{Ref: r, Status: job.OpCanceled}); err != nil {
				return err
			}
			return one(h.Consume(s.within(), []board.Ref{r}))
		},
	} {
		id := h.post(steps(2)).ID
		r := h.claim(id)
		h.begin(r, 0, job.OpRunning)
		h.cancel(id, true, true, willBeCanceled)
		if got := h.begin(r, 0, job.OpRunning); !got.CancelRequested || got.Status != job.OpCanceling {
			s.Errorf("%s: started: %+v", name, got)
		}
		log, err := h.AppendLog(s.within(), board.LogRequest{Ref: r, Entries: []job.LogEntry{{Message: "x"}}})
		s.kind(err, job.NoKind)
		if x, err := h.Extend(s.within(), []board.Ref{r}, 0); err != nil || !x[0].CancelRequested || !log.CancelRequested {
			s.Errorf("%s: %+v %+v %v", name, x, log, err)
		}
		s.kind(end(r), job.NoKind)
		if j := h.shape(id, "cc", job.OpCanceled); j.State != job.Complete || j.Outcome != job.Canceled {
			s.Errorf("%s: %+v", name, j)
		}
		if name != "finish and consume" {
			s.kind(end(r), job.NoKind) // again
		}
	}
	// A worker that is gone: the end of its lease cancels the job.
	id := h.post(steps(1)).ID
	claims, err := h.Claim(s.within(), board.ClaimRequest{Owner: "worker", IDs: []job.ID{id}, Lease: time.Second})
	s.kind(err, job.NoKind)
	h.begin(h.ref(&claims.Claims[0]), 0, job.OpWaiting)
	h.cancel(id, false, true, willBeCanceled)
	s.until("the end of the lease cancels the job", func() bool { return h.get(id).State == job.Complete })
	if j := h.shape(id, "c", job.OpCanceled); j.Outcome != job.Canceled {
		s.Errorf("%+v", j)
	}
}
