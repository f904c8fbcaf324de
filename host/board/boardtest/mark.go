package boardtest

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// mark: what is not finished gets one status and one result in one call, and what
// is finished keeps its own.
func mark(_ *testing.T, s *suite) {
	h := s.start(board.Spec{History: time.Hour})
	for status, want := range map[job.OperationStatus]string{job.OpSuccess: "ssss", job.OpError: "seee", job.OpCanceled: "sccc"} {
		r := h.claim(h.post(steps(4)).ID)
		h.begin(r, 0, job.OpRunning)
		h.finish(r, 0, job.OpSuccess, `"own"`)
		h.begin(r, 1, job.OpRunning)
		for i, marked := range []int{3, 0} { // and again
			if got := h.mark(r, status, `{"why":"all"}`); got.Marked != marked || got.JobStatus != status || got.CancelRequested {
				s.Errorf("%s, call %d: %+v", status, i, got)
			}
		}
		j := h.shape(r.ID, want, status)
		if !strings.HasPrefix(string(j.Operations[0].Result), `"own"`) {
			s.Errorf("%s: the finished one has the result %s", status, j.Operations[0].Result)
		}
		for _, op := range j.Operations[1:] {
			if string(op.Result) != `{"why":"all"}` || op.EndedAt.IsZero() {
				s.Errorf("%s: %+v", status, op)
			}
		}
		h.consume(r)
		h.shape(r.ID, want, status)
	}
	h.markBack(steps(3))
	h.markCanceling(steps(3))
	h.markWrong(steps(2))
}

// markBack puts back what was begun.
func (h *host) markBack(p job.Posting) {
	r := h.claim(h.post(p).ID)
	h.begin(r, 0, job.OpRunning)
	if got := h.mark(r, job.OpQueued, ""); got.Marked != 1 || got.JobStatus != job.OpQueued {
		h.Errorf("%+v", got)
	}
	if j := h.shape(r.ID, "qqq", job.OpQueued); !j.Operations[0].StartedAt.IsZero() {
		h.Errorf("%+v", j.Operations[0])
	}
	if got := h.mark(r, job.OpCanceled, ""); got.Marked != 3 {
		h.Errorf("%+v", got)
	}
	if j := h.get(r.ID); string(j.Operations[2].Result) != `"Job canceled by request"` {
		h.Errorf("%+v", j.Operations[2])
	}
}

// markCanceling is what a request to cancel does to a running job.
func (h *host) markCanceling(p job.Posting) {
	r := h.claim(h.post(p).ID)
	h.begin(r, 0, job.OpRunning)
	if got := h.mark(r, job.OpCanceling, ""); got.Marked != 3 || got.JobStatus != job.OpCanceling || !got.CancelRequested {
		h.Errorf("%+v", got)
	}
	_, err := h.MarkOperations(h.within(), board.MarkRequest{Ref: r, Status: job.OpQueued})
	h.kind(err, job.Precondition)
	h.shape(r.ID, "ggg", job.OpCanceling)
	h.consume(r)
	if j := h.shape(r.ID, "ccc", job.OpCanceled); j.Outcome != job.Canceled {
		h.Errorf("ended as %s", j.Outcome)
	}
}

func (h *host) markWrong(p job.Posting) {
	r := h.claim(h.post(p).ID)
	for _, wrong := range []board.MarkRequest{
		{Status: job.OpRunning},
		{Status: job.OpWaiting},
		{Status: job.NoOperation},
		{Status: 99},
		{Status: job.OpQueued, Result: []byte(`1`)},
		{Status: job.OpCanceling, Result: []byte(`1`)},
		{Status: job.OpError, Result: []byte(`{`)},
		{Status: job.OpError, Result: []byte(`"` + strings.Repeat("x", job.MaxResult) + `"`)},
	} {
		wrong.Ref = r
		_, err := h.MarkOperations(h.within(), wrong)
		h.kind(err, job.Invalid)
	}
	h.shape(r.ID, "qq", job.OpQueued)
	bare := h.claim(h.post(job.Posting{Name: "bare"}).ID)
	_, err := h.MarkOperations(h.within(), board.MarkRequest{Ref: bare, Status: job.OpError})
	h.kind(err, job.Invalid)
}

func (h *host) mark(r board.Ref, status job.OperationStatus, result string) board.MarkResult {
	h.Helper()
	got, err := h.MarkOperations(h.within(), board.MarkRequest{Ref: r, Status: status, Result: []byte(result)})
	h.kind(err, job.NoKind)
	return got
}
