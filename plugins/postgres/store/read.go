package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Read returns jobs as they stand at one moment.
func (s *store) Read(ctx context.Context, name string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	b, err := s.board(name)
	if err != nil {
		return nil, err
	}
	found := map[job.ID]*row{}
	h, err := s.look(ctx, b, func(queue *pgx.Batch, h *head) {
		clear(found)
		queue.Queue(s.sql(rowsOf(boardOf)), []byte(b.Name), uuids(ids)).
			Query(func(rows pgx.Rows) error {
				return eachRow(rows, h, func(r *row) {
					if !r.past(h.now, b.Window) {
						found[r.Posting.ID] = r
					}
				})
			})
		s.queueParts(queue, b, ids, parts, found)
	})
	if err == nil {
		err = h.passage.Left()
	}
	if err != nil {
		return nil, err
	}
	records := make([]driver.Record, len(ids))
	for i, id := range ids {
		records[i] = driver.Record{Posting: driver.Posting{ID: id}}
		if r := found[id]; r != nil {
			records[i] = r.Record
			if parts&driver.FinalData != 0 {
				records[i].EndedBy = r.endedBy
			}
		}
	}
	return records, nil
}

// queueParts asks for the larger parts of jobs, and adds them to those that were found.
func (s *store) queueParts(queue *pgx.Batch, b *board, ids []job.ID, parts driver.Parts, found map[job.ID]*row) {
	if parts == 0 {
		return
	}
	queue.Queue(s.sql(partsWanted(boardOf)), []byte(b.Name), uuids(ids),
		[]byte(details), parts&driver.Details != 0, []byte(final), parts&driver.FinalData != 0, parts&driver.Attached != 0).
		Query(readParts(func(id job.ID) []*driver.Record {
			r := found[id]
			if r == nil || r.damage != nil || r.bared { // bared: what it had is past its time
				return nil
			}
			return []*driver.Record{&r.Record}
		}))
}

func eachRow(rows pgx.Rows, h *head, do func(*row), more ...any) error {
	for rows.Next() {
		r, err := scanRow(rows, h, more...)
		if err != nil {
			return err
		}
		do(r)
	}
	return rows.Err()
}

// Count returns the counters. As it comes once a second, it is also when what is too old
// is taken away.
func (s *store) Count(ctx context.Context, name string) (driver.Counts, error) {
	b, err := s.board(name)
	if err != nil {
		return driver.Counts{}, err
	}
	for {
		limits, overdue := map[string]int64{}, false
		h, err := s.look(ctx, b, func(queue *pgx.Batch, h *head) {
			clear(limits)
			queue.Queue(s.sql(`SELECT DISTINCT ON (key) key, n FROM {s}.limits WHERE board = `+boardOf+` AND key >= '\x01' ORDER BY key, position DESC`), []byte(b.Name)).
				Query(func(rows pgx.Rows) error {
					for rows.Next() {
						var key []byte
						var n int64
						if err := rows.Scan(&key, &n); err != nil {
							return err
						}
						limits[string(key)] = n
					}
					return rows.Err()
				})
			queue.Queue(s.sql(oldest), []byte(b.Name), b.watch.pastFinals().until).QueryRow(func(row pgx.Row) error {
				var stamp, final int64
				err := row.Scan(&stamp, &final)
				overdue = stamp <= h.now.Add(-b.Window).UnixNano() || final <= h.now.UnixNano()
				return err
			})
		})
		if err != nil {
			return driver.Counts{}, err
		}
		if !overdue || b.Observe {
			return driver.Counts{
				Open: h.open, Claimed: h.claimed, Trashed: h.trashed, Ended: h.ended,
				Tombstones: h.stamps, Finals: h.finals, FinalBytes: h.finalBytes, Limits: limits,
			}, nil
		}
		if err := s.forget(ctx, b); err != nil {
			return driver.Counts{}, err
		}
	}
}

// oldest asks when the oldest stamp was made, and until when the first final record was to be
// kept whose time is over.
const oldest = `SELECT
	coalesce((SELECT at FROM {s}.stamps WHERE board = b.board AND stamp > coalesce(t.stamps_after, 0) ORDER BY stamp LIMIT 1), 9223372036854775807),
	coalesce((SELECT keep_until FROM {s}.jobs WHERE board = b.board AND keep_until > 0 AND keep_until BETWEEN $2 AND (SELECT ` + clock + `) ORDER BY keep_until LIMIT 1), 9223372036854775807)
	FROM (SELECT 1) one LEFT JOIN {s}.boards b ON b.name = $1
	LEFT JOIN LATERAL (SELECT stamps_after FROM {s}.batches WHERE board = b.board ORDER BY position DESC LIMIT 1) t ON true`

// forget takes away what is older than the board remembers.
func (s *store) forget(ctx context.Context, b *board) error {
	for more := true; more; {
		t, err := s.enter(ctx, b, nil)
		if err != nil {
			return err
		}
		more, err = t.forgetOld()
		if err == nil {
			err = t.commit(&pgx.Batch{})
		} else {
			err = failed(ctx, err)
		}
		t.leave()
		if err != nil {
			return err
		}
	}
	return nil
}
