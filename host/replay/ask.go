package replay

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// rule is a policy, and what it is shown.
type rule struct {
	board.Rule

	manifest policy.Manifest
	missing  []bool // of its facts: nobody recorded it of some job
	tape     *eventLog
	clock    *ranking.Clock // nil: it does not look at the time
	shown    time.Time      // what the clock showed last
}

func newRule(r *board.Rule, t *eventLog) *rule {
	m := r.Policy.Manifest()
	made := &rule{Rule: *r, manifest: m, missing: make([]bool, len(m.Facts)), tape: t}
	if m.ByTime {
		made.clock = ranking.NewClock(m.Tick, nil)
	}
	return made
}

// at is what the policy is shown at a time; zero: it does not go by the time.
func (r *rule) at(now int64) time.Time {
	if r.clock == nil {
		return time.Time{}
	}
	return r.clock.At(time.Unix(0, now).UTC())
}

// look has a policy by time see it. It reports whether that is another one for it.
func (r *rule) look(now int64) bool {
	if r.clock == nil {
		return false
	}
	at := r.at(now)
	if at.Equal(r.shown) {
		return false
	}
	r.shown = at
	return true
}

// batch is what a policy is shown of jobs.
func (s *sim) batch(r *rule, worker []job.Label, which []int32) *policy.Batch {
	m := &r.manifest
	batch := &policy.Batch{Now: r.shown, Jobs: make([]policy.Job, len(which))}
	if m.ByWorker {
		batch.Worker = shown(worker, m.WorkerLabels)
	}
	for i, n := range which {
		d := &s.as[s.jobs[n].as]
		j := d.order
		j.Labels = shown(j.Labels, m.Labels)
		j.Attempt = s.jobs[n].attempt
		if len(m.Facts) > 0 {
			var missing []int
			j.Facts, missing = d.Values(m.Facts)
			for _, at := range missing {
				r.missing[at] = true
			}
		}
		batch.Jobs[i] = j
	}
	return batch
}

// shown returns those labels that a policy names.
func shown(labels []job.Label, patterns []string) (kept []job.Label) {
	for _, l := range labels {
		if policy.Sees(patterns, l.Key) {
			kept = append(kept, l)
		}
	}
	return kept
}

// score scores the jobs that have no score yet.
func (s *sim) score(ctx context.Context) error {
	list := s.unscored
	s.unscored = nil
	list = slices.DeleteFunc(list, func(n int32) bool { return s.jobs[n].place != open })
	slices.Sort(list)
	list = slices.Compact(list)
	if s.ordering != nil && s.ordering.manifest.Ordering {
		for part := range slices.Chunk(list, policy.MaxBatch) {
			scores, err := s.scores(ctx, nil, part)
			if err != nil {
				return err
			}
			for i := range scores {
				s.jobs[part[i]].score = scores[i]
			}
		}
	}
	if s.counts != nil {
		for _, n := range list {
			s.counts.enter(s, n)
		}
	}
	return nil
}

// scores asks the order about at most a batch of jobs, for a worker with these labels
// or for nobody in particular; none: it failed.
func (s *sim) scores(ctx context.Context, worker []job.Label, list []int32) ([]int64, error) {
	scores := make([]int64, len(list))
	switch err := s.ordering.Policy.Score(ctx, s.batch(s.ordering, worker, list), scores); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		s.errors++      // they keep the order that they have
		return nil, nil //nolint:nilerr // it is counted, and claims go on without it
	}
	return scores, nil
}

// allowed keeps those of the jobs that somebody may have.
func (s *sim) allowed(ctx context.Context, w *taker, list []int32) ([]int32, error) {
	list = slices.DeleteFunc(list, func(n int32) bool { return !w.wants(&s.as[s.jobs[n].as].order) })
	for _, r := range s.eligibility {
		var kept []int32
		for part := range slices.Chunk(list, policy.MaxBatch) {
			verdicts := make([]policy.Verdict, len(part))
			err := r.Policy.Eligible(ctx, s.batch(r, w.worker, part), verdicts)
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case err != nil:
				s.errors++
				if r.Lenient {
					kept = append(kept, part...)
				}
				continue
			}
			for i, v := range verdicts {
				if r.clock != nil {
					r.clock.Until(r.shown, v.Until)
				}
				if v.Decision == policy.Allow {
					kept = append(kept, part[i])
				}
			}
		}
		list = kept
	}
	return list, nil
}
