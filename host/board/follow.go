package board

import (
	"context"
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// follow puts a step of the watch into the index and tells the board's own
// watchers.
func (f *follower) follow(ctx context.Context, changes *driver.Changes) {
	list := changes.List
	if !slices.IsSortedFunc(list, byPosition) {
		list = slices.SortedStableFunc(slices.Values(list), byPosition) // the driver's is not ours to change
	}
	f.fill(ctx, list)
	now := time.Now()
	items := make([]item, len(list))
	var news []*index.Entry
	for i := range list {
		c := &list[i]
		items[i] = item{event: c.Event, id: c.Job, position: c.Position, at: c.At, reason: c.Reason, owner: c.Owner, record: c.Record}
		f.board.logs.changed(c)
		if c.Record != nil && !isOpen(c.Record.State) {
			f.board.waiting.ended(c.Job)
		}
		whole := c.Record != nil && !c.Sparse
		known := c.Record != nil && f.board.index.Known(c.Job, c.Position) // most changes: this host made them, or has seen a later one
		if whole && known {
			if !isOpen(c.Record.State) {
				f.board.leaving.remove(c.Job)
			}
			continue
		}
		if !whole && len(news) > 0 {
			f.board.index.PutAll(news) // what was said of the job before must be known by now
			news = news[:0]
		}
		e, open := f.entryAfter(c, now)
		if !whole {
			items[i].entry = e
		}
		switch {
		case known:
		case open && e != nil:
			news = append(news, e)
		case !open:
			f.board.index.PutAll(news)
			news = news[:0]
			f.board.index.Remove(c.Job, c.Position)
		}
	}
	f.board.index.PutAll(news)
	f.board.hub.publish(items, changes.Position)
	f.board.tell(items)
	f.board.hands.heard(items)
	f.board.shadowServed(items)
	f.board.index.Forget(f.board.flight.horizon(changes.Position))
}

func byPosition(a, b driver.Change) int {
	switch {
	case a.Position < b.Position:
		return -1
	case a.Position > b.Position:
		return 1
	}
	return 0
}

// fill reads the jobs that a sparse change is about and that the index does not
// know, and those of which a change says nothing at all. A read that fails
// leaves them out: the job's next change finds them.
func (f *follower) fill(ctx context.Context, list []driver.Change) {
	if !slices.ContainsFunc(list, func(c driver.Change) bool { return c.Record == nil || c.Sparse && isOpen(c.Record.State) }) {
		return
	}
	var ids []job.ID
	told := make(map[job.ID]struct{})
	for i := range list {
		c := &list[i]
		switch {
		case c.Record != nil && !isOpen(c.Record.State):
		case c.Record != nil && !c.Sparse:
			told[c.Job] = struct{}{}
		case slices.Contains(ids, c.Job):
		case c.Record == nil:
			ids = append(ids, c.Job)
		default:
			if _, ok := told[c.Job]; ok || f.board.index.Known(c.Job, 0) {
				continue
			}
			ids = append(ids, c.Job)
		}
	}
	if len(ids) == 0 {
		return
	}
	if _, err := f.board.readNoted(ctx, ids, 0, f.board.absorb); err != nil {
		f.board.log.Warn("jobs that changed cannot be read", "jobs", len(ids), "error", err)
	}
}

func isOpen(s job.State) bool { return s == job.Unclaimed || s == job.Claimed }

// entryAfter returns what is known of a job after a change, and whether it is on
// the board. A job that left has the entry that it had.
func (f *follower) entryAfter(c *driver.Change, now time.Time) (*index.Entry, bool) {
	rec := c.Record
	if rec != nil && !c.Sparse {
		e := f.board.entryOf(rec, now)
		e.Position = max(e.Position, c.Position)
		if !isOpen(rec.State) {
			f.board.leaving.remove(c.Job)
		}
		return e, isOpen(rec.State)
	}
	e, known := f.board.index.Get(c.Job)
	if rec != nil && !isOpen(rec.State) {
		if left := f.board.leaving.remove(c.Job); !known {
			e = left
		}
		return e, false
	}
	if !known {
		return nil, true
	}
	if rec == nil {
		return e, true
	}
	f.board.renew(e, rec, ownPriority(e), now) // even if the index has newer news: the event is about this change
	e.Position = max(rec.Position, c.Position)
	return e, true
}
