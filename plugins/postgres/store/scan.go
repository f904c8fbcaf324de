package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// How many records a page has at most, and how many with their larger parts.
const (
	pageSize  = 256
	pageParts = 16
)

// Scan reads the jobs of a set page by page, each as it stands at one moment, by the
// index on their places. A place is for ever, so a page goes on where another ended.
func (s *store) Scan(ctx context.Context, name string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	return func(yield func(driver.Page, error) bool) {
		for left, bad := req.Limit, 0; ; {
			n := pageSize
			if req.Parts != 0 {
				n = pageParts
			}
			if left > 0 {
				n = min(n, left)
			}
			page, err := s.page(ctx, name, req, n)
			bad += len(page.Bad)
			if req.Set == driver.CorruptJobs && bad > driver.MaxBad {
				page.Bad, page.Next = page.Bad[:len(page.Bad)-(bad-driver.MaxBad)], ""
			}
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

// A mark is where a page begins: the position that the scan was begun at, from which on
// changes leave no gap, and the place of the last job before the page.
type mark struct {
	position driver.Position
	place    int64
}

func (m mark) String() string {
	return strconv.FormatUint(uint64(m.position), 10) + "." + strconv.FormatInt(m.place, 10)
}

// begin returns where a scan begins or goes on, and in which order.
func begin(req *driver.ScanRequest) (m mark, order string, err error) {
	order, m.place = "place > $3 ORDER BY place", -1
	if req.NewestFirst && req.Set != driver.OpenJobs && req.Set != driver.CorruptJobs {
		order, m.place = "place < $3 ORDER BY place DESC", math.MaxInt64
	}
	if req.Set > driver.CorruptJobs {
		return m, "", job.Errorf(job.Invalid, "there is no set %d", req.Set)
	}
	if req.After != "" {
		if got, err := fmt.Sscanf(req.After, "%d.%d", &m.position, &m.place); got != 2 || err != nil {
			return m, "", job.Errorf(job.Invalid, "%q is not where a page of this driver ended", req.After)
		}
	}
	return m, order, nil
}

// page reads up to n records.
func (s *store) page(ctx context.Context, name string, req driver.ScanRequest, n int) (page driver.Page, err error) {
	b, err := s.board(name)
	if err != nil {
		return page, err
	}
	if req.Set == driver.InboxPostings {
		return s.inboxPage(ctx, b, req.After, n)
	}
	from, order, err := begin(&req)
	if err != nil {
		return page, err
	}
	shelf := req.Set
	if shelf == driver.CorruptJobs {
		shelf = driver.OpenJobs
	}
	var list []*row
	last := from
	h, err := s.look(ctx, b, func(queue *pgx.Batch, h *head) {
		list, last = nil, from
		queue.Queue(s.sql(`SELECT `+rowColumns+`, place FROM {s}.jobs WHERE board = `+boardOf+` AND shelf = $2 AND `+order+` LIMIT $4`),
			[]byte(b.Name), int16(shelf), from.place, n+1). //nolint:gosec // a set has a small number
			Query(func(rows pgx.Rows) error {
				var place int64
				return eachRow(rows, h, func(r *row) {
					if list = append(list, r); len(list) <= n {
						last.place = place
					}
				}, &place)
			})
	})
	if err != nil {
		return page, err
	}
	if req.After == "" {
		last.position = driver.Position(h.position) //nolint:gosec // of a bigint
	}
	page.Position = last.position
	if len(list) > n {
		list, page.Next = list[:n], last.String()
	}
	return page, s.fill(ctx, b, &page, list, &h, &req)
}

// fill puts jobs into a page, with the parts that are wanted. Their parts are read
// later than they were: a job that has left the set meanwhile may lack some.
func (s *store) fill(ctx context.Context, b *board, page *driver.Page, list []*row, h *head, req *driver.ScanRequest) error {
	found := map[job.ID]*row{}
	var ids []job.ID
	for _, r := range list {
		if r.damage == nil && !r.past(h.now, b.Window) {
			found[r.Posting.ID], ids = r, append(ids, r.Posting.ID)
		}
	}
	if req.Set == driver.CorruptJobs {
		ids = nil
	}
	if req.Parts != 0 && len(ids) > 0 {
		if _, err := s.look(ctx, b, func(queue *pgx.Batch, _ *head) { s.queueParts(queue, b, ids, req.Parts, found) }); err != nil {
			return err
		}
	}
	for _, id := range ids {
		page.Records = append(page.Records, found[id].Record)
	}
	for _, r := range list {
		if r.damage != nil && (req.Set == driver.CorruptJobs || req.Set == driver.OpenJobs) {
			page.Bad = append(page.Bad, driver.BadRecord{Key: s.schema + ".jobs " + r.Posting.ID.String(), Problem: r.damage.Error(), Job: r.Posting.ID})
		}
	}
	return nil
}
