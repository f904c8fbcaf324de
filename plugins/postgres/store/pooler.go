package store

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A pooler is a program between this driver and PostgreSQL that has each transaction
// done by whichever session is free, as PgBouncer does with pool_mode = transaction. What
// a session knows is not there in the next transaction then: no prepared statements, and
// nobody who listens. So neither is used once there is one.
type pooler struct{ found atomic.Bool }

var errPooler = errors.New("a pool of connections is in front of PostgreSQL, which this connection did not expect")

// watch has each new connection of a pool looked at.
func (p *pooler) watch(c *pgxpool.Config) {
	c.BeforeConnect = func(_ context.Context, to *pgx.ConnConfig) error {
		p.suit(to)
		return nil
	}
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return p.meet(ctx, conn)
	}
}

// suit has a connection use no prepared statements, if a pooler was found.
func (p *pooler) suit(c *pgx.ConnConfig) {
	if p.found.Load() && c.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}

// meet looks who has answered: PostgreSQL tells the number of the process that serves
// the connection, and a pooler one that it made up. A connection that was made for
// PostgreSQL itself is given up when it turns out to lead to a pooler; the next is right.
func (p *pooler) meet(ctx context.Context, conn *pgx.Conn) error {
	answers, err := conn.PgConn().Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return err
	}
	serves := string(answers[0].Rows[0][0])
	if serves == strconv.FormatUint(uint64(conn.PgConn().PID()), 10) {
		return nil
	}
	p.found.Store(true)
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		return errPooler
	}
	return nil
}

// connect makes a pool of connections, and finds out whether there is a pooler. A server
// that cannot be reached is told of by whoever needs it.
func (p *pooler) connect(ctx context.Context, c *pgxpool.Config) (*pgxpool.Pool, error) {
	p.watch(c)
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	if conn, err := pool.Acquire(ctx); err == nil {
		conn.Release()
	}
	return pool, nil
}
