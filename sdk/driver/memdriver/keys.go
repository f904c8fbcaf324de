package memdriver

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// Entry is the board's, for transition.Kept. The caller holds b.mu.
func (b *board) Entry(name string) (kept transition.Entry, onBoard bool, _ error) {
	kept = b.keys[name]
	e := b.jobs[kept.Job]
	return kept, e != nil && e.record.State != job.Trashed, nil
}

// take gives a job its keys, and drops some that nobody has any more: twice as many are
// looked at as are taken, so that those of ended jobs do not pile up.
func (b *board) take(keys []driver.Key, id job.ID, now time.Time) {
	for i := range keys {
		b.keys[keys[i].Name] = transition.Take(&keys[i], id, now, b.keys[keys[i].Name])
	}
	looks := 2 * len(keys)
	for name := range b.keys { // in no order
		if looks--; looks < 0 {
			return
		}
		if kept, onBoard, _ := b.Entry(name); kept.Job != id && kept.Dead(onBoard, now) {
			delete(b.keys, name)
		}
	}
}
