package index

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// takeRounds bounds how often one take has keys ranked.
const takeRounds = 1 << 10

// swapRounds is how often one take has keys ranked anew while a new ranking has not gone
// through all keys yet. Then it takes from the best of those ranked so far.
const swapRounds = 4

// taking is one take by keys.
type taking struct {
	n       int
	entries []*Entry
	swaps   int      // rounds that a new ranking made necessary
	ranked  []uint32 // groups that were ranked in them
}

// takeByKeys is Take where the order depends on counts: it takes the first job of
// the best key, one after the other, since each that is taken changes what its key
// is worth.
func (ix *Index) takeByKeys(ctx context.Context, class *Class, n int) []*Entry {
	t := taking{n: n}
	ix.advance()
	for range takeRounds {
		ix.regroupClaimed()
		ix.rankTouched(ctx)
		if ctx.Err() != nil {
			break
		}
		ix.mu.Lock()
		c, k := ix.classes.current(class), ix.keys
		if c.slot == noSlot || k == nil {
			ix.mu.Unlock()
			return append(t.entries, ix.Take(ctx, class, n-len(t.entries))...)
		}
		c.used = ix.usedAt(c)
		done := ix.takeRanked(c, &t)
		if done && len(t.entries) < n {
			c.stirred = true
		}
		whole := k.whole || len(t.entries) == n
		ix.mu.Unlock()
		if done && (whole || !ix.regroupSome(c)) {
			break
		}
	}
	ix.pass(class, len(t.entries))
	return t.entries
}

// advance makes ranks of an earlier minute stale, so that which key comes first depends
// only on the counts and on the minute of the take.
func (ix *Index) advance() {
	now := time.Now()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.keys != nil {
		ix.keys.advance(now)
		ix.hurry(ix.refresh(slice))
	}
}

// takeRanked takes what it can without asking the ranker. It reports whether that
// is all there is.
func (ix *Index) takeRanked(c *Class, t *taking) bool {
	k, l := ix.keys, c.keyQueues
	if l == nil {
		return true
	}
	for len(t.entries) < t.n {
		best, ok := l.top()
		switch {
		case !ok:
			return true
		case best.worth != unranked && (k.swept == k.serial || l.swept == k.serial):
		case t.swaps >= swapRounds && l.bestOf(t.ranked, &best):
		case k.touchUnranked(l, t):
			return false
		case len(l.heap.items) <= touchVisits:
			l.swept = k.serial
		}
		if best.worth == full {
			return true
		}
		t.entries = append(t.entries, ix.reserve(best.head))
	}
	return true
}

// touchVisits bounds how many groups touchUnranked looks at.
const touchVisits = 8 * keyBatch

// touchUnranked has the best of those groups ranked that the present ranker said
// nothing of. It reports whether it found any.
func (k *keys) touchUnranked(l *keyQueues, t *taking) bool {
	n := 0
	for i := 0; i < len(l.heap.items) && n < keyBatch && i < touchVisits; i++ {
		s := l.heap.items[i]
		if g := k.groups.at(s.group); s.worth == unranked || g.ranked.Serial != k.serial {
			k.touch(s.group, g)
			t.ranked = append(t.ranked, s.group)
			n++
		}
	}
	if t.swaps++; k.swept == k.serial {
		t.swaps, t.ranked = 0, nil
	}
	return n > 0
}

// bestOf finds the best of some groups, among those that the present ranker lets
// have more.
func (l *keyQueues) bestOf(groups []uint32, best *spot) (ok bool) {
	k := l.ix.keys
	for _, g := range groups {
		if int(g) >= len(l.at) || l.at[g] == 0 || k.groups.at(g).ranked.Serial != k.serial {
			continue
		}
		if s := l.heap.items[l.at[g]-1]; s.worth != full && s.worth != unranked && (!ok || l.before(s, *best)) {
			*best, ok = s, true
		}
	}
	return ok
}

// pass signals the next waiter of a class if there is more to take: when a key is not
// full any more, only one waiter is told of it.
func (ix *Index) pass(class *Class, taken int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	c := ix.classes.current(class)
	if taken == 0 || !c.awaited() || c.keyQueues == nil {
		return
	}
	if best, ok := c.keyQueues.top(); ok && best.worth != full {
		r := ix.rows.at(best.head)
		r.flags &^= woke
		ix.wakeOne(c, best.head, r)
	}
}

// Reserve reserves one job, so that it counts as running. done reports whether it did,
// and isFull whether the job's key is full, so that nobody may claim it now. The caller
// has to Return it, unless it is put or removed. Without a Ranking Reserve does nothing.
func (ix *Index) Reserve(ctx context.Context, id job.ID) (done, isFull bool) {
	ix.advance()
	for range takeRounds {
		ix.regroupClaimed()
		ix.rankTouched(ctx)
		if ctx.Err() != nil {
			return false, false
		}
		ix.mu.Lock()
		h, known := ix.ids.get(id)
		k := ix.keys
		if k == nil || !known || ix.rows.at(h).place != ready {
			ix.mu.Unlock()
			return false, false
		}
		at := ix.groupOf(ix.rows.at(h))
		if at == 0 {
			ix.mu.Unlock()
			ix.regroupRow(h)
			continue
		}
		g := k.groups.at(at)
		if g.worth == unranked || g.ranked.Serial != k.serial {
			k.touch(at, g)
			ix.mu.Unlock()
			continue
		}
		if isFull = g.worth == full; !isFull {
			ix.reserve(h)
		}
		ix.mu.Unlock()
		return !isFull, isFull
	}
	return false, false
}

// MaxKeysAhead is how many keys are counted that come before a job's own.
const MaxKeysAhead = 4096

// A Standing says how a ready job stands among the others where the order depends
// on counts.
type Standing struct {
	Key              string
	Running, Waiting int64 // of its key, as the ranker was told
	Rank             int64
	Most             int64 // how many may run, as far as the ranker says; 0: it does not
	Full             bool  // nothing of its key may be claimed now
	Keys             int64 // how many keys come before its own; MaxKeysAhead + 1: more than are counted
	Ahead            int64 // jobs of its own key before it
}

// Standing returns how a job stands for a class, and whether it does.
func (ix *Index) Standing(ctx context.Context, id job.ID, class *Class) (Standing, bool) {
	ix.advance()
	ix.rankTouched(ctx)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	row, known := ix.ids.get(id)
	if !known || ix.keys == nil {
		return Standing{}, false
	}
	c, r := ix.classes.current(class), ix.rows.at(row)
	h := ix.groupOf(r)
	if c.keyQueues == nil || h == 0 || r.place != ready || int(h) >= len(c.keyQueues.at) || c.keyQueues.at[h] == 0 {
		return Standing{}, false
	}
	if c.slot != everySlot && !r.verdicts.allows(c.slot) {
		return Standing{}, false
	}
	g, l := ix.keys.groups.at(h), c.keyQueues
	own := l.heap.items[l.at[h]-1]
	s := Standing{
		Key: g.Key, Running: ix.keys.running(g), Waiting: int64(g.waiting), Most: g.Most, Full: g.worth == full,
		Ahead: int64(l.set.before(row) - l.set.before(own.head)),
	}
	if g.worth != full && g.worth != unranked {
		s.Rank = g.worth
	}
	s.Keys = int64(l.ahead(own, MaxKeysAhead+1))
	return s, true
}
