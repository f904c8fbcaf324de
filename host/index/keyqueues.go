package index

// keyQueues is what a class may have, by key: a line for each key, and the keys by
// what they are worth.
type keyQueues struct {
	ix    *Index
	set   *ordered // by group, then as the class orders
	heap  []spot
	at    []uint32 // by group, its place in the heap plus one; 0: nothing of it is here
	first func(a, b uint32) bool
	swept uint32 // the last ranking by which every group here was ranked
}

// A spot is a group of which something is here.
type spot struct {
	worth int64
	group uint32
	head  uint32 // the row that is first of it
}

func newLanes(ix *Index, before func(a, b uint32) bool) *keyQueues {
	group := func(h uint32) uint32 { return ix.rows.at(h).group }
	return &keyQueues{ix: ix, first: before, set: orderedBy(func(a, b uint32) bool {
		if g, h := group(a), group(b); g != h {
			return g < h
		}
		return before(a, b)
	})}
}

// add puts a row in whose group is known.
func (l *keyQueues) add(h, group uint32) {
	l.set.add(h)
	if int(group) >= len(l.at) {
		l.at = append(l.at, make([]uint32, int(group)+1-len(l.at))...)
	}
	i := int(l.at[group]) - 1
	switch {
	case i < 0:
		g := l.ix.keys.groups.at(group)
		if g.ranked.Serial != l.swept {
			l.swept = 0
		}
		l.heap = append(l.heap, spot{g.worth, group, h})
		l.up(len(l.heap) - 1)
	case l.first(h, l.heap[i].head):
		l.heap[i].head = h
		l.up(i)
	}
}

func (l *keyQueues) drop(h, group uint32) {
	l.set.drop(h)
	i := int(l.at[group]) - 1
	if l.heap[i].head != h {
		return
	}
	next := uint32(0)
	l.set.from(h, func(n uint32) bool {
		if l.ix.rows.at(n).group == group {
			next = n
		}
		return false
	})
	if next == 0 {
		l.take(i)
		return
	}
	l.heap[i].head = next
	l.down(i)
}

// take takes a group out of the heap.
func (l *keyQueues) take(i int) {
	l.at[l.heap[i].group] = 0
	last := len(l.heap) - 1
	moved := l.heap[last]
	l.heap = l.heap[:last]
	if c := cap(l.heap); c > slice && last < c/4 {
		l.heap = append(make([]spot, 0, c/2), l.heap...)
	}
	if i == last {
		return
	}
	l.put(i, moved)
	if !l.down(i) {
		l.up(i)
	}
}

// revalue moves a group, if it is here, to where it belongs.
func (l *keyQueues) revalue(group uint32, worth int64) {
	if int(group) >= len(l.at) || l.at[group] == 0 {
		return
	}
	i := int(l.at[group]) - 1
	l.heap[i].worth = worth
	if !l.down(i) {
		l.up(i)
	}
}

// top returns the group to take from, if there is any.
func (l *keyQueues) top() (spot, bool) {
	if len(l.heap) == 0 {
		return spot{}, false
	}
	return l.heap[0], true
}

// before orders groups by worth; equal ones by which has the first row.
func (l *keyQueues) before(a, b spot) bool {
	if a.worth != b.worth {
		return a.worth > b.worth
	}
	return l.first(a.head, b.head)
}

func (l *keyQueues) put(i int, s spot) {
	l.heap[i] = s
	l.at[s.group] = uint32(i + 1)
}

func (l *keyQueues) up(i int) {
	s := l.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !l.before(s, l.heap[parent]) {
			break
		}
		l.put(i, l.heap[parent])
		i = parent
	}
	l.put(i, s)
}

func (l *keyQueues) down(i int) bool {
	s, start := l.heap[i], i
	for {
		child := 2*i + 1
		if child >= len(l.heap) {
			break
		}
		if child+1 < len(l.heap) && l.before(l.heap[child+1], l.heap[child]) {
			child++
		}
		if !l.before(l.heap[child], s) {
			break
		}
		l.put(i, l.heap[child])
		i = child
	}
	l.put(i, s)
	return i > start
}
