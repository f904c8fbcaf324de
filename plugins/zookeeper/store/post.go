package store

import (
	"context"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
)

// post puts a job on the board: its posting in TaskFlow's folder and its record
// in one step. The record's node is named after the uuid, and that is what keeps
// a uuid from being there twice.
func (b *board) post(ctx context.Context, op *driver.Op, begin func() bool) driver.Result {
	p := op.Posting
	posting := taskflow.Posting{ID: p.ID, Name: p.Name, Priority: p.Priority, Book: p.Book, Details: p.Details, Encoding: p.Encoding}
	data, err := taskflow.EncodeZooKeeper(&posting)
	if err != nil {
		return driver.Failed(err)
	}
	posting.Details = nil
	a := newAttempt(b, p.ID, begin)
	a.known, a.search, a.view = true, recorded, b.known(p.ID)
	if a.view == nil {
		a.view = &view{id: p.ID} // if it is not, ZooKeeper says so
	}
	var plan, then transition.Plan // then is of what an imported job went through
	return a.run(ctx, func(v *view, at instant) (*change, *driver.Result, error) {
		ch, r := b.planned(op, &plan, v, at, a.fresh)
		switch {
		case ch == nil:
		case op.Import == nil:
			ch.newNode, ch.post = data, posting
		default:
			then = b.take(ch, op, &plan, v, at, data, posting)
		}
		return ch, r, nil
	}, func(v *view, w written) driver.Result {
		r := w.finish(&plan, v)
		if then.Do != 0 {
			r = transition.Imported(&then, r, w.finish(&then, v))
		}
		r.Record = v.show(b.now(), 0)
		return r
	})
}

// full reports whether the board has as many jobs as it may.
func (b *board) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tally.open >= b.settings.MaxJobs
}
