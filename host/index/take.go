package index

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Take returns the best n ready jobs that the class may have and reserves them
// for the caller: they are offered to nobody else until they are put, removed
// or returned. What it returns is a hint; the store decides. The end of ctx ends a
// wait for the ranker, and then it returns what it has.
func (ix *Index) Take(ctx context.Context, class *Class, n int) []*Entry {
	ix.mu.Lock()
	c := ix.classes.current(class)
	switch {
	case c.slot == noSlot:
		ix.mu.Unlock()
		return ix.takeByScan(ctx, c, n)
	case ix.keys != nil:
		ix.mu.Unlock()
		return ix.takeByKeys(ctx, class, n)
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

// usedAt returns when c was used. It does not read the clock for the class of everyone,
// which is never evicted.
func (ix *Index) usedAt(c *Class) time.Time {
	if c.slot == everySlot {
		return c.used
	}
	return time.Now()
}

func (ix *Index) reserve(h uint32) *Entry {
	r := ix.rows.at(h)
	ix.hide(h, r)
	ix.become(r, reserved)
	ix.reserved[h] = struct{}{}
	ix.tell(ix.groupOf(r))
	return ix.snapshot(r)
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
			ix.tell(ix.groupOf(r))
		}
	}
	ticket := ix.pending.ticket()
	ix.mu.Unlock()
	_ = ix.awaitVerdicts(context.Background(), ticket) // an error is the end of the context
	ix.rankNews()
}
