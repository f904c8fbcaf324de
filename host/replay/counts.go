package replay

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

// counts keep how many jobs of each key are running and waiting, for an order that
// goes by that. What a key is worth is found out as a board does: when somebody
// claims, for what changed since, and anew in each minute.
type counts struct {
	rule    *rule
	ranker  policy.Ranker
	of      []int32 // key of each job
	names   map[string]int32
	keys    []tally
	touched []int32 // those that are to be ranked, each once
	minute  int64   // since 1970, as of which keys are told what they were served
	period  int64   // the present one, where periods count
	serial  uint32  // of what is known of the keys; what has an older one is void
	crowded int     // claims of classes with more than rankedKeys keys
}

// tally is one key.
type tally struct {
	name             string
	jobs             int // that are somewhere
	running, waiting int64
	served           ranking.Served
	period, granted  int64 // so many were claimed in which period
	ranked           ranking.Ranked
	isTouched        bool
	open             *btree.BTreeG[ranking.Order] // what waits
	places           map[int32]ranking.Order      // of the jobs there
}

// rankedKeys is how many keys of a class a board ranks anew at most before it takes one.
const rankedKeys = 1024

// newCounts returns nil for an order that goes by no counts.
func newCounts(r *rule) *counts {
	ranker, ok := r.Policy.(policy.Ranker)
	if !ok || r.manifest.Counts == "" {
		return nil
	}
	return &counts{rule: r, ranker: ranker, of: make([]int32, r.tape.jobs), names: map[string]int32{}, serial: 1}
}

// keyOf returns what a policy, or a report, groups a job by.
func keyOf(by string, m *policy.Manifest, d *description) string {
	kind, name, _ := strings.Cut(by, ":")
	switch kind {
	case "label":
		return d.Labels[name]
	case "priority":
		return d.order.Priority.String()
	case "fact":
		if m == nil {
			return ""
		}
		at := slices.IndexFunc(m.Facts, func(f policy.FactSpec) bool { return f.Name == name })
		if at < 0 {
			return ""
		}
		if v, _ := d.Values(m.Facts[at : at+1]); v[0] != nil {
			return ranking.FactText(v[0])
		}
		return ""
	}
	return d.Name
}

// move counts a job at another place.
func (c *counts) move(s *sim, n int32, from, to place) {
	if from == away {
		c.of[n] = c.key(keyOf(c.rule.manifest.Counts, &c.rule.manifest, &s.as[s.jobs[n].as]))
	}
	if from == to && from == away {
		return
	}
	k := &c.keys[c.of[n]]
	if from == away {
		k.jobs++
	}
	if from == open {
		k.waiting--
		if o, ok := k.places[n]; ok {
			k.open.Delete(o)
			delete(k.places, n)
		}
	}
	if from == taken {
		k.running--
	}
	switch to {
	case open:
		k.waiting++
	case taken:
		k.running++
		k.served.Add(minuteOf(s.now))
		k.grant(c.periodOf(s.now))
	case away:
		k.jobs--
	case waiting:
	}
	c.tell(c.of[n])
}

// tell looks whether a key is to be ranked.
func (c *counts) tell(at int32) {
	if k := &c.keys[at]; k.ranked.Look(c.countsOf(k)) && !k.isTouched {
		k.isTouched = true
		c.touched = append(c.touched, at)
	}
}

// enter has an open job, whose score is known by now, have its place.
func (c *counts) enter(s *sim, n int32) {
	k := &c.keys[c.of[n]]
	if o, ok := k.places[n]; ok {
		k.open.Delete(o)
	}
	k.places[n] = s.orderOf(n)
	k.open.Set(k.places[n])
}

func (c *counts) key(name string) int32 {
	n, ok := c.names[name]
	if !ok {
		n = int32(len(c.keys))
		c.names[name] = n
		open := btree.NewBTreeGOptions(ranking.Order.Less, btree.Options{NoLocks: true})
		c.keys = append(c.keys, tally{name: name, open: open, places: map[int32]ranking.Order{}})
	}
	return n
}

// periodOf is the period of a time, in unix nanoseconds; 0 where none counts.
func (c *counts) periodOf(at int64) int64 {
	return ranking.Period(c.rule.manifest.Period, time.Unix(0, at))
}

func (k *tally) grant(period int64) {
	if period != k.period {
		k.period, k.granted = period, 0
	}
	k.granted++
}

// ran is what a policy is told to be running: what runs, or what was claimed in the period.
func (c *counts) ran(k *tally) int64 {
	switch {
	case c.rule.manifest.Period == 0:
		return k.running
	case k.period == c.period:
		return k.granted
	}
	return 0
}

func (c *counts) countsOf(k *tally) ranking.Counts {
	return ranking.Counts{Running: c.ran(k), Waiting: k.waiting, Served: k.served.At(c.minute)}
}

// oldest returns when the oldest of the waiting was created, as far as a board knows.
func (k *tally) oldest() time.Time {
	at, ok := k.open.Min()
	if !ok {
		return time.Time{}
	}
	oldest := at.CreatedAt
	for range ranking.AgeRanks - 1 {
		ok = false
		k.open.Ascend(at.LastAlike(), func(next ranking.Order) bool {
			at, ok = next, true
			return false
		})
		if !ok {
			break
		}
		oldest = min(oldest, at.CreatedAt)
	}
	return time.UnixMicro(oldest).UTC()
}

func comes(a, b entry) bool { return a.before(&b) }

func minuteOf(at int64) int64 { return ranking.Minute(time.Unix(0, at)) }

// first returns the first job of the key that comes first.
func (c *counts) first(ctx context.Context, s *sim, class *class) (int32, error) {
	var keys []int32
	heads := map[int32]entry{}
	for _, k := range slices.Sorted(maps.Keys(class.lines)) {
		if e, ok := class.lines[k].top(); ok {
			keys, heads[k] = append(keys, k), e
		}
	}
	if len(keys) > rankedKeys {
		c.crowded++
	}
	if err := c.rank(ctx, s, keys); err != nil {
		return -1, err
	}
	best, top := int32(-1), ranking.FullKey
	for _, k := range keys {
		worth := c.keys[k].ranked.Worth(c.ran(&c.keys[k]))
		if worth > top || worth == top && best >= 0 && comes(heads[k], heads[best]) {
			best, top = k, worth
		}
	}
	if best < 0 {
		return -1, nil
	}
	return heads[best].arrival.job, nil
}

// rank has the policy asked about all keys whose counts changed, and about those of
// some that it said nothing of in this minute.
func (c *counts) rank(ctx context.Context, s *sim, keys []int32) error {
	if minute := minuteOf(s.decided); minute > c.minute {
		c.minute = minute
		c.serial++
	}
	c.period = max(c.period, c.periodOf(s.decided))
	due := func(at int32) bool {
		k := &c.keys[at]
		return k.jobs > 0 && (k.ranked.Serial != c.serial || k.ranked.Look(c.countsOf(k)))
	}
	touched := c.touched
	c.touched = nil
	for _, k := range touched {
		c.keys[k].isTouched = false
	}
	list := slices.Concat(touched, keys)
	slices.Sort(list)
	list = slices.DeleteFunc(slices.Compact(list), func(at int32) bool { return !due(at) })
	for part := range slices.Chunk(list, ranking.KeyBatch) {
		if err := c.ask(ctx, s, part); err != nil {
			return err
		}
	}
	return nil
}

// ask asks the policy about at most ranking.KeyBatch keys.
func (c *counts) ask(ctx context.Context, s *sim, list []int32) error {
	ask := &policy.Keys{Now: c.rule.at(s.decided)}
	for _, at := range list {
		k := &c.keys[at]
		ask.Keys = ranking.Ask(ask.Keys, k.name, c.countsOf(k), k.oldest())
	}
	ranks := make([]policy.Rank, len(ask.Keys))
	err := c.ranker.RankKeys(ctx, ask, ranks)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.errors++
	}
	for i, at := range list {
		k := &c.keys[at]
		if counts := c.countsOf(k); err != nil {
			k.ranked.Keep(counts, c.serial)
		} else {
			k.ranked.Rank(ranks[i*ranking.Rungs:], counts, c.serial)
		}
	}
	return nil
}
