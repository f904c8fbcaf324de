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
	b.sweepKeys(2*len(keys), id, now)
}

// pace counts a claim in its rates.
func (b *board) pace(rates []driver.Rate, id job.ID, now time.Time) {
	for i := range rates {
		name := transition.RateName(rates[i].Key)
		b.keys[name] = transition.Pace(&rates[i], now, b.keys[name])
	}
	b.sweepKeys(2*len(rates), id, now)
}

// sweepKeys looks at so many keys, but for those of a job that has just taken its own.
func (b *board) sweepKeys(looks int, id job.ID, now time.Time) {
	for name := range b.keys { // in no order
		if looks--; looks < 0 {
			return
		}
		if kept, onBoard, _ := b.Entry(name); kept.Job != id && kept.Dead(onBoard, now) {
			delete(b.keys, name)
		}
	}
}
