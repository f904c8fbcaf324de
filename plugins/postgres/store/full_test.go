package store

import (
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// TestFullDiskIsRemembered: a small change that is made does not show that there is room, and a
// large one does.
func TestFullDiskIsRemembered(t *testing.T) {
	t.Parallel()
	full := job.Errorf(job.QuotaExceeded, noDisk)
	now := time.Unix(1_700_000_000, 0)
	var f fullDisk
	for i, step := range []struct {
		err  error
		size int
		pass time.Duration
		want bool
	}{
		{nil, 10, 0, false},
		{full, 1000, 0, true},
		{nil, 10, time.Second, true},
		{full, 10, 0, true}, // a small one is refused, too
		{nil, 10, fullFor - time.Second, true},
		{nil, 999, 0, true},
		{job.Errorf(job.Unavailable, "x"), 5000, 0, true},
		{nil, 1000, 0, false},
		{full, 1000, 0, true},
		{nil, 10, fullFor, false}, // nobody has asked for more for long
		{full, 20, 0, true},
		{nil, 20, 0, false},
	} {
		now = now.Add(step.pass)
		f.note(step.err, step.size, now)
		if got := f.is(now); got != step.want {
			t.Errorf("after step %d the disk is full: %v, want %v", i, got, step.want)
		}
	}
}
