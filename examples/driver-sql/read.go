package main

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math"
	"strconv"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// look runs a transaction that reads a board. What time has taken away goes first, so
// that nobody sees it.
func (s *store) look(ctx context.Context, name string, do func(*tx) error) error {
	b, err := s.board(name)
	if err != nil {
		return err
	}
	for {
		overdue := false
		err := s.read(ctx, func(q *session) error {
			t, err := s.onBoard(q, b)
			if err != nil {
				return err
			}
			if overdue = !b.Observe && t.overdue(); overdue {
				return nil
			}
			return do(t)
		})
		if err != nil || !overdue {
			return err
		}
		err = s.write(ctx, func(q *session) error {
			t, err := s.onBoard(q, b)
			if err == nil {
				t.forget()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
}

func (s *store) Read(ctx context.Context, name string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	records := make([]driver.Record, len(ids))
	err := s.look(ctx, name, func(t *tx) error {
		for i, id := range ids {
			records[i] = driver.Record{Posting: driver.Posting{ID: id}}
			if r := t.find(id); r != nil {
				t.parts(&r.Record, parts)
				records[i] = r.Record
			}
		}
		return nil
	})
	return records, err
}

// How many records a page has at most, and how many with their larger parts.
const (
	pageSize  = 256
	pageParts = 16
)

// Scan reads the jobs of a set page by page, each in a transaction of its own, by the
// index on their places. A place is for ever, so a page goes on where another ended.
func (s *store) Scan(ctx context.Context, name string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		for left := req.Limit; ; {
			n := pageSize
			if req.Parts != 0 {
				n = pageParts
			}
			if left > 0 {
				n = min(n, left)
			}
			page, err := s.page(ctx, name, req, n)
			if !yield(page, err) || err != nil || page.Next == "" {
				return
			}
			if req.After = page.Next; left > 0 {
				if left -= len(page.Records); left == 0 {
					return
				}
			}
		}
	}
}

// page reads up to n records. Where it goes on has the position in it that the first
// page was begun at: changes from there on leave no gap.
func (s *store) page(ctx context.Context, name string, req driver.ScanRequest, n int) (page driver.Page, err error) {
	const ahead, back = "place > ? ORDER BY place", "place < ? ORDER BY place DESC"
	order, place := ahead, int64(-1)
	if req.NewestFirst && req.Set != driver.OpenJobs {
		order, place = back, math.MaxInt64
	}
	if req.Set > driver.CorruptJobs {
		return page, job.Errorf(job.Invalid, "there is no set %d", req.Set)
	}
	if req.After != "" {
		if got, err := fmt.Sscanf(req.After, "%d.%d", &page.Position, &place); got != 2 || err != nil {
			return page, job.Errorf(job.Invalid, "%q is not where a page of this driver ended", req.After)
		}
	}
	err = s.look(ctx, name, func(t *tx) error {
		if req.After == "" {
			page.Position = t.position
		}
		t.each(func(rows *sql.Rows) error {
			if len(page.Records) == n {
				page.Next = strconv.FormatUint(uint64(page.Position), 10) + "." + strconv.FormatInt(place, 10)
				return nil
			}
			var here int64
			r, err := t.scan(rows, &here)
			if err == nil {
				page.Records, place = append(page.Records, r.Record), here
			}
			return err
		}, "SELECT "+columns+", place FROM jobs WHERE board = ? AND shelf = ? AND "+order+" LIMIT ?", t.board, req.Set, place, n+1)
		for i := range page.Records {
			t.parts(&page.Records[i], req.Parts)
		}
		return nil
	})
	return page, err
}

func (s *store) Count(ctx context.Context, name string) (c driver.Counts, err error) {
	err = s.look(ctx, name, func(t *tx) error {
		state := func(s job.State) int64 { return t.count("state", strconv.Itoa(int(s))) }
		c = driver.Counts{
			Claimed: state(job.Claimed), Trashed: state(job.Trashed), Ended: state(job.Complete),
			Tombstones: t.count("stamps", ""), Finals: t.count("finals", ""), FinalBytes: t.count("bytes", ""),
			Limits: map[string]int64{},
		}
		c.Open = c.Claimed + state(job.Unclaimed)
		t.each(func(rows *sql.Rows) error {
			var key string
			var n int64
			err := rows.Scan(&key, &n)
			c.Limits[key] = n
			return err
		}, "SELECT name, n FROM counts WHERE board = ? AND what = 'limit'", t.board)
		return nil
	})
	return c, err
}
