package store

import (
	"testing"
	"time"
)

// TestLeftOf checks what PTTL means for a claim. A key that lasts less than a millisecond
// is there, and its claim may still be extended.
func TestLeftOf(t *testing.T) {
	t.Parallel()
	for said, want := range map[time.Duration]time.Duration{-2: 0, -1: -1, 0: time.Millisecond, time.Hour: time.Hour} {
		if got := leftOf(said); got != want {
			t.Errorf("PTTL says %d: %v are left, want %v", said, got, want)
		}
	}
}
