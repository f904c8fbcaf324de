package board

// listener is a watcher of one owner's jobs only. Their events are handed to it as
// they are published, so that a board with many workers wakes none of them for the
// others' jobs.
type listener struct {
	owner string
	wake  chan struct{} // takes one element without waiting: there is something to take

	// Guarded by hub.mu.
	items []item
	lost  bool // some were not kept
}

// maxHeard is how many events a listener may fall behind.
const maxHeard = 256

// listen begins to keep events for an owner, beginning with those after the cursor
// that are in the ring. The caller has to call leave.
func (h *hub) listen(owner string, after cursor) *listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &listener{owner: owner, wake: make(chan struct{}, 1)}
	if h.listeners == nil {
		h.listeners = make(map[string]map[*listener]struct{})
	}
	if h.listeners[owner] == nil {
		h.listeners[owner] = make(map[*listener]struct{})
	}
	h.listeners[owner][l] = struct{}{}
	if after.generation != h.generation || after.position < h.floor {
		l.lose()
	} else {
		for n := h.search(after.position); n < h.next; n++ {
			if it := h.at(n); it.holder() == owner {
				l.hear(it)
			}
		}
	}
	return l
}

func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners[l.owner], l)
	if len(h.listeners[l.owner]) == 0 {
		delete(h.listeners, l.owner)
	}
}

// hand gives an item to those whom it concerns. h.mu is held.
func (h *hub) hand(it *item) {
	if len(h.listeners) == 0 {
		return
	}
	for l := range h.listeners[it.holder()] {
		if it.told == nil {
			it.told = &Told{}
		}
		l.hear(it)
	}
}

// loseAll tells every listener that something may have been missed. h.mu is held.
func (h *hub) loseAll() {
	for _, some := range h.listeners {
		for l := range some {
			l.lose()
		}
	}
}

// drain returns what was kept for a listener, the present, and whether something
// was not kept, before all of it.
func (h *hub) drain(l *listener) (items []item, at cursor, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	items, lost = l.items, l.lost
	l.items, l.lost = nil, false
	return items, cursor{h.generation, h.reported}, lost
}

// hear keeps an item. The caller holds hub.mu.
func (l *listener) hear(it *item) {
	if len(l.items) == maxHeard {
		l.lose()
	}
	l.items = append(l.items, *it)
	rouse(l.wake)
}

// lose drops what was kept, and notes that. The caller holds hub.mu.
func (l *listener) lose() {
	l.items, l.lost = nil, true
	rouse(l.wake)
}

// rouse has whoever waits on wake look what there is to do. wake has room for one, so that
// this is never waited for, and nothing is missed.
func rouse(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
