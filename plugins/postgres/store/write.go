package store

import (
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The names of parts that are not attached records.
const (
	details = "DETAILS"
	final   = "FINAL"
)

// partChanges are what becomes of the larger parts of a job: first some go, then others
// are written.
type partChanges struct {
	noDetails, noOthers bool
	put                 map[string][]byte // nil: taken away
}

func (t *batch) partsOf(id job.ID) *partChanges {
	p := t.parts[id]
	if p == nil {
		p = &partChanges{put: map[string][]byte{}}
		t.parts[id] = p
	}
	return p
}

// put writes one of the larger parts of a job; nil takes it away.
func (t *batch) put(r *row, name string, data []byte) {
	t.partsOf(r.Posting.ID).put[name] = data
	if data == nil {
		delete(r.sizes, name)
		return
	}
	r.measure(name, int64(len(data)))
}

// attach writes and takes away attached records.
func (t *batch) attach(r *row, list []driver.Attachment) {
	for i := range list {
		data := list[i].Data
		if list[i].Delete {
			data = nil
		} else if data == nil {
			data = []byte{}
		}
		t.put(r, list[i].Name, data)
	}
}

// wipe takes larger parts of a job away: its details, or all others.
func (t *batch) wipe(r *row, wantDetails, wantOthers bool) {
	p := t.partsOf(r.Posting.ID)
	p.noDetails, p.noOthers = p.noDetails || wantDetails, p.noOthers || wantOthers
	for name := range p.put {
		if name == details && wantDetails || name != details && wantOthers {
			delete(p.put, name)
		}
	}
	for name := range r.sizes {
		if name == details && wantDetails || name != details && wantOthers {
			delete(r.sizes, name)
		}
	}
}

// queueWrites writes everything but the board's own row.
func (t *batch) queueWrites(queue *pgx.Batch) {
	t.queueParts(queue)
	t.queueJobs(queue)
	t.queueTakes(queue)
	t.queueStamps(queue)
	t.queueMoves(queue)
	t.queueSettled(queue)
	if len(t.changes.out) > 0 {
		queue.Queue(t.sql(`INSERT INTO {s}.changes VALUES ($1, $2, $3, $4)`), t.board.id, t.head.position, t.before.told+1, t.changes.out)
	}
}

func (t *batch) queueParts(queue *pgx.Batch) {
	var wiped, less, more []pgtype.UUID
	var noDetails, noOthers []bool
	var lessNames, moreNames, data [][]byte
	for id, p := range t.parts {
		if p.noDetails || p.noOthers {
			wiped, noDetails, noOthers = append(wiped, uuid(id)), append(noDetails, p.noDetails), append(noOthers, p.noOthers)
		}
		for name, bytes := range p.put {
			if bytes == nil {
				less, lessNames = append(less, uuid(id)), append(lessNames, []byte(name))
				continue
			}
			more, moreNames, data = append(more, uuid(id)), append(moreNames, []byte(name)), append(data, bytes)
		}
	}
	if wiped != nil {
		queue.Queue(t.sql(`DELETE FROM {s}.parts p USING unnest($2::uuid[], $3::boolean[], $4::boolean[]) k (job, details, others) CROSS JOIN LATERAL (
			SELECT ctid FROM {s}.parts WHERE board = $1 AND job = k.job AND CASE name WHEN $5 THEN k.details ELSE k.others END OFFSET 0) l WHERE p.ctid = l.ctid`),
			t.board.id, wiped, noDetails, noOthers, []byte(details))
	}
	if less != nil {
		queue.Queue(t.sql(`DELETE FROM {s}.parts p USING unnest($2::uuid[], $3::bytea[]) k (job, name) CROSS JOIN LATERAL (
			SELECT ctid FROM {s}.parts WHERE board = $1 AND job = k.job AND name = k.name OFFSET 0) l WHERE p.ctid = l.ctid`),
			t.board.id, less, lessNames)
	}
	if more != nil {
		queue.Queue(t.sql(`INSERT INTO {s}.parts SELECT $1::bigint, * FROM unnest($2::uuid[], $3::bytea[], $4::bytea[])
			ON CONFLICT (board, job, name) DO UPDATE SET data = excluded.data`), t.board.id, more, moreNames, data)
	}
}

// columns are jobs, column by column, for unnest.
type columns struct {
	job                                       []pgtype.UUID
	shelf, state                              []int16
	place, lease, ends, tombstone, keep, size []int64
	posting, record                           [][]byte
}

func (c *columns) add(r *row) {
	shelf, place := r.place()
	c.job, c.shelf, c.state = append(c.job, uuid(r.Posting.ID)), append(c.shelf, int16(shelf)), append(c.state, int16(r.State))
	c.place, c.lease, c.ends = append(c.place, place), append(c.lease, r.lease), append(c.ends, r.ends)
	c.tombstone, c.keep, c.size = append(c.tombstone, r.tombstone), append(c.keep, r.keepUntil), append(c.size, r.size)
	var posting []byte // as it is
	if !r.stored || r.bared {
		posting = encodePosting(&r.Posting, r.limits)
	}
	c.posting, c.record = append(c.posting, posting), append(c.record, r.encodeRecord())
}

func (c *columns) args(board int64) []any {
	return []any{board, c.job, c.shelf, c.place, c.state, c.lease, c.ends, c.tombstone, c.keep, c.size, c.posting, c.record}
}

const unnestColumns = `unnest($2::uuid[], $3::smallint[], $4::bigint[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[],
	$9::bigint[], $10::bigint[], $11::bytea[], $12::bytea[]`

func (t *batch) queueJobs(queue *pgx.Batch) {
	var inserted, updated columns
	var gone []pgtype.UUID
	var deleted, places []pgtype.TID
	for _, r := range t.order {
		switch {
		case r.gone && r.stored:
			gone, deleted = append(gone, uuid(r.Posting.ID)), append(deleted, r.ctid)
		case r.gone:
		case r.stored:
			updated.add(r)
			places = append(places, r.ctid)
		default:
			inserted.add(r)
		}
	}
	if deleted != nil {
		queue.Queue(t.sql(allOf(`$4`, `DELETE FROM {s}.jobs j USING unnest($2::uuid[], $3::tid[]) u (job, at) WHERE `+atItsPlace)),
			t.board.id, gone, deleted, len(deleted))
	}
	if inserted.job != nil {
		queue.Queue(t.sql(`INSERT INTO {s}.jobs (board, job, shelf, place, state, lease, ends, tombstone, keep_until, size, posting, record)
			SELECT $1::bigint, * FROM `+unnestColumns+`)`), inserted.args(t.board.id)...)
	}
	if updated.job != nil {
		queue.Queue(t.sql(allOf(`$14`, `UPDATE {s}.jobs j SET shelf = u.shelf, place = u.place, state = u.state, lease = u.lease, ends = u.ends,
			tombstone = u.tombstone, keep_until = u.keep, size = u.size, posting = coalesce(u.posting, j.posting), record = u.record
			FROM `+unnestColumns+`, $13::tid[]) u (job, shelf, place, state, lease, ends, tombstone, keep, size, posting, record, at)
			WHERE `+atItsPlace)), append(updated.args(t.board.id), places, len(places))...)
	}
}

// atItsPlace finds the row of a job by its ctid, and looks whether it is that job's. Not with =, for
// which PostgreSQL would take an index while the table is small, and read all of the board later.
const atItsPlace = `j.ctid = u.at AND j.board IS NOT DISTINCT FROM $1 AND j.job IS NOT DISTINCT FROM u.job`

// allOf has a statement that names rows by their ctid fail, with a division by zero, if it does not
// change as many as it names. It fails in PostgreSQL, since COMMIT is on its way behind it.
func allOf(want, statement string) string {
	return `WITH changed AS (` + statement + ` RETURNING 1) SELECT 1 / (count(*) = ` + want + `::bigint)::integer FROM changed`
}

func (t *batch) queueStamps(queue *pgx.Batch) {
	var stamps, ats, again []int64
	var jobs, randoms []pgtype.UUID
	var answers, answersAgain [][]byte
	for _, k := range t.fresh {
		if k.stored {
			again, answersAgain = append(again, k.stamp), append(answersAgain, k.encode())
			continue
		}
		stamps, ats = append(stamps, k.stamp), append(ats, k.at)
		jobs, randoms = append(jobs, uuid(k.Stamp.Key.Job)), append(randoms, uuid(k.Stamp.Key.Random))
		answers = append(answers, k.encode())
	}
	if stamps != nil {
		queue.Queue(t.sql(`INSERT INTO {s}.stamps (board, stamp, job, random, at, answer)
			SELECT $1::bigint, * FROM unnest($2::bigint[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bytea[])`),
			t.board.id, stamps, jobs, randoms, ats, answers)
	}
	if again != nil {
		queue.Queue(t.sql(`UPDATE {s}.stamps s SET answer = k.answer FROM unnest($2::bigint[], $3::bytea[]) k (stamp, answer) CROSS JOIN LATERAL (
			SELECT ctid FROM {s}.stamps WHERE board = $1 AND stamp BETWEEN k.stamp AND k.stamp ORDER BY stamp LIMIT 1) l WHERE s.ctid = l.ctid`), t.board.id, again, answersAgain)
	}
}

// queueMoves writes what limits and groups count now, by the last number that the batch gave
// away: a counter's rows are told apart by these. A key that counts nothing has no row.
func (t *batch) queueMoves(queue *pgx.Batch) {
	var keys []string
	for key, by := range t.moved {
		if by != 0 {
			keys = append(keys, key)
		}
	}
	if keys == nil {
		return
	}
	slices.Sort(keys)
	moves := make([]int64, len(keys))
	for i, key := range keys {
		moves[i] = t.moved[key]
	}
	queue.Queue(t.sql(`WITH old AS MATERIALIZED (
			SELECT k.key, k.by, l.at, coalesce(l.n, 0) AS n FROM unnest($2::bytea[], $3::bigint[]) k (key, by) LEFT JOIN LATERAL
				(SELECT ctid AS at, n FROM {s}.limits WHERE board = $1 AND key = k.key ORDER BY position DESC LIMIT 1) l ON true
		), gone AS (
			DELETE FROM {s}.limits l USING old WHERE l.ctid = old.at
		) INSERT INTO {s}.limits SELECT $1::bigint, key, $4::bigint, n + by FROM old WHERE n + by <> 0`), t.board.id, texts(keys), moves, t.number)
}

// queueHead writes how the board stands, if that has changed.
func (t *batch) queueHead(queue *pgx.Batch) {
	h := &t.head
	if h.position == t.before.position && h.counts == t.before.counts && h.stampsAfter == t.before.stampsAfter {
		return
	}
	values := []any{
		t.board.id, h.position, h.told, h.forgotten, h.stampsAfter,
		h.open, h.claimed, h.trashed, h.ended, h.stamps, h.finals, h.finalBytes,
	}
	if h.position == t.before.position {
		queue.Queue(t.sql(`INSERT INTO {s}.batches VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			ON CONFLICT (board, position) DO UPDATE SET (told, forgotten, stamps_after, open, claimed, trashed, ended, stamps, finals, final_bytes)
				= (excluded.told, excluded.forgotten, excluded.stamps_after, excluded.open, excluded.claimed, excluded.trashed, excluded.ended,
					excluded.stamps, excluded.finals, excluded.final_bytes)`), values...)
		return
	}
	queue.Queue(t.sql(`DELETE FROM {s}.batches WHERE board = $1 AND position = $2`), t.board.id, t.before.position)
	queue.Queue(t.sql(`WITH gone AS (
			DELETE FROM {s}.changes c USING (
				SELECT ctid, position FROM {s}.changes WHERE board = $1 AND position > $4::bigint ORDER BY position LIMIT 4
			) oldest WHERE c.ctid = oldest.ctid AND oldest.position < $2::bigint AND c.first <= $13 RETURNING c.position
		) INSERT INTO {s}.batches SELECT $1::bigint, $2::bigint, $3::bigint, coalesce(max(position), $4::bigint), $5::bigint,
			$6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::bigint FROM gone`),
		append(values, h.told-t.board.events)...)
}

// queueWanted asks for the larger parts that answers show.
func (t *batch) queueWanted(queue *pgx.Batch) {
	for parts, records := range t.wanted {
		queue.Queue(t.sql(partsWanted(`$1`)),
			t.board.id, uuids(slices.Collect(maps.Keys(records))), []byte(details), parts&driver.Details != 0,
			[]byte(final), parts&driver.FinalData != 0, parts&driver.Attached != 0).
			Query(readParts(func(id job.ID) []*driver.Record { return records[id] }))
	}
}

// partsWanted selects parts of the jobs $2 of a board, by their names.
func partsWanted(board string) string {
	return `SELECT p.* FROM (SELECT DISTINCT unnest($2::uuid[]) AS job) k CROSS JOIN LATERAL (SELECT job, name, data FROM {s}.parts WHERE board = ` + board + ` AND job = k.job
		AND CASE name WHEN $3 THEN $4::boolean WHEN $5 THEN $6::boolean ELSE $7::boolean END OFFSET 0) p ORDER BY p.job, p.name`
}

// readParts adds parts to the records that they belong to.
func readParts(of func(job.ID) []*driver.Record) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var id pgtype.UUID
			var a driver.Attachment
			var name []byte
			if err := rows.Scan(&id, &name, &a.Data); err != nil {
				return err
			}
			a.Name = string(name)
			for _, r := range of(job.ID(id.Bytes)) {
				switch a.Name {
				case details:
					r.Posting.Details = a.Data
				case final:
					r.Final = a.Data
				default:
					r.Attached = append(r.Attached, a)
				}
			}
		}
		return rows.Err()
	}
}
