package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func openWith(ctx context.Context, settings map[string]any) (driver.Driver, error) {
	raw, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	return open(ctx, driver.Config{Settings: raw})
}

// eachVersion lists the versions of the tables.
func eachVersion() string {
	var list []string
	for n := range version {
		list = append(list, fmt.Sprint(n+1))
	}
	return strings.Join(list, ",")
}

// TestMigrations makes the tables from several drivers at once, checks them, and refuses
// what is not theirs.
func TestMigrations(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	at := map[string]any{"url": p.URL("postgres"), "schema": "jobs", "migrate": "check", "max_connections": 3}
	refused := func(want string) {
		t.Helper()
		d, err := openWith(t.Context(), at)
		if err == nil {
			_ = d.Close()
		}
		if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want INVALID that says %q", err, want)
		}
	}
	refused("version 0")
	at["migrate"] = "auto"
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			d, err := openWith(t.Context(), at)
			if err == nil {
				err = d.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("eight drivers made the tables at once: %v", err)
	}
	if got := p.SQL("postgres", `SELECT (SELECT count(*) FROM jobs.store), (SELECT string_agg(version::text, ',') FROM jobs.migrations)`); got != "1|"+eachVersion()+"\n" {
		t.Errorf("stores and versions are %q, want one, and each", got)
	}
	at["migrate"] = "check"
	d, err := openWith(t.Context(), at)
	if err != nil {
		t.Fatalf("with the tables there: %v", err)
	}
	_ = d.Close()
	p.SQL("postgres", fmt.Sprintf(`INSERT INTO jobs.migrations (version) VALUES (%d)`, version+1))
	if d, err = openWith(t.Context(), at); err != nil {
		t.Fatalf("with the tables of the next version: %v", err)
	}
	_ = d.Close()
	p.SQL("postgres", fmt.Sprintf(`INSERT INTO jobs.migrations (version) VALUES (%d)`, version+2))
	refused("upgrade boardd")
	p.SQL("postgres", `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	at["url"] = p.URL("latin")
	refused("UTF8")
}

// TestSetUp does what docs/postgres.md says, and opens the store.
func TestSetUp(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	for statement := range strings.Lines(strings.TrimSpace(documented(t, "```txt\nCREATE ROLE", "```"))) {
		p.SQL("postgres", statement)
	}
	d, err := openWith(t.Context(), map[string]any{"url": strings.Replace(p.URL("boardd"), "postgres@", "boardd@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Health(t.Context()), d.Close()); err != nil {
		t.Error(err)
	}
}

// TestLeastRights has the tables made by one role and used by another, which may do what
// docs/postgres.md says and no more.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	d, err := openWith(t.Context(), map[string]any{"url": p.URL("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	p.SQL("postgres", `CREATE ROLE boardd LOGIN`)
	least := map[string]any{"url": strings.Replace(p.URL("postgres"), "postgres@", "boardd@", 1), "migrate": "check"}
	if _, err := openWith(t.Context(), least); job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "lacks a right") {
		t.Errorf("a role without rights: %v", err)
	}
	p.SQL("postgres", documented(t, "```txt\nGRANT", "```"))
	d, err = openWith(t.Context(), least)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Apply(t.Context(), "b", postsOf(4)) {
		if r.Kind != job.NoKind {
			t.Errorf("a post: %v, %s", r.Kind, r.Message)
		}
	}
	doc, err := d.Documents().Put(t.Context(), driver.Space{Name: "s"}, driver.Document{Name: "d"}, 0)
	if err == nil {
		err = d.Documents().Delete(t.Context(), driver.Space{Name: "s"}, "d", doc)
	}
	if err := errors.Join(err, d.DropBoard(t.Context(), "b")); err != nil {
		t.Errorf("documents, and dropping a board: %v", err)
	}
}

// TestMigrate prints what makes the tables, has psql run it, and finds nothing to do then.
func TestMigrate(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	settings := []byte(`{"url":"` + p.URL("postgres") + `","migrate":"check"}`)
	m, err := migrate(t.Context(), driver.Config{Settings: settings}, true)
	if err != nil || m.From != 0 || m.To != version {
		t.Fatalf("a dry run: from %d to %d, %v", m.From, m.To, err)
	}
	if got := p.SQL("postgres", `SELECT count(*) FROM pg_namespace WHERE nspname = 'boardd'`); got != "0\n" {
		t.Error("a dry run made the schema")
	}
	p.SQL("postgres", m.Script)
	if m, err = migrate(t.Context(), driver.Config{Settings: settings}, true); err != nil || m.From != version || m.To != version || m.Script != "" {
		t.Errorf("with the tables there: %+v, %v", m, err)
	}
	d, err := open(t.Context(), driver.Config{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	settings = []byte(`{"url":"` + p.URL("postgres") + `","migrate":"check","schema":"other"}`)
	if m, err = migrate(t.Context(), driver.Config{Settings: settings}, false); err != nil || m.From != 0 || m.To != version {
		t.Errorf("a run: from %d to %d, %v", m.From, m.To, err)
	}
	if d, err = open(t.Context(), driver.Config{Settings: settings}); err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	p.SQL("postgres", `INSERT INTO other.migrations (version) VALUES (1000)`)
	if m, err = migrate(t.Context(), driver.Config{Settings: settings}, false); err != nil || m.From != 1000 || m.To != 1000 {
		t.Errorf("tables of a later version: %+v, %v; want them left alone", m, err)
	}
}

// TestUpgradeWhileInUse upgrades the tables while a driver of the version before posts,
// which goes on.
func TestUpgradeWhileInUse(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	settings := driver.Config{Settings: []byte(`{"url":"` + p.URL("postgres") + `"}`)}
	before, settingsBefore, err := connect(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	before.version = version - 1
	if err := before.prepare(t.Context(), settingsBefore.migrate); err != nil {
		t.Fatal(err)
	}
	before.follow(settingsBefore)
	t.Cleanup(func() { _ = before.Close() })
	if _, err := before.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	var posting sync.WaitGroup
	posting.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
			}
			for _, r := range before.Apply(t.Context(), "b", postsOf(8)) {
				if r.Kind != job.NoKind {
					t.Errorf("a post while the tables are upgraded: %v, %s", r.Kind, r.Message)
				}
			}
		}
	})
	m, err := migrate(t.Context(), settings, false)
	if err != nil || m.From != version-1 || m.To != version {
		t.Errorf("from %d to %d, %v", m.From, m.To, err)
	}
	close(end)
	posting.Wait()
	for _, r := range before.Apply(t.Context(), "b", postsOf(8)) {
		if r.Kind != job.NoKind {
			t.Errorf("a post by the version before: %v, %s", r.Kind, r.Message)
		}
	}
	after, err := open(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := after.Close(); err != nil {
		t.Error(err)
	}
}

// TestStats has a row for each board in the view that graphs are made of, for a role that
// may see nothing else.
func TestStats(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	d, err := opened(t, p)
	must(t, d, err)
	defer func() { _ = d.Close() }()
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "acme/media"}); err != nil {
		t.Fatal(err)
	}
	d.Apply(t.Context(), "acme/media", postsOf(3))
	p.SQL("postgres", documented(t, "```txt\nCREATE ROLE grafana", "```"))
	got := p.SQL("postgres", `SET ROLE grafana; SELECT tenant, board, generation, unclaimed, claimed, trashed, inbox_waiting FROM boardd.stats`)
	if got != "acme|media|1|3|0|0|0\n" {
		t.Errorf("the view has %q", got)
	}
}

// TestUpgradeOfLeastRights: the role with the least rights cannot upgrade the tables, and is told
// so. When another one has, servers of before go on, and new ones find all rights that they need.
func TestUpgradeOfLeastRights(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	const from = 6 // there was no table dropped
	_ = tablesOf(t, p, from)
	p.SQL("postgres", `CREATE ROLE boardd LOGIN`)
	p.SQL("postgres", documented(t, "```txt\nGRANT", "```"))
	least := map[string]any{"url": strings.Replace(p.URL("postgres"), "postgres@", "boardd@", 1), "migrate": "check"}
	raw, err := json.Marshal(least)
	if err != nil {
		t.Fatal(err)
	}
	before, settings, err := connect(t.Context(), driver.Config{Settings: raw})
	if err != nil {
		t.Fatal(err)
	}
	if before.version = from; before.prepare(t.Context(), settings.migrate) != nil {
		t.Fatal("the version before cannot be opened")
	}
	before.follow(settings)
	t.Cleanup(func() { _ = before.Close() })
	if _, err := before.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	for migrate, want := range map[string]job.Kind{"check": job.Invalid, "auto": job.Unavailable} {
		least["migrate"] = migrate
		if _, err := openWith(t.Context(), least); job.KindOf(err) != want || !strings.Contains(err.Error(), "version 6") && !strings.Contains(err.Error(), "lacks a right") {
			t.Errorf("with migrate = %q: %v", migrate, err)
		}
	}
	if m, err := migrate(t.Context(), driver.Config{Settings: []byte(`{"url":"` + p.URL("postgres") + `"}`)}, false); err != nil || m.From != from || m.To != version {
		t.Fatalf("by the owner of the tables, from %d to %d: %v", m.From, m.To, err)
	}
	least["migrate"] = "check"
	after, err := openWith(t.Context(), least)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = after.Close() }()
	if _, err := after.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	for who, d := range map[string]driver.Driver{"before": before, "now": after} {
		for _, r := range d.Apply(t.Context(), "b", postsOf(4)) {
			if r.Kind != job.NoKind {
				t.Errorf("a post by the version of %s: %v, %s", who, r.Kind, r.Message)
			}
		}
	}
	for f, err := range after.(driver.Examiner).Examine(t.Context(), "b") { //nolint:forcetypeassert // a failure is one
		if err != nil || f.Code == "missing-right" {
			t.Errorf("after the upgrade: %+v, %v", f, err)
		}
	}
	if err := after.DropBoard(t.Context(), "b"); err != nil {
		t.Errorf("a board is dropped: %v", err)
	}
}
