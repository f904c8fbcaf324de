package index

import "time"

// timers is a heap of rows by time. A row is in at most one heap and knows its
// place in it, so that leaving early leaves nothing behind.
type timers struct {
	rows  *slab[row]
	items []alarm
}

type alarm struct {
	at  int64 // nanoseconds, on the heap's own clock
	row uint32
}

// add puts a row that is in no heap into this one.
func (t *timers) add(h uint32, at int64) {
	t.items = append(t.items, alarm{at, h})
	t.up(len(t.items) - 1)
}

// drop takes a row out of this heap, in which it is.
func (t *timers) drop(h uint32) {
	r := t.rows.at(h)
	i := int(r.timer) - 1
	r.timer = 0
	last := len(t.items) - 1
	moved := t.items[last]
	t.items = t.items[:last]
	if c := cap(t.items); c > slice && last < c/4 {
		t.items = append(make([]alarm, 0, c/2), t.items...)
	}
	if i == last {
		return
	}
	t.items[i] = moved
	t.rows.at(moved.row).timer = uint32(i + 1)
	if !t.down(i) {
		t.up(i)
	}
}

// first returns the earliest time.
func (t *timers) first() (alarm, bool) {
	if len(t.items) == 0 {
		return alarm{}, false
	}
	return t.items[0], true
}

func (t *timers) set(i int, a alarm) {
	t.items[i] = a
	t.rows.at(a.row).timer = uint32(i + 1)
}

func (t *timers) up(i int) {
	a := t.items[i]
	for i > 0 {
		parent := (i - 1) / 2
		if t.items[parent].at <= a.at {
			break
		}
		t.set(i, t.items[parent])
		i = parent
	}
	t.set(i, a)
}

func (t *timers) down(i int) bool {
	a, start := t.items[i], i
	for {
		child := 2*i + 1
		if child >= len(t.items) {
			break
		}
		if child+1 < len(t.items) && t.items[child+1].at < t.items[child].at {
			child++
		}
		if t.items[child].at >= a.at {
			break
		}
		t.set(i, t.items[child])
		i = child
	}
	t.set(i, a)
	return i > start
}

// Two clocks: what a poster asked for is a time of day, what a lease ends at is
// a time that has passed here.

func (ix *Index) elapsed(t time.Time) int64 { return int64(t.Sub(ix.start)) }

func (ix *Index) armDelay(h uint32, at int64) {
	ix.delays.add(h, at)
	ix.hurry(ix.delays.items[0].row == h)
}

func (ix *Index) armLease(h uint32, ends time.Time) {
	ix.leases.add(h, ix.elapsed(ends))
	ix.hurry(ix.leases.items[0].row == h)
}

func (ix *Index) hurry(first bool) {
	if !first {
		return
	}
	select {
	case ix.sooner <- struct{}{}:
	default:
	}
}
