package board

import (
	"testing"
	"time"
)

func TestComplaint(t *testing.T) {
	t.Parallel()
	var c complaint
	now := time.Now()
	for _, tc := range []struct {
		after time.Duration // the one before
		text  string
		want  bool
	}{
		{0, "a", true},
		{time.Second, "a", false},
		{28 * time.Second, "a", false},
		{time.Second, "a", true},
		{59 * time.Second, "a", false},
		{time.Second, "a", true},
		{time.Second, "b", true},
		{29 * time.Second, "b", false},
		{time.Second, "b", true},
		{time.Second, "a", true},
		{48 * time.Hour, "a", true},
		{59 * time.Second, "a", false},
	} {
		now = now.Add(tc.after)
		if got := c.due(tc.text, now); got != tc.want {
			t.Errorf("%q after %v: got %v, want %v", tc.text, tc.after, got, tc.want)
		}
	}
}
