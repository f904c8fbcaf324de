package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
)

// What an examination calls too much.
const (
	longTransaction = 10 * time.Minute // one that is older keeps dead rows from being removed
	manyDead        = 100_000          // dead rows of a table, beside more of them than live ones
	oldTransactions = 1_000_000_000    // the age of a database in transactions; at 2^31 it stops
	farBehind       = 64 << 20         // bytes that a standby lacks
	longUnused      = 1 << 30          // bytes of log that are kept for nobody who reads them
)

// A look is one thing that an examination asks. The statement yields severity, code,
// subject and problem of each finding.
type look struct {
	sql  string
	args func(s *store) []any
	mend string
}

// looks are what is asked once for the whole database.
var looks = []look{{
	sql: `SELECT 2, 'not-synced', name, format('%s = %s: a crash may lose or spoil what was acknowledged', name, setting)
		FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'`,
}, {
	sql: `SELECT 1, 'standbys', 'synchronous_standby_names', CASE current_setting('synchronous_standby_names')
			WHEN '' THEN 'no standby is waited for: what was acknowledged last is lost with the disk of the server'
			ELSE format('%L is waited for (synchronous_commit = %s)', current_setting('synchronous_standby_names'), current_setting('synchronous_commit')) END`,
}, {
	sql: `SELECT 2, 'autovacuum-off', name, 'autovacuum is off: dead rows of the boards pile up'
		FROM pg_settings WHERE name IN ('autovacuum', 'track_counts') AND setting = 'off'`,
	mend: "ALTER SYSTEM RESET autovacuum",
}, {
	sql: `SELECT 2, 'bloat', relid::regclass::text, format('it has %s dead rows and %s live ones: something keeps autovacuum from removing them', n_dead_tup, n_live_tup)
		FROM pg_stat_user_tables WHERE schemaname = $1 AND n_dead_tup > $2 AND n_dead_tup > n_live_tup`,
	args: func(s *store) []any { return []any{s.schema, manyDead} },
	mend: "end what is found as long-transaction, stale-slot or prepared-transaction, and VACUUM the table",
}, {
	sql: `SELECT CASE WHEN age(datfrozenxid) > 2 * $1::bigint - 200000000 THEN 3 ELSE 2 END, 'wraparound', datname,
			format('its oldest rows are %s transactions old: PostgreSQL takes no changes before 2147483648', age(datfrozenxid))
		FROM pg_database WHERE datname = current_database() AND age(datfrozenxid) > $1`,
	args: func(*store) []any { return []any{oldTransactions} },
	mend: "VACUUM (FREEZE) of the database, after what keeps it from helping has ended",
}, {
	sql: `SELECT 2, 'long-transaction', format('process %s of %s', pid, coalesce(usename, 'nobody')),
			format('it has a transaction open since %s: no row that died since then is removed', to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
		FROM pg_stat_activity WHERE datname = current_database() AND xact_start < now() - $1::bigint * interval '1 second'
			AND coalesce(backend_xmin, backend_xid) IS NOT NULL`,
	args: func(*store) []any { return []any{int64(longTransaction / time.Second)} },
	mend: "SELECT pg_terminate_backend(PID)",
}, {
	sql: `SELECT 2, 'prepared-transaction', gid, format('it was prepared at %s and never ended: no row that died since then is removed',
			to_char(prepared AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
		FROM pg_prepared_xacts WHERE database = current_database() AND prepared < now() - $1::bigint * interval '1 second'`,
	args: func(*store) []any { return []any{int64(longTransaction / time.Second)} },
	mend: "ROLLBACK PREPARED",
}, {
	sql: `SELECT 2, 'stale-slot', slot_name, format('nobody reads this replication slot, and %s bytes of the log are kept for it', pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint)
		FROM pg_replication_slots WHERE NOT active AND NOT pg_is_in_recovery() AND pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > $1::bigint`,
	args: func(*store) []any { return []any{int64(longUnused)} },
	mend: "SELECT pg_drop_replication_slot(NAME)",
}, {
	sql: `SELECT 2, 'standby-behind', coalesce(nullif(application_name, ''), client_addr::text, 'a standby'),
			format('it lacks %s bytes that this server has: promoted now, it would have lost them', pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint)
		FROM pg_stat_replication WHERE NOT pg_is_in_recovery() AND pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) > $1::bigint`,
	args: func(*store) []any { return []any{int64(farBehind)} },
}, {
	sql: `SELECT 3, 'missing-index', e.name, 'the index is not there, or not valid: looking for a job may read the whole table'
		FROM unnest($2::text[]) e (name) LEFT JOIN pg_class c ON c.relname = e.name AND c.relnamespace = to_regnamespace($1)
			LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE i.indisvalid IS NOT TRUE`,
	args: func(s *store) []any { return []any{s.quoted, indexes} },
	mend: "REINDEX, or CREATE INDEX as boardd's migrations have it",
}, {
	sql: `SELECT 3, 'missing-trigger', e.name, 'the trigger is not there, or disabled: servers do not see what others change in documents'
		FROM unnest($2::text[]) e (name) LEFT JOIN pg_class c ON c.relname = 'documents' AND c.relnamespace = to_regnamespace($1)
			LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = e.name WHERE (t.tgenabled IN ('O', 'A')) IS NOT TRUE`,
	args: func(s *store) []any { return []any{s.quoted, triggers} },
	mend: "ALTER TABLE documents ENABLE TRIGGER, or CREATE TRIGGER as boardd's migrations have it",
}, {
	sql: `SELECT 3, 'missing-right', format('%s on %s', r.name, c.relname), format('the role %s lacks this right', current_user)
		FROM pg_class c CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) r (name)
		WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r' AND c.relname <> ALL ('{migrations,posters,store}') AND NOT has_table_privilege(c.oid, r.name)`,
	args: func(s *store) []any { return []any{s.quoted} },
	mend: "the GRANTs of docs/postgres.md, by the owner of the tables",
}, {
	sql: `SELECT r.severity, 'missing-right', format('%s on %s', r.name, c.relname), format('the role %s lacks this right on the sequence: %s', current_user, r.without)
		FROM (VALUES (3, 'positions', 'USAGE', 'nothing can be changed on any board'), (3, 'positions', 'SELECT', 'nobody sees what other servers change'),
			(1, 'positions', 'UPDATE', 'no board can move here from another store'), (3, 'document_versions', 'USAGE', 'no document can be written'),
			(3, 'document_change_numbers', 'SELECT', 'nobody sees which documents others change')) r (severity, sequence, name, without)
		JOIN pg_class c ON c.relname = r.sequence AND c.relkind = 'S' AND c.relnamespace = to_regnamespace($1)
		WHERE NOT has_sequence_privilege(c.oid, r.name) AND NOT (r.name = 'USAGE' AND has_sequence_privilege(c.oid, 'UPDATE'))`,
	args: func(s *store) []any { return []any{s.quoted} },
	mend: "the GRANTs of docs/postgres.md, by the owner of the sequences",
}, {
	sql: `SELECT 1, 'sees-little', current_user::text, 'this role does not see the transactions and standbys of others, so nothing was said of them'
		WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')`,
	mend: "GRANT pg_read_all_stats TO the role that boardd doctor uses",
}}

// indexes are those without which something would read a whole table.
var indexes = []string{
	"boards_pkey", "boards_name_key", "batches_pkey", "jobs_pkey", "jobs_by_place", "finals_by_time", "finals_by_place", "parts_pkey", "stamps_pkey",
	"stamps_by_op", "changes_pkey", "limits_pkey", "documents_pkey", "document_changes_pkey", "document_changes_by_xact", "keys_pkey", "keys_by_key", "inbox_pkey", "inbox_by_xact", "inbox_by_board", "posters_pkey",
	"dropped_pkey",
}

// triggers are those without which a change of documents is not seen.
var triggers = []string{"document_inserted", "document_updated", "document_deleted", "documents_emptied"}

// Examine says what is wrong with the database, when the first board is looked at, and
// what waits too long in a board's inbox. It reads a few rows of PostgreSQL's own tables.
func (s *store) Examine(ctx context.Context, name string) iter.Seq2[driver.Finding, error] {
	return func(yield func(driver.Finding, error) bool) {
		list, err := s.examine(ctx, name)
		if err != nil {
			yield(driver.Finding{}, err)
			return
		}
		for _, f := range list {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (s *store) examine(ctx context.Context, name string) (list []driver.Finding, err error) {
	b, err := s.board(name)
	if err != nil {
		return nil, err
	}
	asked := []look{{
		sql: `SELECT 2, 'refused-postings', 'inbox', format('%s of boardd.post %s refused since %s; the view left_postings says why',
			CASE count(*) WHEN 1 THEN '1 posting' ELSE count(*) || ' postings' END, CASE count(*) WHEN 1 THEN 'was' ELSE 'were' END, min(at))
			FROM {s}.inbox WHERE refused IS NOT NULL AND board = ` + boardOf + ` HAVING count(*) > 0`,
		args: func(*store) []any { return []any{[]byte(b.Name)} },
		mend: "once somebody has looked at them: DELETE FROM {s}.inbox WHERE refused IS NOT NULL",
	}}
	if !s.examined.Swap(true) {
		asked = append(asked, looks...)
	}
	conn, err := s.begin(ctx, func(queue *pgx.Batch) {
		list = nil
		queue.Queue(beginRead)
		for i := range asked {
			var args []any
			if asked[i].args != nil {
				args = asked[i].args(s)
			}
			queue.Queue(s.sql(asked[i].sql), args...).Query(func(rows pgx.Rows) error {
				f := driver.Finding{Mend: s.sql(asked[i].mend)}
				var severity int
				_, err := pgx.ForEachRow(rows, []any{&severity, &f.Code, &f.Subject, &f.Problem}, func() error {
					f.Severity = driver.Severity(severity) //nolint:gosec // 1 to 3, as the statements have it
					list = append(list, f)
					return nil
				})
				if err != nil {
					return fmt.Errorf("%s: %w", f.Code, err)
				}
				return nil
			})
		}
		queue.Queue("COMMIT")
	})
	if err != nil {
		s.examined.Store(false)
		return nil, err
	}
	s.abandon(conn)
	return list, nil
}

var _ driver.Examiner = (*store)(nil)
