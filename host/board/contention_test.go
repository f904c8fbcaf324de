package board

import "testing"

func TestRivals(t *testing.T) {
	t.Parallel()
	var r contention
	steps := []struct{ gone, times, want int }{
		{0, 5, 0}, // alone
		{1, 1, 1}, // the first loss
		{0, contentionParts - 1, 1},
		{0, 1, 0}, // none for a while
		{3, 1, 3},
		{100, 1, maxSpare},
		{0, contentionParts, maxSpare - 1},
	}
	for i, s := range steps {
		for range s.times {
			r.met(s.gone)
		}
		if got := r.spare(); got != s.want {
			t.Errorf("step %d: %d spare candidates, want %d", i, got, s.want)
		}
	}
}
