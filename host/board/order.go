package board

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// order keeps the open jobs in the order of the board's ordering policy. Scores
// are made when a job comes or changes; the whole board is gone through when the
// rules change, when a policy by time has another time to see, and after a policy
// that failed.
type order struct {
	board *Board
	wake  chan struct{} // signalled when there is something to go through
	next  atomic.Int64  // unix nanoseconds from which on scores by time are old; 0: never
	fades atomic.Int64  // unix nanoseconds from which on what keys were served is old; 0: never
	again atomic.Int64  // unix nanoseconds at which what failed is tried again; 0: nothing failed
	tries atomic.Uint64 // how often that was

	open  context.Context //nolint:containedctx // the board's: the ranker is asked for all who claim
	close func()

	fallen atomic.Pointer[ruleset] // whose ranker failed and is not asked for a while
	void   atomic.Bool             // the ranks that it gave do not count any more

	mu       sync.Mutex
	waiting  []chan struct{} // closed when the board was gone through
	catching []chan struct{} // closed when it was looked whether it has to be

	comparing sync.WaitGroup // of what Run began and has to see ended
}

// follow orders by other rules. The channel is closed when the board was gone through.
func (o *order) follow(set *ruleset) <-chan struct{} {
	done := make(chan struct{})
	o.again.Store(0)
	o.schedule(set, time.Now())
	o.board.index.SetScorer(func(entries []*index.Entry) { o.score(set, entries) }, o.ranking(set))
	o.mu.Lock()
	o.waiting = append(o.waiting, done)
	o.mu.Unlock()
	rouse(o.wake)
	return done
}

// schedule notes until when scores hold that are made now.
func (o *order) schedule(set *ruleset, now time.Time) {
	o.fades.Store(0)
	if set.grouping != nil {
		o.fades.Store(now.Add(fadeTime).UnixNano())
	}
	if set.ordering == nil || !set.ordering.manifest.ByTime {
		o.next.Store(0)
		return
	}
	o.next.Store(set.ordering.clock.Next(now).UnixNano())
}

// fadeTime is how often keys are ranked anew because the counts of what they were served
// fade with time.
const fadeTime = time.Minute

// used says that somebody looks at the order: only then it is worth keeping up
// with the time.
func (o *order) used() {
	next, fades, lines := o.next.Load(), o.fades.Load(), o.board.rules.Load().shadow.due()
	if next == 0 && fades == 0 && lines == 0 {
		return
	}
	if now := time.Now().UnixNano(); next != 0 && now >= next || fades != 0 && now >= fades || lines != 0 && now >= lines {
		rouse(o.wake)
	}
}

// A claim waits for the order where the time has changed it, so that it goes by what
// policies say now: on a board with at most promptJobs open jobs, and for at most
// promptTime. Else it goes by the order as it was.
const (
	promptJobs = policy.MaxBatch
	promptTime = 100 * time.Millisecond
)

// fresh brings the order up to date before a claim, within the bounds above.
func (o *order) fresh(ctx context.Context) {
	o.used()
	next := o.next.Load()
	if next == 0 || time.Now().UnixNano() < next {
		return
	}
	if n := o.board.index.Count(); n.Ready+n.Delayed+n.Claimed > promptJobs {
		return
	}
	done := make(chan struct{})
	o.mu.Lock()
	o.catching = append(o.catching, done)
	o.mu.Unlock()
	rouse(o.wake)
	limit := time.NewTimer(promptTime)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// awaited says that a claim call begins to wait.
func (o *order) awaited() {
	if o.next.Load() != 0 || o.fades.Load() != 0 || o.board.rules.Load().shadow.due() != 0 {
		rouse(o.wake)
	}
}

// run goes through the board when there is reason to, until ctx ends.
func (o *order) run(ctx context.Context) {
	defer o.comparing.Wait()
	for ctx.Err() == nil {
		timer := time.NewTimer(o.pause(time.Now()))
		select {
		case <-ctx.Done():
		case <-o.wake:
		case <-timer.C:
		}
		timer.Stop()
		o.pass(ctx)
	}
}

// idleOrder is how often a board that nobody needs to keep in order is looked at.
const idleOrder = time.Hour

// pause is for how long there is nothing to do.
func (o *order) pause(now time.Time) time.Duration {
	wait := idleOrder
	sooner := func(at int64) {
		if at != 0 {
			wait = min(wait, max(time.Unix(0, at).Sub(now), 0))
		}
	}
	sooner(o.again.Load())
	if b := o.board; b.waiters.Load() > 0 || b.metrics.Watchers.Load() > 0 {
		sooner(o.next.Load())
		sooner(o.fades.Load())
		sooner(b.rules.Load().shadow.due())
	}
	return wait
}

// pass gives every job the place that it should have now.
func (o *order) pass(ctx context.Context) {
	o.mu.Lock()
	catching := o.catching
	o.catching = nil
	o.mu.Unlock()
	defer func() {
		for _, done := range catching {
			close(done)
		}
	}()
	now := time.Now()
	set := o.board.rules.Load()
	fades := o.fades.Load()
	ranks := fades != 0 && now.UnixNano() >= fades
	if ranks {
		o.fades.Store(now.Add(fadeTime).UnixNano())
	}
	stale := false
	if again := o.again.Load(); again != 0 && now.UnixNano() >= again {
		o.again.Store(0)
		o.tries.Add(1)
		o.fallen.Store(nil)
		stale = true
	}
	if next := o.next.Load(); next != 0 && now.UnixNano() >= next {
		o.schedule(set, now)
		stale = true
	}
	if void := o.void.Swap(false); stale {
		o.board.index.Stale()
	} else if void {
		o.board.index.StaleRanks()
	}
	o.mu.Lock()
	waiting := o.waiting
	o.waiting = nil
	o.mu.Unlock()
	var err error
	if stale || len(waiting) > 0 {
		err = o.board.index.Rescore(ctx)
		ranks = true
	}
	if err == nil && ranks {
		err = o.board.index.Rerank(ctx)
	}
	for _, done := range waiting {
		close(done)
	}
	if lines := set.shadow.due(); err == nil && lines != 0 && now.UnixNano() >= lines {
		set.shadow.next.Store(0) // until this one is done
		o.comparing.Go(func() { o.board.compareLines(ctx, set) })
	}
	if err != nil && ctx.Err() == nil {
		o.board.log.Warn("the order of the jobs could not be brought up to date", "error", err)
	}
}

// score is what the index calls for scores.
func (o *order) score(set *ruleset, entries []*index.Entry) {
	ctx, cancel := context.WithTimeout(context.Background(), scoreTime)
	defer cancel()
	for from := 0; from < len(entries) && set.current(); from += policy.MaxBatch { // or what came in its place scores them anew
		part := entries[from:min(from+policy.MaxBatch, len(entries))]
		o.scorePart(ctx, set, part)
		if set.scoresShadow() {
			o.board.shadowScores(ctx, set, part)
		}
	}
}

func (o *order) scorePart(ctx context.Context, set *ruleset, entries []*index.Entry) {
	if set.ordering == nil || !set.ordering.manifest.Ordering {
		for _, e := range entries {
			e.Score = 0
		}
	}
	if set.ordering == nil {
		return
	}
	if err := o.board.scoreWith(ctx, set, set.ordering, nil, entries); err != nil && set.current() {
		o.fail(set, entries, err)
	}
	if set.grouping == nil {
		return
	}
	for _, e := range entries {
		e.Group = set.grouping.of(set, e)
	}
}

// scoreTime bounds what scoring one batch of jobs may take in all, the reading of
// their details included.
const scoreTime = 30 * time.Second

// fail orders jobs whose ordering policy failed. If it is lenient, they have the
// board's own order. Else the policy that was good before scores them; where there is
// none, or it fails too, known jobs keep their scores and new ones have 0.
func (o *order) fail(set *ruleset, entries []*index.Entry, err error) {
	o.failed(set, "jobs", len(entries), err)
	if set.ordering.Lenient {
		for _, e := range entries {
			e.Score = 0
		}
		return
	}
	if set.before == nil {
		return // known jobs have their scores, new ones have 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), scoreTime)
	defer cancel()
	_ = o.board.scoreWith(ctx, set, set.before, nil, entries) // or the scores stay
}

// failed notes that the ordering policy failed, to try again later.
func (o *order) failed(set *ruleset, what string, n int, err error) {
	o.board.log.Warn("an ordering policy failed: what it was asked about keeps its place", "policy", set.ordering.name(), what, n, "error", err)
	retry := max(time.Now().Add(BreakerRest).UnixNano(), set.ordering.breaker.until.Load())
	if o.again.CompareAndSwap(0, retry) {
		rouse(o.wake)
	}
}

// scoreWith asks one policy, for a worker with these labels. Where it fails, no
// score is changed.
func (b *Board) scoreWith(ctx context.Context, set *ruleset, a *boundPolicy, worker []job.Label, entries []*index.Entry) error {
	which := make([]int, len(entries))
	for i := range which {
		which[i] = i
	}
	if len(a.facts) > 0 {
		if err := b.need(ctx, set.facts, entries, which); err != nil {
			return err
		}
	}
	if !a.manifest.Ordering {
		return nil
	}
	batch := a.batch(set.facts, worker, entries, which)
	scores := make([]int64, len(entries))
	if err := a.evaluate(ctx, func() error { return a.Policy.Score(ctx, batch, scores) }); err != nil {
		return err
	}
	for i, e := range entries {
		e.Score = scores[i]
	}
	return nil
}
