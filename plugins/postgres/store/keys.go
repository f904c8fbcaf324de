package store

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A keyRow is a key as the batch read it, and as it changed it.
type keyRow struct {
	transition.Entry
	onBoard bool // as it was read; t.rows goes before it
	dirty   bool
}

// onBoard tells of a job whether it is on the board.
func onBoard(job string) string {
	return `coalesce((SELECT shelf = 0 FROM {s}.jobs WHERE board = $1 AND job BETWEEN ` + job + ` AND ` + job + ` ORDER BY job LIMIT 1), false)`
}

// queueKeys asks for the keys that ops would take, and whether their jobs are on the board.
func (t *batch) queueKeys(queue *pgx.Batch, names []string) {
	if len(names) == 0 {
		return
	}
	queue.Queue(t.sql(`SELECT k.name, k.job, k.open, k.til, k.number, `+onBoard(`k.job`)+`
		FROM unnest($2::bytea[]) n (name) CROSS JOIN LATERAL (SELECT * FROM {s}.keys WHERE board = $1 AND name BETWEEN n.name AND n.name ORDER BY name LIMIT 1) k`),
		t.board.id, texts(names)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var name []byte
			var id pgtype.UUID
			var until, number int64
			k := &keyRow{}
			if err := rows.Scan(&name, &id, &k.Open, &until, &number, &k.onBoard); err != nil {
				return err
			}
			k.Job, k.Number = job.ID(id.Bytes), uint64(number) //nolint:gosec // it was written so
			if until > 0 {
				k.Until = time.Unix(0, until)
			}
			t.keys[string(name)] = k
		}
		return rows.Err()
	})
}

// Entry is what is kept under a key.
func (t *batch) Entry(name string) (e transition.Entry, onBoard bool, _ error) {
	k := t.keys[name]
	if k == nil {
		return e, false, nil
	}
	if r := t.rows[k.Job]; r != nil {
		return k.Entry, !r.gone && (r.State == job.Unclaimed || r.State == job.Claimed), nil
	}
	return k.Entry, k.onBoard, nil
}

// keyTaken refuses an op that would take a key which another job has.
func (t *batch) keyTaken(op *driver.Op) (r driver.Result, refused bool) {
	name, by, _ := transition.Taken(op, t.head.now, t)
	if name == "" {
		return r, false
	}
	r = driver.Result{Kind: job.AlreadyExists, Message: name, Taken: by}
	if has := t.find(by); has != nil && has.damage == nil {
		r.Record = has.shown()
	}
	return r, true
}

// take gives a job its keys.
func (t *batch) take(keys []driver.Key, id job.ID) {
	for i := range keys {
		before, _, _ := t.Entry(keys[i].Name)
		t.keys[keys[i].Name] = &keyRow{Entry: transition.Take(&keys[i], id, t.head.now, before), dirty: true}
	}
}

// pace counts a claim in its rates.
func (t *batch) pace(rates []driver.Rate) {
	for i := range rates {
		name := transition.RateName(rates[i].Key)
		before, _, _ := t.Entry(name)
		t.keys[name] = &keyRow{Entry: transition.Pace(&rates[i], t.head.now, before), dirty: true}
	}
}

// A sweep says where the search for keys that say nothing any more goes on. Keys have ascending
// numbers as they are taken first, and there are none up to start: so it need not go through what
// is left of those that went while a transaction elsewhere keeps them from being removed.
type sweep struct{ start, after int64 }

// looked notes that most keys behind after were looked for and n found, up to last, of which the
// one with the number lowest is the first that stays; 0: none does.
func (s *sweep) looked(most, n int, lowest, last int64) {
	if s.after == s.start && n > 0 {
		s.start = last
		if lowest > 0 {
			s.start = lowest - 1
		}
	}
	if s.after = last; n < most { // from the start again
		s.after = s.start
	}
}

// queueTakes writes the keys that were taken. Twice as many others are looked at, from where
// the last look ended, and go if they say nothing any more: so those of ended jobs do not
// pile up.
func (t *batch) queueTakes(queue *pgx.Batch) {
	var names [][]byte
	var ids []pgtype.UUID
	var open []bool
	var until, numbers []int64
	for _, name := range slices.Sorted(maps.Keys(t.keys)) {
		k := t.keys[name]
		if !k.dirty {
			continue
		}
		names, ids, open = append(names, []byte(name)), append(ids, uuid(k.Job)), append(open, k.Open)
		numbers = append(numbers, int64(min(k.Number, math.MaxInt64))) //nolint:gosec // bounded
		end := int64(0)
		if !k.Until.IsZero() {
			end = k.Until.UnixNano()
		}
		until = append(until, end)
	}
	if len(names) == 0 {
		return
	}
	queue.Queue(t.sql(`INSERT INTO {s}.keys (board, name, job, open, til, number)
		SELECT $1, * FROM unnest($2::bytea[], $3::uuid[], $4::boolean[], $5::bigint[], $6::bigint[])
		ON CONFLICT (board, name) DO UPDATE SET job = excluded.job, open = excluded.open, til = excluded.til, number = excluded.number`),
		t.board.id, names, ids, open, until, numbers)
	at := sweep{}
	if last := t.board.watch.swept.Load(); last != nil {
		at = *last
	}
	queue.Queue(t.sql(`WITH looked AS MATERIALIZED (SELECT ctid AS at, key, name, job, open, til, number FROM {s}.keys WHERE board = $1 AND key > $2 ORDER BY key LIMIT $3),
		dead AS (DELETE FROM {s}.keys k USING looked l WHERE k.ctid = l.at AND l.til <= $4 AND (l.number = 0 OR l.job = $6) AND l.name <> ALL($5)
			AND NOT (l.open AND `+onBoard(`l.job`)+`) RETURNING l.key)
		SELECT count(*), coalesce(min(key) FILTER (WHERE key NOT IN (SELECT key FROM dead)), 0), coalesce(max(key), 0) FROM looked`),
		t.board.id, at.after, 2*len(names), t.head.now.UnixNano(), names, uuid(job.ID{})).
		QueryRow(func(row pgx.Row) error {
			var n int
			var lowest, last int64
			err := row.Scan(&n, &lowest, &last)
			at.looked(2*len(names), n, lowest, last)
			t.swept = &at
			return err
		})
}
