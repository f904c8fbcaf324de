package embedded

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// A clock tells the two times that a store needs. A wall clock is what people
// read, and it jumps. The boot clock only ever goes forward, also while the
// machine sleeps; leases count on it.
type clock struct {
	wall func() time.Time
	boot func() time.Duration
	id   uint64 // names the boot that boot counts from
}

// An instant is one reading of both, with what is needed to tell how much of a
// lease is left. It is read once for a whole group of ops.
type instant struct {
	wall time.Time
	boot time.Duration
	id   uint64
	base time.Duration // on the boot clock: since when leases of an earlier boot are counted anew

	// steady is the wall clock, but never further on than the boot clock allows
	// since the store was opened. What is forgotten by age is judged by it, so
	// that a wall clock that jumps ahead forgets nothing too early.
	steady time.Time

	// generation is the board's. A claim of an earlier one ended when the board was
	// found to have lost changes.
	generation uint64
}

// left returns the rest of the lease; 0 or less when it ran out. It is 0 for a
// claim without expiry.
func (h *holder) left(at instant) time.Duration {
	switch {
	case h.lease == 0, h.token.Generation != at.generation:
		return 0
	case h.boot != at.id:
		return at.base + h.lease - at.boot
	}
	return h.deadline - at.boot
}

// endless reports whether the claim has no lease.
func (h *holder) endless(at instant) bool { return h.lease == 0 && h.token.Generation == at.generation }

// start counts a lease from at.
func (h *holder) start(at instant, lease time.Duration) {
	h.lease, h.deadline, h.boot = lease, at.boot+lease, at.id
}

// processClock counts from the start of this process. It stands in where the
// system has no boot clock: after a restart every lease is counted anew.
func processClock() clock {
	start := time.Now()
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return clock{
		wall: time.Now,
		boot: func() time.Duration { return time.Since(start) },
		id:   binary.LittleEndian.Uint64(id[:]),
	}
}
