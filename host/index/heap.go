package index

// A heap keeps items so that none comes before the first one.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
	placed func(item T, i int) // is told each place that an item gets
}

func (h *heap[T]) add(item T) {
	h.items = append(h.items, item)
	h.up(len(h.items) - 1)
}

// remove takes out the item at i, and gives memory back that is not needed any more.
func (h *heap[T]) remove(i int) {
	last := len(h.items) - 1
	moved := h.items[last]
	h.items = h.items[:last]
	if c := cap(h.items); c > slice && last < c/4 {
		h.items = append(make([]T, 0, c/2), h.items...)
	}
	if i != last {
		h.put(i, moved)
		h.fix(i)
	}
}

// fix moves the item at i, which was changed, to where it belongs.
func (h *heap[T]) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *heap[T]) put(i int, item T) {
	h.items[i] = item
	h.placed(item, i)
}

func (h *heap[T]) up(i int) {
	item := h.items[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(item, h.items[parent]) {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, item)
}

func (h *heap[T]) down(i int) (moved bool) {
	item, start := h.items[i], i
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.before(h.items[child], item) {
			break
		}
		h.put(i, h.items[child])
		i = child
	}
	h.put(i, item)
	return i > start
}
