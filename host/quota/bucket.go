package quota

import (
	"sync"
	"time"
)

// bucket is a token bucket: it lets through so many things a second, and as many at
// once after a still second. The zero bucket is full.
type bucket struct {
	mu   sync.Mutex
	used float64 // of one second's worth
	at   time.Time

	asked   float64   // since demand was asked for last: let through or not
	since   time.Time // when that was
	lately  float64   // what it was
	last    time.Time // when something was asked for
	wanting bool      // since demand was asked for last somebody waited
}

// fill lets the time since the last call count. The caller has mu.
func (b *bucket) fill(perSecond float64, now time.Time) {
	if elapsed := now.Sub(b.at).Seconds(); elapsed > 0 {
		b.used, b.at = max(0, b.used-elapsed*perSecond), now
	}
}

// ask notes that n are asked for. The caller has mu.
func (b *bucket) ask(n float64, now time.Time) {
	b.asked += n
	b.last = now
}

// take takes n out of the bucket, if there are as many in it.
func (b *bucket) take(n, perSecond float64, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(perSecond, now)
	b.ask(n, now)
	if b.used+n > max(perSecond, 1) {
		return false
	}
	b.used += n
	return true
}

// owe takes n out of the bucket, also more than is in it: for what is only known when
// it was used.
func (b *bucket) owe(n, perSecond float64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(perSecond, now)
	b.ask(n, now)
	b.used += n
}

// lack returns for how long there is nothing in the bucket because of what it owes.
func (b *bucket) lack(perSecond float64, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(perSecond, now)
	b.last = now
	lack := time.Duration(max(0, b.used-perSecond) / perSecond * float64(time.Second))
	b.wanting = b.wanting || lack > 0
	return lack
}

// resize has other rates hold from now on: what is in the bucket stays in it, as far as it
// has room, and so much of what the rate grew by comes into it. It returns what there was
// no room for.
func (b *bucket) resize(from, to, once float64, now time.Time) (back float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(from, now)
	left, room := max(from, 1)-b.used, max(to, 1)
	b.used = room - min(left+once, room)
	return max(0, left-room)
}

// demand returns how much was asked for in a second since it was called last, which is not
// much less than what it returned then if that was a moment ago; whether somebody waited; and
// for how long nothing was asked for.
func (b *bucket) demand(now time.Time) (perSecond float64, waited bool, still time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	elapsed := time.Second
	if !b.since.IsZero() {
		elapsed = max(now.Sub(b.since), shortestDemand)
	}
	before := b.lately
	if b.lately = b.asked / elapsed.Seconds(); elapsed < time.Second {
		b.lately = max(b.lately, before/2)
	}
	if still = now.Sub(b.last); still >= stillAfter {
		b.lately = 0
	}
	waited = b.wanting
	b.asked, b.since, b.wanting = 0, now, false
	return b.lately, waited, still
}

// still returns for how long nothing was asked for.
func (b *bucket) still(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Sub(b.last)
}

// shortestDemand is over how long at least a demand is measured.
const shortestDemand = 100 * time.Millisecond
