package store

import (
	"context"
	"encoding/json"
	"errors"
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
	if got := p.SQL("postgres", `SELECT (SELECT count(*) FROM jobs.store), (SELECT string_agg(version::text, ',') FROM jobs.migrations)`); got != "1|1,2,3\n" {
		t.Errorf("stores and versions are %q, want one, and each", got)
	}
	at["migrate"] = "check"
	d, err := openWith(t.Context(), at)
	if err != nil {
		t.Fatalf("with the tables there: %v", err)
	}
	_ = d.Close()
	p.SQL("postgres", `INSERT INTO jobs.migrations (version) VALUES (5)`)
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
