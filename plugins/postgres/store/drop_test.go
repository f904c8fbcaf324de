package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestDropInParts drops boards with more rows than a statement deletes. What a server leaves that
// ends half way goes with the next one.
func TestDropInParts(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	d, err := openWith(t.Context(), map[string]any{"url": p.URL("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	left := func() (all []string) {
		for _, table := range append([]string{"dropped"}, append(dropTogether, dropLater...)...) {
			if n := strings.TrimSpace(p.SQL("postgres", "SELECT count(*) FROM boardd."+table)); n != "0" {
				all = append(all, table+" "+n)
			}
		}
		return all
	}
	made := func(name string) {
		t.Helper()
		if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
		for _, r := range d.Apply(t.Context(), name, postsOf(4)) {
			if r.Kind != job.NoKind {
				t.Fatalf("a post: %v, %s", r.Kind, r.Message)
			}
		}
		p.SQL("postgres", fmt.Sprintf(`INSERT INTO boardd.stamps SELECT board, -n, gen_random_uuid(), gen_random_uuid(), 1, '' FROM boardd.boards, generate_series(1, %d) n WHERE name = '%s'`, 2*dropMost, name))
	}
	made("a")
	if err := d.DropBoard(t.Context(), "a"); err != nil || len(left()) > 0 {
		t.Errorf("dropped: %v, and there is left: %v", err, left())
	}
	made("b")
	p.SQL("postgres", `INSERT INTO boardd.dropped SELECT board FROM boardd.boards; DELETE FROM boardd.boards`) // as dropBoard leaves it
	if err := d.DropBoard(t.Context(), "b"); err != nil || len(left()) > 0 {
		t.Errorf("dropped half way, and again: %v, and there is left: %v", err, left())
	}
	made("c")
	ctx, cancel := context.WithCancel(t.Context())
	p.SQL("postgres", `CREATE FUNCTION boardd.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$;
		CREATE TRIGGER slow AFTER DELETE ON boardd.jobs FOR EACH STATEMENT EXECUTE FUNCTION boardd.slow()`)
	ended := make(chan error, 1)
	go func() { ended <- d.DropBoard(ctx, "c") }()
	testserver.Eventually(t, "its name is free", func() bool {
		return strings.TrimSpace(p.SQL("postgres", `SELECT count(*) FROM boardd.boards`)) == "0"
	})
	cancel()
	if err := <-ended; job.KindOf(err) == job.NoKind {
		t.Error("a drop that was called off half way says that all is gone")
	}
	p.SQL("postgres", `DROP TRIGGER slow ON boardd.jobs`)
	made("c") // another one
	if err := d.DropBoard(t.Context(), "other"); err != nil {
		t.Error(err)
	}
	if n := strings.TrimSpace(p.SQL("postgres", `SELECT count(*) FROM boardd.jobs`)); n != "4" {
		t.Errorf("%s jobs are there, want the 4 of the board that was made anew", n)
	}
}
