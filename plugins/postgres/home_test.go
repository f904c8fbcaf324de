package main

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin"
)

// TestHome starts the driver as boardd does, with a home folder in which there are a file of
// passwords and one of services: it finds both, and the environment tells it nothing else.
func TestHome(t *testing.T) {
	server := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true, Rules: "host all all 127.0.0.1/8 scram-sha-256\n"})
	server.SQL("postgres", `CREATE ROLE boardd LOGIN PASSWORD 'of the file'; GRANT CREATE ON DATABASE postgres TO boardd`)
	at, err := url.Parse(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for name, text := range map[string]string{
		".pgpass":          "127.0.0.1:" + at.Port() + ":*:boardd:of the file\n",
		".pg_service.conf": "[boards]\nhost=127.0.0.1\nport=" + at.Port() + "\nuser=boardd\ndbname=postgres\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("PGPASSWORD", "of the environment")
	t.Setenv("PGUSER", "nobody")
	for _, settings := range []string{`{"url":"postgres://boardd@` + at.Host + `/postgres"}`, `{"url":"service=boards"}`} {
		p, err := plugin.Start(t.Context(), plugin.Command{Path: self, Env: []string{asDriver + "=1"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		d, err := p.Open(t.Context(), driver.Config{Settings: []byte(settings)})
		if err != nil {
			t.Errorf("%s: %v", settings, err)
			continue
		}
		if err := d.Health(t.Context()); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
		_ = d.Close()
	}
}
