package board

import "sync/atomic"

// contention is how much other hosts, or other programs, claim from the head of this
// board's line at the same time. Each claim then offers the store that many
// candidates more than it wants, and is granted the first that are free: without
// them, it would be refused and have to ask again for every job that somebody
// else was quicker to get.
type contention struct {
	// level is in parts of a candidate. It rises by how many were gone, and falls
	// by a part with each operation that lost none.
	level atomic.Int64
}

// rivalParts is how many operations without a loss it takes to offer one
// candidate less.
const rivalParts = 16

// spare returns how many candidates to offer beyond those that are wanted.
func (r *contention) spare() int { return int((r.level.Load() + rivalParts - 1) / rivalParts) }

// met notes how many candidates of one operation were gone.
func (r *contention) met(gone int) {
	for {
		level := r.level.Load()
		next := max(level-1, 0)
		if gone > 0 {
			next = min(level+int64(gone)*rivalParts, maxSpare*rivalParts)
		}
		if r.level.CompareAndSwap(level, next) {
			return
		}
	}
}
