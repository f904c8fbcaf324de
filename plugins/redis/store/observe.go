package store

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/job"
)

// observe is Watch on a board to which nothing may be written, so that what
// other programs did can't be put into our own records: this host compares what
// it sees with what it saw. Hosts that serve the board leave their changes in
// its stream.
func (b *board) observe(ctx context.Context, st *opening, after driver.Position, yield func(driver.Changes) bool) error {
	woken, stop := b.store.wakes.watch(st.keys.wake, "")
	defer stop()
	o := b.newObserver(ctx, st, after, woken, yield)
	defer func() { o.notices.stop() }()
	err := o.rest(ctx, 0)
	for err == nil {
		if time.Now().After(o.next) {
			err = o.pass(ctx)
		}
		if err == nil {
			err = o.rest(ctx, sweepTime)
		}
	}
	return err
}

// An observer compares the jobs of a board with what a watcher was told.
type observer struct {
	board   *board
	opening *opening
	tail    *tail
	woken   <-chan struct{} // something came into the stream
	notices *notices
	jobs    poll.Jobs // what the watcher was told
	next    time.Time // when all jobs are looked at again
	yield   func(driver.Changes) bool
}

func (b *board) newObserver(ctx context.Context, st *opening, after driver.Position, woken <-chan struct{}, yield func(driver.Changes) bool) *observer {
	shifted := func(c driver.Changes) bool {
		for i := range c.List {
			c.List[i].Position = driver.Position(b.shift(uint64(c.List[i].Position)))
		}
		c.Position = driver.Position(b.shift(uint64(c.Position)))
		return yield(c)
	}
	return &observer{
		board: b, opening: st, tail: &tail{board: b, opening: st, position: b.unshift(uint64(after)), yield: shifted},
		woken: woken, notices: b.store.listen(ctx, &st.keys), yield: yield,
	}
}

// rest waits, and tells meanwhile of what it need not search for.
func (o *observer) rest(ctx context.Context, d time.Duration) error {
	patience := sweepTime
	if o.notices.on() {
		patience = noticeTime
	}
	for end := time.Now().Add(d); ; {
		err := o.tail.catchUp(ctx)
		if err == nil {
			err = o.named(ctx)
		}
		left := time.Until(end)
		if err != nil || left <= 0 {
			return err
		}
		if err := o.board.wait(ctx, o.opening, o.woken, min(left, patience)); err != nil {
			return err
		}
	}
}

// named tells of the jobs that notifications named.
func (o *observer) named(ctx context.Context) error {
	ids, more := o.notices.take()
	if more {
		o.next = time.Time{}
	}
	return o.look(ctx, ids)
}

// read reads the jobs of some listings, and adds those that cannot be read to a list.
func (o *observer) read(ctx context.Context, steps []listing, unreadable *[]unreadField) (page driver.Page, err error) {
	for len(steps) > 0 {
		n := firstPage(steps, sweepCount)
		if err := o.board.showOpen(ctx, o.opening, 0, steps[:n], &page, unreadable); err != nil {
			return page, err
		}
		steps = steps[n:]
	}
	return page, nil
}

// pass goes through the board once.
func (o *observer) pass(ctx context.Context) error {
	begun, pace := time.Now(), pace{budget: o.board.store.looking}
	shown := o.board.takeShown()
	seen := map[job.ID]bool{}
	var unreadable []unreadField
	count := firstCount
	for at := (place{start: o.tail.position}); ; {
		asked := time.Now()
		steps, cursor, err := o.board.listings(ctx, o.opening, at, count)
		if err != nil {
			return err
		}
		count = stepOf(sizeOf(steps), len(steps), sweepCount)
		page, err := o.read(ctx, steps, &unreadable)
		if err != nil {
			return err
		}
		// All the time that it took, with the network's: less is asked of a store that
		// is only to be looked at.
		pace.busy, pace.looked = pace.busy+time.Since(asked), pace.looked+len(page.Records)
		var changes []driver.Change
		for i := range page.Records {
			r := &page.Records[i]
			seen[r.Posting.ID] = true
			changes = o.news(changes, r)
		}
		if err := o.tell(changes); err != nil {
			return err
		}
		if at.cursor = cursor; cursor == 0 {
			break
		}
		if err := o.rest(ctx, pace.rest()); err != nil {
			return err
		}
	}
	o.board.bad.replace(unreadable)
	o.next = begun.Add(sweepTime)
	var missing []string
	for _, id := range o.jobs.Missing(shown, seen) {
		missing = append(missing, id.String())
	}
	return o.look(ctx, missing)
}

// look looks at some jobs, and tells of those that differ from what was told, or are not
// on the board any more.
func (o *observer) look(ctx context.Context, ids []string) error {
	for len(ids) > 0 {
		n := min(readAtOnce, len(ids))
		stored, at, err := o.board.lookAt(ctx, o.opening, ids[:n], nil, 0)
		if err != nil {
			return err
		}
		var changes []driver.Change
		for i := range stored {
			r, err := stored[i].record(at, 0)
			if err == nil && r == nil {
				r = &driver.Record{State: job.Complete, Outcome: job.Consumed, EndedAt: at.now, ModifiedAt: at.now, Version: 1}
				r.Posting.ID, _ = job.ParseID(ids[i])
			}
			if err != nil {
				continue // what cannot be read is told of elsewhere
			}
			changes = o.news(changes, r)
		}
		if err := o.tell(changes); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// news adds what to tell of a job as it was seen, if that is news. It has a position that
// only this host counts.
func (o *observer) news(changes []driver.Change, r *driver.Record) []driver.Change {
	event := o.jobs.News(r, time.Now())
	if event == job.NoEvent {
		return changes
	}
	c := driver.Change{
		Event: event, Job: r.Posting.ID, Position: driver.Position(o.tail.position + o.board.virtual.Add(1)),
		At: r.ModifiedAt, Record: r,
	}
	if r.Holder != nil {
		c.Owner = r.Holder.Owner
	}
	return append(changes, c)
}

func (o *observer) tell(changes []driver.Change) error {
	if len(changes) > 0 && !o.yield(driver.Changes{List: changes, Position: driver.Position(o.board.shift(o.tail.position))}) {
		return errStopped
	}
	return nil
}

// show remembers which jobs an observed board's scans have shown, so that their
// end is not missed.
func (b *board) show(records []driver.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown == nil {
		b.shown = map[job.ID]bool{}
	}
	for i := range records {
		b.shown[records[i].Posting.ID] = true
	}
}

func (b *board) takeShown() map[job.ID]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	shown := b.shown
	b.shown = nil
	return shown
}
