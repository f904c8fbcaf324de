package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/boardd/boardd/sdk/job"
)

// local are the settings of each transaction. They are set in it, since a pool of
// connections in front of the server may give each transaction another session. Plans
// that read a table whole, or all of a board in it, are never right here: without statistics, and with plans that
// are kept while a table grows, PostgreSQL would choose them.
const local = `SELECT set_config('lock_timeout', '10s', true), set_config('statement_timeout', '60s', true),
	set_config('idle_in_transaction_session_timeout', '30s', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('enable_bitmapscan', 'off', true), set_config('enable_material', 'off', true), set_config('jit', 'off', true)`

// Sessions begin so. One that writes does not ask for READ WRITE, which a server grants though it
// was set read-only.
const (
	beginRead  = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED"
)

// grace is how long a commit that was begun may last after its caller went away.
const grace = 3 * time.Second

// answerWithin is how long the driver waits for one answer to something that it may ask again:
// longer than a board may be locked, and enough for a page of large jobs. The connection that gave none leads nowhere, though what
// is sent on it may still be acknowledged by somebody in between.
const answerWithin = 30 * time.Second

// within has something asked within the driver's patience.
func (s *store) within(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return do(ctx)
}

// send runs what is queued, in one trip.
func send(ctx context.Context, conn *pgxpool.Conn, queue *pgx.Batch) error {
	return conn.SendBatch(ctx, queue).Close()
}

// acquire takes a connection.
func (s *store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return conn, nil
}

// begin takes a connection and begins a transaction with what is queued. If the
// connection turns out to be dead it takes all idle ones with it, since the server was away,
// and it is done once more, with a new one: nothing was changed. So it is where the server was set
// read-only since: another may take changes now.
func (s *store) begin(ctx context.Context, fill func(queue *pgx.Batch)) (*pgxpool.Conn, error) {
	for again := false; ; again = true {
		if ctx.Err() != nil {
			return nil, interrupted(ctx)
		}
		var conn *pgxpool.Conn
		err := s.within(ctx, func(ctx context.Context) (err error) {
			if conn, err = s.pool.Acquire(ctx); err != nil {
				return err
			}
			queue := &pgx.Batch{}
			fill(queue)
			return send(ctx, conn, queue)
		})
		if err == nil {
			return conn, nil
		}
		if conn != nil {
			s.abandon(conn)
		}
		if useless(err) && ctx.Err() == nil {
			s.pool.Reset()
		}
		if again || conn == nil || ctx.Err() != nil || !useless(err) {
			return nil, failed(ctx, err)
		}
	}
}

// abandon gives up a transaction, if there is one.
func (s *store) abandon(conn *pgxpool.Conn) {
	if !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_, _ = conn.Exec(ctx, "ROLLBACK") // if that fails, the connection is closed, and the server rolls back
	}
	conn.Release()
}

// commit sends what is queued, and COMMIT behind it. It goes on for a while though ctx
// ends.
func (s *store) commit(ctx context.Context, conn *pgxpool.Conn, queue *pgx.Batch) error {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	defer stop()
	delete(conn.Conn().PgConn().CustomData(), unsynced)
	queue.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return job.Errorf(job.Unavailable, "PostgreSQL rolled the transaction back")
		}
		return nil
	})
	err := send(lasting, conn, queue)
	if setReadOnly(err) {
		s.pool.Reset()
	}
	if err != nil {
		err = commitFailed(err)
	} else if conn.Conn().PgConn().CustomData()[unsynced] != nil {
		err = unknown(errors.New("it stopped waiting for its standbys"))
	}
	s.full.note(err, bytesOf(queue), time.Now())
	return err
}
