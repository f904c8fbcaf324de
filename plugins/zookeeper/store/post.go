package store

import (
	"context"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
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
	return a.run(ctx, func(v *view, at instant) (*change, *driver.Result, error) {
		ch, r := b.decidePost(op, v, at)
		if ch == nil {
			return nil, r, nil
		}
		ch.newNode, ch.post = data, posting
		return ch, nil, nil
	}, func(v *view, w written) driver.Result {
		r := answerTo(op, v, w)
		r.Record = v.show(b.now(), 0)
		return r
	})
}

func (b *board) decidePost(op *driver.Op, v *view, at instant) (*change, *driver.Result) {
	p := op.Posting
	if v.state(at) != job.Unknown {
		if v.posting(at).Digest != p.Digest {
			return nil, &driver.Result{Kind: job.AlreadyExists, Message: "another posting has this uuid", Record: v.show(at, 0)}
		}
		r := v.show(at, 0)
		return nil, &driver.Result{Repeated: true, Position: r.Position, Version: r.Version, At: r.Posting.CreatedAt, Record: r}
	}
	if r := b.full(); r != nil {
		return nil, r
	}
	ch := &change{
		rec:    &record{posted: true, digest: p.Digest, extra: p.Extra, limits: sharesOf(op.Limits)},
		within: op.Limits, event: op.Event, reason: op.Reason, changed: true,
	}
	if v.rec != nil {
		ch.drop = v.rec.attached
		if v.rec.place == purged {
			ch.rec.stamps = v.rec.stamps
		}
	}
	if r := ch.write(op, at); r != nil {
		return nil, r
	}
	ch.holdOrFree(at)
	return ch, nil
}

// full refuses a post when the board has as many jobs as it may.
func (b *board) full() *driver.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tally.open < b.settings.MaxJobs {
		return nil
	}
	return &driver.Result{Kind: job.QuotaExceeded, Message: "max_jobs"}
}
