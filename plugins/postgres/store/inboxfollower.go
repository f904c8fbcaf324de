package store

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/sleep"
)

// followInbox looks again and again for postings that were left for the boards that are watched
// here.
func (s *store) followInbox(ctx context.Context) {
	f := inboxFollower{store: s}
	failed := false // the last look: that is told once
	for wait := inboxEvery; sleep.For(ctx, wait) == nil; {
		err := f.look(ctx)
		if wait = inboxEvery; err != nil {
			f.known = nil // a server that was put back or took another's place begins anew
			wait = inboxAgain
		}
		if err != nil && !failed && ctx.Err() == nil {
			s.log.Warn("PostgreSQL cannot be asked what was left to be posted by boardd.post, which is tried again", "error", err)
		}
		failed = err != nil
	}
}

// An inboxFollower finds each row that becomes visible, however long its transaction took:
// a row that one snapshot sees and the one before did not is of a transaction that the one
// before lists as running, or that began after it. So nobody waits for a long transaction,
// and nothing that is dead is looked at again.
type inboxFollower struct {
	*store
	known   map[int64]*board // the boards that were open at the last look; nil: there was none that counts
	started int64            // when the server was started
	top     string           // the last snapshot: transactions from here on had not begun,
	running []string         // and of those before these were under way
}

// findLeft returns what is visible now and was not in the last snapshot, and all that waits
// for boards that have been opened since, or are watched since. There is always a row, for the snapshot's sake. Rows
// of transactions that have not begun were dumped from another server: they are found as their
// board is opened, and not at each look.
const findLeft = `SELECT now.top, now.running, now.started, l.number, l.board FROM (
		SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS top, ARRAY(SELECT pg_snapshot_xip(pg_current_snapshot())::text) AS running,
			(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS started
	) now LEFT JOIN (
		SELECT number, board FROM {s}.inbox WHERE refused IS NULL AND xact >= $1::text::xid8 AND xact < pg_snapshot_xmax(pg_current_snapshot())
		UNION SELECT number, board FROM {s}.inbox WHERE refused IS NULL AND xact = ANY($2::text[]::xid8[])
		UNION SELECT number, board FROM {s}.inbox WHERE refused IS NULL AND board = ANY($3::bigint[])
	) l ON true ORDER BY l.number`

func (f *inboxFollower) look(ctx context.Context) error {
	anew := f.known == nil
	if anew {
		f.top, f.running = "0", nil // all that waits is new
	}
	added, lost := f.openBoards()
	if len(f.known) == 0 && !f.wakers.any() {
		f.known = nil
		return nil
	}
	var left map[int64][]int64
	var top string
	var running []string
	var started int64
	conn, err := f.begin(ctx, func(queue *pgx.Batch) {
		left = map[int64][]int64{}
		queue.Queue(beginRead)
		queue.Queue(local)
		queue.Queue(f.sql(findLeft), f.top, f.running, added).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var number, board *int64
				if err := rows.Scan(&top, &running, &started, &number, &board); err != nil {
					return err
				}
				if number != nil {
					left[*board] = append(left[*board], *number)
				}
			}
			return rows.Err()
		})
		queue.Queue("COMMIT")
	})
	if err != nil {
		return err
	}
	f.abandon(conn)
	if !anew && started != f.started { // its transactions are counted anew, or not all of them are there
		f.known = nil
		return nil
	}
	f.started, f.top, f.running = started, top, running
	found := maps.Clone(left)
	if err := f.share(ctx, left, added, lost); err != nil {
		return err
	}
	return f.wake(ctx, found) // now that the boards' own lists have it
}

// openBoards notes which boards are open here and may be changed. It returns for which of them all
// that waits has to be listed, and what waited for those that are gone: it may have been seen
// when they were on their way. A board is opened once more when it may have been put back, and
// then rows of any age may be there. One that nobody watches has no list: another server takes in
// what is left for it, and this one would not learn what has gone. Where a look counted before,
// only boards are looked at to which something happened since: most boards of many are at rest.
func (f *inboxFollower) openBoards() (added, lost []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	anew, ids := f.known == nil, maps.Keys(f.touched)
	if anew {
		f.known, ids = maps.Clone(f.taken), maps.Keys(f.taken)
	}
	for id := range ids {
		b := f.taken[id]
		if b == nil {
			if before := f.known[id]; before != nil {
				lost = append(lost, before.watch.inbox.stop()...)
			}
			delete(f.known, id)
			continue
		}
		switch f.known[id] = b; {
		case b.watch.watchers.Load() == 0:
			_ = b.watch.inbox.stop()
		case anew || !b.watch.inbox.lists(b):
			added = append(added, id)
		}
	}
	clear(f.touched)
	return added, lost
}

// share tells the boards what was left for them; added have all of it listed. What was left for a
// board that is not there any more is refused, as lost is.
func (f *inboxFollower) share(ctx context.Context, left map[int64][]int64, added, lost []int64) error {
	for _, id := range added {
		b := f.known[id]
		if b.watch.inbox.list(b, left[id]); left[id] != nil {
			b.watch.Ring()
		}
		delete(left, id)
	}
	for id, numbers := range left {
		b := f.known[id]
		if b == nil {
			lost = append(lost, numbers...)
			continue
		}
		b.watch.inbox.add(numbers)
		b.watch.Ring()
	}
	if lost == nil {
		return nil
	}
	return f.within(ctx, func(ctx context.Context) error {
		_, err := f.pool.Exec(ctx, f.sql(`UPDATE {s}.inbox i SET refused = 'the board was deleted'
			WHERE number = ANY($1) AND refused IS NULL AND NOT EXISTS (SELECT FROM {s}.boards b WHERE b.board = i.board)`), lost)
		return err
	})
}
