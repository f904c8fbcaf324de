package store

import (
	"fmt"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// change writes a change for the watchers. A job that comes onto the board is shown
// whole; of others a watcher knows the posting.
func (w *writer) change(op *driver.Op, r *row, owner string) {
	if owner == "" {
		owner = r.owner()
	}
	whole := op.Kind == driver.Post || op.Kind == driver.Restore
	w.flags(whole)
	w.uint(uint64(op.Event))
	w.raw(r.Posting.ID[:])
	w.text(op.Reason)
	w.text(owner)
	w.byte(byte(r.State))
	w.int(r.lease)
	w.int(r.ends)
	w.record(r)
	if whole {
		w.posting(&r.Posting)
	}
}

// decodeChanges reads the changes of a batch that come after a position.
func decodeChanges(in []byte, after driver.Position, now time.Time) ([]driver.Change, error) {
	d := newReader(in)
	var list []driver.Change
	for d.err == nil && len(d.in) > 0 {
		if c := d.change(now); c.Position > after {
			list = append(list, c)
		}
	}
	if err := d.end(); err != nil {
		return nil, &job.Error{Kind: job.Corrupt, Message: "the changes of a batch cannot be read", Err: err}
	}
	return list, nil
}

func (d *reader) change(now time.Time) driver.Change {
	var whole bool
	d.flags(&whole)
	event := d.uint()
	if event > 255 {
		d.fail(fmt.Errorf("an event is %d: want at most 255", event))
	}
	c := driver.Change{Event: job.EventType(event), Sparse: !whole} //nolint:gosec // checked
	d.raw(c.Job[:])
	c.Reason, c.Owner = d.text(), d.text()
	r := &row{}
	r.State, r.lease, r.ends = job.State(d.upTo(byte(job.Trashed))), d.int(), d.int()
	d.record(r)
	if whole {
		d.posting(&r.Posting)
	}
	r.Posting.ID = c.Job
	r.at(now)
	c.Position, c.At, c.Record = r.Position, r.ModifiedAt, &r.Record
	return c
}
