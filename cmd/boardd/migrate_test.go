package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// TestBackendMigrate has the command print SQL that psql takes, and do the same itself.
func TestBackendMigrate(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	program := withDriver(t, "postgres")
	config := filepath.Join(t.TempDir(), "boardd.hcl")
	text := fmt.Sprintf(`
backend "pg" {
  driver = "postgres"
  config = { url = %q, migrate = "check" }
}
backend "other" {
  driver = "postgres"
  config = { url = %q, schema = "other" }
}
backend "file" {
  driver = "embedded"
  config = { path = %q }
}
board "a" { backend = "pg" }
board "b" { backend = "other" }
`, p.URL("postgres"), p.URL("postgres"), t.TempDir())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		t.Helper()
		c := exec.CommandContext(t.Context(), program, append([]string{"backend", "migrate", "--config", config}, args...)...)
		var complaints strings.Builder
		c.Stderr = &complaints
		out, err := c.Output()
		return string(out) + complaints.String(), err
	}
	sql, err := run("pg", "--dry-run")
	if err != nil || !strings.HasPrefix(sql, "BEGIN;\n") || !strings.HasSuffix(sql, "COMMIT;\n") {
		t.Fatalf("a dry run: %v\n%s", err, sql)
	}
	p.SQL("postgres", sql)
	if sql, err = run("pg", "--dry-run"); err != nil || !strings.HasPrefix(sql, "-- ") {
		t.Errorf("a dry run with the tables there: %v\n%s", err, sql)
	}
	for _, want := range []string{"had version 0", "as this boardd wants them"} {
		if out, err := run("other"); err != nil || !strings.Contains(out, want) {
			t.Errorf("a run: %v, %q; want %q", err, out, want)
		}
	}
	// Who only looks makes and upgrades nothing.
	p.SQL("postgres", `DROP SCHEMA other CASCADE; DELETE FROM boardd.migrations WHERE version > 1`)
	out, err := exec.CommandContext(t.Context(), program, "doctor", "--config", config).CombinedOutput()
	for _, want := range []string{"no-store-yet: backend other", "tables-behind: backend pg"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("doctor says %v, %s; want %s", err, out, want)
		}
	}
	if got := strings.TrimSpace(p.SQL("postgres", `SELECT to_regnamespace('other') IS NULL AND max(version) = 1 FROM boardd.migrations`)); got != "t" {
		t.Error("doctor has made or upgraded tables")
	}
	for backend, want := range map[string]string{"file": "has nothing to migrate", "none": `no backend "none"`} {
		if out, err := run(backend); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q; want %q", backend, err, out, want)
		}
	}
}
