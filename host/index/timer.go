package index

import "time"

// timers is rows by time. A row is in at most one of them and knows its place in it, so
// that leaving early leaves nothing behind.
type timers struct {
	rows *slab[row]
	heap heap[alarm]
}

type alarm struct {
	at  int64 // nanoseconds, on the clock of these timers
	row uint32
}

func (t *timers) init(rows *slab[row]) {
	t.rows = rows
	t.heap.before = func(a, b alarm) bool { return a.at < b.at }
	t.heap.placed = func(a alarm, i int) { rows.at(a.row).timer = uint32(i + 1) }
}

// add puts in a row that is in no timers.
func (t *timers) add(h uint32, at int64) { t.heap.add(alarm{at, h}) }

// drop takes out a row that is here.
func (t *timers) drop(h uint32) {
	r := t.rows.at(h)
	i := int(r.timer) - 1
	r.timer = 0
	t.heap.remove(i)
}

// first returns the earliest time.
func (t *timers) first() (alarm, bool) {
	if len(t.heap.items) == 0 {
		return alarm{}, false
	}
	return t.heap.items[0], true
}

// There are two clocks. The time before which a job may not be claimed is a time of day;
// the end of a lease is counted on this process's monotonic clock, which elapsed reads.

func (ix *Index) elapsed(t time.Time) int64 { return int64(t.Sub(ix.start)) }

func (ix *Index) armDelay(h uint32, at int64) {
	ix.delays.add(h, at)
	ix.hurry(ix.delays.heap.items[0].row == h)
}

func (ix *Index) armLease(h uint32, ends time.Time) {
	ix.leases.add(h, ix.elapsed(ends))
	ix.hurry(ix.leases.heap.items[0].row == h)
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
