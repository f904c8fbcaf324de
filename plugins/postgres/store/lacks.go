package store

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
)

// A server that takes the place of another may lack what that one had acknowledged. Where
// it stands lower than the host was told, driver.Witness shows it. But another host may
// have made changes on it meanwhile, and then it stands higher. So two more things are
// looked for among the changes that are kept for watchers: the position that the host was
// told last, and the very batch that this driver was told last was committed.

// memo is the last batch on a board that this driver was told was committed.
type memo struct {
	mu       sync.Mutex
	position int64 // 0: none
	sum      [sha256.Size]byte
}

func (m *memo) set(position int64, changes []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if position == 0 || position > m.position { // two batches may be under way
		m.position, m.sum = position, sha256.Sum256(changes)
	}
}

// traces are what a board is looked at for when it is opened.
type traces struct {
	seen int64 // the position that the host was told last
	memo memo

	older            bool // there are changes from before seen
	hasSeen, hasMemo bool
}

// tracesOf says what to look for when a board is opened.
func tracesOf(spec *driver.BoardSpec, before *board) *traces {
	t := &traces{seen: int64(spec.Seen)} //nolint:gosec // a higher one is none that was given
	if before != nil {
		before.watch.memo.mu.Lock()
		t.memo.position, t.memo.sum = before.watch.memo.position, before.watch.memo.sum
		before.watch.memo.mu.Unlock()
	}
	return t
}

// queue asks for the traces, after the head was asked for.
func (t *traces) queue(s *store, queue *pgx.Batch, name string) {
	t.older, t.hasSeen, t.hasMemo = false, false, false
	queue.Queue(s.sql(`SELECT EXISTS (SELECT 1 FROM {s}.changes WHERE board = `+boardOf+` AND position < $2)`), []byte(name), t.seen).
		QueryRow(func(row pgx.Row) error { return row.Scan(&t.older) })
	queue.Queue(s.sql(`SELECT changes FROM {s}.changes WHERE board = `+boardOf+` AND position >= $2 ORDER BY position LIMIT 1`), []byte(name), t.seen).
		Query(func(rows pgx.Rows) error {
			return eachChanges(rows, func(in []byte) {
				list, err := decodeChanges(in, 0, time.Time{})
				t.hasSeen = err != nil // who cannot be read lacks nothing
				for i := range list {
					t.hasSeen = t.hasSeen || list[i].Position == driver.Position(t.seen) //nolint:gosec // it was one
				}
			})
		})
	queue.Queue(s.sql(`SELECT changes FROM {s}.changes WHERE board = `+boardOf+` AND position = $2`), []byte(name), t.memo.position).
		Query(func(rows pgx.Rows) error {
			return eachChanges(rows, func(in []byte) { t.hasMemo = sha256.Sum256(in) == t.memo.sum })
		})
}

func eachChanges(rows pgx.Rows, do func([]byte)) error {
	for rows.Next() {
		var in []byte
		if err := rows.Scan(&in); err != nil {
			return err
		}
		do(in)
	}
	return rows.Err()
}

// missing reports whether the board, as it stands, lacks something that was acknowledged.
// What is older than the changes that are kept cannot be told. A board that was deleted and
// made anew has no changes from before what the host was told of the old one.
func (t *traces) missing(h *head) bool {
	seen := t.seen > h.forgotten && t.seen <= h.position && (t.older || h.forgotten > 0) && !t.hasSeen
	memo := t.memo.position > h.forgotten && !t.hasMemo
	return seen || memo
}

// lossBehind says what missing found.
const lossBehind = "another server of PostgreSQL took the place of the one before and lacks changes that had been acknowledged; others were made on it since"

// lookFor reads the traces of a board that is only observed.
func (s *store) lookFor(ctx context.Context, b *board, t *traces) (h head, err error) {
	return s.look(ctx, b, func(queue *pgx.Batch, _ *head) { t.queue(s, queue, b.Name) })
}
