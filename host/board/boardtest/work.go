package boardtest

import (
	"context"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// work makes a call of Work for the worker "w".
func (h *host) work(req board.WorkRequest) board.WorkResponse {
	h.Helper()
	req.Claims.Owner = "w"
	r, err := h.Work(h.within(), req)
	h.kind(err, job.NoKind)
	return r
}

// workInOneCall: a call ends claims in each way and gives others, and does so once however
// often it comes.
func workInOneCall(_ *testing.T, s *suite) {
	h := s.start(board.Spec{Lease: time.Hour})
	for range 6 {
		h.post(job.Posting{Name: "n"})
	}
	held := h.work(board.WorkRequest{Claims: board.ClaimRequest{Max: 4}}).Claims
	if len(held) != 4 {
		s.Fatalf("%d claims, want 4", len(held))
	}
	later := time.Hour
	req := board.WorkRequest{
		Claims: board.ClaimRequest{Max: 9, RequestID: "once", Wait: time.Minute},
		Extend: []board.WorkExtension{{Ref: h.ref(&held[0])}},
		Endings: []board.WorkEnding{
			{Ref: h.ref(&held[0]), Ending: board.Ending{How: board.ToConsume}},
			{Ref: h.ref(&held[1]), Ending: board.Ending{How: board.ToConsume, Outcome: job.Canceled}},
			{Ref: h.ref(&held[2]), Ending: board.Ending{How: board.ToTrash, Reason: "bad"}},
			{Ref: h.ref(&held[3]), Ending: board.Ending{How: board.ToAbandon, AbandonOptions: board.AbandonOptions{RetryAfter: &later, RefundAttempt: true}}},
		},
	}
	var tokens []string
	for range 2 {
		r := h.work(req)
		for _, err := range r.Ended {
			s.kind(err, job.NoKind)
		}
		if len(r.Claims) != 2 {
			s.Fatalf("%d claims, want the 2 that are left", len(r.Claims))
		}
		tokens = append(tokens, h.ref(&r.Claims[0]).Token+h.ref(&r.Claims[1]).Token)
	}
	if tokens[0] != tokens[1] {
		s.Error("the same request gave other claims")
	}
	for i, want := range []job.State{job.Complete, job.Complete, job.Trashed, job.Unclaimed} {
		results, err := h.Get(h.within(), []job.ID{held[i].ID}, board.GetOptions{})
		if err != nil || results[0].Err != nil || results[0].Job.State != want {
			s.Errorf("job %d: %+v, want it to be %v (%v)", i, results, want, err)
		}
	}
}

// workNotices: a worker who waits is told at once of what another host does to a claim
// that it has in hand.
func workNotices(_ *testing.T, s *suite) {
	here, there := s.start(board.Spec{Lease: time.Hour}), s.start(board.Spec{Lease: time.Hour})
	here.post(job.Posting{Name: "n"})
	here.post(job.Posting{Name: "n"})
	held := here.work(board.WorkRequest{Claims: board.ClaimRequest{Max: 2}}).Claims
	told := func(what board.What, c job.Claim) {
		s.Helper()
		for ctx := s.within(); ; {
			r := here.work(board.WorkRequest{Claims: board.ClaimRequest{Max: 1, Wait: time.Minute}})
			switch {
			case len(r.Notices) == 1 && r.Notices[0].What == what && r.Notices[0].Token == c.Token:
				return
			case len(r.Notices) > 0 || ctx.Err() != nil:
				s.Fatalf("%+v", r)
			}
			for _, c := range r.Claims { // what the end of a claim gave
				_, _ = here.Consume(ctx, []board.Ref{here.ref(&c)})
			}
		}
	}
	if _, err := there.Cancel(s.within(), []job.ID{held[0].ID}, true); err != nil {
		s.Fatal(err)
	}
	told(board.NoticeCancel, held[0])
	if errs, err := there.Release(s.within(), []job.ID{held[1].ID}, "", "by hand"); err != nil || errs[0] != nil {
		s.Fatal(err, errs)
	}
	told(board.NoticeLost, held[1])
}

// workAhead: a claim that was given ahead and lapses uses up no attempt, and one that has
// begun does.
func workAhead(_ *testing.T, s *suite) {
	h := s.start(board.Spec{Lease: time.Second})
	j := h.post(job.Posting{Name: "n"})
	attempt := func() int32 {
		results, err := h.Get(h.within(), []job.ID{j.ID}, board.GetOptions{})
		if err != nil || results[0].Err != nil {
			s.Fatal(err, results[0].Err)
		}
		if results[0].Job.State == job.Claimed {
			return -1
		}
		return results[0].Job.Attempt
	}
	for _, begun := range []bool{false, true} {
		r := h.work(board.WorkRequest{Ahead: 1})
		if len(r.Claims) != 1 || !r.Claims[0].Ahead || r.Claims[0].Attempt != 1 {
			s.Fatalf("%+v", r)
		}
		if begun {
			r := h.work(board.WorkRequest{Extend: []board.WorkExtension{{Ref: h.ref(&r.Claims[0]), Begun: true}}})
			s.kind(r.Extended[0].Err, job.NoKind)
		}
		s.until("the lease runs out", func() bool { return attempt() >= 0 })
		if got := attempt(); got != map[bool]int32{false: 0, true: 1}[begun] {
			s.Errorf("begun %v: %d attempts are used up", begun, got)
		}
	}
	ctx, cancel := context.WithTimeout(s.within(), 20*time.Second)
	defer cancel()
	if r, err := h.Work(ctx, board.WorkRequest{Claims: board.ClaimRequest{Owner: "w", Max: 1, Wait: 10 * time.Second}}); err != nil || len(r.Claims) != 1 || r.Claims[0].Attempt != 2 {
		s.Errorf("%+v, %v", r, err)
	}
}
