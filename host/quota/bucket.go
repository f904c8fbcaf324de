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
}

// fill lets the time since the last call count. The caller has mu.
func (b *bucket) fill(perSecond float64, now time.Time) {
	if elapsed := now.Sub(b.at).Seconds(); elapsed > 0 {
		b.used, b.at = max(0, b.used-elapsed*perSecond), now
	}
}

// take takes n out of the bucket, if there are as many in it.
func (b *bucket) take(n, perSecond float64, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(perSecond, now)
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
	b.used += n
}

// lack returns for how long there is nothing in the bucket because of what it owes.
func (b *bucket) lack(perSecond float64, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(perSecond, now)
	return time.Duration(max(0, b.used-perSecond) / perSecond * float64(time.Second))
}
