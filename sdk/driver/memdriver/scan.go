package memdriver

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const pageSize = 256

// A mark is a job's place in a scan: its sequence, or when it ended.
type mark struct {
	place uint64
	id    job.ID
}

func (s *store) Scan(ctx context.Context, name string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		b, err := s.board(name)
		if err != nil {
			yield(driver.Page{}, err)
			return
		}
		marks, start, err := b.marks(req)
		if err != nil {
			yield(driver.Page{}, err)
			return
		}
		left := req.Limit
		if left <= 0 {
			left = len(marks)
		}
		for {
			if err := ended(ctx); err != nil {
				yield(driver.Page{}, err)
				return
			}
			n := min(pageSize, left, len(marks))
			page := b.page(req, marks[:n])
			page.Position = start
			if n < len(marks) {
				page.Next = fmt.Sprintf("%d.%d", start, marks[n-1].place)
			}
			marks, left = marks[n:], left-n
			if !yield(page, nil) || len(marks) == 0 || left == 0 {
				return
			}
		}
	}
}

// marks returns what a scan will go through, in order, and the position that
// its first page was begun at.
func (b *board) marks(req driver.ScanRequest) ([]mark, driver.Position, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(time.Now())
	start, after := b.position, uint64(0)
	if req.After != "" {
		if n, err := fmt.Sscanf(req.After, "%d.%d", &start, &after); n != 2 || err != nil {
			return nil, 0, job.Errorf(job.Invalid, "%q is not where a page of this driver ended", req.After)
		}
	}
	newest := req.NewestFirst && req.Set != driver.OpenJobs
	var marks []mark
	add := func(id job.ID, place uint64) {
		if req.After == "" || place > after && !newest || place < after && newest {
			marks = append(marks, mark{place, id})
		}
	}
	switch req.Set {
	case driver.OpenJobs, driver.TrashedJobs:
		for id, e := range b.jobs {
			if (e.record.State == job.Trashed) != (req.Set == driver.TrashedJobs) {
				continue
			}
			if req.Set == driver.TrashedJobs {
				add(id, uint64(e.record.Position))
			} else {
				add(id, e.record.Posting.Sequence)
			}
		}
	case driver.EndedJobs:
		for id, p := range b.ended {
			add(id, uint64(p.record.Position))
		}
	case driver.CorruptJobs: // there are none
	default:
		return nil, 0, job.Errorf(job.Invalid, "there is no set %d", req.Set)
	}
	slices.SortFunc(marks, func(a, b mark) int {
		if newest {
			a, b = b, a
		}
		return cmp.Compare(a.place, b.place)
	})
	return marks, start, nil
}

// page reads those of the marked jobs that are still in the set.
func (b *board) page(req driver.ScanRequest, marks []mark) driver.Page {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	page := driver.Page{Records: make([]driver.Record, 0, len(marks))}
	for _, m := range marks {
		r := b.find(m.id, now, req.Parts)
		if r != nil && setOf(r.State) == req.Set {
			page.Records = append(page.Records, *r)
		}
	}
	return page
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
