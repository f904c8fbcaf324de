package board

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// shadow is a policy that is asked beside the others, to see what it would do.
type shadow struct {
	*boundPolicy

	mu     sync.Mutex
	report ShadowReport
	last   *index.Entry // the job that was scored last, with the score that counts
	lastBy index.Order  // and its place if the shadow's score counted

	// Not guarded by mu.
	lines    bool         // its order is compared line by line, since keys decide in one of them
	grouping *grouping    // nil: its order does not depend on counts
	next     atomic.Int64 // unix nanoseconds from which on lines are compared again; 0: not now
	served   served       // by its keys, where the board counts others
}

// ShadowReport says how a policy in the shadow and those that decide disagree.
type ShadowReport struct {
	Policy string // its name and version
	ID     string // as in its Rule
	Judged int64  // verdicts that were compared
	Denies int64  // of those: it denies or defers what is allowed
	Allows int64  // it allows what is denied or deferred
	Pairs  int64  // pairs of jobs whose order was compared
	Swaps  int64  // of those: it wants the other one first
	Errors int64  // batches that it failed on

	Examples []Disagreement // the first MaxDisagreements
}

// Disagreement is one job on which a policy in the shadow has another opinion.
type Disagreement struct {
	Job    job.ID
	Active string // what counts
	Shadow string // what the shadow says
}

// MaxDisagreements is how many jobs a ShadowReport names.
const MaxDisagreements = 20

// Shadow returns what is known of the policy in the shadow; nil: there is none.
func (b *Board) Shadow() *ShadowReport {
	s := b.rules.Load().shadow
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.Policy, r.ID = s.title(), s.ID
	r.Examples = append([]Disagreement(nil), r.Examples...)
	return &r
}

// replaces reports whether the shadow is a version of a policy that is asked.
func (s *shadow) replaces(a *boundPolicy) bool {
	return s != nil && s.manifest.Eligibility && s.name() == a.name()
}

func (s *shadow) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Errors++
}

// example keeps one disagreement. The caller holds s.mu.
func (s *shadow) example(d Disagreement) {
	known := func(x Disagreement) bool { return x.Job == d.Job }
	if len(s.report.Examples) < MaxDisagreements && !slices.ContainsFunc(s.report.Examples, known) {
		s.report.Examples = append(s.report.Examples, d)
	}
}

// shadowVerdicts asks the shadow about jobs on which verdicts were given; nil: all
// were allowed.
func (w *selector) shadowVerdicts(ctx context.Context, entries []*index.Entry, which []int, active []policy.Verdict) {
	s := w.rules.shadow
	for from := 0; from < len(which); from += policy.MaxBatch {
		to := min(from+policy.MaxBatch, len(which))
		verdicts, err := w.verdicts(ctx, s.boundPolicy, entries, which[from:to])
		if err != nil {
			s.failed()
			continue
		}
		for i, v := range verdicts {
			is := policy.Verdict{Decision: policy.Allow}
			if active != nil {
				is = active[from+i]
			}
			s.compare(entries[which[from+i]].ID, is, v)
		}
	}
}

func (s *shadow) compare(id job.ID, active, verdict policy.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Judged++
	was, is := active.Decision == policy.Allow, verdict.Decision == policy.Allow
	switch {
	case was == is:
		return
	case was:
		s.report.Denies++
		s.example(Disagreement{Job: id, Active: "allowed", Shadow: s.reason(verdict)})
	default:
		s.report.Allows++
		s.example(Disagreement{Job: id, Active: "denied or deferred", Shadow: "allowed"})
	}
}

// shadowScores has the shadow score jobs that have their scores, and compares
// each with the one before.
func (b *Board) shadowScores(ctx context.Context, set *ruleset, entries []*index.Entry) {
	s := set.shadow
	mine := make([]*index.Entry, len(entries))
	for i, e := range entries {
		c := *e
		mine[i] = &c
	}
	if err := b.scoreWith(ctx, set, s.boundPolicy, nil, mine); err != nil {
		s.failed()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range entries {
		by := mine[i].Order()
		if s.last != nil && s.last.ID != e.ID {
			s.report.Pairs++
			if s.last.Order().Less(e.Order()) != s.lastBy.Less(by) {
				s.report.Swaps++
				before, after := "before "+s.last.ID.String(), "after "+s.last.ID.String()
				if s.last.Order().Less(e.Order()) {
					before, after = after, before
				}
				s.example(Disagreement{Job: e.ID, Active: before, Shadow: after})
			}
		}
		kept := index.Entry{
			ID: e.ID, Score: e.Score, Priority: e.Priority, OperationPriority: e.OperationPriority, CreatedAt: e.CreatedAt, Sequence: e.Sequence,
		}
		s.last, s.lastBy = &kept, by
	}
}
