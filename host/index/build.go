package index

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// build judges what is ready for a class, until it is built.
func (ix *Index) build(ctx context.Context, c *Class) error {
	ix.mu.Lock()
	done := c.slot < 0 || c.state == built
	ix.mu.Unlock()
	if done {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		ix.mu.Lock()
		ix.fail(c) // the turn may have been free
		ix.mu.Unlock()
		return &job.Error{Op: "worker class", Kind: job.Interrupted, Err: ctx.Err()}
	}
	defer ix.built(c)
	b := batches.Get().(*batch)
	defer batches.Put(b)
	for ix.wipe(c) {
	}
	for {
		from, done := ix.gather(c, b)
		if done {
			return nil
		}
		if err := b.judge(ctx, c.judge); err != nil {
			ix.mu.Lock()
			if c.begun { // else the judge failed elsewhere too, and all of it has to be gone through again
				c.begun, c.reached = from.begun, from.reached
			}
			ix.fail(c)
			ix.mu.Unlock()
			return &job.Error{Op: "worker class", Kind: job.KindOf(err), Err: err}
		}
		ix.publish(c, b)
	}
}

// built lets the next caller go on with building the class, if anything is left to do.
func (ix *Index) built(c *Class) {
	ix.mu.Lock()
	c.used = time.Now() // it may have taken longer than a class may be idle
	ix.mu.Unlock()
	<-c.turn
}

// wipe clears the bit that the slot's last owner left, in a part of the rows.
// It reports whether there is more. Rows that came since have none.
func (ix *Index) wipe(c *Class) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if c.state != clearing || c.slot < 0 {
		return false
	}
	end := min(c.clear+8*slice, c.clearEnd)
	for ; c.clear < end; c.clear++ {
		if r := ix.rows.peek(c.clear); r != nil {
			r.verdicts.forget(c.slot)
		}
	}
	if c.clear < c.clearEnd {
		return true
	}
	c.state = building
	ix.classes.active |= 1 << c.slot
	return false
}

// progress is how far a class was built.
type progress struct {
	begun   bool
	reached Order
}

// gather takes the next part of the ready jobs that have no verdict. It returns
// where it began, and whether nothing was left; then the class is built.
func (ix *Index) gather(c *Class, b *batch) (progress, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	from := progress{c.begun, c.reached}
	b.reset()
	if c.slot < 0 { // another class got its slot before this caller had its turn
		return from, true
	}
	if c.ready == nil {
		c.ready = orderedBy(c.before(ix))
	}
	visited, more := 0, false
	var last *row
	ix.after(ix.ready, from, func(h uint32, r *row) bool {
		if len(b.refs) == slice || visited == 8*slice {
			more = true
			return false
		}
		visited++
		last = r
		if !r.verdicts.has(c.slot) {
			b.add(ix, h, r)
		}
		return true
	})
	if last != nil {
		c.begun, c.reached = true, last.Order
	}
	if !more && len(b.refs) == 0 {
		c.state = built
		return from, true
	}
	return from, false
}

// after visits the rows of a set that come after a place in the order.
func (ix *Index) after(set *ordered, from progress, visit func(h uint32, r *row) bool) {
	if !from.begun {
		set.tree.Scan(func(h uint32) bool { return visit(h, ix.rows.at(h)) })
		return
	}
	ix.rows.at(pivot).move(from.reached)
	set.from(pivot, func(h uint32) bool {
		r := ix.rows.at(h)
		if r.Order == from.reached {
			return true
		}
		return visit(h, r)
	})
}

// reachedBy reports whether the class has to judge a row that became ready: if
// not, whoever builds it will come by.
func (c *Class) reachedBy(r *row) bool {
	return c.state == built || c.begun && !c.reached.Less(r.Order)
}

// publish writes the verdicts of a batch down, as far as they are not void by
// now, and offers what the class may have. A job that is not ready any more
// keeps its verdict for when it comes back.
func (ix *Index) publish(c *Class, b *batch) {
	for from := 0; from < len(b.refs); from += burst {
		ix.mu.Lock()
		ix.publishPart(c, b, from, min(from+burst, len(b.refs)))
		ix.mu.Unlock()
	}
}

func (ix *Index) publishPart(c *Class, b *batch, from, to int) {
	if c.slot < 0 || c.state == clearing {
		return
	}
	ix.classes.stats.Judged += int64(to - from)
	for i := from; i < to; i++ {
		ref := b.refs[i]
		r := ix.row(ref)
		if r == nil || r.verdicts.has(c.slot) {
			continue
		}
		r.verdicts.keep(c.slot, b.allowed[i])
		if !b.allowed[i] {
			continue
		}
		c.setScore(ref.row, b.entries[i].Score)
		if r.place == ready {
			c.enter(ix, ref.row, r)
			ix.wakeOne(c, ref.row, r)
		}
	}
}
