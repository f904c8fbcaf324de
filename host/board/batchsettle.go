package board

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// lookAtBatches asks how batches stand, all together, and does what is to be done for some.
func (b *Board) lookAtBatches(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	opened, err := b.changing(ctx)
	if err != nil || !opened.Capabilities.Groups {
		return // all are looked at again
	}
	ops := make([]driver.Op, len(names))
	for i, name := range names {
		ops[i] = driver.Op{Kind: driver.Tally, Group: name}
	}
	for i, r := range b.send(ctx, opened, ops) {
		name := names[i]
		group, err := groupOf(&r)
		if err == nil && !b.batches.due(name, group) {
			continue
		}
		if err == nil {
			err = b.settle(ctx, opened, name, group)
		}
		if err != nil && ctx.Err() == nil {
			b.log.WarnContext(ctx, "a batch could not be closed, followed or forgotten: this is tried again", "batch", name, "error", err)
		}
		b.batches.tried(name, err)
	}
}

// settle does what is to be done for a batch that stands so. What its jobs do meanwhile the
// store sees in each step.
func (b *Board) settle(ctx context.Context, opened *driver.BoardStatus, name string, group *driver.Group) (err error) {
	var r batchRecord
	if _, err := b.readBatch(ctx, name, &r); err != nil {
		if errors.Is(err, job.NotFound) { // the watch will tell
			return nil
		}
		return err
	}
	if !group.Closed && r.Done.IsZero() && (r.Closed || r.Expected > 0 && r.Before.and(group).Posted() >= r.Expected) {
		if group, err = b.askGroup(ctx, opened, driver.Op{Kind: driver.Tally, Group: name, Close: true}); err != nil {
			return err
		}
	}
	switch {
	case !r.Done.IsZero():
		return b.forgetBatch(ctx, opened, name, &r)
	case !group.Closed || group.Open > 0:
		return nil
	}
	if r.Then != nil && !group.Followed && !r.Followed {
		if followed, err := b.followBatch(ctx, opened, name, &r); err != nil || !followed {
			return err
		}
	}
	_, err = b.changeBatch(ctx, name, func(now *batchRecord) error {
		if now.follows(r.Then) { // else there is another one since
			now.Closed, now.Followed, now.Problem = true, r.Then != nil, ""
			now.Done = time.Now().UTC().Truncate(time.Second)
		}
		return nil
	})
	b.batches.hint(name)
	return err
}

// followBatch posts what follows a batch, if no host has. It is not followed if it is not
// empty any more: a job came back from the trash. Before it is posted the record says that it
// cannot be exchanged, and no more after an error by which it was not posted.
func (b *Board) followBatch(ctx context.Context, opened *driver.BoardStatus, name string, r *batchRecord) (followed bool, err error) {
	settled := false
	if _, err := b.changeBatch(ctx, name, func(now *batchRecord) error {
		if settled = now.follows(r.Then); settled {
			now.Settled = true
		}
		return nil
	}); err != nil || !settled {
		return false, err
	}
	if followed, err = b.postThen(ctx, opened, name, r.Then); followed {
		return true, nil
	}
	_, again := b.changeBatch(ctx, name, func(now *batchRecord) error {
		if now.Settled, now.Problem = unsettled(err), ""; err != nil {
			now.Problem = job.MessageOf(err)
		}
		return nil
	})
	return false, cmp.Or(err, again)
}

// unsettled reports whether what follows a batch may have been posted although there was an error.
func unsettled(err error) bool {
	switch job.KindOf(err) {
	case job.OutcomeUnknown, job.Unavailable, job.Interrupted, job.Internal:
		return true
	default:
		return false
	}
}

// postThen posts what follows a batch. It is posted, too, if another host has done so. There is no
// error where it is not posted since the batch is not empty any more.
func (b *Board) postThen(ctx context.Context, opened *driver.BoardStatus, name string, then *job.Posting) (posted bool, err error) {
	results := make([]JobResult, 1)
	p := poster{board: b, opened: opened, results: results, room: b.room(opened), now: time.Now()}
	if err = p.prepare(ctx, 0, then); err == nil {
		p.ops[0].Emptied = name
		if err = p.postAll(ctx); err == nil {
			err = results[0].Err
		}
	}
	if errors.Is(err, job.NotEligible) {
		return false, b.closedTo(ctx, opened, then, err)
	}
	if errors.Is(err, job.AlreadyExists) { // by another host, or another job has the uuid
		if group, err := b.askGroup(ctx, opened, driver.Op{Kind: driver.Tally, Group: name}); err != nil || group.Followed {
			return err == nil, err
		}
	}
	return err == nil, err
}

// closedTo returns the error by which a store refused what follows a batch if the batch that this is
// of itself is closed, and not only the one that it follows has jobs again.
func (b *Board) closedTo(ctx context.Context, opened *driver.BoardStatus, then *job.Posting, refused error) error {
	if then.Batch == "" {
		return nil
	}
	own, err := b.askGroup(ctx, opened, driver.Op{Kind: driver.Tally, Group: then.Batch})
	switch {
	case err != nil:
		return err
	case own.Closed:
		return refused
	}
	return nil
}

// forgetBatch lets the store forget a batch that was done long ago, unless it has jobs again.
func (b *Board) forgetBatch(ctx context.Context, opened *driver.BoardStatus, name string, r *batchRecord) error {
	if time.Since(r.Done) <= BatchKept {
		return nil
	}
	if _, err := b.askGroup(ctx, opened, driver.Op{Kind: driver.Tally, Group: name, Forget: true}); err != nil {
		if errors.Is(err, job.NotEligible) { // some of its jobs are in the trash, or came back
			_, err = b.changeBatch(ctx, name, func(now *batchRecord) error {
				now.Done = time.Now().UTC().Truncate(time.Second)
				return nil
			})
		}
		return err
	}
	if err := b.deleteDocument(ctx, driver.SettingSpace, batchPrefix+name); err != nil && !errors.Is(err, job.NotFound) {
		return err
	}
	b.batches.learn(name, nil, 0)
	return nil
}
