package store

import (
	"context"
	"maps"
	"slices"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Read reads jobs from ZooKeeper, as they stand for everybody.
func (s *Store) Read(ctx context.Context, name string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	b, err := s.ready(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := b.client().Sync(ctx, b.at.Board); err != nil {
		return nil, err
	}
	if err := b.left(ctx); err != nil {
		return nil, err
	}
	records := make([]driver.Record, len(ids))
	work := make([]func(context.Context) error, len(ids))
	for i, id := range ids {
		work[i] = func(ctx context.Context) error {
			r, err := b.readJob(ctx, id, parts)
			if err == nil {
				records[i] = *r
			}
			return err
		}
	}
	if err := together(ctx, work); err != nil {
		if ended := alive(ctx); ended != nil {
			return nil, ended
		}
		return nil, err
	}
	return records, nil
}

// readJob reads a job with parts of it. One that changes between the two is read
// again.
func (b *board) readJob(ctx context.Context, id job.ID, parts driver.Parts) (*driver.Record, error) {
	var err error
	for range maxReads {
		var v *view
		if v, err = b.steady(ctx, id, anywhere); err != nil {
			return nil, err
		}
		if v.slim { // somebody else was faster, and what is known has no final record
			err = job.Errorf(job.Unavailable, "job %v is read by many: it could not be read whole", id)
			continue
		}
		r := v.show(b.now(), parts)
		if problem := b.unreadable(id); problem != "" {
			return &driver.Record{Posting: driver.Posting{ID: id}, Corrupt: problem}, nil
		}
		if err = b.fill(ctx, r, v, parts); err == nil || !session.NoNode(err) {
			return r, err
		}
	}
	return nil, err
}

// fill adds the parts of a job that a view does not hold.
func (b *board) fill(ctx context.Context, r *driver.Record, v *view, parts driver.Parts) error {
	if parts&driver.Details != 0 && (r.State == job.Unclaimed || r.State == job.Claimed || r.State == job.Trashed) {
		details, err := b.details(ctx, v)
		if err != nil {
			return err
		}
		r.Posting.Details = details
	}
	if parts&driver.Attached == 0 || v.rec == nil || r.State == job.Unknown {
		return nil
	}
	if v.rec.place == ended && !v.rec.end.final(b.now()) {
		return nil
	}
	for _, name := range v.rec.attached {
		node, err := b.client().Get(ctx, b.at.attached(v.id, name))
		if err != nil {
			return err
		}
		r.Attached = append(r.Attached, driver.Attachment{Name: name, Data: node.Data})
	}
	return nil
}

// details reads the details of a job on the board or in the trash.
func (b *board) details(ctx context.Context, v *view) ([]byte, error) {
	path := b.at.Job(v.node)
	if v.node == "" {
		path = v.rec.trash
	}
	node, err := b.client().Get(ctx, path)
	if session.NoNode(err) && v.node == "" {
		record, lost := b.client().Exists(ctx, b.at.record(v.id))
		if lost == nil && record != nil && uint64(record.Mzxid) == v.recZxid {
			return nil, nil // somebody has emptied TaskFlow's trash
		}
	}
	if err != nil {
		return nil, err
	}
	p, err := taskflow.DecodeZooKeeper(node.Data)
	if err != nil {
		return nil, err
	}
	if p.Details == nil {
		return []byte("{}"), nil
	}
	return slices.Clip(p.Details), nil
}

// Count counts from memory.
func (s *Store) Count(ctx context.Context, name string) (driver.Counts, error) {
	b, err := s.ready(ctx, name)
	if err != nil {
		return driver.Counts{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.past.retention
	r.refresh(b.jobs, b.instant())
	return driver.Counts{
		Open: b.tally.open, Claimed: b.tally.claimed, Trashed: b.tally.trashed, Bad: int64(len(b.bad)), Limits: maps.Clone(b.limits),
		Ended: r.ended, Tombstones: int64(len(b.past.answers)) + r.marked + r.purged, Finals: r.records, FinalBytes: r.bytes,
	}, nil
}
