package index

import (
	"iter"
	"math/bits"
	"time"
)

// classTable is the classes of an index.
type classTable struct {
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

func (c *classTable) init() {
	c.byKey = make(map[string]*Class)
	c.over = make(map[string]*Class)
}

// of goes through the classes whose bits are set, as far as they are true.
func (c *classTable) of(mask uint64) iter.Seq[*Class] {
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
	s := ix.classes.stats
	s.Classes = len(ix.classes.byKey)
	return s
}

func (c *classTable) find(key Key, judge Judge, own bool, now time.Time, rows uint32) *Class {
	class := c.byKey[key.Name]
	if class == nil {
		slot := noSlot
		if c.supersede(key) {
			slot = c.room(now)
		}
		class = c.over[key.Name]
		if slot == noSlot {
			if class == nil {
				class = newClass(key, judge, own)
				c.keepOver(class)
			}
			class.used = now
			return class
		}
		delete(c.over, key.Name)
		if class == nil {
			class = newClass(key, judge, own)
		}
		c.occupy(class, slot, rows)
	}
	class.used = now
	return class
}

// occupy gives the class a slot.
func (c *classTable) occupy(class *Class, slot int, rows uint32) {
	bit := uint64(1) << slot
	class.slot, class.state = slot, building
	if c.dirty&bit != 0 {
		class.state, class.clear, class.clearEnd = clearing, 0, rows
	} else {
		c.active |= bit
	}
	c.dirty |= bit
	c.slots[slot] = class
	c.byKey[class.key.Name] = class
	c.stats.Builds++
}

// supersede evicts the classes of the key's series that are of an earlier time, unless
// somebody waits for them or builds them. It reports whether the key is the latest of its
// series: no slot goes to the class of an earlier time.
func (c *classTable) supersede(key Key) bool {
	if key.Series == "" {
		return true
	}
	for name, class := range c.over {
		if class.key.Series == key.Series && class.key.At < key.At && !class.awaited() {
			delete(c.over, name)
			class.gone = true
		}
	}
	latest := true
	for _, class := range c.slots {
		switch {
		case class == nil || class.key.Series != key.Series:
		case class.key.At > key.At:
			latest = false
		case class.key.At < key.At && !class.awaited() && len(class.turn) == 0:
			c.evict(class)
		}
	}
	return latest
}

// room returns a free slot, or that of the class that was used least recently,
// if it is idle.
func (c *classTable) room(now time.Time) int {
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
func (c *classTable) evict(class *Class) {
	delete(c.byKey, class.key.Name)
	c.slots[class.slot] = nil
	c.active &^= 1 << class.slot
	class.slot, class.ready, class.begun, class.gone = noSlot, nil, false, true
	class.keyQueues, class.scores = nil, nil
}

// keepOver remembers a class over the limit, so that all who wait under the same key
// wait in one queue.
func (c *classTable) keepOver(class *Class) {
	if len(c.over) >= 4*MaxClasses {
		for key, old := range c.over {
			if !old.awaited() {
				delete(c.over, key)
				old.gone = true
			}
		}
	}
	class.gone = false
	c.over[class.key.Name] = class
}

// current returns the class that has the key of c now.
func (c *classTable) current(class *Class) *Class {
	if !class.gone {
		return class
	}
	if now := c.byKey[class.key.Name]; now != nil {
		return now
	}
	if now := c.over[class.key.Name]; now != nil {
		return now
	}
	c.keepOver(class)
	return class
}
