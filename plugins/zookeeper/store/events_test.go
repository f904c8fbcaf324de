package store

import (
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestExtensionComesLast has an extension that was found out late share the position of
// another change. Whoever goes on from there has seen that change.
func TestExtensionComesLast(t *testing.T) {
	t.Parallel()
	e := events{max: 10, changed: make(chan struct{})}
	e.waiting = []driver.Change{
		{Event: job.Extended, Job: job.ID{1}, Position: 7},
		{Event: job.ClaimedEvent, Job: job.ID{2}, Position: 7},
		{Event: job.Posted, Job: job.ID{2}, Position: 6},
	}
	e.tell(7)
	for i, want := range []job.EventType{job.Posted, job.ClaimedEvent, job.Extended} {
		if len(e.list) != 3 || e.list[i].Event != want {
			t.Fatalf("the changes are %+v: want %v as number %d", e.list, want, i)
		}
	}
}
