package boardtest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// atMost is a policy that lets so many jobs of a name run.
type atMost int64

func (atMost) Manifest() policy.Manifest {
	return policy.Manifest{Name: "at-most", Version: "1", Counts: "name"}
}

func (atMost) Eligible(context.Context, *policy.Batch, []policy.Verdict) error { return nil }

func (atMost) Score(context.Context, *policy.Batch, []int64) error { return nil }

func (n atMost) RankKeys(_ context.Context, keys *policy.Keys, ranks []policy.Rank) error {
	for i, k := range keys.Keys {
		ranks[i] = policy.Rank{Full: k.Running >= int64(n), Most: int64(n)}
	}
	return nil
}

// limitOnHosts: hosts that share a board hold to a limit together, since the store
// counts, and every job is done all the same.
func limitOnHosts(_ *testing.T, s *suite) {
	const hosts, limit, jobs = 2, 2, 40
	var all []*host
	for range hosts {
		all = append(all, s.start(board.Spec{Rules: board.Rules{Ordering: &board.Rule{Policy: atMost(limit)}}}))
	}
	for name := range strings.SplitSeq(strings.Repeat("ab", jobs/2), "") {
		all[0].post(job.Posting{Name: name})
	}
	running := map[string]*atomic.Int64{"a": {}, "b": {}}
	var done atomic.Int64
	var group sync.WaitGroup
	ctx := s.within()
	for w := range 3 * hosts {
		h := all[w%hosts]
		group.Go(func() {
			for done.Load() < jobs && ctx.Err() == nil {
				r, err := h.Claim(ctx, board.ClaimRequest{Owner: "w", Max: 1 + w%4, Lease: time.Hour, Wait: 200 * time.Millisecond})
				if err != nil {
					s.Error(err)
					return
				}
				for _, c := range r.Claims {
					if n := running[c.Job.Name].Add(1); n > limit {
						s.Errorf("%d of %s run, want at most %d", n, c.Job.Name, limit)
					}
				}
				for _, c := range r.Claims {
					running[c.Job.Name].Add(-1) // before the store knows
					errs, err := h.Consume(ctx, []board.Ref{{ID: c.ID, Owner: "w", Token: h.FormatToken(c.ID, c.Token)}})
					if err != nil || errs[0] != nil {
						s.Error(err, errs)
						return
					}
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
	if n := done.Load(); n != jobs {
		s.Errorf("%d jobs were done, want %d", n, jobs)
	}
}
