package stay_test

import (
	"testing"
	"time"

	"github.com/boardd/boardd/host/stay"
)

// TestGone has a document be gone again and again: it stays for longer until the store's clock may
// be ahead by a day, and no longer.
func TestGone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := stay.For(time.Minute)
	if got := s.From(now).Sub(now); got != time.Minute {
		t.Errorf("a document stays for %v at first", got)
	}
	more := time.Minute
	for range 11 { // the last by 2^10 minutes
		stays, longer := s.Gone()
		if !longer || stays != time.Minute+more || s.From(now).Sub(now) != stays {
			t.Fatalf("a document that was gone stays for %v (longer: %v), to %v: want %v", stays, longer, s.From(now).Sub(now), time.Minute+more)
		}
		more *= 2
	}
	for _, want := range []bool{true, false} {
		stays, longer := s.Gone()
		if longer != want || stays != time.Minute+stay.Longest {
			t.Errorf("a document stays for %v (longer: %v), want %v (%v)", stays, longer, time.Minute+stay.Longest, want)
		}
	}
}
