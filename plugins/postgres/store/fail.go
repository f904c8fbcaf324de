package store

import (
	"context"
	"errors"

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
)

// meanings say what is the matter where PostgreSQL's own words would not.
var meanings = map[string]string{
	readOnly:          "the server of PostgreSQL is read-only: it is a standby, or was set so",
	startingUp:        "PostgreSQL is starting, stopping or recovering",
	lockTimeout:       "the board is busy with other changes",
	noRights:          "the role in PostgreSQL lacks a right; docs/postgres.md says which it needs",
	noSchema:          "the driver's tables are not in this database",
	noTable:           "the driver's tables are not in this database",
	tooManyClients:    "PostgreSQL takes no more connections (max_connections)",
	tooLargeForAnyKey: "a name or a key is too long",
}

// noDisk is what a change is refused with that a full disk has no room for.
const noDisk = "the disk of PostgreSQL is full"

// failed says why a statement failed that changed nothing.
func failed(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok {
		return e
	}
	pg, said := errors.AsType[*pgconn.PgError](err)
	switch {
	case said && pg.Code == diskFull:
		return &job.Error{Kind: job.QuotaExceeded, Message: noDisk, Err: err}
	case ctx.Err() != nil:
		return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
	case said && meanings[pg.Code] != "":
		return &job.Error{Kind: job.Unavailable, Message: meanings[pg.Code], Err: err}
	case said:
		return &job.Error{Kind: job.Unavailable, Message: "PostgreSQL refuses", Err: err}
	}
	return &job.Error{Kind: job.Unavailable, Message: "PostgreSQL is not reachable", Err: err}
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
	return !said || pg.SeverityUnlocalized == "FATAL"
}

// interrupted is the error of a call whose caller went away before anything was begun.
func interrupted(ctx context.Context) error {
	return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
}

func notOpen(name string) error {
	return job.Errorf(job.Precondition, "board %q is not open: open it first", name)
}
