package store

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// What is kept of an op that was done: a worker whose answer was lost is told of it when
// it asks again, so it lives as long as the board's window.
type kept struct {
	Stamp  transition.Stamp
	Claims []driver.Claimed // of a claim whose answer is to be remembered
	Given  bool             // they were told again, and no more are added

	stamp  int64 // its number: the position of the change
	at     int64
	stored bool
	dirty  bool
}

// encode writes everything but what has a column.
func (k *kept) encode() []byte {
	s := &k.Stamp
	w := newWriter(64 + 80*len(k.Claims))
	w.flags(k.Given)
	w.byte(byte(s.Kind))
	w.byte(byte(s.Precondition))
	w.byte(byte(s.Outcome))
	w.token(s.Token)
	w.uint(s.Version)
	w.uint(uint64(s.Position))
	w.time(s.At)
	w.time(s.NotBefore)
	w.uint(uint64(len(k.Claims)))
	for i := range k.Claims {
		c := &k.Claims[i]
		w.raw(c.Job[:])
		w.token(c.Token)
		w.int(int64(c.Lease))
		w.uint(c.Version)
		w.uint(uint64(c.Position))
		w.time(c.At)
	}
	return w.out
}

func (k *kept) decode(in []byte) error {
	d, s := newReader(in), &k.Stamp
	d.flags(&k.Given)
	s.Kind, s.Precondition = driver.OpKind(d.upTo(byte(driver.Purge))), driver.Precondition(d.upTo(byte(driver.Free)))
	s.Outcome = job.Outcome(d.upTo(byte(job.Purged)))
	s.Token, s.Version, s.Position = d.token(), d.uint(), driver.Position(d.uint())
	s.At, s.NotBefore = d.time(), d.time()
	for range d.count() {
		var c driver.Claimed
		d.raw(c.Job[:])
		c.Token, c.Lease, c.Version = d.token(), time.Duration(d.int()), d.uint()
		c.Position, c.At = driver.Position(d.uint()), d.time()
		k.Claims = append(k.Claims, c)
	}
	return d.end()
}

// queueKept asks what is kept under keys, and is not too old. The newest is last.
func (t *batch) queueKept(queue *pgx.Batch, keys []transition.Key) {
	if len(keys) == 0 {
		return
	}
	jobs, randoms := make([]pgtype.UUID, len(keys)), make([]pgtype.UUID, len(keys))
	for i := range keys {
		jobs[i], randoms[i] = uuid(keys[i].Job), uuid(keys[i].Random)
	}
	queue.Queue(t.sql(`SELECT s.* FROM unnest($2::uuid[], $3::uuid[]) k (job, random) CROSS JOIN LATERAL (
		SELECT stamp, job, random, at, answer FROM {s}.stamps WHERE board = $1 AND job BETWEEN k.job AND k.job AND random = k.random
		ORDER BY job OFFSET 0) s ORDER BY s.stamp`),
		t.board.id, jobs, randoms).
		Query(func(rows pgx.Rows) error {
			for rows.Next() {
				k := &kept{stored: true}
				var id, random pgtype.UUID
				var answer []byte
				if err := rows.Scan(&k.stamp, &id, &random, &k.at, &answer); err != nil {
					return err
				}
				if t.old(k.at) {
					continue
				}
				if err := k.decode(answer); err != nil {
					return &job.Error{Kind: job.Corrupt, Message: "what is kept of an op cannot be read", Err: err}
				}
				k.Stamp.Key = transition.Key{Job: job.ID(id.Bytes), Random: random.Bytes}
				t.kept[k.Stamp.Key] = k
			}
			return rows.Err()
		})
}

// old reports whether something is older than the board remembers.
func (t *batch) old(at int64) bool {
	return at <= t.head.now.Add(-t.board.Window).UnixNano()
}

// keep has something kept, or changed that is kept already.
func (t *batch) keep(k *kept) {
	t.kept[k.Stamp.Key] = k
	if !k.dirty {
		k.dirty = true
		t.fresh = append(t.fresh, k)
		if !k.stored {
			t.head.stamps++
		}
	}
}

// remember keeps the stamp of an op. One that ended a job has a stamp even if nothing
// recognises it again: it is the job's tombstone.
func (t *batch) remember(plan *transition.Plan) int64 {
	stamp := plan.Stamp
	if stamp.Kind == 0 && plan.Do != driver.Remove {
		return 0
	}
	stamp.Key.Job = plan.Job
	k := &kept{Stamp: stamp, stamp: int64(plan.Position), at: t.head.now.UnixNano()} //nolint:gosec // of a bigint
	t.keep(k)
	return k.stamp
}

// end leaves of a job that ended what the op asked for: a tombstone, and with
// Ending.Keep a final record.
func (t *batch) end(r *row, plan *transition.Plan, stamp int64) {
	e := &plan.Ending
	r.Outcome, r.endedBy, r.tombstone = e.Outcome, plan.EndedBy, stamp
	if !e.KeepPosting {
		r.bare()
	}
	t.wipe(r, !e.KeepPosting, !e.KeepAttached)
	r.limits = nil
	if e.Keep <= 0 {
		r.Status = nil
		return
	}
	t.put(r, final, append([]byte{}, e.Data...))
	r.size = int64(len(r.Status) + len(r.Posting.Extra))
	for _, n := range r.sizes {
		r.size += n
	}
	r.keepUntil = t.head.now.Add(e.Keep).UnixNano()
}

// buryPast takes away jobs that the batch has read, and whose time is over.
func (t *batch) buryPast() {
	for _, r := range t.rows {
		if r.damage != nil || !r.past(t.head.now, t.board.Window) {
			continue
		}
		t.count(r, -1)
		r.gone = true
		t.touch(r)
		t.wipe(r, true, true)
	}
}

// overfull reports whether more is kept than the board may keep.
func (t *batch) overfull() bool {
	return t.head.stamps > t.board.MaxTombstones || t.tooManyFinals()
}

func (t *batch) tooManyFinals() bool {
	return t.board.MaxFinals > 0 && t.head.finals > t.board.MaxFinals || t.board.MaxFinalBytes > 0 && t.head.finalBytes > t.board.MaxFinalBytes
}

// makeRoom takes away what is more than the board may keep: the oldest first.
func (t *batch) makeRoom() error {
	for over := t.head.stamps - t.board.MaxTombstones; over > 0; over = t.head.stamps - t.board.MaxTombstones {
		if n, err := t.forgetStamps(min(over, chunk), forever); n == 0 || err != nil {
			return err
		}
	}
	n := max(t.head.finals-t.before.finals, fewFinals) // as large as those that came, perhaps
	if t.board.MaxFinals > 0 {
		n = max(n, t.head.finals-t.board.MaxFinals)
	}
	for past := t.pastFinals(); t.tooManyFinals(); n *= 2 {
		n = min(n, chunk)
		gone, err := t.forgetFinals(func(r *row) bool {
			if !t.tooManyFinals() {
				return false
			}
			_, place := r.place()
			past.place = max(past.place, place)
			return true
		}, `AND place > $3 ORDER BY place LIMIT $2`, n, past.place)
		switch {
		case err != nil:
			return err
		case gone == 0 && past.place == 0:
			return nil
		case gone == 0:
			past.place = 0 // the numbers are those of a store that was put back
		}
	}
	return nil
}

// chunk is how much is taken away at once.
const chunk = 1000

// fewFinals is how many final records are read at least where too much is kept.
const fewFinals = 16

// pastFinals are the ends of what has been taken away of final records. Their rows may still be
// there, as a transaction elsewhere keeps them from being removed, and nobody goes through them
// again.
type pastFinals struct {
	place int64 // none is left up to here
	until int64 // nor one that was to be kept until before this time
}

// pastFinals returns those that the batch has come to.
func (t *batch) pastFinals() *pastFinals {
	if t.finals == nil {
		past := t.board.watch.pastFinals()
		t.finals = &past
	}
	return t.finals
}

func (w *watch) pastFinals() (past pastFinals) {
	if last := w.finals.Load(); last != nil {
		past = *last
	}
	return past
}

// forgetOld takes away what is older than the board remembers, and reports whether there
// may be more.
func (t *batch) forgetOld() (more bool, err error) {
	stamps, err := t.forgetStamps(chunk, t.head.now.Add(-t.board.Window).UnixNano())
	if err != nil {
		return false, err
	}
	now, past := t.head.now.UnixNano(), t.pastFinals()
	if past.until > now {
		past.until = 0 // the clock was set back
	}
	finals, err := t.forgetFinals(func(r *row) bool {
		past.until = r.keepUntil
		return true
	}, `AND keep_until BETWEEN $3 AND $4 ORDER BY keep_until LIMIT $2`, chunk, past.until, now)
	if err == nil && finals < chunk {
		past.until = now // what comes later is kept longer
	}
	return stamps == chunk || finals == chunk, err
}

// forgetStamps takes away the oldest stamps, and with each the job that it is the
// tombstone of, unless its final record is still there.
func (t *batch) forgetStamps(most, before int64) (int, error) {
	rows, err := t.conn.Query(t.ctx, t.sql(`SELECT stamp, at, job FROM {s}.stamps WHERE board = $1 AND stamp > $2 ORDER BY stamp LIMIT $3`),
		t.board.id, t.head.stampsAfter, most)
	if err != nil {
		return 0, err
	}
	var stamps []int64
	var jobs []pgtype.UUID
	var stamp, at int64
	var id pgtype.UUID
	over := false
	_, err = pgx.ForEachRow(rows, []any{&stamp, &at, &id}, func() error {
		if over = over || at > before; !over {
			stamps, jobs = append(stamps, stamp), append(jobs, id)
		}
		return nil
	})
	if err != nil || len(stamps) == 0 {
		return 0, err
	}
	t.head.stamps -= int64(len(stamps))
	t.head.stampsAfter = stamps[len(stamps)-1]
	queue := &pgx.Batch{}
	queue.Queue(t.sql(`DELETE FROM {s}.stamps s USING unnest($2::bigint[]) k (stamp) CROSS JOIN LATERAL (
		SELECT ctid FROM {s}.stamps WHERE board = $1 AND stamp BETWEEN k.stamp AND k.stamp ORDER BY stamp LIMIT 1) l WHERE s.ctid = l.ctid`), t.board.id, stamps)
	const buried = ` unnest($2::uuid[], $3::bigint[]) k (job, stamp) CROSS JOIN LATERAL (
		SELECT ctid, keep_until FROM {s}.jobs WHERE board = $1 AND job BETWEEN k.job AND k.job AND tombstone = k.stamp ORDER BY job LIMIT 1) l WHERE j.ctid = l.ctid `
	queue.Queue(t.sql(`DELETE FROM {s}.jobs j USING`+buried+`AND l.keep_until = 0`), t.board.id, jobs, stamps).
		Exec(func(tag pgconn.CommandTag) error { t.head.ended -= tag.RowsAffected(); return nil })
	queue.Queue(t.sql(`UPDATE {s}.jobs j SET tombstone = 0 FROM`+buried), t.board.id, jobs, stamps)
	return len(stamps), send(t.ctx, t.conn, queue)
}

// forgetFinals takes final records away until goes says no of one, and with each the job if its
// tombstone has gone.
func (t *batch) forgetFinals(goes func(*row) bool, which string, args ...any) (gone int, err error) {
	rows, err := t.conn.Query(t.ctx, t.sql(`SELECT `+rowColumns+` FROM {s}.jobs WHERE board = $1 AND keep_until > 0 `+which),
		append([]any{t.board.id}, args...)...)
	if err != nil {
		return 0, err
	}
	var list []*row
	for rows.Next() {
		r, err := scanRow(rows, &t.head)
		if err != nil {
			rows.Close()
			return 0, err
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil || len(list) == 0 {
		return 0, err
	}
	o := &batch{store: t.store, board: t.board, parts: map[job.ID]*partChanges{}}
	for _, r := range list {
		if !goes(r) {
			break
		}
		gone++
		t.head.finals--
		t.head.finalBytes -= r.size
		o.wipe(r, true, true)
		if r.tombstone == 0 || r.damage != nil {
			r.gone = true
			t.head.ended--
		}
		r.strip()
		r.keepUntil, r.size = 0, 0
		o.touch(r)
	}
	queue := &pgx.Batch{}
	o.queueParts(queue)
	o.queueJobs(queue)
	return gone, send(t.ctx, t.conn, queue)
}
