package main

import (
	"database/sql"
	"encoding/json"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A row is a job as it stands, without its larger parts. What has a capital letter is
// in the column record, as JSON.
type row struct {
	driver.Record
	Limits, ClaimLimits []driver.Limit // what job and claim count for
	EndedBy             job.Token

	lease, ends time.Duration // of the claim: as granted (0: no expiry), and when it ends on the boot clock
	tombstone   int64
	keepUntil   time.Time
	size        int64
}

// columns are those that scan reads.
const columns = "record, lease, ends, tombstone, keep_until, size"

// find reads a job; nil: there is none.
func (t *tx) find(id job.ID) (r *row) {
	t.row(func(rows *sql.Rows) (err error) { r, err = t.scan(rows); return err },
		"SELECT "+columns+" FROM jobs WHERE board = ? AND job = ?", t.board, id[:])
	return r
}

// scan reads columns, and what was asked for behind them.
func (t *tx) scan(from *sql.Rows, more ...any) (*row, error) {
	var record []byte
	var keepUntil int64
	r := &row{}
	if err := from.Scan(append([]any{&record, &r.lease, &r.ends, &r.tombstone, &keepUntil, &r.size}, more...)...); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(record, r); err != nil {
		return nil, err
	}
	r.keepUntil = fromNanos(keepUntil)
	if h := r.Holder; h != nil {
		h.NoExpiry, h.Remaining = r.lease == 0, 0
		if !h.NoExpiry {
			h.Remaining = r.ends - t.clock
		}
	}
	return r, nil
}

// save writes a job, a new one too.
func (r *row) save(t *tx) {
	shelf, place := driver.OpenJobs, r.Posting.Sequence
	switch r.State {
	case job.Trashed:
		shelf, place = driver.TrashedJobs, uint64(r.Position)
	case job.Complete:
		shelf, place = driver.EndedJobs, uint64(r.Position)
	}
	t.exec(`INSERT INTO jobs (board, job, state, shelf, place, lease, ends, boot, tombstone, keep_until, size, record)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET state = excluded.state, shelf = excluded.shelf, place = excluded.place,
			lease = excluded.lease, ends = excluded.ends, boot = excluded.boot, tombstone = excluded.tombstone,
			keep_until = excluded.keep_until, size = excluded.size, record = excluded.record`,
		t.board, r.Posting.ID[:], r.State, shelf, place, r.lease, r.ends, t.store.boot, r.tombstone,
		nanos(r.keepUntil), r.size, inJSON(r))
}

// The names of parts that are not attached records.
const (
	details = "DETAILS"
	final   = "FINAL"
)

// put writes one of the larger parts.
func (t *tx) put(id job.ID, name string, data []byte) {
	t.exec("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", t.board, id[:], name, append([]byte{}, data...))
}

// attach writes and takes away attached records.
func (t *tx) attach(id job.ID, list []driver.Attachment) {
	for _, a := range list {
		if a.Delete {
			t.exec("DELETE FROM parts WHERE board = ? AND job = ? AND name = ?", t.board, id[:], a.Name)
		} else {
			t.put(id, a.Name, a.Data)
		}
	}
}

// parts adds the larger parts that were asked for.
func (t *tx) parts(r *driver.Record, parts driver.Parts) {
	if parts == 0 {
		return
	}
	t.each(func(rows *sql.Rows) error {
		var a driver.Attachment
		if err := rows.Scan(&a.Name, &a.Data); err != nil {
			return err
		}
		switch a.Name {
		case details:
			r.Posting.Details = a.Data
		case final:
			r.Final = a.Data
		default:
			r.Attached = append(r.Attached, a)
		}
		return nil
	}, "SELECT name, data FROM parts WHERE board = ? AND job = ? AND CASE name WHEN ? THEN ? WHEN ? THEN ? ELSE ? END ORDER BY name",
		t.board, r.Posting.ID[:], details, parts&driver.Details, final, parts&driver.FinalData, parts&driver.Attached)
}

// inJSON is for what always can be written as JSON.
func inJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
