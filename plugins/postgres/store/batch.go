package store

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// claimedState is the column state of a claimed job.
const claimedState = int16(job.Claimed)

// A batch is a transaction that has locked a board. It holds the facts as they were
// read, and as the batch changes them.
type batch struct {
	*store
	ctx      context.Context //nolint:containedctx // of the one call that the batch is made for
	conn     *pgxpool.Conn
	board    *board
	head     head
	before   head // as it was read
	anchored bool // leases count anew, and that has to be committed
	repeats  bool // an answer tells of what an earlier transaction did

	numbers []int64 // that changes are given, in order
	number  int64   // the last of them that was given away
	rows    map[job.ID]*row
	order   []*row // those that were changed
	kept    map[transition.Key]*kept
	fresh   []*kept // those that were changed
	keys    map[string]*keyRow
	swept   *sweep           // where to go on after this batch; nil: as before
	finals  *pastFinals      // likewise
	sums    map[string]int64 // what limits count, of the keys that somebody asks for
	moved   map[string]int64
	parts   map[job.ID]*partChanges
	left    map[int64]bool // postings that ops are about, and that wait in the inbox
	settled []int64        // of these, those that leave it,
	refused []int64        // and those that stay as refused
	reasons []string       // why
	changes writer
	wanted  map[driver.Parts]map[job.ID][]*driver.Record // answers that show larger parts
}

// enter locks a board and reads what needs says. ask may be nil.
func (s *store) enter(ctx context.Context, b *board, ask *needs) (*batch, error) {
	if ask == nil {
		ask = &needs{}
	}
	t := &batch{store: s, ctx: ctx, board: b}
	conn, err := s.begin(ctx, func(queue *pgx.Batch) {
		t.rows, t.kept, t.sums = map[job.ID]*row{}, map[transition.Key]*kept{}, map[string]int64{}
		t.moved, t.parts, t.wanted = map[string]int64{}, map[job.ID]*partChanges{}, map[driver.Parts]map[job.ID][]*driver.Record{}
		t.keys, t.numbers, t.left = map[string]*keyRow{}, t.numbers[:0], map[int64]bool{}
		queue.Queue(beginWrite)
		queue.Queue(local)
		queue.Queue(s.sql(`SELECT 1 FROM {s}.boards WHERE board = $1 FOR NO KEY UPDATE`), b.id)
		t.head.queue(s, queue, b) // a statement of its own: it sees what was committed before the lock was given
		if ask.changes > 0 {
			queue.Queue(s.sql(`SELECT nextval('{s}.positions') FROM generate_series(1, $1::integer)`), ask.changes).Query(t.readNumbers)
		}
		t.queueRows(queue, ask.jobs)
		t.queueKept(queue, ask.stamps)
		t.queueKeys(queue, ask.keys)
		t.queueSums(queue, ask.limits)
		t.queueSizes(queue, ask.ends)
		t.queueLeft(queue, ask.left)
		if ask.traces != nil {
			ask.traces.queue(s, queue, b.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	t.conn = conn
	if !t.head.there {
		t.leave()
		return nil, notOpen(b.Name) // somebody dropped it
	}
	if err := b.sameServer(&t.head); err != nil {
		t.leave()
		return nil, err
	}
	t.before = t.head
	if t.head.term != t.head.started {
		if err := t.anchor(ask); err != nil {
			t.leave()
			return nil, failed(ctx, err)
		}
	}
	return t, nil
}

// anchor has all leases count anew: nobody knows what the server's clock has to do with that of
// before. What was read of jobs is read again, since their rows are others now.
func (t *batch) anchor(ask *needs) error {
	t.anchored = true
	queue := &pgx.Batch{}
	queue.Queue(t.sql(`UPDATE {s}.jobs SET ends = $3 + lease WHERE board = $1 AND state = $2 AND ends > 0`), t.board.id, claimedState, t.head.now.UnixNano())
	queue.Queue(t.sql(`UPDATE {s}.boards SET term = $2 WHERE board = $1`), t.board.id, t.head.started)
	t.queueRows(queue, ask.jobs)
	t.queueSizes(queue, ask.ends)
	return send(t.ctx, t.conn, queue)
}

// leave ends the transaction, if it was not committed.
func (t *batch) leave() { t.abandon(t.conn) }

// needs are what a batch has to know beforehand.
type needs struct {
	jobs    []job.ID
	ends    []job.ID         // of these, what their parts measure
	stamps  []transition.Key // of these
	keys    []string
	limits  []string
	left    []int64 // numbers of postings in the inbox
	changes int     // at most so many
	traces  *traces // nil: none
}

// needsOf says what ops need.
func needsOf(ops []driver.Op) *needs {
	n := &needs{}
	for i := range ops {
		n.of(&ops[i])
	}
	return n
}

func (n *needs) of(op *driver.Op) {
	if op.Inbox != 0 {
		n.left = append(n.left, int64(op.Inbox)) //nolint:gosec // checked
	}
	switch op.Kind {
	case driver.Refuse:
		return
	case driver.Tally:
		n.limits = append(n.limits, transition.GroupKeys(op.Group)...)
		n.changes++
		return
	default:
	}
	if key, ok := transition.KeyOf(op); ok {
		n.stamps = append(n.stamps, key)
	}
	for i := range op.Keys {
		n.keys = append(n.keys, op.Keys[i].Name)
	}
	n.limit(transition.Counted(op))
	if op.Emptied != "" {
		n.limits = append(n.limits, transition.GroupKey(op.Emptied, transition.Open))
	}
	if op.Kind != driver.Claim {
		n.jobs = append(n.jobs, transition.JobOf(op))
		if op.Ending != nil && op.Ending.Keep > 0 {
			n.ends = append(n.ends, op.Job)
		}
		n.changes++
		if op.Replaces != nil {
			n.of(op.Replaces)
		}
		if op.Import != nil && op.Import.Then != nil {
			if then := op.Import.Then; op.Kind != driver.Post && then.Ending != nil && then.Ending.Keep > 0 {
				n.ends = append(n.ends, op.Job)
			}
			n.changes++
		}
		return
	}
	for i := range op.Claim.Candidates {
		n.jobs = append(n.jobs, op.Claim.Candidates[i].Job)
		n.limit(op.Claim.Candidates[i].Limits)
		for _, r := range op.Claim.Candidates[i].Rates {
			n.keys = append(n.keys, transition.RateName(r.Key))
		}
	}
	n.changes += min(op.Claim.Count, len(op.Claim.Candidates))
}

func (n *needs) limit(list []driver.Limit) {
	for i := range list {
		n.limits = append(n.limits, list[i].Key)
	}
}

func (t *batch) readNumbers(rows pgx.Rows) error {
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		t.numbers = append(t.numbers, n)
	}
	return rows.Err()
}

// draw gives a number away.
func (t *batch) draw() { t.number, t.numbers = t.numbers[0], t.numbers[1:] }

// next gives a change its position.
func (t *batch) next() driver.Position {
	t.draw()
	t.head.position = t.number
	t.head.told++
	return driver.Position(t.number) //nolint:gosec // of a bigint
}

// rowColumns are those that scanRow reads, of the table itself.
const rowColumns = columnsOfJob + `, ctid`

const columnsOfJob = `job, state, lease, ends, tombstone, keep_until, size, posting, record`

// rowsOf selects the jobs $2 of a board, one by one, as every statement looks for its rows: in a
// LATERAL subquery that OFFSET or LIMIT keeps from being joined otherwise. job = ANY($2), or a join,
// may read all of the board while there are no statistics, and a session keeps the plan that it
// made of a small table. A range of one in order is what one index alone gives: of a table of a
// few rows any other that begins with the board costs the same. Rows that are changed are then
// named by their ctid, which is the column at here, and which nobody else changes while the board is locked.
func rowsOf(board string) string {
	return `SELECT ` + columnsOfJob + `, at FROM unnest($2::uuid[]) k (wanted)
		CROSS JOIN LATERAL (SELECT ` + columnsOfJob + `, ctid AS at FROM {s}.jobs WHERE board = ` + board + ` AND job BETWEEN k.wanted AND k.wanted ORDER BY job LIMIT 1) j`
}

func scanRow(from pgx.Rows, h *head, more ...any) (*row, error) {
	var id pgtype.UUID
	var state int16
	var posting, record []byte
	r := &row{stored: true}
	err := from.Scan(append([]any{&id, &state, &r.lease, &r.ends, &r.tombstone, &r.keepUntil, &r.size, &posting, &record, &r.ctid}, more...)...)
	if err != nil {
		return nil, err
	}
	r.Posting.ID = job.ID(id.Bytes)
	if state > int16(job.Unknown) && state <= int16(job.Trashed) {
		r.State = job.State(state) //nolint:gosec // checked
		r.damage = r.decode(posting, record)
	} else {
		r.damage = job.Errorf(job.Corrupt, "its state is %d: want %d to %d", state, job.Unclaimed, job.Trashed)
	}
	if r.damage != nil {
		r.Record = driver.Record{Posting: driver.Posting{ID: r.Posting.ID}, Corrupt: r.damage.Error()}
		return r, nil //nolint:nilerr // one row that cannot be read hides no other
	}
	if h.term != h.started && r.ends > 0 { // of an observed board, where nobody may write that down
		r.ends = h.now.UnixNano() + r.lease
	}
	r.at(h.now)
	return r, nil
}

// queueRows asks for jobs.
func (t *batch) queueRows(queue *pgx.Batch, ids []job.ID) {
	if len(ids) == 0 {
		return
	}
	queue.Queue(t.sql(rowsOf(`$1`)), t.board.id, uuids(ids)).Query(func(rows pgx.Rows) error {
		as := t.head
		as.term = as.started // anchor does what is to be done
		for rows.Next() {
			r, err := scanRow(rows, &as)
			if err != nil {
				return err
			}
			t.rows[r.Posting.ID] = r
		}
		return rows.Err()
	})
}

// load reads jobs that were not asked for at first.
func (t *batch) load(ids []job.ID) error {
	var missing []job.ID
	for _, id := range ids {
		if t.rows[id] == nil {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	queue := &pgx.Batch{}
	t.queueRows(queue, missing)
	return send(t.ctx, t.conn, queue)
}

// queueSums asks what limits count.
func (t *batch) queueSums(queue *pgx.Batch, keys []string) {
	if len(keys) == 0 {
		return
	}
	queue.Queue(t.sql(`SELECT k.key, l.n FROM (SELECT DISTINCT unnest($2::bytea[]) AS key) k CROSS JOIN LATERAL
		(SELECT n FROM {s}.limits WHERE board = $1 AND key = k.key ORDER BY position DESC LIMIT 1) l`), t.board.id, texts(keys)).
		Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var key []byte
				var n int64
				if err := rows.Scan(&key, &n); err != nil {
					return err
				}
				t.sums[string(key)] = n
			}
			return rows.Err()
		})
}

// queueSizes asks what the parts of jobs measure.
func (t *batch) queueSizes(queue *pgx.Batch, ids []job.ID) {
	if len(ids) == 0 {
		return
	}
	queue.Queue(t.sql(`SELECT p.* FROM unnest($2::uuid[]) k (job) CROSS JOIN LATERAL (
		SELECT job, name, octet_length(data) FROM {s}.parts WHERE board = $1 AND job = k.job OFFSET 0) p`), t.board.id, uuids(ids)).
		Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var id pgtype.UUID
				var name []byte
				var size int64
				if err := rows.Scan(&id, &name, &size); err != nil {
					return err
				}
				if r := t.rows[job.ID(id.Bytes)]; r != nil {
					r.measure(string(name), size)
				}
			}
			return rows.Err()
		})
}

// measure notes the size of a part.
func (r *row) measure(name string, size int64) {
	if r.sizes == nil {
		r.sizes = map[string]int64{}
	}
	r.sizes[name] = size
}

// sum returns what a limit counts.
func (t *batch) sum(key string) int64 { return t.sums[key] + t.moved[key] }

// count adds a job to the counters, or takes it out.
func (t *batch) count(r *row, sign int64) {
	switch r.State {
	case job.Claimed:
		t.head.claimed += sign
		t.head.open += sign
	case job.Unclaimed:
		t.head.open += sign
	case job.Trashed:
		t.head.trashed += sign
	case job.Complete:
		t.head.ended += sign
		if r.keepUntil > 0 {
			t.head.finals += sign
			t.head.finalBytes += sign * r.size
		}
	case job.Unknown:
	}
}

// touch has a job written at the end.
func (t *batch) touch(r *row) {
	if !r.dirty {
		r.dirty = true
		t.order = append(t.order, r)
	}
}

func uuids(ids []job.ID) []pgtype.UUID {
	list := make([]pgtype.UUID, len(ids))
	for i := range ids {
		list[i] = uuid(ids[i])
	}
	return list
}

func uuid(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func texts(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = []byte(list[i])
	}
	return out
}

// forever is a time that never comes.
const forever = math.MaxInt64
