package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/boardd/boardd/sdk/job"
)

// PostgreSQL's codes of errors that are told apart.
const (
	diskFull          = "53100"
	readOnly          = "25006"
	startingUp        = "57P03" // or shutting down, or recovering
	lockTimeout       = "55P03"
	idleTimeout       = "25P03" // the transaction was left alone for too long
	noRights          = "42501"
	noSchema          = "3F000"
	noTable           = "42P01"
	tooManyClients    = "53300"
	tooLargeForAnyKey = "54000"
	protocolViolation = "08P01" // what PgBouncer says of everything
)

// meanings say what is the matter where PostgreSQL's own words would not.
var meanings = map[string]string{
	readOnly:          "the server of PostgreSQL is read-only: it was set so (default_transaction_read_only), or is a standby",
	startingUp:        "PostgreSQL is starting, stopping or recovering",
	lockTimeout:       "the board is busy with other changes",
	noRights:          "the role in PostgreSQL lacks a right; docs/postgres.md says which it needs",
	noSchema:          "the driver's tables are not in this database",
	noTable:           "the driver's tables are not in this database",
	tooManyClients:    "PostgreSQL takes no more connections (max_connections)",
	tooLargeForAnyKey: "a name or a key is too long",
}

// onStandby is what is the matter where nobody but a standby answers.
const onStandby = "the server of PostgreSQL that answers is a standby, or is recovering: it takes no changes until it is promoted"

// takesChanges lets a connection be used only if its server takes changes, and says why it
// does not. Of several servers the next is tried then.
func takesChanges(ctx context.Context, conn *pgconn.PgConn) error {
	answers, err := conn.Exec(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')").ReadAll()
	switch {
	case err != nil:
		return err
	case string(answers[0].Rows[0][0]) == "t":
		return pgconn.ErrStandbyConnection
	case string(answers[0].Rows[0][1]) == "on":
		return pgconn.ErrReadOnlyConnection
	}
	return nil
}

// noDisk is what a change is refused with that a full disk has no room for.
const noDisk = "the disk of PostgreSQL is full"

// failed says why a statement failed that changed nothing.
func failed(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok {
		return e
	}
	err = connecting(err)
	pg, said := errors.AsType[*pgconn.PgError](err)
	switch {
	case said && pg.Code == protocolViolation && strings.Contains(pg.Message, "statement pooling"):
		return &job.Error{Kind: job.Unavailable, Message: "the pool of connections in front of PostgreSQL keeps no transaction together: it needs pool_mode = transaction or session", Err: err}
	case said && pg.Code == diskFull:
		return &job.Error{Kind: job.QuotaExceeded, Message: noDisk, Err: err}
	case ctx.Err() != nil:
		return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
	case errors.Is(err, pgconn.ErrReadOnlyConnection): // said by whoever answers, so it goes before those who do not
		return &job.Error{Kind: job.Unavailable, Message: meanings[readOnly], Err: err}
	case errors.Is(err, pgconn.ErrStandbyConnection):
		return &job.Error{Kind: job.Unavailable, Message: onStandby, Err: err}
	case said && meanings[pg.Code] != "":
		return &job.Error{Kind: job.Unavailable, Message: meanings[pg.Code], Err: err}
	case said:
		return &job.Error{Kind: job.Unavailable, Message: "PostgreSQL refuses", Err: err}
	}
	return &job.Error{Kind: job.Unavailable, Message: "PostgreSQL is not reachable", Err: err}
}

// unreachable is an error of connecting whose text names each thing that failed once: pgx tries a
// server with TLS and without, and says both.
type unreachable struct {
	error

	text string
}

func (e *unreachable) Error() string { return e.text }
func (e *unreachable) Unwrap() error { return e.error }

// noTLS is what pgx says of a server that has none, which is no fault where it tries without.
const noTLS = "server refused TLS connection"

// connecting puts what pgx says of several tries so that people can read it.
func connecting(err error) error {
	failed, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	tries, ok := failed.Unwrap().(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var texts []string
	for _, try := range tries.Unwrap() {
		if text := try.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if others := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return strings.HasSuffix(text, noTLS) }); len(others) > 0 {
		texts = others
	}
	return &unreachable{err, strings.Join(texts, "; ")}
}

// commitFailed says what became of a change that had been sent together with COMMIT.
func commitFailed(err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok {
		return e
	}
	pg, said := errors.AsType[*pgconn.PgError](err)
	switch {
	case said && (pg.SeverityUnlocalized == "ERROR" || pg.Code == idleTimeout), pgconn.SafeToRetry(err):
		return failed(context.Background(), err) // the transaction was rolled back, or never sent
	}
	return unknown(err)
}

func unknown(err error) error {
	return &job.Error{Kind: job.OutcomeUnknown, Message: "PostgreSQL did not say whether the change was made", Err: err}
}

// lost reports whether the connection is gone, rather than a statement refused.
func lost(err error) bool {
	if _, ours := errors.AsType[*job.Error](err); ours || err == nil {
		return false
	}
	pg, said := errors.AsType[*pgconn.PgError](err)
	return !said || cmp.Or(pg.SeverityUnlocalized, pg.Severity) == "FATAL" // poolers tell the second only, in English
}

// setReadOnly reports whether a statement was refused since the server takes no changes.
func setReadOnly(err error) bool {
	pg, said := errors.AsType[*pgconn.PgError](err)
	return said && pg.Code == readOnly
}

// useless reports whether the connection is to be given up, and others with it: on a new one the
// statement may succeed.
func useless(err error) bool { return lost(err) || setReadOnly(err) }

// interrupted is the error of a call whose caller went away before anything was begun.
func interrupted(ctx context.Context) error {
	return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
}

func notOpen(name string) error {
	return job.Errorf(job.Precondition, "board %q is not open: open it first", name)
}
