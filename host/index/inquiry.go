package index

import (
	"math"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/policy"
)

// inquiry is what a ranker is asked at a time. It is used again.
type inquiry struct {
	groups []asked
	keys   []policy.Key
	ranks  []policy.Rank
	rank   Ranker
	serial uint32
}

// asked is a group as it was when the ranker was asked.
type asked struct {
	group            uint32
	running, waiting uint32
	served           int64
}

var inquiries = sync.Pool{New: func() any { return new(inquiry) }}

func (q *inquiry) reset(k *keys) {
	clear(q.keys)
	q.groups, q.keys, q.ranks = q.groups[:0], q.keys[:0], q.ranks[:0]
	q.rank, q.serial = k.rank, k.serial
}

// add asks what a group is worth now, and after each of the next claims.
func (q *inquiry) add(h uint32, g *group, oldest time.Time) {
	a := asked{h, g.running(), g.waiting, g.servedNow()}
	q.groups = append(q.groups, a)
	for n := range int64(rungs) {
		key := policy.Key{
			Key: g.Key, Running: int64(a.running) + n, Waiting: max(int64(a.waiting)-n, 0), Served: a.served + n, Oldest: oldest,
		}
		if key.Waiting == 0 {
			key.Oldest = time.Time{}
		}
		q.keys = append(q.keys, key)
		q.ranks = append(q.ranks, policy.Rank{})
	}
}

// inquire asks the ranker and writes down what it says.
func (ix *Index) inquire(k *keys, q *inquiry) {
	if len(q.groups) == 0 {
		return
	}
	err := q.rank(q.keys, q.ranks)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.keys != k {
		return
	}
	for i, a := range q.groups {
		g := k.groups.peek(a.group)
		if g == nil || g.rows == 0 || g.Key != q.keys[i*rungs].Key {
			continue
		}
		if err != nil {
			g.keepRank()
		} else {
			g.setRanks(q.ranks[i*rungs:][:rungs])
		}
		g.base, g.baseWaiting, g.baseServed, g.serial = a.running, a.waiting, a.served, q.serial
		ix.tell(a.group)
	}
}

func (g *group) setRanks(ranks []policy.Rank) {
	if most := ranks[0].Most; most != g.Most {
		g.Group = &Group{Key: g.Key, Most: most}
	}
	for i, r := range ranks {
		if g.ranks[i] = min(max(r.Score, full+1), unranked-1); r.Full {
			g.ranks[i] = full
		}
	}
}

// keepRank has a group come where it came before, for as long as the ranker does
// not answer.
func (g *group) keepRank() {
	if g.serial == 0 {
		return // 0 each
	}
	last := g.ranks[min(max(int64(g.running())-int64(g.base), 0), rungs-1)]
	for i := range g.ranks {
		g.ranks[i] = last
	}
}

// ageRanks bounds the kinds of jobs of one key that oldestOf looks at.
const ageRanks = 8

// oldestOf returns when the oldest ready job of a group was created. As in
// oldestReady, only the first job of each rank is looked at; with more than
// ageRanks ranks, only those.
func (ix *Index) oldestOf(h uint32, g *group) time.Time {
	l := ix.everyone.lanes
	if g.waiting == 0 || l == nil || int(h) >= len(l.at) || l.at[h] == 0 {
		return time.Time{}
	}
	at := l.heap[l.at[h]-1].head
	oldest := ix.rows.at(at).created
	for range min(ageRanks, int(g.waiting)) - 1 {
		o := ix.rows.at(at).order()
		o.CreatedAt, o.Sequence = math.MaxInt64, math.MaxUint64
		for i := range o.ID {
			o.ID[i] = 0xff
		}
		p := ix.rows.at(pivot)
		p.move(o)
		p.group = h
		at = 0
		l.set.from(pivot, func(next uint32) bool {
			if ix.rows.at(next).group == h {
				at = next
			}
			return false
		})
		if at == 0 {
			break
		}
		oldest = min(oldest, ix.rows.at(at).created)
	}
	return time.UnixMicro(oldest).UTC()
}
