package board

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// endedJobs is how many jobs of a batch came to which end. As a difference of two counts it may
// be below zero.
type endedJobs struct {
	Consumed int64 `json:"consumed,omitempty"`
	Canceled int64 `json:"canceled,omitempty"`
	Failed   int64 `json:"failed,omitempty"`
	Purged   int64 `json:"purged,omitempty"`
}

// and is what a store counts together with what it does not know.
func (e *endedJobs) and(g *driver.Group) *driver.Group {
	sum := *g
	sum.Consumed += e.Consumed
	sum.Canceled += e.Canceled
	sum.Failed += e.Failed
	sum.Purged += e.Purged
	return &sum
}

// moved is what becomes of a record in another store. A batch that this one does not know to be
// closed, although it was done, is to be closed there, and looked at again; it was followed.
func (r *batchRecord) moved(closed bool) {
	if !r.Done.IsZero() && !closed {
		r.Closed, r.Done, r.Followed = true, time.Time{}, r.Then != nil
	}
}

// compared adds to a record what the old store knows of the batch and the new one does not: the
// ends of jobs of which nothing came along, as they were purged or forgotten, and that the batch
// was followed.
func (r *batchRecord) compared(here, there *driver.Group) {
	all := r.Before.and(here)
	r.Before = endedJobs{
		Consumed: all.Consumed - there.Consumed, Canceled: all.Canceled - there.Canceled,
		Failed: all.Failed - there.Failed, Purged: all.Purged - there.Purged,
	}
	r.Followed = r.Followed || r.Then != nil && here.Followed
}

// uncounted is the error of a batch that is not done, and cannot come along.
func uncounted(name string) error {
	return job.Errorf(job.Unsupported, "the batch %.80q is not done, and the other store counts no batches", name)
}

// batches makes the records of batches, among settings that are brought, what they are in the
// new store. Once the board is frozen, and its jobs are there, both stores are asked how the
// batches stand.
func (c *Copy) batches(ctx context.Context, page []driver.Document) error {
	var at []int
	var records []batchRecord
	var ops []driver.Op
	for i := range page {
		var r batchRecord
		name, is := strings.CutPrefix(page[i].Name, batchPrefix)
		if is && json.Unmarshal(page[i].Data, &r) == nil {
			if r.Done.IsZero() && !c.Target.Capabilities.Groups {
				if err := c.ended(ctx, name, &r); err != nil {
					return err
				}
			}
			at, records, ops = append(at, i), append(records, r), append(ops, driver.Op{Kind: driver.Tally, Group: name})
		}
	}
	var here, there []*driver.Group
	var err error
	compared := !c.Frozen.IsZero() && c.Target.Capabilities.Groups
	if compared {
		if here, err = c.tallies(ctx, c.From, ops); err == nil {
			there, err = c.closed(ctx, ops, here)
		}
		if err != nil {
			return err
		}
	}
	for k, r := range records {
		r.moved(compared && there[k].Closed)
		if compared {
			r.compared(here[k], there[k])
		}
		if r == records[k] {
			continue
		}
		if page[at[k]].Data, err = json.Marshal(&r); err != nil {
			return &job.Error{Op: "move batch", Kind: job.Internal, Err: err}
		}
	}
	return nil
}

// ended refuses a batch that is not done. Its record may not say yet that it is, since that is
// written after the last job's end: the store knows it first.
func (c *Copy) ended(ctx context.Context, name string, r *batchRecord) error {
	groups, err := c.tallies(ctx, c.From, []driver.Op{{Kind: driver.Tally, Group: name}})
	switch {
	case err != nil:
		return err
	case !groups[0].Closed, groups[0].Open > 0, r.Then != nil && !groups[0].Followed:
		return uncounted(name)
	}
	r.Closed, r.Followed = true, r.Then != nil
	return nil
}

// closed closes those groups in the new store that the old one knows to be closed, so that they
// take no jobs there from the beginning, and returns how all of them stand there. A driver that
// closes none while a board receives leaves it to the server that opens the board.
func (c *Copy) closed(ctx context.Context, ops []driver.Op, here []*driver.Group) ([]*driver.Group, error) {
	closing := slices.Clone(ops)
	for i, g := range here {
		if g.Closed {
			closing[i].Close, closing[i].Import = true, &driver.Import{Move: c.Move}
		}
	}
	there, err := c.tallies(ctx, c.To, closing)
	if kind := job.KindOf(err); kind == job.Invalid || kind == job.Unsupported {
		return c.tallies(ctx, c.To, ops)
	}
	return there, err
}

// tallies asks a store how groups stand, or changes that.
func (c *Copy) tallies(ctx context.Context, of driver.Driver, ops []driver.Op) (list []*driver.Group, err error) {
	for part := range slices.Chunk(ops, max(1, c.Target.Capabilities.MaxBatch)) {
		results := of.Apply(ctx, c.Key, part)
		if len(results) != len(part) {
			return nil, job.Errorf(job.Internal, "the driver broke its contract: it did not answer each op")
		}
		for i := range results {
			group, err := groupOf(&results[i])
			if err != nil {
				return nil, err
			}
			list = append(list, group)
		}
	}
	return list, nil
}
