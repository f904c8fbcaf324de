package replay

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

// counts keep how many jobs of each key are running and waiting, for an order that
// goes by that.
type counts struct {
	rule   *rule
	ranker policy.Ranker
	of     []int32 // key of each job
	names  map[string]int32
	keys   []tally
	asked  int64 // second as of which all ranks were made
}

// tally is one key.
type tally struct {
	policy.Key

	served   float64 // as of minute
	minute   int64
	rank     policy.Rank
	stale    bool
	earliest map[int32]int64 // of what waits: when it was created
}

// newCounts returns nil for an order that goes by no counts.
func newCounts(r *rule) *counts {
	ranker, ok := r.Policy.(policy.Ranker)
	if !ok || r.manifest.Counts == "" {
		return nil
	}
	return &counts{rule: r, ranker: ranker, of: make([]int32, r.tape.jobs), names: map[string]int32{}}
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
	if from == open {
		k := &c.keys[c.of[n]]
		k.Waiting--
		delete(k.earliest, n)
		k.stale = true
	}
	if from == taken {
		k := &c.keys[c.of[n]]
		k.Running--
		k.stale = true
	}
	switch to {
	case open:
		c.of[n] = c.key(keyOf(c.rule.manifest.Counts, &c.rule.manifest, &s.as[s.jobs[n].as]))
		k := &c.keys[c.of[n]]
		k.Waiting++
		k.earliest[n] = s.as[s.jobs[n].as].order.CreatedAt.UnixNano()
		k.stale = true
	case taken:
		k := &c.keys[c.of[n]]
		k.Running++
		k.served, k.minute = k.fade(s.now)+1, minuteOf(s.now)
		k.stale = true
	case away, waiting:
	}
}

func (c *counts) key(name string) int32 {
	n, ok := c.names[name]
	if !ok {
		n = int32(len(c.keys))
		c.names[name] = n
		c.keys = append(c.keys, tally{Key: policy.Key{Key: name}, earliest: map[int32]int64{}, stale: true})
	}
	return n
}

// fade returns what is left of the served.
func (k *tally) fade(now int64) float64 { return k.served * ranking.Faded(minuteOf(now)-k.minute) }

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
	if err := c.refresh(ctx, s, keys); err != nil {
		return -1, err
	}
	best := int32(-1)
	for _, k := range keys {
		r := c.keys[k].rank
		if ranking.Full(r, c.keys[k].Running) {
			continue
		}
		if best < 0 || r.Score > c.keys[best].rank.Score || r.Score == c.keys[best].rank.Score && s.before(heads[k], heads[best]) {
			best = k
		}
	}
	if best < 0 {
		return -1, nil
	}
	return heads[best].arrival.job, nil
}

// refresh ranks keys whose counts changed, and all of them where time has passed.
func (c *counts) refresh(ctx context.Context, s *sim, keys []int32) error {
	if second := s.now / int64(time.Second); second != c.asked {
		c.asked = second
		for i := range c.keys {
			c.keys[i].stale = true
		}
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k int32) bool { return !c.keys[k].stale })
	for part := range slices.Chunk(keys, policy.MaxBatch) {
		ask := &policy.Keys{}
		if c.rule.manifest.ByTime {
			ask.Now = s.batch(c.rule, nil, nil).Now
		}
		for _, k := range part {
			t := &c.keys[k]
			shown := t.Key
			shown.Served = ranking.Served(t.fade(s.now))
			oldest := int64(math.MaxInt64)
			for _, at := range t.earliest {
				oldest = min(oldest, at)
			}
			if len(t.earliest) > 0 {
				shown.Oldest = time.Unix(0, oldest).UTC()
			}
			ask.Keys = append(ask.Keys, shown)
		}
		ranks := make([]policy.Rank, len(part))
		if err := c.ranker.RankKeys(ctx, ask, ranks); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.errors++
			clear(ranks)
		}
		for i, k := range part {
			c.keys[k].rank, c.keys[k].stale = ranks[i], false
		}
	}
	return nil
}
