package index

// keyQueues is the ready jobs of a class by key: a queue for each key, and a heap of the
// keys by what they are worth.
type keyQueues struct {
	ix    *Index
	set   *ordered // by group, then as the class orders
	heap  heap[spot]
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

func newKeyQueues(ix *Index, before func(a, b uint32) bool) *keyQueues {
	group := func(h uint32) uint32 { return ix.rows.at(h).group }
	l := &keyQueues{ix: ix, first: before, set: orderedBy(func(a, b uint32) bool {
		if g, h := group(a), group(b); g != h {
			return g < h
		}
		return before(a, b)
	})}
	l.heap = heap[spot]{before: l.before, placed: func(s spot, i int) { l.at[s.group] = uint32(i + 1) }}
	return l
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
		l.heap.add(spot{g.worth, group, h})
	case l.first(h, l.heap.items[i].head):
		l.heap.items[i].head = h
		l.heap.up(i)
	}
}

func (l *keyQueues) drop(h, group uint32) {
	l.set.drop(h)
	i := int(l.at[group]) - 1
	if l.heap.items[i].head != h {
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
		l.at[group] = 0
		l.heap.remove(i)
		return
	}
	l.heap.items[i].head = next
	l.heap.down(i)
}

// revalue moves a group, if it is here, to where it belongs.
func (l *keyQueues) revalue(group uint32, worth int64) {
	if int(group) >= len(l.at) || l.at[group] == 0 {
		return
	}
	i := int(l.at[group]) - 1
	l.heap.items[i].worth = worth
	l.heap.fix(i)
}

// top returns the group to take from, if there is any.
func (l *keyQueues) top() (spot, bool) {
	if len(l.heap.items) == 0 {
		return spot{}, false
	}
	return l.heap.items[0], true
}

// ahead returns how many groups come before one that is here, at most so many. It looks at no more
// than twice as many: below a group of the heap that does not come before it, none does.
func (l *keyQueues) ahead(of spot, most int) (n int) {
	for left := []int{0}; len(left) > 0 && n < most; {
		i := left[len(left)-1]
		left = left[:len(left)-1]
		if i < len(l.heap.items) && l.before(l.heap.items[i], of) {
			n++
			left = append(left, 2*i+1, 2*i+2)
		}
	}
	return n
}

// before orders groups by worth; equal ones by which has the first row.
func (l *keyQueues) before(a, b spot) bool {
	if a.worth != b.worth {
		return a.worth > b.worth
	}
	return l.first(a.head, b.head)
}
