package index

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// scanBound is how many ready jobs are looked at for a class that no verdicts
// are remembered for.
const scanBound = 4096

// Take returns the best n ready jobs that the class may have and reserves them
// for the caller: they are offered to nobody else until they are put, removed
// or returned. What it returns is a hint; the store decides.
func (ix *Index) Take(class *Class, n int) []*Entry {
	ix.mu.Lock()
	c := ix.crowd.current(class)
	if c.slot == noSlot {
		ix.mu.Unlock()
		return ix.takeByScan(c, n)
	}
	defer ix.mu.Unlock()
	c.used = ix.usedAt(c)
	if c.ready == nil {
		return nil
	}
	taken := make([]*Entry, 0, max(0, min(n, c.ready.len())))
	for len(taken) < n {
		h, ok := c.ready.min()
		if !ok {
			c.stirred = true
			break
		}
		taken = append(taken, ix.reserve(h))
	}
	return taken
}

// usedAt spares the class of everyone, which nobody can push out, the clock.
func (ix *Index) usedAt(c *Class) time.Time {
	if c.slot == everySlot {
		return c.used
	}
	return time.Now()
}

func (ix *Index) reserve(h uint32) *Entry {
	r := ix.rows.at(h)
	ix.hide(h, r)
	r.place = reserved
	ix.reserved[h] = struct{}{}
	return ix.snapshot(r)
}

// takeByScan judges the first ready jobs anew.
func (ix *Index) takeByScan(c *Class, n int) []*Entry {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	var taken []*Entry
	var from progress
	visited := 0
	for more := true; more && len(taken) < n && visited < scanBound; {
		ix.mu.Lock()
		from, more = ix.gatherAll(from, b)
		ix.mu.Unlock()
		visited += len(b.refs)
		if b.judge(context.Background(), c.judge) != nil {
			break
		}
		ix.mu.Lock()
		ix.crowd.stats.Judged += int64(len(b.refs))
		for i, ref := range b.refs {
			r := ix.row(ref)
			if b.allowed[i] && len(taken) < n && r != nil && r.place == ready {
				taken = append(taken, ix.reserve(ref.row))
			}
		}
		ix.mu.Unlock()
	}
	ix.mu.Lock()
	c.used = time.Now()
	c.stirred = true
	ix.crowd.stats.Overflow++
	ix.mu.Unlock()
	return taken
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
		from = progress{true, r.order()}
		return true
	})
	return from, more
}

// Return gives reservations back. An id that is not reserved is passed over.
func (ix *Index) Return(ids ...job.ID) {
	ix.mu.Lock()
	for _, id := range ids {
		h, ok := ix.ids.get(id)
		if !ok {
			continue
		}
		if r := ix.rows.at(h); r.place == reserved {
			delete(ix.reserved, h)
			ix.offer(h, r)
		}
	}
	ticket := ix.docket.ticket()
	ix.mu.Unlock()
	_ = ix.settle(context.Background(), ticket) // an error is the end of the context
}
