package board

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/sleep"
)

// MaxShadowLine is how many of the next jobs are compared where the order of the
// board, or that of its shadow, depends on counts.
const MaxShadowLine = 100

// A comparison is one look at which jobs the board would give next, to nobody in
// particular and if nothing ended meanwhile, and which ones its shadow would. Both
// are made of the same counts, so that claims that go on make no difference between
// them. It works in small pieces and rests after each.
type comparison struct {
	board *Board
	set   *ruleset
	now   time.Time // what policies by time are shown
	sides [2]*side  // of what decides and of the shadow
	piece time.Time // when the present piece of work began
}

// A comparison works for about pieceTime, and then rests restPerWork times as long,
// so that it takes about a hundredth of a core. A rest is never longer than maxRest:
// a piece that took more than a tenth of a second waited most of it, for a
// processor that others have or for a policy's process to begin. Between two
// comparisons is at least compareEvery.
const (
	pieceTime    = 5 * time.Millisecond
	restPerWork  = 99
	maxRest      = 10 * time.Second
	compareEvery = time.Second
)

// restAfter is how long a comparison rests after a piece of work.
func restAfter(worked time.Duration) time.Duration { return min(restPerWork*worked, maxRest) }

// due returns when lines are to be compared next, in unix nanoseconds; 0: they are
// not, or are being compared.
func (s *shadow) due() int64 {
	if s == nil {
		return 0
	}
	return s.next.Load()
}

// follow prepares the comparison of the shadow's order with the board's: line by line
// if keys decide in one of them.
func (s *shadow) follow(set *ruleset) {
	s.grouping = groupingOf(s.boundPolicy)
	if s.lines = s.grouping != nil || set.grouping != nil && s.manifest.Ordering; s.lines {
		s.next.Store(1) // at once
	}
}

// compareLines makes one comparison, and says when the next one is due.
func (b *Board) compareLines(ctx context.Context, set *ruleset) {
	c := newComparison(b, set)
	if b.index.Count().Ready > 0 && b.order.fallen.Load() != set { // else there is nothing that would be given, or not by the policy
		if active, shadow, ok := c.lines(ctx); ok {
			set.shadow.countLines(active, shadow)
		}
	}
	set.shadow.next.Store(time.Now().Add(max(compareEvery, restAfter(time.Since(c.piece)))).UnixNano())
	rouse(b.order.wake)
}

func newComparison(b *Board, set *ruleset) *comparison {
	c := &comparison{board: b, set: set, now: time.Now(), piece: time.Now()}
	active, shadow := newSide(0, c), newSide(1, c)
	if g := set.grouping; g != nil {
		// Not by evaluate: a failure here must not open the breaker of the policy in force.
		active.ask = set.ordering.rankAt
		active.per = g.per
		active.served = func(keys []policy.Key) { b.index.Served(g.by, keys) }
	}
	if g := set.shadow.grouping; g != nil {
		shadow.ask = func(ctx context.Context, now time.Time, keys []policy.Key, ranks []policy.Rank) error {
			return set.shadow.evaluate(ctx, func() error { return set.shadow.rankAt(ctx, now, keys, ranks) })
		}
		shadow.per = g.per
		shadow.served = func(keys []policy.Key) { set.shadow.served.write(keys, g.per) }
		if set.grouping != nil && set.grouping.by == g.by {
			shadow.served = active.servedAs // whose line is made first
		}
	}
	c.sides = [2]*side{active, shadow}
	return c
}

// lines returns both lines; false: they are not known, because the board, the
// rules or a policy came to an end. Only what the shadow fails at counts.
func (c *comparison) lines(ctx context.Context) (active, shadow []*contender, ok bool) {
	fails := func(err error) bool {
		if err != nil && ctx.Err() == nil && c.set.current() {
			c.set.shadow.failed()
		}
		return err != nil
	}
	if fails(c.walk(ctx)) {
		return nil, nil, false
	}
	active, err := c.sides[0].line(ctx)
	if err != nil {
		return nil, nil, false
	}
	shadow, err = c.sides[1].line(ctx)
	return active, shadow, !fails(err)
}

// walk counts the open jobs for both sides.
func (c *comparison) walk(ctx context.Context) error {
	request := index.PageRequest{Unclaimed: true, Claimed: true, Limit: policy.MaxBatch, Visit: policy.MaxBatch}
	for {
		page := c.board.index.Page(request)
		if err := c.count(ctx, page.Entries); err != nil {
			return err
		}
		if err := c.rest(ctx); err != nil || !page.More {
			return err
		}
		last := page.Last
		request.After = &last
	}
}

// count counts jobs, whose entries nobody else has.
func (c *comparison) count(ctx context.Context, entries []*index.Entry) error {
	entries = slices.DeleteFunc(entries, func(e *index.Entry) bool {
		return e.Claim == nil && (e.Held || e.NotBefore.After(c.now))
	})
	orders := make([]index.Order, len(entries))
	for i, e := range entries {
		if orders[i] = e.Order(); !c.set.shadow.manifest.Ordering {
			e.Score = 0 // as it would be if the shadow decided
		}
	}
	ctx, cancel := context.WithTimeout(ctx, scoreTime)
	defer cancel()
	if err := c.board.scoreWith(ctx, c.set, c.set.shadow.boundPolicy, nil, entries); err != nil {
		return err
	}
	for i, e := range entries {
		active, shadow := c.keys(e)
		a, s := c.sides[0].stock(active), c.sides[1].stock(shadow)
		switch {
		case a == nil || s == nil:
		case e.Claim != nil:
			a.run()
			s.run()
		default:
			x := &contender{id: e.ID, orders: [2]index.Order{orders[i], e.Order()}, stocks: [2]*stock{a, s}}
			c.sides[0].add(a, x)
			c.sides[1].add(s, x)
		}
	}
	return nil
}

// keys returns by what each side groups a job: nothing where counts do not matter.
func (c *comparison) keys(e *index.Entry) (active, shadow string) {
	if g := c.set.grouping; g != nil {
		if group := g.of(c.set, e); group != nil {
			active = group.Key
		}
	}
	if g := c.set.shadow.grouping; g != nil {
		shadow, _ = g.key(c.set.facts, e) // its facts are known by now
	}
	return active, shadow
}

// rest stands between two steps: it ends a piece of work that was long enough. It is
// an error if there is no reason to go on.
func (c *comparison) rest(ctx context.Context) error {
	if worked := time.Since(c.piece); worked >= pieceTime {
		if err := sleep.For(ctx, restAfter(worked)); err != nil {
			return err
		}
		c.piece = time.Now()
	}
	if !c.set.current() || ctx.Err() != nil {
		return job.Errorf(job.Interrupted, "the board has other rules, or has ended")
	}
	return nil
}

// countLines counts where two lines differ: what comes in neither of two places is
// not compared, since it may be anywhere behind.
func (s *shadow) countLines(active, shadow []*contender) {
	for _, x := range active {
		x.places[1] = MaxShadowLine
	}
	both := active
	for i, x := range shadow {
		if x.places[1] = i; !slices.Contains(active, x) {
			x.places[0] = MaxShadowLine
			both = append(both, x)
		}
	}
	for i, x := range active {
		x.places[0] = i
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range both {
		s.countFull(x)
		for _, y := range both[i+1:] {
			s.countPair(x, y)
		}
	}
}

// countPair counts whether two jobs come in another order. The caller holds s.mu.
func (s *shadow) countPair(x, y *contender) {
	was, is := x.places[0]-y.places[0], x.places[1]-y.places[1]
	if was == 0 || is == 0 {
		return // at the same place: behind the line
	}
	if s.report.Pairs++; was < 0 == (is < 0) {
		return
	}
	s.report.Swaps++
	if was < 0 {
		x, y = y, x
	}
	s.example(Disagreement{Job: x.id, Active: "after " + y.id.String(), Shadow: "before " + y.id.String()})
}

// countFull compares verdicts: a job whose key is full is denied. The caller holds s.mu.
func (s *shadow) countFull(x *contender) {
	s.report.Judged++
	switch {
	case x.places[1] == MaxShadowLine && x.stocks[1].full():
		s.report.Denies++
		s.example(Disagreement{Job: x.id, Active: "allowed", Shadow: s.fullText(x.stocks[1].key.Key)})
	case x.places[0] == MaxShadowLine && x.stocks[0].full():
		s.report.Allows++
		s.example(Disagreement{Job: x.id, Active: "denied or deferred", Shadow: "allowed"})
	}
}
