package index

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

// modelRanking is a ranking and what a model counts for it.
type modelRanking struct {
	by     int // of so many keys
	rank   func(policy.Key) policy.Rank
	served map[string]*ranking.Served
	ix     *Index
}

// claimed counts a claim.
func (r *modelRanking) claimed(key string) {
	if r.served[key] == nil {
		r.served[key] = &ranking.Served{}
	}
	r.served[key].Add(r.ix.keys.minute)
}

func (r *modelRanking) score(entries []*Entry) {
	for _, e := range entries {
		n := numbers([]*Entry{e})[0]
		e.Score, e.Group = int64(n%2), &Group{}
		if k := n % r.by; k > 0 {
			e.Group.Key = strconv.Itoa(k)
		}
	}
}

func (r *modelRanking) ranking() *Ranking {
	return &Ranking{By: strconv.Itoa(r.by), Rank: func(keys []policy.Key, ranks []policy.Rank) error {
		for i, k := range keys {
			ranks[i] = r.rank(k)
		}
		return nil
	}}
}

// best returns what comes first of the free jobs by counting everything anew.
func (m *model) best(free []*Entry) (best *Entry) {
	top := int64(0)
	for _, e := range free {
		key := policy.Key{Key: e.key()}
		if s := m.ranking.served[e.key()]; s != nil {
			key.Served = s.At(m.ranking.ix.keys.minute)
		}
		for _, other := range m.jobs {
			switch {
			case other.key() != e.key():
			case m.held[other.ID]:
				key.Running++
				key.Served++
			case other.Claim != nil:
				key.Running++
			case m.ready(other):
				key.Waiting++
				if key.Oldest.IsZero() || other.CreatedAt.Before(key.Oldest) {
					key.Oldest = other.CreatedAt
				}
			}
		}
		r := m.ranking.rank(key)
		if r.Full || r.Most > 0 && key.Running >= r.Most {
			continue
		}
		if best == nil || r.Score > top {
			best, top = e, r.Score
		}
	}
	return best
}

var modelRanks = map[string]func(policy.Key) policy.Rank{
	"fair":    func(k policy.Key) policy.Rank { return policy.Rank{Score: -1000*k.Running - k.Served} },
	"limit":   func(k policy.Key) policy.Rank { return policy.Rank{Full: k.Key != "" && k.Running >= 2} },
	"most":    func(k policy.Key) policy.Rank { return policy.Rank{Most: int64(len(k.Key))} },
	"waiting": func(k policy.Key) policy.Rank { return policy.Rank{Score: k.Waiting, Full: k.Served%7 == 6} },
	"ends": func(k policy.Key) policy.Rank {
		return policy.Rank{Score: []int64{math.MinInt64, math.MaxInt64, 0}[k.Running%3]}
	},
}

// rank has the trial go on with another ranking, or with none.
func (tr *trial) rank() {
	tr.Helper()
	names := []string{"fair", "limit", "most", "waiting", "ends", ""}
	name := names[tr.rnd.IntN(len(names))]
	tr.Log("ranking", name)
	before := tr.m.ranking
	if name == "" {
		tr.m.ranking, tr.m.score = nil, func(entries []*Entry) {
			for _, e := range entries {
				e.Score, e.Group = int64(numbers([]*Entry{e})[0]%2), nil
			}
		}
		tr.ix.SetScorer(tr.m.score, nil)
	} else {
		r := &modelRanking{by: 2 + tr.rnd.IntN(2), rank: modelRanks[name], served: map[string]*ranking.Served{}, ix: tr.ix}
		tr.m.ranking, tr.m.score = r, r.score
		tr.ix.SetScorer(r.score, r.ranking())
		if before != nil && before.by == r.by {
			r.served = before.served
		}
	}
	for _, e := range tr.m.jobs {
		tr.m.score([]*Entry{e})
		if r := tr.m.ranking; r != nil && e.Claim != nil && (before == nil || before.by != r.by) {
			r.claimed(e.key())
		}
	}
	slices.SortFunc(tr.m.jobs, func(a, b *Entry) int {
		if a.Order().Less(b.Order()) {
			return -1
		}
		return 1
	})
	if err := tr.ix.Rescore(tr.Context()); err != nil {
		tr.Fatal(err)
	}
	if err := tr.ix.Rerank(tr.Context()); err != nil {
		tr.Fatal(err)
	}
}

// checkKeys proves that the groups agree with the rows, and keyQueues with both.
func (ix *Index) checkKeys(t testing.TB) {
	t.Helper()
	k := ix.keys
	if k == nil {
		return
	}
	want := map[uint32]*group{}
	for h := range ix.rows.end() {
		r := ix.rows.peek(h)
		if r == nil || r.place == vacant {
			continue
		}
		at := ix.groupOf(r)
		if at == 0 {
			continue
		}
		if want[at] == nil {
			want[at] = &group{}
		}
		g := want[at]
		g.rows++
		switch r.place {
		case ready:
			g.waiting++
		case reserved:
			g.reserved++
		case claimed:
			g.claimed++
		case vacant, waiting:
		}
	}
	idle := 0
	for key, at := range k.byKey {
		g, w := k.groups.at(at), want[at]
		if w == nil {
			w = &group{}
			idle++
		}
		if g.Key != key || g.rows != w.rows || g.waiting != w.waiting || g.reserved != w.reserved || g.claimed != w.claimed || g.worth != k.worthOf(g) {
			t.Fatalf("group %q: %+v, want %+v", key, *g, *w)
		}
		if g.rows > 0 && !g.isTouched && g.ranked.Look(k.counts(g)) && g.ranked.Serial == k.serial {
			t.Fatalf("group %q: its ranks are old and nobody knows: %+v", key, *g)
		}
		delete(want, at)
	}
	if len(want) > 0 || idle != k.idle {
		t.Fatalf("%d groups are not known by their keys; %d are idle, want %d", len(want), k.idle, idle)
	}
	ix.everyone.checkLanes(t, ix)
	for c := range ix.classes.of(ix.classes.active) {
		c.checkLanes(t, ix)
	}
}

func (c *Class) checkLanes(t testing.TB, ix *Index) {
	t.Helper()
	want := map[uint32]bool{}
	heads := map[uint32]uint32{}
	if c.ready != nil {
		c.ready.tree.Scan(func(h uint32) bool {
			if g := ix.groupOf(ix.rows.at(h)); g != 0 {
				want[h] = true
				if heads[g] == 0 {
					heads[g] = h
				}
			}
			return true
		})
	}
	if c.keyQueues == nil {
		if len(want) > 0 {
			t.Fatalf("class %q has no keyQueues", c.key)
		}
		return
	}
	if diff := cmp.Diff(want, members(c.keyQueues.set)); diff != "" {
		t.Fatalf("class %q: keyQueues: %s", c.key, diff)
	}
	got := map[uint32]uint32{}
	for i, s := range c.keyQueues.heap.items {
		got[s.group] = s.head
		if int(c.keyQueues.at[s.group]) != i+1 || s.worth != ix.keys.groups.at(s.group).worth || i > 0 && c.keyQueues.before(s, c.keyQueues.heap.items[(i-1)/2]) {
			t.Fatalf("class %q: spot %d of the heap is wrong", c.key, i)
		}
	}
	if diff := cmp.Diff(heads, got); diff != "" {
		t.Fatalf("class %q: heads: %s", c.key, diff)
	}
}
