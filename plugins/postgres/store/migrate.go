package store

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/job"
)

//go:embed migrations/*.sql
var migrations embed.FS

// version is that of the tables which this program works with: the number of the last
// file in migrations. The tables of the next version have to serve it as well, so that
// servers can be upgraded one by one.
const version = 3

const migrationsTable = `CREATE TABLE IF NOT EXISTS {s}.migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`

// prepare makes the tables, or upgrades them, and reads the store's id. What one driver
// does, others wait for.
func (s *store) prepare(ctx context.Context, migrate string) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return failed(ctx, err)
	}
	defer conn.Release()
	var encoding string
	if err := conn.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return failed(ctx, err)
	}
	if encoding != "UTF8" {
		return job.Errorf(job.Invalid, "the database has the encoding %s: want one in UTF8", encoding)
	}
	at, err := s.tablesVersion(ctx, conn.Conn())
	switch {
	case err != nil:
		return failed(ctx, err)
	case at > version+1:
		return job.Errorf(job.Invalid, "the tables in schema %q have version %d, and this driver works with %d and %d: upgrade boardd", s.schema, at, version, version+1)
	case at < version && migrate == migrateCheck:
		return job.Errorf(job.Invalid, `the tables in schema %q have version %d, and this driver needs %d: set migrate = "auto" once, with a role that may make them`, s.schema, at, version)
	case at < version:
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return s.upgrade(ctx, tx) }); err != nil {
			return failed(ctx, err)
		}
	}
	var id []byte
	if err := conn.QueryRow(ctx, s.sql(`SELECT id FROM {s}.store`)).Scan(&id); err != nil {
		return failed(ctx, err)
	}
	if len(id) != len(s.id) {
		return job.Errorf(job.Corrupt, "the store's id has %d bytes: want %d", len(id), len(s.id))
	}
	s.id = [8]byte(id)
	return nil
}

// tablesVersion returns the version of the tables; 0: there are none.
func (s *store) tablesVersion(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (at int, err error) {
	var there bool
	err = conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, s.sql(`{s}.migrations`)).Scan(&there)
	if err == nil && there {
		err = conn.QueryRow(ctx, s.sql(`SELECT coalesce(max(version), 0) FROM {s}.migrations`)).Scan(&at)
	}
	return at, err
}

// upgrade brings the tables to version, one number after the other, in one transaction
// that nobody else makes at the same time.
func (s *store) upgrade(ctx context.Context, tx pgx.Tx) error {
	h := fnv.New64a()
	_, _ = h.Write([]byte("boardd " + s.schema))                                                  // never fails
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(h.Sum64())); err != nil { //nolint:gosec // any 64 bits
		return err
	}
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, s.quoted).Scan(&there); err != nil {
		return err
	}
	if !there { // whoever made the schema for this role need not let it make others
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+s.quoted); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, s.sql(migrationsTable)); err != nil {
		return err
	}
	at, err := s.tablesVersion(ctx, tx)
	if err != nil {
		return err
	}
	for n := at + 1; n <= version; n++ {
		text, err := migrations.ReadFile(fmt.Sprintf("migrations/%04d.sql", n))
		if err != nil {
			return err
		}
		if _, err := tx.Conn().PgConn().Exec(ctx, s.sql(string(text))).ReadAll(); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.sql(`INSERT INTO {s}.migrations (version) VALUES ($1)`), n); err != nil {
			return err
		}
	}
	if at > 0 {
		return nil
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	_, err = tx.Exec(ctx, s.sql(`INSERT INTO {s}.store VALUES ($1)`), id[:])
	return err
}
