package index

// An intern keeps each distinct value once for as long as somebody refers to
// it, and names it by a handle of four bytes. Handle 0 is the zero value.
type intern[T comparable] struct {
	handles map[T]uint32
	values  slab[counted[T]]
	clone   func(T) T // so that a kept value does not hold on to its caller's memory
}

type counted[T comparable] struct {
	value T
	refs  uint32
}

func newIntern[T comparable](clone func(T) T) *intern[T] {
	return &intern[T]{handles: make(map[T]uint32), clone: clone}
}

// acquire returns the value's handle and counts one reference.
func (n *intern[T]) acquire(value T) uint32 {
	var zero T
	if value == zero {
		return 0
	}
	h, ok := n.handles[value]
	if !ok {
		value = n.clone(value)
		h = n.values.alloc()
		n.values.at(h).value = value
		n.handles[value] = h
	}
	n.values.at(h).refs++
	return h
}

// release takes one reference back.
func (n *intern[T]) release(h uint32) {
	if h == 0 {
		return
	}
	v := n.values.at(h)
	if v.refs--; v.refs == 0 {
		delete(n.handles, v.value)
		n.values.drop(h)
	}
}

// value returns what a handle stands for.
func (n *intern[T]) value(h uint32) T {
	if h == 0 {
		var zero T
		return zero
	}
	return n.values.at(h).value
}
