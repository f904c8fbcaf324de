package index

import (
	"sync"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

// inquiry is one question to the ranker. Inquiries are pooled.
type inquiry struct {
	groups []asked
	keys   []policy.Key
	ranks  []policy.Rank
	rank   Ranker
	serial uint32
}

// asked is a group as it was when the ranker was asked.
type asked struct {
	group  uint32
	counts ranking.Counts
}

var inquiries = sync.Pool{New: func() any { return new(inquiry) }}

func (q *inquiry) reset(k *keys) {
	clear(q.keys)
	q.groups, q.keys, q.ranks = q.groups[:0], q.keys[:0], q.ranks[:0]
	q.rank, q.serial = k.rank, k.serial
}

// add asks what a group is worth now, and after each of the next claims.
func (q *inquiry) add(h uint32, g *group, counts ranking.Counts, oldest time.Time) {
	q.groups = append(q.groups, asked{h, counts})
	q.keys = ranking.Ask(q.keys, g.Key, counts, oldest)
	for range ranking.Rungs {
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
		if g == nil || g.rows == 0 || g.Key != q.keys[i*ranking.Rungs].Key {
			continue
		}
		if err != nil {
			g.ranked.Keep(a.counts, q.serial)
		} else {
			g.rank(q.ranks[i*ranking.Rungs:][:ranking.Rungs], a.counts, q.serial)
		}
		ix.tell(a.group)
	}
}

func (g *group) rank(ranks []policy.Rank, counts ranking.Counts, serial uint32) {
	if g.ranked.Rank(ranks, counts, serial); g.ranked.Most != g.Most {
		g.Group = &Group{Key: g.Key, Most: g.ranked.Most}
	}
}

// oldestOf returns when the oldest ready job of a group was created. As in
// oldestIn, only the first of those that are alike is looked at; with more than
// ranking.AgeRanks kinds, only those.
func (ix *Index) oldestOf(h uint32, g *group) time.Time {
	l := ix.everyone.keyQueues
	if g.waiting == 0 || l == nil || int(h) >= len(l.at) || l.at[h] == 0 {
		return time.Time{}
	}
	at := l.heap.items[l.at[h]-1].head
	oldest := ix.rows.at(at).CreatedAt
	for range min(ranking.AgeRanks, int(g.waiting)) - 1 {
		p := ix.rows.at(pivot)
		p.move(ix.rows.at(at).LastAlike())
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
		oldest = min(oldest, ix.rows.at(at).CreatedAt)
	}
	return time.UnixMicro(oldest).UTC()
}
