package store

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestExamine makes what can be wrong with a database, and finds each.
func TestExamine(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	d, err := opened(t, p)
	must(t, d, err)
	_ = d.Close()
	p.SQL("postgres", `CREATE ROLE boardd LOGIN; `+documented(t, "```txt\nGRANT", "```"))
	examine := func() map[string]driver.Finding {
		t.Helper()
		d, err := openWith(t.Context(), map[string]any{"url": strings.Replace(p.URL("postgres"), "postgres@", "boardd@", 1), "migrate": "check"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		found := map[string]driver.Finding{}
		for _, name := range []string{"a/b", "a/c"} { // what is the database's is told once
			if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: name, Observe: true}); err != nil {
				t.Fatal(err)
			}
			for f, err := range d.(driver.Examiner).Examine(t.Context(), name) { //nolint:forcetypeassert // a failure is one
				if err != nil {
					t.Fatal(err)
				}
				if _, again := found[f.Code]; again && !slices.Contains([]string{"not-synced", "missing-right", "missing-index"}, f.Code) {
					t.Errorf("%s is told twice", f.Code)
				}
				found[f.Code] = f
			}
		}
		return found
	}
	for code, f := range examine() { // fsync is off for the test's sake
		if code != "not-synced" && f.Severity > driver.Note {
			t.Errorf("a database with which nothing is wrong: %+v", f)
		}
	}
	p.SQL("postgres", `GRANT pg_read_all_stats TO boardd; REVOKE DELETE ON boardd.jobs FROM boardd; DROP INDEX boardd.jobs_by_place;
		ALTER TABLE boardd.documents DISABLE TRIGGER document_deleted`)
	p.SQL("postgres", `ALTER SYSTEM SET autovacuum = off`)
	p.SQL("postgres", `SELECT pg_reload_conf()`)
	p.SQL("postgres", `INSERT INTO boardd.boards (name) VALUES ('a/b');
		INSERT INTO boardd.inbox SELECT 1, pg_current_xact_id(), board, gen_random_uuid(), '{}', 2, now(), 'somebody', 'it is wrong' FROM boardd.boards`)
	testserver.Eventually(t, "the settings are read", func() bool { return p.SQL("postgres", `SHOW autovacuum`) == "off\n" })
	found := examine()
	for code, subject := range map[string]string{
		"missing-right": "DELETE on jobs", "missing-index": "jobs_by_place", "missing-trigger": "document_deleted", "autovacuum-off": "autovacuum", "refused-postings": "inbox", "not-synced": "fsync",
		"standbys": "synchronous_standby_names",
	} {
		if f := found[code]; f.Subject != subject || f.Problem == "" {
			t.Errorf("%s: found %+v, want one of %s", code, f, subject)
		}
	}
	if f := found["refused-postings"]; !strings.HasPrefix(f.Problem, "1 posting of boardd.post was refused since ") || !strings.Contains(f.Mend, `DELETE FROM "boardd".inbox WHERE refused`) {
		t.Errorf("one refused posting: %+v", f)
	}
	if _, ok := found["sees-little"]; ok {
		t.Error("a role that may see all is told that it does not")
	}
}

// TestExamineNamesAll holds what an examination looks for against what the migrations make.
func TestExamineNamesAll(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	_ = tablesOf(t, p, version)
	for what, c := range map[string]struct {
		named []string
		query string
	}{
		"indexes":  {indexes, `SELECT indexname FROM pg_indexes WHERE schemaname = 'boardd' AND tablename <> 'migrations'`},
		"triggers": {triggers, `SELECT tgname FROM pg_trigger WHERE tgrelid = 'boardd.documents'::regclass AND NOT tgisinternal`},
	} {
		made, named := strings.Fields(p.SQL("postgres", c.query)), slices.Clone(c.named)
		slices.Sort(made)
		slices.Sort(named)
		if !slices.Equal(made, named) {
			t.Errorf("the %s that are made are %q, and looked for are %q", what, made, named)
		}
	}
}

// TestExamineSequences takes the rights on the sequences away, without which nothing can be changed.
func TestExamineSequences(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	_ = tablesOf(t, p, version)
	p.SQL("postgres", `CREATE ROLE boardd LOGIN; `+documented(t, "```txt\nGRANT", "```"))
	d, err := openWith(t.Context(), map[string]any{"url": strings.Replace(p.URL("postgres"), "postgres@", "boardd@", 1), "migrate": "check"})
	must(t, d, err)
	defer func() { _ = d.Close() }()
	lacks := func(want map[string]driver.Severity) {
		t.Helper()
		found := map[string]driver.Severity{}
		d.(*store).examined.Store(false)                                    //nolint:forcetypeassert // openWith makes no other
		for f, err := range d.(driver.Examiner).Examine(t.Context(), "b") { //nolint:forcetypeassert // a failure is one
			if err != nil {
				t.Fatal(err)
			}
			if f.Code == "missing-right" {
				found[f.Subject] = f.Severity
			}
		}
		if !maps.Equal(found, want) {
			t.Errorf("rights that are missing: %v, want %v", found, want)
		}
	}
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	lacks(map[string]driver.Severity{})
	p.SQL("postgres", `REVOKE UPDATE, USAGE ON ALL SEQUENCES IN SCHEMA boardd FROM boardd`)
	if r := d.Apply(t.Context(), "b", postsOf(1))[0]; r.Kind == job.NoKind {
		t.Error("a post is made without the right to take a number")
	}
	lacks(map[string]driver.Severity{"USAGE on positions": driver.Problem, "UPDATE on positions": driver.Note, "USAGE on document_versions": driver.Problem})
	p.SQL("postgres", `GRANT USAGE ON ALL SEQUENCES IN SCHEMA boardd TO boardd; REVOKE SELECT ON ALL SEQUENCES IN SCHEMA boardd FROM boardd`)
	lacks(map[string]driver.Severity{"SELECT on positions": driver.Problem, "UPDATE on positions": driver.Note, "SELECT on document_change_numbers": driver.Problem})
}

// TestExamineLimits makes the looks that go by size and age find something, with limits of
// nothing.
func TestExamineLimits(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true, Config: []string{"max_prepared_transactions=5", "autovacuum=off"}})
	standby := p.Standby(t, nil)
	standby.SQL("postgres", `SELECT pg_wal_replay_pause()`)
	d, err := opened(t, p)
	must(t, d, err)
	defer func() { _ = d.Close() }()
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	held := holdTransaction(t, p)
	d.Apply(t.Context(), "b", postsOf(64))
	testserver.Eventually(t, "the jobs are counted", func() bool { // counted after their end, they would be alive
		return p.SQL("postgres", `SELECT n_live_tup FROM pg_stat_user_tables WHERE schemaname = 'boardd' AND relname = 'jobs'`) == "64\n"
	})
	p.SQL("postgres", `DELETE FROM boardd.jobs`)
	p.SQL("postgres", `SELECT pg_create_physical_replication_slot('unread', true)`)
	p.SQL("postgres", `BEGIN; CREATE TABLE t (); PREPARE TRANSACTION 'left'`)
	s := d.(*store) //nolint:forcetypeassert // opened makes no other
	conn, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for code, args := range map[string][]any{
		"bloat": {s.schema, 10}, "wraparound": {0}, "long-transaction": {int64(-1)}, "prepared-transaction": {int64(-1)},
		"stale-slot": {int64(-1)}, "standby-behind": {int64(0)},
	} {
		i := slices.IndexFunc(looks, func(l look) bool { return strings.Contains(l.sql, "'"+code+"'") })
		testserver.Eventually(t, code+" is found", func() bool { // statistics come a while later
			rows, err := conn.Query(t.Context(), looks[i].sql, args...)
			if err != nil {
				t.Fatalf("%s: %v", code, err)
			}
			n := 0
			for rows.Next() {
				n++
			}
			if err := rows.Err(); err != nil {
				t.Fatalf("%s: %v", code, err)
			}
			return n > 0
		})
	}
	p.SQL("postgres", `ROLLBACK PREPARED 'left'`)
	held()
}

// holdTransaction opens a transaction that sees the database as it is now, and keeps rows
// that die from being removed until release.
func holdTransaction(t *testing.T, p *testserver.Postgres) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return func() { _ = conn.Close(t.Context()) }
}
