package store

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A board is how a board was opened here. It is never changed, but replaced; the bell
// and the turns stay.
type board struct {
	driver.BoardSpec
	id      int64 // 0: an observed one, which need not be there
	started int64 // when the server was started that it was opened on; 0: it is being opened
	events  int64 // how many changes are kept
	watch   *watch
}

// A watch is what all who opened a board here have in common.
type watch struct {
	poll.Bell
	turns    chan struct{}         // as many batches may be under way, here
	watchers atomic.Int64          // who watches the board, here
	swept    atomic.Pointer[sweep] // nil: from the first key
	finals   atomic.Pointer[pastFinals]
	inbox    inbox
	memo     memo
}

// inFlight is how many batches of one board are under way at once: one that has the
// board, and one that waits for it at the server.
const inFlight = 2

// maxBatch is how many ops a batch has at most. What each batch costs beside them, with a flush of
// the disk, is as much as some hundred ops.
const maxBatch = 512

// capabilities are what the store can do on each board.
func capabilities() driver.Capabilities {
	c := driver.CapabilityAll()
	c.MaxBatch, c.InFlight, c.Inbox, c.Moves, c.Empties = maxBatch, inFlight, true, true, true
	return c
}

// OpenBoard makes the board's row, and looks whether the store lost something that the
// host remembers.
func (s *store) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	if err := spec.Check(); err != nil {
		return driver.BoardStatus{}, err
	}
	events, err := readBoardSettings(&spec)
	if err != nil {
		return driver.BoardStatus{}, err
	}
	b := &board{BoardSpec: spec.WithDefaults(), events: events, watch: &watch{turns: make(chan struct{}, inFlight)}}
	status := driver.BoardStatus{Capabilities: capabilities(), Window: b.Window}
	if status.Durability, err = s.durability(ctx); err != nil {
		return driver.BoardStatus{}, err
	}
	s.mu.Lock()
	marks := tracesOf(&spec, s.boards[spec.Name])
	s.mu.Unlock()
	if spec.Observe {
		err = s.observe(ctx, b, marks, &status)
	} else {
		err = s.take(ctx, b, marks, &status)
	}
	if err != nil {
		return driver.BoardStatus{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.boards[spec.Name]; before != nil {
		b.watch = before.watch
		b.watch.swept.Store(nil)
		b.watch.finals.Store(nil)
		if status.Loss != "" {
			b.watch.memo.set(0, nil)
		}
	}
	s.keep(spec.Name, b)
	return status, nil
}

// durability says what an acknowledged change survives, by how the server is set.
func (s *store) durability(ctx context.Context) (driver.Durability, error) {
	var fsync, commit, standbys string
	err := s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names')`).
			Scan(&fsync, &commit, &standbys)
	})
	switch {
	case err != nil:
		return "", failed(ctx, err)
	case fsync == "off" || commit == "off":
		return driver.Delayed, nil
	case standbys != "" && commit != "local":
		return driver.Replicated, nil
	}
	return driver.Durable, nil
}

// observe looks at a board and writes nothing.
func (s *store) observe(ctx context.Context, b *board, marks *traces, status *driver.BoardStatus) error {
	h, err := s.lookFor(ctx, b, marks)
	if err == nil {
		_, err = s.compare(b, &h, marks, status)
		b.started = h.started
	}
	return err
}

// sameServer refuses to go on with a board on another server than it was opened on, or
// on one that was started anew: it may have less than the host was told, which is found
// out when the board is opened again. Until then nothing may be changed. The watch is told, so
// that it ends: behind a pooler nothing else need tell that the connections are new ones.
func (b *board) sameServer(h *head) error {
	if b.started == 0 || h.started == b.started || !h.there {
		return nil
	}
	b.watch.Ring()
	return job.Errorf(job.Unavailable, "PostgreSQL was started again, or another server took its place: the board has to be opened again")
}

// take makes the board if it is not there, and begins a new generation if changes that
// the host knows of are lost: then no token of before is good any more.
func (s *store) take(ctx context.Context, b *board, marks *traces, status *driver.BoardStatus) error {
	err := s.again(ctx, func(ctx context.Context) error { // it does no harm twice
		_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO {s}.boards (name) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM {s}.boards WHERE name = $1)
			ON CONFLICT DO NOTHING`), []byte(b.Name))
		if err == nil {
			err = s.pool.QueryRow(ctx, s.sql(`SELECT board FROM {s}.boards WHERE name = $1`), []byte(b.Name)).Scan(&b.id)
		}
		return err
	})
	if err != nil {
		return failed(ctx, err)
	}
	t, err := s.enter(ctx, b, &needs{traces: marks})
	if err != nil {
		return err
	}
	defer t.leave()
	generation, err := s.compare(b, &t.head, marks, status)
	if err != nil {
		return err
	}
	b.started = t.head.started
	queue := &pgx.Batch{}
	if generation != t.head.generation {
		queue.Queue(s.sql(`UPDATE {s}.jobs SET lease = 1, ends = 0 WHERE board = $1 AND state = $2`), b.id, claimedState)
		queue.Queue(s.sql(`UPDATE {s}.boards SET generation = $2 WHERE board = $1`), b.id, int64(generation)) //nolint:gosec // it came from a bigint
	} else if !t.anchored {
		return nil
	}
	return t.commit(queue)
}

// compare says how the board stands, and whether it has lost something.
func (s *store) compare(b *board, h *head, marks *traces, status *driver.BoardStatus) (generation uint64, err error) {
	stands := driver.Witness{Store: s.id, Generation: h.generation, Position: driver.Position(h.position)} //nolint:gosec // of a bigint
	generation, status.Loss, err = stands.Compare(&b.BoardSpec)
	if err != nil {
		return 0, err
	}
	if status.Loss == "" && marks.missing(h) {
		generation, status.Loss = h.generation+1, lossBehind
	}
	stands.Generation = generation
	status.Generation, status.Position, status.Witness = generation, stands.Position, stands.Bytes()
	return generation, nil
}

// A head is how a board stands.
type head struct {
	there      bool
	generation uint64
	term       int64 // when the server was started under which leases count
	started    int64 // and when it really was
	now        time.Time
	passage    transition.Passage

	position, told, forgotten, stampsAfter int64
	counts
}

// counts are how many records of which sort a board has.
type counts struct{ open, claimed, trashed, ended, stamps, finals, finalBytes int64 }

const readHead = `SELECT b.generation, {passage}, b.term, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
	(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
	coalesce(t.position, 0), coalesce(t.told, 0), coalesce(t.forgotten, 0), coalesce(t.stamps_after, 0), coalesce(t.open, 0), coalesce(t.claimed, 0),
	coalesce(t.trashed, 0), coalesce(t.ended, 0), coalesce(t.stamps, 0), coalesce(t.finals, 0), coalesce(t.final_bytes, 0)
	FROM {s}.boards b LEFT JOIN LATERAL (SELECT * FROM {s}.batches WHERE board = b.board ORDER BY position DESC LIMIT 1) t ON true`

// queue asks for the head of a board.
func (h *head) queue(s *store, queue *pgx.Batch, b *board) {
	*h = head{generation: 1, now: time.Now().Round(0)}
	where, arg := " WHERE b.board = $1", any(b.id)
	if b.id == 0 {
		where, arg = " WHERE b.name = $1", []byte(b.Name)
	}
	queue.Queue(s.sql(strings.Replace(readHead, "{passage}", s.passageColumn(), 1)+where), arg).Query(func(rows pgx.Rows) error {
		var now int64
		var passage []byte
		for rows.Next() {
			if err := rows.Scan(&h.generation, &passage, &h.term, &now, &h.started, &h.position, &h.told, &h.forgotten, &h.stampsAfter,
				&h.open, &h.claimed, &h.trashed, &h.ended, &h.stamps, &h.finals, &h.finalBytes); err != nil {
				return err
			}
			h.there, h.now = true, time.UnixMicro(now)
			var err error
			if h.passage, err = transition.ReadPassage(passage); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// boardOf is how statements that only read name a board: one that is only observed may
// come and go.
const boardOf = `(SELECT board FROM {s}.boards WHERE name = $1)`

// look reads a board, as it stands at one moment, in one trip. more adds to what is
// asked; what it asks is answered after the head was read into its argument.
func (s *store) look(ctx context.Context, b *board, more func(queue *pgx.Batch, h *head)) (h head, err error) {
	conn, err := s.begin(ctx, func(queue *pgx.Batch) {
		queue.Queue(beginRead)
		queue.Queue(local)
		h.queue(s, queue, b)
		if more != nil {
			more(queue, &h)
		}
		queue.Queue("COMMIT")
	})
	if err != nil {
		return h, err
	}
	s.abandon(conn)
	if !h.there && !b.Observe {
		return h, notOpen(b.Name) // somebody dropped it
	}
	return h, b.sameServer(&h)
}
