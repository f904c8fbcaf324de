package boardtest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// perPeriod is a policy that lets so many jobs of a name be claimed in a period.
type perPeriod struct {
	atMost
	per time.Duration
}

func (p perPeriod) Manifest() policy.Manifest {
	return policy.Manifest{Name: "per-period", Version: "1", Counts: "name", Period: p.per}
}

func (s *suite) paced(hosts int, p perPeriod) (all []*host) {
	for range hosts {
		all = append(all, s.start(board.Spec{Rules: board.Rules{Ordering: &board.Rule{Policy: p}}}))
	}
	return all
}

// rateOnHosts: hosts that claim at once never grant more of a key together than a period
// may have, though its claims end. The period is the longest: no test sees its end.
func rateOnHosts(_ *testing.T, s *suite) {
	const most, jobs = 5, 12
	all := s.paced(2, perPeriod{most, policy.MaxPeriod})
	for range jobs {
		all[0].post(job.Posting{Name: "a"})
		all[1].post(job.Posting{Name: "b"})
	}
	granted := map[string]*atomic.Int64{"a": {}, "b": {}}
	var group sync.WaitGroup
	for w := range 4 {
		h := all[w%2]
		group.Go(func() {
			for granted["a"].Load() < most || granted["b"].Load() < most {
				if !h.useUp(1+w, granted) {
					return
				}
			}
			h.useUp(jobs, granted)
		})
	}
	group.Wait()
	for name, n := range granted {
		if n.Load() != most {
			s.Errorf("%d of %s were claimed in one period, want %d", n.Load(), name, most)
		}
	}
}

// rateGoesOn: who waits for a key is given more of it in the next periods.
func rateGoesOn(_ *testing.T, s *suite) {
	const jobs = 3
	all := s.paced(2, perPeriod{1, time.Second})
	for range jobs {
		all[0].post(job.Posting{Name: "a"})
	}
	granted, began := map[string]*atomic.Int64{"a": {}}, time.Now()
	s.until("a rate of one a second lets all jobs run", func() bool {
		for _, h := range all {
			h.useUp(jobs, granted)
			if n, most := granted["a"].Load(), int64(time.Since(began)/time.Second)+2; n > most {
				s.Fatalf("%d claims within %v", n, time.Since(began))
			}
		}
		return granted["a"].Load() == jobs
	})
}

// useUp claims jobs and consumes them.
func (h *host) useUp(most int, granted map[string]*atomic.Int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), h.harness.Patience)
	defer cancel()
	r, err := h.Claim(ctx, board.ClaimRequest{Owner: "w", Max: most, Lease: time.Hour, Wait: 100 * time.Millisecond})
	if err != nil {
		h.Error(err)
		return false
	}
	for _, c := range r.Claims {
		granted[c.Job.Name].Add(1)
		if err := one(h.Consume(ctx, []board.Ref{h.ref(&c)})); err != nil {
			h.Error(err)
			return false
		}
	}
	return true
}
