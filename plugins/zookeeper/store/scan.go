package store

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const pageSize = 256

// A mark is a job's place in a scan: for open jobs when it came onto the board,
// for the others their last change.
type mark struct {
	place uint64
	id    job.ID
}

func (m mark) compare(o mark) int {
	switch {
	case m.place < o.place:
		return -1
	case m.place > o.place:
		return 1
	}
	return slices.Compare(m.id[:], o.id[:])
}

// Scan streams jobs from memory, and what else is asked for from ZooKeeper.
func (s *Store) Scan(ctx context.Context, name string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		b, err := s.ready(ctx, name)
		if err != nil {
			yield(driver.Page{}, err)
			return
		}
		marks, start, bad, err := b.marks(req)
		if err != nil {
			yield(driver.Page{}, err)
			return
		}
		left := req.Limit
		if left <= 0 {
			left = len(marks)
		}
		for first := true; ; first = false {
			n := min(pageSize, left, len(marks))
			page := driver.Page{Position: driver.Position(start)}
			if first && req.After == "" {
				page.Bad = bad
			}
			if page.Records, err = b.page(ctx, req, marks[:n]); err != nil {
				yield(driver.Page{}, err)
				return
			}
			if n < len(marks) {
				page.Next = fmt.Sprintf("%d.%d.%s", start, marks[n-1].place, marks[n-1].id)
			}
			marks, left = marks[n:], left-n
			if !yield(page, nil) || len(marks) == 0 || left == 0 {
				return
			}
		}
	}
}

// marks returns what a scan will go through, in order, and the position that its
// first page was begun at.
func (b *board) marks(req driver.ScanRequest) ([]mark, uint64, []driver.BadRecord, error) {
	if req.Set > driver.CorruptJobs {
		return nil, 0, nil, job.Errorf(job.Invalid, "there is no set %d", req.Set)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.instant()
	start := uint64(at.shown(b.sofar(b.upTo())))
	var after mark
	if req.After != "" {
		var text string
		n, _ := fmt.Sscanf(req.After, "%d.%d.%s", &start, &after.place, &text) // n says as much
		var err error
		if after.id, err = job.ParseID(text); n != 3 || err != nil {
			return nil, 0, nil, job.Errorf(job.Invalid, "%q is not where a page of this driver ended", req.After)
		}
	}
	newest := req.NewestFirst && req.Set != driver.OpenJobs
	var marks []mark
	for id, v := range b.jobs {
		if setOf(v.state(at)) != req.Set || v.state(at) == job.Unknown || b.bad[b.at.record(id)].problem != "" {
			continue
		}
		m := mark{v.position(), id}
		if req.Set == driver.OpenJobs {
			m.place = v.czxid
		}
		if order := m.compare(after); req.After == "" || order > 0 && !newest || order < 0 && newest {
			marks = append(marks, m)
		}
	}
	slices.SortFunc(marks, func(a, b mark) int {
		if newest {
			a, b = b, a
		}
		return a.compare(b)
	})
	return marks, start, b.badFor(req.Set), nil
}

func setOf(s job.State) driver.Set {
	switch s {
	case job.Trashed:
		return driver.TrashedJobs
	case job.Complete:
		return driver.EndedJobs
	}
	return driver.OpenJobs
}

// page shows those of the marked jobs that are still in the set.
func (b *board) page(ctx context.Context, req driver.ScanRequest, marks []mark) ([]driver.Record, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	list := make([]*driver.Record, len(marks))
	var work []func(context.Context) error
	b.mu.Lock()
	at := b.instant()
	for i, m := range marks {
		v := b.jobs[m.id]
		if v == nil || v.state(at) == job.Unknown || setOf(v.state(at)) != req.Set {
			continue
		}
		list[i] = v.show(at, req.Parts)
		if req.Parts != 0 {
			work = append(work, func(ctx context.Context) error {
				err := b.fill(ctx, list[i], v, req.Parts)
				if session.NoNode(err) || err == nil && v.slim {
					list[i], err = b.readJob(ctx, v.id, req.Parts)
					if err == nil && (list[i].State == job.Unknown || setOf(list[i].State) != req.Set) {
						list[i] = nil
					}
				}
				return err
			})
		}
	}
	b.mu.Unlock()
	if err := together(ctx, work); err != nil {
		return nil, err
	}
	records := make([]driver.Record, 0, len(list))
	for _, r := range list {
		if r != nil {
			records = append(records, *r)
		}
	}
	return records, nil
}
