package index

import (
	"container/list"
	"context"
	"iter"
	"math/bits"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// MaxClasses is how many worker classes an index remembers verdicts for.
const MaxClasses = 64

// idle is for how long a class stays after its last use although another one
// wants its place. Without it, one class more than there are places would have
// all of them built again and again.
const idle = 30 * time.Second

// Slots of classes that have no bit in the rows' masks.
const (
	everySlot = -1 // of the empty key: everything that is ready
	noSlot    = -2 // over the limit, or replaced: served by a bounded scan
)

type classState uint8

const (
	clearing classState = iota // its bit is being wiped out of the rows
	building                   // what is ready is being judged, in claim order
	built
)

// A Class stands for all workers that the board's rules treat alike. It stays
// usable after its place was given to another one, at the cost of a scan for
// each Take.
type Class struct {
	key   string
	judge Judge
	slot  int
	state classState
	ready *ordered // the ready jobs that it may have

	turn     chan struct{} // held by whoever builds it
	clear    uint32        // rows before this one are clean of the slot's last owner
	clearEnd uint32
	begun    bool  // reached is set
	reached  Order // everything ready up to here was judged, or is in the docket
	retryAt  time.Time

	used    time.Time
	idlers  *list.List // of *Waiter, by ticket
	told    *list.List // waiters that were signalled
	stirred bool       // one of told may be idle again
	gone    bool       // its key may have another Class now
}

func newClass(key string, judge Judge) *Class {
	return &Class{
		key: key, judge: judge, slot: noSlot, turn: make(chan struct{}, 1),
		idlers: list.New(), told: list.New(),
	}
}

func (c *Class) awaited() bool { return c.idlers.Len()+c.told.Len() > 0 }

// crowd is the classes of an index.
type crowd struct {
	byKey  map[string]*Class
	slots  [MaxClasses]*Class
	dirty  uint64 // slots that had an owner before
	active uint64 // slots whose bits in the rows are true
	over   map[string]*Class
	stats  Stats
	ticket uint64 // of waiters
}

// Stats are counters, for metrics.
type Stats struct {
	Classes  int   // remembered now
	Waiters  int   // now
	Builds   int64 // classes that were begun
	Overflow int64 // takes that were served by a bounded scan
	Judged   int64 // verdicts asked for
}

func (c *crowd) init() {
	c.byKey = make(map[string]*Class)
	c.over = make(map[string]*Class)
}

// of goes through the classes whose bits are set, as far as they are true.
func (c *crowd) of(mask uint64) iter.Seq[*Class] {
	return func(yield func(*Class) bool) {
		for m := mask & c.active; m != 0; m &= m - 1 {
			if !yield(c.slots[bits.TrailingZeros64(m)]) {
				return
			}
		}
	}
}

// Stats returns the counters.
func (ix *Index) Stats() Stats {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := ix.crowd.stats
	s.Classes = len(ix.crowd.byKey)
	return s
}

// Class finds the class of a key, or judges all that is ready for a new one:
// off the lock, in the goroutine of the first caller; others wait for it. The
// empty key is the class of workers whom every job suits; its judge is not
// called. Jobs that were put before this call have a verdict when it returns.
// An error is that of the judge, or the end of ctx.
func (ix *Index) Class(ctx context.Context, key string, judge Judge) (*Class, error) {
	if key == "" {
		return ix.everyone, nil
	}
	ix.mu.Lock()
	c := ix.crowd.find(key, judge, time.Now(), ix.rows.next)
	ticket, done := ix.docket.ticket(), c.state == built
	ix.mu.Unlock()
	if done && ticket == 0 {
		return c, nil
	}
	for {
		if err := ix.build(ctx, c); err != nil {
			return nil, err
		}
		if err := ix.settle(ctx, ticket); err != nil {
			return nil, err
		}
		ix.mu.Lock()
		done := c.state == built || c.slot == noSlot
		ix.mu.Unlock()
		if done {
			return c, nil
		}
	}
}

func (c *crowd) find(key string, judge Judge, now time.Time, rows uint32) *Class {
	class := c.byKey[key]
	if class == nil {
		slot := c.room(now)
		class = c.over[key]
		if slot == noSlot {
			if class == nil {
				class = newClass(key, judge)
				c.keepOver(class)
			}
			class.used = now
			return class
		}
		delete(c.over, key)
		if class == nil {
			class = newClass(key, judge)
		}
		c.settle(class, slot, rows)
	}
	class.used = now
	return class
}

// settle gives the class a slot.
func (c *crowd) settle(class *Class, slot int, rows uint32) {
	bit := uint64(1) << slot
	class.slot, class.state = slot, building
	if c.dirty&bit != 0 {
		class.state, class.clear, class.clearEnd = clearing, 0, rows
	} else {
		c.active |= bit
	}
	c.dirty |= bit
	c.slots[slot] = class
	c.byKey[class.key] = class
	c.stats.Builds++
}

// room returns a free slot, or that of the class that was used least recently,
// if it is idle.
func (c *crowd) room(now time.Time) int {
	oldest := -1
	for slot, class := range c.slots {
		switch {
		case class == nil:
			return slot
		case class.awaited() || len(class.turn) > 0 || now.Sub(class.used) < idle:
		case oldest < 0 || class.used.Before(c.slots[oldest].used):
			oldest = slot
		}
	}
	if oldest < 0 {
		return noSlot
	}
	c.evict(c.slots[oldest])
	return oldest
}

// evict takes a class's slot away. Its bits in the rows stay, and are not true
// any more.
func (c *crowd) evict(class *Class) {
	delete(c.byKey, class.key)
	c.slots[class.slot] = nil
	c.active &^= 1 << class.slot
	class.slot, class.ready, class.begun, class.gone = noSlot, nil, false, true
}

// keepOver remembers a class over the limit, so that those who wait for the
// same key stand in one line.
func (c *crowd) keepOver(class *Class) {
	if len(c.over) >= 4*MaxClasses {
		for key, old := range c.over {
			if !old.awaited() {
				delete(c.over, key)
				old.gone = true
			}
		}
	}
	class.gone = false
	c.over[class.key] = class
}

// current returns the class that has the key of c now.
func (c *crowd) current(class *Class) *Class {
	if !class.gone {
		return class
	}
	if now := c.byKey[class.key]; now != nil {
		return now
	}
	if now := c.over[class.key]; now != nil {
		return now
	}
	c.keepOver(class)
	return class
}

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
		return &job.Error{Op: "worker class", Kind: job.Interrupted, Err: ctx.Err()}
	}
	defer func() { <-c.turn }()
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
			ix.mu.Unlock()
			return &job.Error{Op: "worker class", Kind: job.KindOf(err), Err: err}
		}
		ix.mu.Lock()
		ix.publish(c, b)
		ix.mu.Unlock()
	}
}

// wipe clears the bit that the slot's last owner left, in a part of the rows.
// It reports whether there is more. Rows that came since have none.
func (ix *Index) wipe(c *Class) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if c.state != clearing {
		return false
	}
	bit := uint64(1) << c.slot
	end := min(c.clear+8*slice, c.clearEnd)
	for ; c.clear < end; c.clear++ {
		r := ix.rows.at(c.clear)
		r.judged &^= bit
		r.allowed &^= bit
	}
	if c.clear < c.clearEnd {
		return true
	}
	c.state = building
	ix.crowd.active |= bit
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
	if c.ready == nil {
		c.ready = newOrdered(&ix.rows)
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
		if r.judged&(1<<c.slot) == 0 {
			b.add(ix, h, r)
		}
		return true
	})
	if last != nil {
		c.begun, c.reached = true, last.order()
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
		if r.order() == from.reached {
			return true
		}
		return visit(h, r)
	})
}

// reachedBy reports whether the class has to judge a row that became ready: if
// not, whoever builds it will come by.
func (c *Class) reachedBy(r *row) bool {
	return c.state == built || c.begun && !c.reached.Less(r.order())
}

// publish writes the verdicts of a batch down, as far as they are not void by
// now, and offers what the class may have. A job that is not ready any more
// keeps its verdict for when it comes back.
func (ix *Index) publish(c *Class, b *batch) {
	if c.slot < 0 || c.state == clearing {
		return
	}
	bit := uint64(1) << c.slot
	ix.crowd.stats.Judged += int64(len(b.refs))
	for i, ref := range b.refs {
		r := ix.rows.at(ref.row)
		if r.turn != ref.turn || r.judged&bit != 0 {
			continue
		}
		r.judged |= bit
		if !b.allowed[i] {
			continue
		}
		r.allowed |= bit
		if r.place == ready {
			c.ready.add(ref.row)
			ix.wakeOne(c, ref.row, r)
		}
	}
}
