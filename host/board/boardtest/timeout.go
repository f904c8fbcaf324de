package boardtest

import (
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// timeouts: a claim stands for no longer than its job's timeout, whatever its lease and
// however often it is extended, and the attempt counts.
func timeouts(_ *testing.T, s *suite) {
	const timeout = 1500 * time.Millisecond
	h := s.start(board.Spec{AllowNoExpiry: true, Retry: board.Retry{MaxAttempts: 3}})
	other := s.start(board.Spec{AllowNoExpiry: true, Retry: board.Retry{MaxAttempts: 3}})
	id := h.post(job.Posting{Name: "slow", Timeout: timeout}).ID
	if j := h.get(id); j.Timeout != timeout {
		s.Fatalf("the job shows a timeout of %v, want %v", j.Timeout, timeout)
	}
	for attempt, request := range []board.ClaimRequest{
		{Owner: "worker", IDs: []job.ID{id}, Lease: time.Hour},
		{Owner: "worker", Names: []string{"slow"}, NoExpiry: true, Wait: time.Minute},
		{Owner: "worker", Names: []string{"slow"}, Lease: time.Second, Wait: time.Minute},
	} {
		r, err := h.Claim(s.within(), request)
		s.kind(err, job.NoKind)
		if len(r.Claims) != 1 {
			s.Fatalf("attempt %d: not claimed: %+v", attempt+1, r.Failures)
		}
		c := r.Claims[0]
		if c.Lease <= 0 || c.Lease > timeout || c.Attempt != int32(attempt)+1 || c.LeaseExpiresAt.IsZero() {
			s.Errorf("attempt %d: claimed as attempt %d for %v until %v, want at most %v", attempt+1, c.Attempt, c.Lease, c.LeaseExpiresAt, timeout)
		}
		s.extendToTheEnd(h, &c, timeout)
		s.until("the attempt is over, and the other host knows", func() bool {
			j := other.get(id)
			return j.State != job.Claimed && j.LastReason == board.TimeoutReason
		})
	}
	if j := h.get(id); j.State != job.Trashed || len(j.Reasons) != 3 {
		s.Errorf("after three attempts the job is %v, for the reasons %q: want it in the trash", j.State, j.Reasons)
	}
}

// extendToTheEnd extends a claim until that is refused, and checks that it is never
// extended for longer than its job's timeout.
func (s *suite) extendToTheEnd(h *host, c *job.Claim, timeout time.Duration) {
	s.Helper()
	s.until("an extension is refused", func() bool {
		results, err := h.Extend(s.within(), []board.Ref{h.ref(c)}, time.Hour)
		s.kind(err, job.NoKind)
		if results[0].Err != nil {
			s.kind(results[0].Err, job.LeaseLost)
			return true
		}
		if results[0].Lease > timeout {
			s.Fatalf("extended for %v, want at most %v", results[0].Lease, timeout)
		}
		return false
	})
}

// timeoutsAhead: a job with a timeout is given to nobody before its handler can begin.
func timeoutsAhead(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	for range 3 {
		h.post(job.Posting{Name: "timed", Timeout: time.Hour})
	}
	h.post(job.Posting{Name: "untimed"})
	r := h.work(board.WorkRequest{Claims: board.ClaimRequest{Max: 1}, Ahead: 4})
	var got []string
	for i := range r.Claims {
		got = append(got, r.Claims[i].Job.Name)
	}
	if len(got) != 2 || got[0] != "timed" || got[1] != "untimed" || !r.Claims[1].Ahead {
		s.Errorf("a worker that can begin one job was given %q, want one with a timeout, and ahead the one without", got)
	}
	if r := h.work(board.WorkRequest{Claims: board.ClaimRequest{Max: 2}}); len(r.Claims) != 2 {
		s.Errorf("a worker that can begin two jobs was given %d", len(r.Claims))
	}
}

// timeoutLimits: a timeout that makes no sense is refused.
func timeoutLimits(_ *testing.T, s *suite) {
	h := s.start(board.Spec{})
	for timeout, want := range map[time.Duration]job.Kind{
		-time.Second: job.Invalid, job.MinLease - 1: job.Invalid, job.MaxTimeout + 1: job.Invalid,
		job.MinLease: job.NoKind, job.MaxTimeout: job.NoKind,
	} {
		results, err := h.Post(s.within(), []job.Posting{{Name: "x", Timeout: timeout}})
		s.kind(err, job.NoKind)
		if got := job.KindOf(results[0].Err); got != want {
			s.Errorf("a timeout of %v: got %v, want %v", timeout, got, want)
		}
	}
}
