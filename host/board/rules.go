package board

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/shorten"
)

// Rules are the policies that a board asks.
type Rules struct {
	Eligibility []Rule // all must allow
	Ordering    *Rule  // nil: the board's own order

	// Before is the ordering that was good last: it scores what Ordering fails to.
	Before *Rule

	// Shadow is asked beside the others, and decides nothing.
	Shadow *Rule
}

// Rule is one policy. The board does not close it.
type Rule struct {
	Policy policy.Policy
	Name   string // what explanations call it; empty: the manifest's
	ID     string // the same on every host where the rule is the same

	// Lenient changes what becomes of a failure. An eligibility policy that fails
	// then allows. An ordering policy that fails then leaves the board's own order
	// rather than the scores from before.
	Lenient bool
}

func (r *Rule) name() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Policy.Manifest().Name
}

// ruleset is the rules of a board from one change of them to the next.
type ruleset struct {
	serial      uint64 // of this process: what is remembered of one ruleset says nothing about the next
	eligibility []*boundPolicy
	ordering    *boundPolicy
	before      *boundPolicy
	grouping    *grouping // nil: the order does not depend on counts
	shadow      *shadow
	facts       *facts
	moved       ranking.Bell  // rings when what a policy by time sees is to move sooner
	retired     chan struct{} // closed when others took its place
}

// SetRules has the board decide by other policies from now on. Calls that are
// under way may still be decided by the old ones, for as long as a call lasts;
// the order follows in small steps. The returned channel is closed when every job
// has its place in the new order, or the rules were set again.
func (b *Board) SetRules(rules Rules) <-chan struct{} {
	b.ruling.Lock()
	defer b.ruling.Unlock()
	old := b.rules.Load()
	next := b.newRuleset(rules)
	if old != nil {
		next.serial = old.serial + 1
	}
	b.rules.Store(next)
	if old != nil {
		close(old.retired)
	}
	if next.scores() || old != nil && old.scores() {
		return b.order.follow(next)
	}
	if next.shadow.due() != 0 {
		rouse(b.order.wake)
	}
	done := make(chan struct{})
	close(done)
	return done
}

func (b *Board) newRuleset(rules Rules) *ruleset {
	set := &ruleset{retired: make(chan struct{})}
	var all []*boundPolicy
	with := func(r *Rule) *boundPolicy {
		if r == nil {
			return nil
		}
		a := &boundPolicy{Rule: *r, manifest: r.Policy.Manifest(), metrics: &b.metrics}
		a.clock = ranking.NewClock(a.manifest.Tick, &set.moved)
		all = append(all, a)
		return a
	}
	for i := range rules.Eligibility {
		set.eligibility = append(set.eligibility, with(&rules.Eligibility[i]))
	}
	set.ordering, set.before = with(rules.Ordering), with(rules.Before)
	if a := with(rules.Shadow); a != nil {
		set.shadow = &shadow{boundPolicy: a}
	}
	set.facts = newFacts(all)
	set.grouping = groupingOf(set.ordering)
	if s := set.shadow; s != nil {
		s.follow(set)
	}
	return set
}

// ownOrder reports whether the order depends on the worker.
func (s *ruleset) ownOrder() bool {
	return s.ordering != nil && s.ordering.manifest.Ordering && s.ordering.manifest.ByWorker
}

// scores reports whether jobs have scores by these rules.
func (s *ruleset) scores() bool {
	return s.ordering != nil || s.scoresShadow()
}

// scoresShadow reports whether the shadow's order is that of its scores, next to
// one that is as well.
func (s *ruleset) scoresShadow() bool {
	return s.shadow != nil && s.shadow.manifest.Ordering && !s.shadow.lines
}

// current reports whether no other rules took the place of these.
func (s *ruleset) current() bool {
	select {
	case <-s.retired:
		return false
	default:
		return true
	}
}

// orderID names the order of the open jobs, the same on every host.
func (s *ruleset) orderID() string {
	if s.ordering == nil {
		return ""
	}
	return s.ordering.name() + "\x00" + s.ordering.ID
}

// boundPolicy is a policy with what is known of how well it works.
type boundPolicy struct {
	Rule

	manifest policy.Manifest
	facts    []int // where each of its facts stands among those of all
	metrics  *Metrics
	breaker  breaker
	clock    *ranking.Clock // how it sees the time
}

// evaluate calls a policy, unless it failed too often lately.
func (a *boundPolicy) evaluate(ctx context.Context, call func() error) error {
	if until := a.breaker.open(time.Now()); !until.IsZero() {
		a.metrics.PolicyErrors.Add(1)
		return job.Errorf(job.Unavailable, "the policy %s failed again and again and is not asked before %s; last: %s",
			a.name(), until.UTC().Format(time.RFC3339), a.breaker.last())
	}
	err := call()
	if err == nil {
		a.breaker.well()
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	a.metrics.PolicyErrors.Add(1)
	if job.KindOf(err) != job.QuotaExceeded { // whose fault is not the policy's
		a.breaker.fault(time.Now(), err)
	}
	return err
}

// A policy that fails BreakerFaults times within BreakerWindow is left alone for
// BreakerRest. Each time that it fails again then, the rest doubles, up to
// BreakerLongest.
const (
	BreakerFaults  = 3
	BreakerWindow  = time.Minute
	BreakerRest    = time.Second
	BreakerLongest = 5 * time.Minute
)

// breaker keeps a policy that fails from being asked again and again.
type breaker struct {
	until atomic.Int64 // unix nanoseconds; 0: it did not fail often

	mu     sync.Mutex
	faults []time.Time
	rest   time.Duration
	text   string
}

// open returns when the policy may be asked again, zero for at once.
func (b *breaker) open(now time.Time) time.Time {
	until := b.until.Load()
	if until == 0 || now.UnixNano() >= until {
		return time.Time{}
	}
	return time.Unix(0, until)
}

func (b *breaker) last() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text
}

// well says that the policy was asked and answered.
func (b *breaker) well() {
	if b.until.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest, b.faults = 0, nil
	b.until.Store(0)
}

func (b *breaker) fault(now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = shorten.To(err.Error(), 256)
	if !b.open(now).IsZero() {
		return // it was asked before the others failed
	}
	b.faults = slices.DeleteFunc(b.faults, func(t time.Time) bool { return now.Sub(t) >= BreakerWindow })
	if b.faults = append(b.faults, now); b.rest == 0 && len(b.faults) < BreakerFaults {
		return
	}
	b.rest = min(max(BreakerRest, 2*b.rest), BreakerLongest)
	b.faults = nil
	b.until.Store(now.Add(b.rest).UnixNano())
}
