package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/boardd/boardd/sdk/job"
)

// A session runs statements in one transaction. Its first error ends it: some errors
// roll SQLite's transaction back at once, and what came after one would be committed
// by itself. So nothing is run any more, and nobody has to ask after each statement.
type session struct {
	execute func(query string, args []any) error
	query   func(query string, args []any) (*sql.Rows, error)
	err     error
}

// newSession prepares each query as prepare does. The end of ctx ends a query.
func newSession(ctx context.Context, prepare func(query string) (*sql.Stmt, error)) *session {
	return &session{
		execute: func(query string, args []any) error {
			stmt, err := prepare(query)
			if err == nil {
				_, err = stmt.ExecContext(ctx, args...)
			}
			return err
		},
		query: func(query string, args []any) (*sql.Rows, error) {
			stmt, err := prepare(query)
			if err != nil {
				return nil, err
			}
			return stmt.QueryContext(ctx, args...)
		},
	}
}

func (q *session) exec(query string, args ...any) {
	if q.err == nil {
		q.err = q.execute(query, args)
	}
}

// each calls scan for every row.
func (q *session) each(scan func(*sql.Rows) error, query string, args ...any) {
	if q.err != nil {
		return
	}
	rows, err := q.query(query, args)
	if err != nil {
		q.err = err
		return
	}
	for err == nil && rows.Next() {
		err = scan(rows)
	}
	q.err = errors.Join(err, rows.Err(), rows.Close())
}

// row reads the only row, and reports whether there was one.
func (q *session) row(scan func(*sql.Rows) error, query string, args ...any) (found bool) {
	q.each(func(rows *sql.Rows) error { found = true; return scan(rows) }, query, args...)
	return found && q.err == nil
}

// into scans a row's columns.
func into(dest ...any) func(*sql.Rows) error {
	return func(rows *sql.Rows) error { return rows.Scan(dest...) }
}

// write runs a transaction that changes something. Before it has begun, the end of ctx
// ends it (INTERRUPTED); then it goes on, whoever still waits. Every error but that of
// COMMIT says that nothing was changed.
func (s *store) write(ctx context.Context, do func(*session) error) (err error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	q := newSession(context.WithoutCancel(ctx), func(query string) (*sql.Stmt, error) { return s.statement(s.writes, s.writer, query) })
	if q.exec("BEGIN IMMEDIATE"); q.err != nil {
		return unavailable(q.err)
	}
	begun := true
	defer func() {
		if begun { // an error, or a panic
			_, _ = s.writer.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // which SQLite may have done already
		}
	}()
	if err := errors.Join(do(q), q.err); err != nil {
		return unavailable(err)
	}
	if q.exec("COMMIT"); q.err != nil {
		return &job.Error{Kind: job.OutcomeUnknown, Err: q.err}
	}
	begun = false
	s.bell.Ring()
	return nil
}

// read runs a transaction that sees the file as it stood at one moment.
func (s *store) read(ctx context.Context, do func(*session) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err == nil {
		defer func() { _ = tx.Rollback() }() // nothing was changed
		q := newSession(ctx, func(query string) (*sql.Stmt, error) {
			stmt, err := s.statement(s.reads, s.db, query)
			if err != nil {
				return nil, err
			}
			return tx.StmtContext(ctx, stmt), nil
		})
		err = errors.Join(do(q), q.err)
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return unavailable(err)
}

// statement prepares a query at its first use.
func (s *store) statement(known map[string]*sql.Stmt, on interface {
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}, query string,
) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := known[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := on.PrepareContext(context.Background(), query)
	if err == nil {
		known[query] = stmt
	}
	return stmt, err
}

// unavailable makes an error of the database one of the contract, which says that
// nothing was changed. One that is of the contract stays as it is.
func unavailable(err error) error {
	var e *job.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	}
	return &job.Error{Kind: job.Unavailable, Err: err}
}

func interrupted(ctx context.Context) error {
	return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
}
