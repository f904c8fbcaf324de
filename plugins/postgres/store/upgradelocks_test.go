package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/job"
)

// eachFormer does something with a database for each version before this one, with tables of that.
func eachFormer(t *testing.T, do func(t *testing.T, p *testserver.Postgres, at int)) {
	t.Helper()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	for at := 1; at < version; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			_ = tablesOf(t, p, at)
			do(t, p, at)
			p.SQL("postgres", `DROP SCHEMA boardd CASCADE`)
		})
	}
}

// readerOf connects, and begins a transaction that has read each table.
func readerOf(t *testing.T, p *testserver.Postgres) (conn *pgx.Conn, read func() error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	var text strings.Builder
	for name := range strings.FieldsSeq(p.SQL("postgres", `SELECT relname FROM pg_class WHERE relnamespace = 'boardd'::regnamespace AND relkind = 'r'`)) {
		fmt.Fprintf(&text, "SELECT count(*) FROM boardd.%s;", name)
	}
	return conn, func() error { _, err := conn.Exec(t.Context(), text.String()); return err }
}

// TestUpgradeStopsNoReader: while an upgrade waits for a transaction that has read all tables and
// stays open, others read them and are answered.
func TestUpgradeStopsNoReader(t *testing.T) {
	t.Parallel()
	eachFormer(t, func(t *testing.T, p *testserver.Postgres, at int) {
		t.Helper()
		holder, hold := readerOf(t, p)
		if _, err := holder.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		if err := hold(); err != nil {
			t.Fatal(err)
		}
		s := tablesOf(t, p, at)
		s.version, s.lockTries = version, 100_000
		ended := make(chan error, 1)
		go func() {
			conn, err := s.acquire(t.Context())
			if err == nil {
				_, err = s.upgrade(t.Context(), conn)
				conn.Release()
			}
			ended <- err
		}()
		var waits bool
		testserver.Eventually(t, "the upgrade waits, or has ended", func() bool {
			waits = p.SQL("postgres", `SELECT count(*) FROM pg_locks WHERE NOT granted`) != "0\n"
			return waits || len(ended) > 0
		})
		_, read := readerOf(t, p)
		for range 3 {
			if err := read(); err != nil {
				t.Errorf("a reader beside the upgrade: %v", err)
			}
		}
		if waits && len(ended) > 0 {
			t.Error("the readers were answered when the upgrade had ended: want them answered while it waits")
		}
		if want := at < 5; waits != want { // there boards get a column
			t.Errorf("from version %d on, the upgrade waits for the reader: %v, want %v", at, waits, want)
		}
		if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the upgrade, once the reader has ended: %v", err)
		}
	})
}

// TestUpgradeLocksFirst: all that an upgrade locks of the tables that were there it has locked
// before it changes anything.
func TestUpgradeLocksFirst(t *testing.T) {
	t.Parallel()
	eachFormer(t, func(t *testing.T, p *testserver.Postgres, at int) {
		t.Helper()
		s := tablesOf(t, p, at)
		s.version = version
		conn, err := pgx.Connect(t.Context(), p.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		there := p.SQL("postgres", `SELECT string_agg(oid::text, ',') FROM pg_class WHERE relnamespace = 'boardd'::regnamespace AND relkind = 'r'`)
		locked := func(text string) (list []string) {
			t.Helper()
			if _, err := conn.PgConn().Exec(t.Context(), text).ReadAll(); err != nil {
				t.Fatal(err)
			}
			rows, err := conn.Query(t.Context(), `SELECT relation::regclass || ' ' || mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN (`+there+`)
				AND mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') ORDER BY 1`)
			if err == nil {
				list, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		script, err := s.script(at)
		if err != nil {
			t.Fatal(err)
		}
		first := locked("BEGIN;" + s.lockTables(at))
		last := locked(script)
		strongest := func(list []string) (most []string) { // what is locked twice counts as the stronger one
			for _, l := range list {
				if table, mode, _ := strings.Cut(l, " "); mode != "ShareUpdateExclusiveLock" || !slices.ContainsFunc(list, func(o string) bool { return o != l && strings.HasPrefix(o, table+" ") }) {
					most = append(most, l)
				}
			}
			return most
		}
		if first, last = strongest(first), strongest(last); !slices.Equal(first, last) {
			t.Errorf("from version %d on, locked before anything is changed are %q, and at the end %q", at, first, last)
		}
	})
}

// TestUpgradeGivesUp: an upgrade that gets its locks in no try changes nothing, and says why.
func TestUpgradeGivesUp(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	s := tablesOf(t, p, 4)
	holder, hold := readerOf(t, p)
	if _, err := holder.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if err := hold(); err != nil {
		t.Fatal(err)
	}
	s.version, s.lockTries = version, 2
	err := s.prepare(t.Context(), migrateAuto)
	if job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "stays open") {
		t.Errorf("an upgrade that cannot be made: %v", err)
	}
	if got := p.SQL("postgres", `SELECT max(version) FROM boardd.migrations`); got != "4\n" {
		t.Errorf("the tables have version %s", got)
	}
}
