package stores

import (
	"context"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// A Store is what a world steps.
type Store interface {
	Open(spec driver.BoardSpec) (driver.BoardStatus, error)
	Apply(host int, op *driver.Op) driver.Result
	Read(ids []job.ID, parts driver.Parts) ([]driver.Record, error)
	Count() (driver.Counts, error)

	// Scan returns all of a set, and where a watch goes on from it.
	Scan(req driver.ScanRequest) ([]driver.Record, driver.Position, error)

	// Since is one step of a watch. It is not called where nothing is new.
	Since(after driver.Position) (driver.Changes, error)

	Close()
}

// A Crasher is a Store whose process can end in the middle of a write.
type Crasher interface {
	Store

	// Arm has the process end at one of the next writes: which one, and how much of it
	// is on the disk then, the two numbers say. Disarm takes that back; it reports
	// whether it happened.
	Arm(which, how uint8)
	Disarm() (crashed bool)

	// Restart ends the process, if it has not ended, and starts it with what is on the
	// disk. The board has to be opened again.
	Restart() error
}

// Read returns jobs as they stand.
func (o *Optimist) Read(ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	o.forget()
	list := make([]driver.Record, len(ids))
	for i, id := range ids {
		if list[i].Posting.ID = id; o.rows[id] != nil {
			list[i] = *o.rows[id].view(parts)
		}
	}
	return list, nil
}

// Count counts.
func (o *Optimist) Count() (driver.Counts, error) {
	o.forget()
	c := driver.Counts{Tombstones: int64(len(o.stamps)), Finals: int64(len(o.finals)), Limits: o.sums}
	for _, r := range o.rows {
		switch {
		case r.record.State == job.Complete:
			c.Ended++
			if r.final {
				c.FinalBytes += r.size
			}
		case r.record.State == job.Trashed:
			c.Trashed++
		case r.holder != nil:
			c.Claimed++
			c.Open++
		default:
			c.Open++
		}
	}
	return c, nil
}

// Scan returns the jobs of a set.
func (o *Optimist) Scan(req driver.ScanRequest) ([]driver.Record, driver.Position, error) {
	o.forget()
	var list []driver.Record
	for _, r := range o.rows {
		set := driver.OpenJobs
		switch r.record.State {
		case job.Trashed:
			set = driver.TrashedJobs
		case job.Complete:
			set = driver.EndedJobs
		case job.Unknown, job.Unclaimed, job.Claimed:
		}
		if set == req.Set {
			list = append(list, *r.view(req.Parts))
		}
	}
	slices.SortFunc(list, func(a, b driver.Record) int {
		if req.NewestFirst && req.Set != driver.OpenJobs {
			a, b = b, a
		}
		if req.Set == driver.OpenJobs {
			return int(a.Posting.Sequence) - int(b.Posting.Sequence)
		}
		return int(a.Position) - int(b.Position)
	})
	return list, o.position, nil
}

// Since is one step of a watch.
func (o *Optimist) Since(after driver.Position) (driver.Changes, error) {
	c := driver.Changes{Position: o.position}
	oldest := o.position
	if len(o.changes) > 0 {
		oldest = o.changes[0].Position - 1
	}
	if after > o.position || after < oldest {
		c.Resync = true
		return c, nil
	}
	for _, change := range o.changes {
		if change.Position > after {
			c.List = append(c.List, change)
		}
	}
	return c, nil
}

// Close does nothing.
func (o *Optimist) Close() {}

// board is the name of the one board.
const board = "b"

// driven is a driver as a Store, for which a host is as good as another.
type driven struct{ driver.Driver }

// NewReference returns package memdriver as a Store.
func NewReference() Store {
	d, err := memdriver.Open(context.Background(), driver.Config{})
	if err != nil {
		panic(err) // it has no reason to fail
	}
	return driven{d}
}

func (d driven) Open(spec driver.BoardSpec) (driver.BoardStatus, error) {
	return d.OpenBoard(context.Background(), spec)
}

func (d driven) Apply(_ int, op *driver.Op) driver.Result {
	return d.Driver.Apply(context.Background(), board, []driver.Op{*op})[0]
}

func (d driven) Read(ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	return d.Driver.Read(context.Background(), board, ids, parts)
}

func (d driven) Count() (driver.Counts, error) { return d.Driver.Count(context.Background(), board) }

func (d driven) Scan(req driver.ScanRequest) (list []driver.Record, from driver.Position, err error) {
	for {
		next := ""
		for page, err := range d.Driver.Scan(context.Background(), board, req) {
			if err != nil {
				return nil, 0, err
			}
			list, from, next = append(list, page.Records...), page.Position, page.Next
		}
		if req.Limit == 0 || next == "" {
			return list, from, nil
		}
		req.After = next
	}
}

func (d driven) Since(after driver.Position) (driver.Changes, error) {
	for step, err := range d.Watch(context.Background(), board, after) {
		return step, err
	}
	return driver.Changes{}, job.Errorf(job.Internal, "a watch ended by itself")
}

func (d driven) Close() { _ = d.Driver.Close() } // it only ends streams
