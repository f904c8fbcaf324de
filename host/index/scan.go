package index

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// scanBound is how many ready jobs are looked at for a class that no verdicts
// are remembered for.
const scanBound = 4096

// A find is a job that a scan found to be allowed.
type find struct {
	ref
	score int64 // of a class with an order of its own
}

// takeByScan judges the first ready jobs anew. Where the class has an order of its
// own, or keys decide, it gives the best of those.
func (ix *Index) takeByScan(ctx context.Context, c *Class, n int) []*Entry {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	ix.mu.Lock()
	choose := c.own || ix.keys != nil
	ix.mu.Unlock()
	var taken []*Entry
	var finds []find
	var from progress
	visited := 0
	for more := true; more && len(taken) < n && visited < scanBound; {
		ix.mu.Lock()
		from, more = ix.gatherAll(from, b)
		ix.mu.Unlock()
		visited += len(b.refs)
		if b.judge(ctx, c.judge) != nil {
			break
		}
		for i, ref := range b.refs {
			if b.allowed[i] {
				finds = append(finds, find{ref, b.entries[i].Score})
			}
		}
		ix.mu.Lock()
		ix.classes.stats.Judged += int64(len(b.refs))
		if !choose {
			taken = ix.takeFinds(finds, n, taken)
			finds = finds[:0]
		}
		ix.mu.Unlock()
	}
	if choose {
		taken = ix.takeBest(ctx, c, finds, n)
	}
	ix.mu.Lock()
	c.used = time.Now()
	c.stirred = true
	ix.classes.stats.Overflow++
	ix.mu.Unlock()
	return taken
}

// takeFinds takes those finds that are still ready, in order. ix.mu is held.
func (ix *Index) takeFinds(finds []find, n int, taken []*Entry) []*Entry {
	for _, f := range finds {
		if r := ix.row(f.ref); len(taken) < n && r != nil && r.place == ready {
			taken = append(taken, ix.reserve(f.row))
		}
	}
	return taken
}

// takeBest takes the best of the finds: by their keys, if those decide, and as the
// class orders them.
func (ix *Index) takeBest(ctx context.Context, c *Class, finds []find, n int) (taken []*Entry) {
	if c.own {
		slices.SortStableFunc(finds, func(a, b find) int { return cmp.Compare(b.score, a.score) })
	}
	ix.advance()
	for range takeRounds {
		ix.regroupClaimed()
		ix.rankTouched(ctx)
		if ctx.Err() != nil {
			return taken
		}
		ix.mu.Lock()
		if ix.keys == nil {
			taken = ix.takeFinds(finds, n, taken)
			ix.mu.Unlock()
			return taken
		}
		best := find{}
		for found := true; found && len(taken) < n; {
			if best, found = ix.bestOf(finds); found {
				taken = append(taken, ix.reserve(best.row))
			}
		}
		ix.mu.Unlock()
		switch {
		case len(taken) == n || best.row == 0:
			return taken
		default:
			ix.regroupRow(best.row)
		}
	}
	return taken
}

// bestOf returns the best of the finds that are still there. If that cannot be
// said before one of them was put into its group, or groups were ranked, it
// returns which.
func (ix *Index) bestOf(finds []find) (best find, ok bool) {
	k, worth := ix.keys, full
	var first find
	for _, f := range finds {
		r := ix.row(f.ref)
		if r == nil || r.place != ready {
			continue
		}
		h := ix.groupOf(r)
		if h == 0 {
			return f, false
		}
		g := k.groups.at(h)
		switch {
		case g.worth == unranked || g.ranked.Serial != k.serial:
			k.touch(h, g)
			first = f
		case g.worth > worth: // so it is not full
			best, worth = f, g.worth
		}
	}
	if first.row != 0 {
		return first, false
	}
	return best, best.row != 0
}

// gatherAll takes the next part of the ready jobs, whatever verdicts they have.
func (ix *Index) gatherAll(from progress, b *batch) (progress, bool) {
	b.reset()
	more := false
	ix.after(ix.ready, from, func(h uint32, r *row) bool {
		if len(b.refs) == slice {
			more = true
			return false
		}
		b.add(ix, h, r)
		from = progress{true, r.Order}
		return true
	})
	return from, more
}
