package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

//go:embed migrations/*.sql
var migrations embed.FS

// version is that of the tables which this program works with: the number of the last
// file in migrations. The tables of the next version have to serve it as well, so that
// servers can be upgraded one by one.
const version = 8

const migrationsTable = `CREATE TABLE IF NOT EXISTS {s}.migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`

// prepare makes the tables, or upgrades them, and reads the store's id. What one driver
// does, others wait for.
func (s *store) prepare(ctx context.Context, migrate string) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := s.inUTF8(ctx, conn); err != nil {
		return err
	}
	at, err := s.tablesVersion(ctx, conn)
	switch {
	case err != nil:
		return failed(ctx, err)
	case at > s.version+1:
		return job.Errorf(job.Invalid, "the tables in schema %q have version %d, and this driver works with %d and %d: upgrade boardd", s.schema, at, s.version, s.version+1)
	case at < s.version && migrate == migrateCheck:
		return job.Errorf(job.Invalid, `the tables in schema %q have version %d, and this driver needs %d: run "boardd backend migrate", or set migrate = "auto" once, with a role that may make them`, s.schema, at, s.version)
	case at < s.version:
		if _, err := s.upgrade(ctx, conn); err != nil {
			return err
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

// inUTF8 refuses a database in another encoding: names could not be kept in it.
func (s *store) inUTF8(ctx context.Context, q querier) error {
	var encoding string
	if err := q.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return failed(ctx, err)
	}
	if encoding != "UTF8" {
		return job.Errorf(job.Invalid, "the database has the encoding %s: want one in UTF8", encoding)
	}
	return nil
}

// A querier is a connection, or a transaction on one.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// tablesVersion returns the version of the tables; 0: there are none.
func (s *store) tablesVersion(ctx context.Context, q querier) (at int, err error) {
	var there bool
	err = q.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, s.sql(`{s}.migrations`)).Scan(&there)
	if err == nil && there {
		err = q.QueryRow(ctx, s.sql(`SELECT coalesce(max(version), 0) FROM {s}.migrations`)).Scan(&at)
	}
	return at, err
}

// script is what brings the tables from a version to this program's, as statements that
// psql takes, too. Nobody else does the same at the same time, and no reader is stopped: the
// locks are taken first, each for a moment only if somebody else is in the way.
func (s *store) script(at int) (string, error) {
	var out strings.Builder
	out.WriteString(s.lockTables(at))
	for n := at + 1; n <= s.version; n++ {
		text, err := migrations.ReadFile(fmt.Sprintf("migrations/%04d.sql", n))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s\nINSERT INTO {s}.migrations (version) VALUES (%d);\n\n", text, n)
	}
	if at == 0 {
		out.WriteString("INSERT INTO {s}.store SELECT substr(uuid_send(gen_random_uuid()), 1, 8) WHERE NOT EXISTS (SELECT FROM {s}.store);\n")
	}
	return s.sql(out.String()), nil
}

// lockUpgrade has one driver at a time upgrade the tables.
func (s *store) lockUpgrade() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte("boardd " + s.schema))                                                                 // never fails
	return fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);\nSET LOCAL lock_timeout = '10s';\n", int64(h.Sum64())) //nolint:gosec // any 64 bits
}

// makeSchema makes the schema if it is not there: whoever made it for this role need not
// let it make others.
func (s *store) makeSchema(there bool) string {
	text := s.sql(migrationsTable) + ";\n"
	if !there {
		text = "CREATE SCHEMA " + s.quoted + ";\n" + text
	}
	return text
}

// upgrade brings the tables to this program's version in one transaction, and returns
// what they had before.
func (s *store) upgrade(ctx context.Context, conn *pgxpool.Conn) (at int, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { at, err = s.upgradeIn(ctx, tx); return err })
	if pg, said := errors.AsType[*pgconn.PgError](err); said && pg.Code == lockTimeout {
		return at, &job.Error{Kind: job.Unavailable, Err: err, Message: "the tables are not upgraded, since some transaction that has read or changed them stays open (pg_stat_activity shows it): try again when it has ended"}
	}
	if err != nil {
		return at, failed(ctx, err)
	}
	return at, nil
}

func (s *store) upgradeIn(ctx context.Context, tx pgx.Tx) (at int, err error) {
	run := func(text string) error {
		_, err := tx.Conn().PgConn().Exec(ctx, text).ReadAll()
		return err
	}
	if err := run(s.lockUpgrade()); err != nil {
		return 0, err
	}
	there, err := s.schemaThere(ctx, tx)
	if err != nil {
		return 0, err
	}
	if err := run(s.makeSchema(there)); err != nil {
		return 0, err
	}
	if at, err = s.tablesVersion(ctx, tx); err != nil {
		return 0, err
	}
	text, err := s.script(at)
	if err != nil {
		return 0, err
	}
	return at, run(text)
}

func (s *store) schemaThere(ctx context.Context, q querier) (there bool, err error) {
	err = q.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, s.quoted).Scan(&there)
	return there, err
}

// migrate is driver.Program's Migrate.
func migrate(ctx context.Context, c driver.Config, dry bool) (m driver.Migration, err error) {
	s, _, err := connect(ctx, c)
	if err != nil {
		return m, err
	}
	defer s.pool.Close()
	conn, err := s.acquire(ctx)
	if err != nil {
		return m, err
	}
	defer conn.Release()
	if err := s.inUTF8(ctx, conn); err != nil {
		return m, err
	}
	if m.From, err = s.tablesVersion(ctx, conn); err != nil {
		return m, failed(ctx, err)
	}
	m.To = max(s.version, m.From)
	if m.From >= s.version {
		return m, nil
	}
	there, err := s.schemaThere(ctx, conn)
	if err != nil {
		return m, failed(ctx, err)
	}
	if !dry {
		m.From, err = s.upgrade(ctx, conn)
		return m, err
	}
	text, err := s.script(m.From)
	if err == nil {
		m.Script = "BEGIN;\n" + s.lockUpgrade() + s.makeSchema(there) + text + "COMMIT;\n"
	}
	return m, err
}
