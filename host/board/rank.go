package board

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/shorten"
)

// grouping says by which property of a job a policy with counts groups jobs.
type grouping struct {
	policy *boundPolicy
	kind   string // "name", "label" or "fact"
	label  string
	fact   int    // index into the manifest's facts
	by     string // names the property, and the period; equal where jobs are grouped and counted alike
	per    time.Duration
}

// groupingOf returns nil for a policy without counts.
func groupingOf(a *boundPolicy) *grouping {
	if a == nil || a.manifest.Counts == "" {
		return nil
	}
	g := &grouping{policy: a, by: a.manifest.Counts, per: a.manifest.Period}
	var name string
	g.kind, name, _ = strings.Cut(a.manifest.Counts, ":")
	g.label = name
	for i, f := range a.manifest.Facts {
		if g.kind == "fact" && f.Name == name {
			g.fact = i
			g.by = fmt.Sprintf("fact:%s:%s", f.Type, f.Path)
		}
	}
	if g.per != 0 {
		g.by += "\x00" + g.per.String()
	}
	return g
}

// of returns the group of a job. If the fact that it depends on is not known, that is
// the group that the job was in.
func (g *grouping) of(set *ruleset, e *index.Entry) *index.Group {
	key, known := g.key(set.facts, e)
	if !known || e.Group != nil && e.Group.Key == key {
		return e.Group
	}
	return &index.Group{Key: key}
}

// key is what a job is grouped by; false: it depends on a fact that is not known.
func (g *grouping) key(facts *facts, e *index.Entry) (key string, known bool) {
	switch g.kind {
	case "name":
		return e.Name, true
	case "label":
		for _, l := range e.Labels {
			if l.Key == g.label {
				key = l.Value
			}
		}
		return key, true
	}
	values := facts.pick(g.policy, e)
	if g.fact >= len(values) {
		return "", false
	}
	return ranking.FactText(values[g.fact]), true
}

// ranking is how the index orders keys by these rules; nil: it does not.
func (o *order) ranking(set *ruleset) *index.Ranking {
	if set.grouping == nil {
		return nil
	}
	return &index.Ranking{By: set.grouping.by, Per: set.grouping.per, Rank: func(keys []policy.Key, ranks []policy.Rank) error {
		return o.rank(set, keys, ranks)
	}}
}

// rankTime bounds what ranking one batch of keys may take. It is for all who claim: each
// of them waits as long as its own context lasts.
const rankTime = 10 * time.Second

// rank is what the index calls for ranks. When the policy fails, all keys are ranked
// by what stands in for it until it is tried again: ranks of two policies cannot be
// compared.
func (o *order) rank(set *ruleset, keys []policy.Key, ranks []policy.Rank) error {
	if !set.current() {
		return job.Errorf(job.Interrupted, "the board is ordered by other rules")
	}
	ctx, cancel := context.WithTimeout(o.open, rankTime)
	defer cancel()
	if o.fallen.Load() == set {
		return o.standIn(ctx, set, keys, ranks)
	}
	err := set.ordering.rank(ctx, keys, ranks)
	if err == nil || !set.current() || o.open.Err() != nil {
		return err
	}
	o.failed(set, "keys", len(keys), err)
	o.fallen.Store(set)
	o.void.Store(true)
	o.fades.Store(time.Now().UnixNano())
	rouse(o.wake)
	return o.standIn(ctx, set, keys, ranks)
}

// standIn ranks keys in place of a policy that failed: all alike if it is lenient, else
// by the version that was good before. Where there is none, it returns an error, and
// the keys keep the ranks that they had last.
func (o *order) standIn(ctx context.Context, set *ruleset, keys []policy.Key, ranks []policy.Rank) error {
	switch {
	case set.ordering.Lenient:
		clear(ranks)
		return nil
	case set.before != nil && set.before.manifest.Counts == set.ordering.manifest.Counts && set.before.manifest.Period == set.ordering.manifest.Period:
		return set.before.rank(ctx, keys, ranks)
	}
	return job.Errorf(job.Unavailable, "the policy %s failed", set.ordering.name())
}

func (a *boundPolicy) rank(ctx context.Context, keys []policy.Key, ranks []policy.Rank) error {
	return a.evaluate(ctx, func() error { return a.rankAt(ctx, time.Now(), keys, ranks) })
}

// rankAt asks the policy about at most a batch of keys, even while its breaker is open.
func (a *boundPolicy) rankAt(ctx context.Context, now time.Time, keys []policy.Key, ranks []policy.Rank) error {
	ranker, ok := a.Policy.(policy.Ranker)
	if !ok {
		return job.Errorf(job.Unsupported, "the policy %s declares counts, and ranks nothing", a.name())
	}
	batch := policy.Keys{Keys: keys}
	if a.manifest.ByTime {
		batch.Now = a.clock.At(now)
	}
	return ranker.RankKeys(ctx, &batch, ranks)
}

// limitPrefix and ratePrefix begin the names of the counters that a store keeps for keys.
const (
	limitPrefix = "key:"
	ratePrefix  = "rate:"
)

// counters are what the store is to count for a claim on a job: its key's running jobs, or
// the claims of the period. They are nothing where the policy does not say how many there
// may be, or the store does not count.
func (c *claimer) counters(e *index.Entry) (limits []driver.Limit, rates []driver.Rate) {
	g, can := c.rules.grouping, &c.opened.Capabilities
	if e.Group == nil || e.Group.Most <= 0 || g == nil {
		return nil, nil
	}
	sum := sha256.Sum256([]byte(g.by + "\x00" + e.Group.Key))
	name := hex.EncodeToString(sum[:12])
	switch {
	case g.per == 0 && can.Limits:
		limits = []driver.Limit{{Key: limitPrefix + name, Weight: 1, Max: e.Group.Most}}
	case g.per != 0 && can.Rates:
		rates = []driver.Rate{{Key: ratePrefix + name, Per: g.per, Max: e.Group.Most}}
	}
	return limits, rates
}

// overKey reports whether the store passed over a candidate because of its key.
func overKey(gone *driver.Skipped) bool {
	return gone.Kind == job.QuotaExceeded &&
		(strings.HasPrefix(gone.Message, limitPrefix) || strings.HasPrefix(gone.Message, ratePrefix))
}

// fullText says that nothing of a key may be claimed now.
func (s *ruleset) fullText(key string) string {
	if s.ordering == nil { // other rules took the place of these meanwhile
		return fmt.Sprintf("no more jobs of the key %q may run now", shorten.To(key, 100))
	}
	return s.ordering.fullText(key)
}

func (a *boundPolicy) fullText(key string) string {
	key = shorten.To(key, 100)
	if per := a.manifest.Period; per != 0 {
		return fmt.Sprintf("the policy %s grants no more claims of the key %q now; %s", a.name(), key, nextText(key, time.Now(), ranking.PeriodEnd(per, time.Now())))
	}
	return fmt.Sprintf("the policy %s lets no more jobs of the key %q run now", a.name(), key)
}

// nextText says when a key whose period is used up may have more.
func nextText(key string, now, next time.Time) string {
	return fmt.Sprintf("the next of %s may run in %v", key, (max(next.Sub(now), 0) + time.Second - 1).Truncate(time.Second))
}

// fullError refuses a chosen job whose key is full.
func (s *ruleset) fullError(e *index.Entry) error {
	key := ""
	if e.Group != nil {
		key = e.Group.Key
	}
	return &job.Error{Job: e.ID, Kind: job.NotEligible, Message: s.fullText(key)}
}

// explainPlace says where a job stands in an order by counts.
func (w *selector) explainPlace(ctx context.Context, id job.ID, x *Explanation) {
	class, err := w.classOf(ctx)
	if err != nil {
		return
	}
	s, ok := w.board.index.Standing(ctx, id, class)
	if !ok {
		return
	}
	score := s.Rank
	x.Score = &score
	x.Position = s.Ahead
	running := fmt.Sprintf("%d of the key %q are running", s.Running, shorten.To(s.Key, 100))
	if per := w.rules.grouping; per != nil && per.per != 0 {
		running = fmt.Sprintf("%d of the key %q were claimed in the present %v", s.Running, shorten.To(s.Key, 100), per.per)
	}
	if s.Most > 0 {
		running += fmt.Sprintf(", of at most %d", s.Most)
	}
	if s.Full {
		x.Verdict, x.Reason, x.Policy = "NOT_ELIGIBLE", w.rules.fullText(s.Key)+": "+running, w.rules.ordering.title()
		return
	}
	keys := fmt.Sprint(s.Keys)
	if s.Keys > index.MaxKeysAhead {
		keys = fmt.Sprintf("more than %d", index.MaxKeysAhead)
	}
	x.Reason = fmt.Sprintf("%s, %d wait; %s keys come before it", running, s.Waiting, keys)
}
