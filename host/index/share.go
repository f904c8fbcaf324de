package index

// Share returns how many of the ready jobs fall to each of those who wait, but at least
// one: the share of a waiter that was woken.
func (ix *Index) Share() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ready, waiters := ix.ready.len(), max(ix.classes.stats.Waiters, 1)
	return max(1, (ready+waiters-1)/waiters)
}

// Spare returns how many ready jobs there are that nobody waits for.
func (ix *Index) Spare() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.classes.stats.Waiters > 0 {
		return 0
	}
	return ix.ready.len()
}

// Full reports whether there are jobs for a class, and none of them may run now because
// as many of its key do as may.
func (ix *Index) Full(class *Class) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	c := ix.classes.current(class)
	if ix.keys == nil || c.keyQueues == nil {
		return false
	}
	best, ok := c.keyQueues.top()
	return ok && best.worth == full
}
