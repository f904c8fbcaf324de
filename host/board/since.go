package board

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// sincePage is how many jobs in a row that were known before end a look into the past.
const sincePage = 500

// EndedSince returns an event for each job that went to the trash or ended after a cursor and
// is still there or remembered, in the order of the events. It is for who was told to Resync:
// a job that left the trash again since is not among them. If the cursor is not of the board's
// present generation, since counts, a time on the store's clock, in place of it.
func (b *Board) EndedSince(ctx context.Context, from string, since time.Time) ([]job.Event, error) {
	if _, err := b.serving(ctx); err != nil {
		return nil, err
	}
	at, err := parseCursor(from)
	if err != nil {
		return nil, err
	}
	now := b.hub.now()
	p := past{board: b, generation: now.generation, since: since}
	if at.generation == now.generation && at.position <= now.position {
		p.after = at.position
	}
	for _, set := range []driver.Set{driver.TrashedJobs, driver.EndedJobs} {
		if err := p.scan(ctx, set); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(p.found, func(a, b placed) int { return byPosition(a.change, b.change) })
	events := make([]job.Event, len(p.found))
	for i := range p.found {
		events[i] = p.found[i].event
	}
	return events, nil
}

// OpenInStore returns the open jobs that the store has, also those of which this host has not
// heard yet, each as far as it can be read.
func (b *Board) OpenInStore(ctx context.Context) iter.Seq2[*job.Job, error] {
	return func(yield func(*job.Job, error) bool) {
		if _, err := b.serving(ctx); err != nil {
			yield(nil, err)
			return
		}
		now := time.Now()
		for page, err := range b.driver.Scan(ctx, b.spec.Key, driver.ScanRequest{Set: driver.OpenJobs}) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Records {
				if rec := &page.Records[i]; rec.State != job.Unknown && !yield(b.jobOfRecord(rec, now), nil) {
					return
				}
			}
		}
	}
}

// past is a look at what went to the trash or ended after a place in the board's history.
type past struct {
	board      *Board
	generation uint64
	after      driver.Position // 0: that is not known, and since counts
	since      time.Time
	found      []placed
}

// placed is an event with its place.
type placed struct {
	change driver.Change // its position alone
	event  job.Event
}

func (p *past) scan(ctx context.Context, set driver.Set) error {
	known, now := 0, time.Now()
	req := driver.ScanRequest{Set: set, NewestFirst: true, Parts: driver.FinalData}
	for page, err := range p.board.driver.Scan(ctx, p.board.spec.Key, req) {
		if err != nil {
			return err
		}
		for i := range page.Records {
			rec := &page.Records[i]
			if p.before(rec) {
				known++
				continue
			}
			known = 0
			if event, ok := p.event(rec, now); ok {
				p.found = append(p.found, placed{driver.Change{Position: rec.Position}, event})
			}
		}
		if known >= sincePage {
			return nil
		}
	}
	return nil
}

// before reports whether a job was where it is before what is looked for.
func (p *past) before(rec *driver.Record) bool {
	if p.after > 0 {
		return rec.Position <= p.after
	}
	return rec.EndedAt.Before(p.since)
}

func (p *past) event(rec *driver.Record, now time.Time) (job.Event, bool) {
	e := job.Event{Job: p.board.jobOfRecord(rec, now), At: record.Shown(rec.EndedAt), Cursor: cursor{p.generation, rec.Position}.String()}
	e.Reason = e.Job.LastReason
	switch {
	case rec.State == job.Trashed:
		e.Type, e.Exhausted = job.TrashedEvent, exhausted(rec)
	case rec.State != job.Complete || rec.Outcome == job.Purged:
		return job.Event{}, false
	case rec.Outcome == job.Canceled:
		e.Type = job.CanceledEvent
	default:
		e.Type = job.ConsumedEvent
	}
	return e, true
}

// exhausted reports whether a job is in the trash because its attempts ran out.
func exhausted(rec *driver.Record) bool {
	if rec == nil || rec.State != job.Trashed {
		return false
	}
	s, err := record.ReadStatus(rec.Status)
	return err == nil && s.Exhausted
}
