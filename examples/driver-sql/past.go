package main

import (
	"database/sql"
	"encoding/json"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// An answer is what is kept of an op that was done. It is what a worker whose answer
// was lost is told when it asks again, so it lives as long as the board's window.
type answer struct {
	Stamp  transition.Stamp
	Claims []driver.Claimed // of a claim whose answer is to be remembered
	Given  bool             // they were told again, and no more are added
}

// kept returns what is kept under a key, and its stamp; 0: nothing.
func (t *tx) kept(key transition.Key) (a answer, stamp int64) {
	var text []byte
	found := t.row(into(&stamp, &text), "SELECT stamp, answer FROM stamps WHERE board = ? AND job = ? AND random = ? ORDER BY stamp DESC LIMIT 1",
		t.board, key.Job[:], key.Random[:])
	if found {
		t.err = json.Unmarshal(text, &a)
	}
	return a, stamp
}

// keep keeps an answer, under its stamp if it has one already.
func (t *tx) keep(stamp int64, a answer) int64 {
	if stamp != 0 {
		t.exec("UPDATE stamps SET answer = ? WHERE stamp = ?", inJSON(a), stamp)
		return stamp
	}
	k := a.Stamp.Key
	t.row(into(&stamp), "INSERT INTO stamps (board, job, random, at, answer) VALUES (?, ?, ?, ?, ?) RETURNING stamp",
		t.board, k.Job[:], k.Random[:], nanos(t.now), inJSON(a))
	return stamp
}

// remember keeps the stamp of an op. One that ended a job has a stamp even if nothing
// recognises it again: it is the job's tombstone.
func (t *tx) remember(plan *transition.Plan) int64 {
	stamp := plan.Stamp
	if stamp.Kind == 0 && plan.Do != driver.Remove {
		return 0
	}
	stamp.Key.Job = plan.Job
	return t.keep(0, answer{Stamp: stamp})
}

// end leaves of a job that ended what the op asked for: a tombstone, and with
// Ending.Keep a final record.
func (t *tx) end(r *row, plan *transition.Plan, stamp int64) {
	e, id := &plan.Ending, plan.Job
	r.Outcome, r.EndedBy, r.tombstone = e.Outcome, plan.EndedBy, stamp
	if !e.KeepPosting {
		t.exec("DELETE FROM parts WHERE board = ? AND job = ? AND name = ?", t.board, id[:], details)
		r.bare()
	}
	if !e.KeepAttached {
		t.exec("DELETE FROM parts WHERE board = ? AND job = ? AND name <> ?", t.board, id[:], details)
	}
	if e.Keep <= 0 {
		r.Status = nil
		return
	}
	t.put(id, final, e.Data)
	t.row(into(&r.size), "SELECT sum(length(data)) FROM parts WHERE board = ? AND job = ?", t.board, id[:])
	r.size += int64(len(r.Status) + len(r.Posting.Extra))
	r.keepUntil = t.now.Add(e.Keep)
}

// bare leaves of a posting what a tombstone knows.
func (r *row) bare() {
	p := &r.Posting
	r.Posting = driver.Posting{ID: p.ID, Name: p.Name, Digest: p.Digest, CreatedAt: p.CreatedAt, Sequence: p.Sequence}
}

// purge takes a job away for good. What its ops left for their retries stays.
func (t *tx) purge(id job.ID) {
	t.exec("UPDATE jobs SET keep_until = 0 WHERE board = ? AND job = ?", t.board, id[:]) // its final record is counted no longer
	t.exec("DELETE FROM jobs WHERE board = ? AND job = ?", t.board, id[:])
}

// overdue reports whether time has taken something away.
func (t *tx) overdue() bool {
	return t.row(into(new(int)), `SELECT 1 WHERE EXISTS (SELECT 1 FROM stamps WHERE board = ?1 AND at <= ?2)
		OR EXISTS (SELECT 1 FROM jobs WHERE board = ?1 AND keep_until > 0 AND keep_until <= ?3)`,
		t.board, nanos(t.now.Add(-t.spec.Window)), nanos(t.now))
}

// forget takes away what is older than the board remembers, or more than it may keep:
// the oldest first.
func (t *tx) forget() {
	t.exec("DELETE FROM stamps WHERE board = ? AND at <= ?", t.board, nanos(t.now.Add(-t.spec.Window)))
	if over := t.count("stamps", "") - t.spec.MaxTombstones; over > 0 {
		t.exec("DELETE FROM stamps WHERE stamp IN (SELECT stamp FROM stamps WHERE board = ? ORDER BY at, stamp LIMIT ?)", t.board, over)
	}
	t.dropFinals("AND keep_until <= ?", nanos(t.now))
	for t.spec.MaxFinals > 0 && t.count("finals", "") > t.spec.MaxFinals || t.spec.MaxFinalBytes > 0 && t.count("bytes", "") > t.spec.MaxFinalBytes {
		t.dropFinals("ORDER BY place LIMIT ?", 1)
	}
}

// dropFinals takes final records away, and with each the job if its tombstone has gone.
func (t *tx) dropFinals(which string, arg any) {
	var ids []job.ID
	t.each(func(rows *sql.Rows) error {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, job.ID(id))
		return nil
	}, "SELECT job FROM jobs WHERE board = ? AND keep_until > 0 "+which, t.board, arg)
	for _, id := range ids {
		r := t.find(id)
		if r == nil {
			return // an error
		}
		r.bare()
		r.keepUntil, r.size, r.Status = time.Time{}, 0, nil
		r.save(t)
		t.exec("DELETE FROM parts WHERE board = ? AND job = ?", t.board, id[:])
		t.exec("DELETE FROM jobs WHERE board = ? AND job = ? AND NOT EXISTS (SELECT 1 FROM stamps WHERE stamp = tombstone)", t.board, id[:])
	}
}

// count returns one of the board's counters.
func (t *tx) count(what, name string) (n int64) {
	t.row(into(&n), "SELECT n FROM counts WHERE board = ? AND what = ? AND name = ?", t.board, what, name)
	return n
}
