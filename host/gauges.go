package host

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/bounded"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/webhook"
)

// OtherBoards stands for the boards of a tenant that have no metrics of their own, where
// metrics name a board, and OtherTenants for the tenants that have no sum of theirs. No board
// and no tenant can have this name.
const (
	OtherBoards  = "_other"
	OtherTenants = "_other"
)

// MaxMetricsTenants is how many tenants have a sum of their boards in metrics: with a hundred
// thousand the answer would have a million lines.
const MaxMetricsTenants = 1000

// gaugesAtOnce is how many boards are read at a time. A board without metrics of its own is
// read at most every otherFor.
const (
	gaugesAtOnce = 16
	otherFor     = 10 * time.Second
)

// Gauge is what metrics show of one board, or the sum of all boards of a tenant that have
// no metrics of their own. It is for whoever runs the server.
type Gauge struct {
	Tenant, Board string
	Ready         bool             // of several: all are
	Loss          bool             // of acknowledged changes, which nobody has acknowledged yet; of several: one has it
	Counts        *board.Counts    // nil if they cannot be had
	Counted       time.Time        // when the store was asked for those of them that only it knows; of several: of the one that is oldest; zero: it was not, or the board rests
	Waiting       int64            // claim calls that wait now
	Events        map[string]int64 // what this host did, by the name of the event
	Waits, Runs   *board.Histogram // of the jobs; nil as long as the board is not open
	Hooks         *HookGauge       // nil: the board has nothing to do with webhooks
}

// HookGauge is what metrics show of the webhooks that a board has to do with.
type HookGauge struct {
	Tells, Sends bool             // it is told of, and has deliveries
	Tries        map[string]int64 // of deliveries that are jobs on the board, by what came of it
	Undelivered  time.Time        // when the oldest delivery was made that has not ended; zero: there is none
	Untold       time.Time        // since when something that happened on the board cannot be made a delivery; zero: it can
}

// gauges decides which boards have metrics of their own, and sums up the others. A board
// that has them keeps them as long as it is there, and one that has none gets none: a
// counter would fall, or rise by what happened long ago.
type gauges struct {
	mu     sync.Mutex // held while the boards are read, for gaugesWithin at most
	boards map[catalog.At]*gauged
	others map[string]*Gauge // by tenant, or OtherTenants, with what was counted on boards that are gone as well
}

// gauged is what was last read of a board.
type gauged struct {
	named       bool
	board       *board.Board // of which the rest was read
	counted     *counted     // of it
	read        time.Time
	gauge       Gauge
	events      map[string]int64 // what the tenant's sum has of them already
	tries       map[string]int64 // likewise
	told        *webhook.Tally   // that has counted them
	waits, runs *board.Histogram // likewise
}

// Gauges returns one Gauge for each of at most named boards, shared out evenly among the
// tenants, one for all other boards of each tenant, of MaxMetricsTenants tenants at most, and one
// for those of all others, by tenant and name. A board whose store does not answer, or not soon,
// has the counts of the last time; none, where it never did. Then those come first whose counts
// are oldest.
func (h *Host) Gauges(ctx context.Context, named int) []Gauge {
	g := &h.gauges
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.DeleteFunc(h.registry.allBoards(), func(s *Hosted) bool { return !s.asked() })
	g.place(all, named)
	ctx, cancel := context.WithTimeout(ctx, gaugesWithin)
	defer cancel()
	reading := bounded.New(gaugesAtOnce)
	for _, o := range g.due(ctx, h, all) {
		reading.Go(func() { o.last.look(ctx, h, o.hosted, o.board) })
	}
	reading.Wait()
	return g.list()
}

// toRead is a board whose store is to be asked, and what was last read of it.
type toRead struct {
	hosted *Hosted
	board  *board.Board
	last   *gauged
}

// due looks at the boards that are not open, for which nobody has to be asked, and returns those
// that are to be read, the ones first whose counts are oldest. The caller holds g.mu.
func (g *gauges) due(ctx context.Context, h *Host, all []*Hosted) (open []toRead) {
	now := time.Now()
	for _, s := range all {
		r, b := g.boards[s.at()], s.board.Load()
		switch {
		case b == r.board && !r.named && now.Sub(r.read) < otherFor:
		case b == nil:
			r.look(ctx, h, s, nil)
		default:
			open = append(open, toRead{s, b, r})
		}
	}
	slices.SortStableFunc(open, func(a, b toRead) int { return a.last.counted.when().Compare(b.last.counted.when()) })
	return open
}

// place decides which of the boards that are new have metrics of their own, and forgets
// those that are gone. The caller holds g.mu.
func (g *gauges) place(all []*Hosted, named int) {
	if g.boards == nil {
		g.boards, g.others = map[catalog.At]*gauged{}, map[string]*Gauge{}
	}
	there, fresh := make(map[catalog.At]bool, len(all)), []*Hosted{}
	for _, s := range all {
		at := s.at()
		there[at] = true
		switch r := g.boards[at]; {
		case r == nil:
			fresh = append(fresh, s)
		case r.named:
			named--
		}
	}
	maps.DeleteFunc(g.boards, func(at catalog.At, _ *gauged) bool { return !there[at] })
	for _, s := range fresh {
		g.boards[s.at()] = &gauged{}
	}
	for _, s := range inTurns(fresh, max(0, named)) {
		g.boards[s.at()].named = true
	}
}

// look reads a board.
func (r *gauged) look(ctx context.Context, h *Host, s *Hosted, b *board.Board) {
	if b != r.board {
		r.board, r.counted, r.events, r.waits, r.runs = b, &counted{}, nil, nil, nil
	}
	r.gauge, r.read = Gauge{Tenant: s.config.Tenant, Board: s.config.Name}, time.Now()
	if b != nil {
		r.gauge.read(b)
		if _, silent := s.backend.ailment.look(); r.gauge.Ready && silent == nil {
			r.counted.ask(ctx, h, b)
		}
		r.gauge.Counts, r.gauge.Counted = r.counted.last(b)
		r.gauge.Hooks = s.hookGauge(b)
	} else if rests := s.resting.Load(); rests != nil {
		r.gauge.Ready, r.gauge.Counts, r.gauge.Hooks = true, rests.counts(), s.hookGauge(nil)
	}
	if s.told != r.told {
		r.told, r.tries = s.told, nil
	}
}

// hookGauge reads what the board has to do with webhooks. b is nil for one that rests, which has
// no deliveries.
func (s *Hosted) hookGauge(b *board.Board) *HookGauge {
	all := s.hooks.Load()
	g := HookGauge{Tells: len(all.tells) > 0, Sends: len(all.sends) > 0}
	if !g.Tells && !g.Sends {
		return nil
	}
	g.Untold = s.told.Stuck()
	if g.Sends && b != nil {
		g.Tries, g.Undelivered = s.told.Tries(), b.OldestOpen()
	}
	return &g
}

// addTo adds what is read of a board to the sum of several. last is what the sum has of it.
func (g *HookGauge) addTo(sum *HookGauge, last map[string]int64) {
	sum.Tells, sum.Sends = sum.Tells || g.Tells, sum.Sends || g.Sends
	for outcome, n := range g.Tries {
		if sum.Tries == nil {
			sum.Tries = map[string]int64{}
		}
		sum.Tries[outcome] += n - last[outcome]
	}
	sum.Undelivered, sum.Untold = earlier(sum.Undelivered, g.Undelivered), earlier(sum.Untold, g.Untold)
}

// earlier is the earlier one of two times, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// list returns what was read, by tenant and name. The caller holds g.mu.
func (g *gauges) list() []Gauge {
	var list []Gauge
	for _, other := range g.others {
		other.Ready, other.Loss, other.Counts, other.Counted, other.Waiting = true, false, &board.Counts{}, time.Time{}, 0
		if other.Hooks != nil {
			other.Hooks = &HookGauge{Tries: other.Hooks.Tries}
		}
	}
	g.share()
	for _, r := range g.boards {
		if r.named {
			list = append(list, r.gauge)
			continue
		}
		other := g.others[r.gauge.Tenant]
		if other == nil {
			other = g.others[OtherTenants]
		}
		r.addTo(other)
	}
	for _, other := range g.others {
		sum := *other
		sum.Events = maps.Clone(other.Events)
		if other.Hooks != nil {
			hooks := *other.Hooks
			hooks.Tries = maps.Clone(hooks.Tries)
			sum.Hooks = &hooks
		}
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b Gauge) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Board, b.Board)) })
	return list
}

// share decides which tenants have a sum of their own: those that have one and are still there,
// and as long as there is room more of them, by name. The caller holds g.mu.
func (g *gauges) share() {
	tenants, summed := map[string]bool{}, map[string]bool{}
	for at, r := range g.boards {
		if tenants[at.Tenant] = true; !r.named && g.others[at.Tenant] == nil {
			summed[at.Tenant] = true
		}
	}
	maps.DeleteFunc(g.others, func(tenant string, _ *Gauge) bool { return !tenants[tenant] && tenant != OtherTenants })
	room := MaxMetricsTenants - len(g.others)
	if g.others[OtherTenants] != nil {
		room++
	}
	if room <= 0 && g.others[OtherTenants] != nil {
		return
	}
	for _, tenant := range slices.Sorted(maps.Keys(summed)) {
		if room <= 0 {
			tenant = OtherTenants
		}
		if g.others[tenant] == nil {
			g.others[tenant] = &Gauge{Tenant: tenant, Board: OtherBoards, Ready: true, Counts: &board.Counts{}, Events: map[string]int64{}}
			room--
		}
	}
}

// addTo adds a board to the sum of those that are not named.
func (r *gauged) addTo(sum *Gauge) {
	sum.Ready, sum.Loss = sum.Ready && r.gauge.Ready, sum.Loss || r.gauge.Loss
	sum.Waiting += r.gauge.Waiting
	if c := r.gauge.Counts; c != nil {
		s := sum.Counts
		s.Ready, s.Delayed, s.Claimed = s.Ready+c.Ready, s.Delayed+c.Delayed, s.Claimed+c.Claimed
		s.Trashed, s.Complete, s.Corrupt = s.Trashed+c.Trashed, s.Complete+c.Complete, s.Corrupt+c.Corrupt
		s.OldestReadyAt = earlier(s.OldestReadyAt, c.OldestReadyAt)
		sum.Counted = earlier(sum.Counted, r.gauge.Counted)
	}
	for event, n := range r.gauge.Events {
		sum.Events[event] += n - r.events[event]
	}
	r.events = r.gauge.Events
	if g := r.gauge.Hooks; g != nil {
		if sum.Hooks == nil {
			sum.Hooks = &HookGauge{}
		}
		g.addTo(sum.Hooks, r.tries)
		r.tries = g.Tries
	}
	advance(&sum.Waits, r.gauge.Waits, &r.waits)
	advance(&sum.Runs, r.gauge.Runs, &r.runs)
}

// advance adds to sum what from has counted since the call before. last holds what from
// had counted then.
func advance(sum **board.Histogram, from *board.Histogram, last **board.Histogram) {
	if from == nil {
		return
	}
	if *sum == nil {
		*sum = from.Empty()
	}
	if *last == nil {
		*last = from.Empty()
	}
	(*sum).Advance(from, *last)
}

// inTurns returns at most so many boards, sorted by tenant and name: the first of
// each tenant, then the second of each, and so on.
func inTurns(all []*Hosted, most int) []*Hosted {
	byName := func(a, b *Hosted) int {
		return cmp.Or(cmp.Compare(a.config.Tenant, b.config.Tenant), cmp.Compare(a.config.Name, b.config.Name))
	}
	slices.SortFunc(all, byName)
	if len(all) <= most {
		return all
	}
	turn, taken := make(map[*Hosted]int, len(all)), map[string]int{}
	for _, s := range all {
		turn[s] = taken[s.config.Tenant]
		taken[s.config.Tenant]++
	}
	slices.SortStableFunc(all, func(a, b *Hosted) int { return cmp.Compare(turn[a], turn[b]) })
	all = all[:most]
	slices.SortFunc(all, byName)
	return all
}

// read reads what an open board knows by itself.
func (g *Gauge) read(b *board.Board) {
	status := b.Status()
	g.Ready, g.Loss, g.Waiting = status.Ready, status.Loss != "", b.Waiting()
	m := b.Metrics()
	g.Waits, g.Runs = m.Waits, m.Runs
	g.Events = map[string]int64{
		"policy_error": m.PolicyErrors.Load(), "unrecorded": m.Unrecorded.Load(), "posted": m.Posted.Load(), "posted_again": m.PostedAgain.Load(),
		"post_refused": m.PostsRefused.Load(), "claimed": m.Claimed.Load(),
		"claim_asked": m.Asked.Load(), "passed_over": m.Passed.Load(), "extended": m.Extended.Load(),
		"claimed_ahead": m.Ahead.Load(), "unbegun": m.Unbegun.Load(), "refunded": m.Refunded.Load(),
		"consumed": m.Consumed.Load(), "canceled": m.Canceled.Load(), "operations": m.Operations.Load(), "log_entries": m.LogEntries.Load(),
		"abandoned": m.Abandoned.Load(), "expired": m.Expired.Load(), "exhausted": m.Exhausted.Load(),
		"trashed": m.Trashed.Load(), "restored": m.Restored.Load(), "purged": m.Purged.Load(), "released": m.Released.Load(),
		"tick": m.Ticks.Load(), "tick_missed": m.TicksMissed.Load(), "stale_token": m.StaleTokens.Load(), "unknown_outcome": m.Unknown.Load(), "bad_record": m.BadRecords.Load(),
	}
}
