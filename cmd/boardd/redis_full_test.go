package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

const fullConfig = `
token "root" {
  roles  = ["operator", "poster", "worker", "tenant-admin"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  driver = "redis"
  config = { address = %q }
}
catalog {
  backend = "main"
}
board "default" {
  backend = "main"
  history = "1h"
}
`

// A fullStore is a server on a store that is full.
type fullStore struct {
	*testing.T

	program, config string
	redis           *testserver.Redis
	server          *testserver.Server
}

// run runs a command of the client.
func (f *fullStore) run(args ...string) (string, error) {
	c := exec.CommandContext(f.Context(), f.program, args...)
	c.Env = append(os.Environ(), "BOARDD_ADDR="+f.server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
	out, err := c.CombinedOutput()
	return string(out), err
}

func (f *fullStore) done(args ...string) string {
	f.Helper()
	out, err := f.run(args...)
	if err != nil {
		f.Fatalf("boardd %v: %v\n%s\n%s", args, err, out, f.server.Log())
	}
	return out
}

// page gets a page of the server.
func (f *fullStore) page(path string) string {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.server.Addr+path, http.NoBody)
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer not-very-secret-1234567890")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // what did not come is missed below
	return fmt.Sprintf("%d\n%s", answer.StatusCode, text)
}

// claim claims some jobs, and writes the claims into a file.
func (f *fullStore) claim(n int) string {
	f.Helper()
	out := f.done("job", "claim", "--owner", "w", "--max", fmt.Sprint(n), "-o", "json")
	var answer struct{ Claims []json.RawMessage }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Claims) != n {
		f.Fatalf("%d claims, want %d (%v)\n%s", len(answer.Claims), n, err, out)
	}
	file := filepath.Join(f.TempDir(), "claims")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		f.Fatal(err)
	}
	return file
}

// TestFullRedis serves a board on a Redis without memory, which a server is started on as
// well: what is there can be worked on and ended, and whoever asks is told.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	f := &fullStore{T: t, program: withDriver(t, "redis"), redis: testserver.StartRedis(t, testserver.RedisOptions{})}
	f.config = filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(f.config, fmt.Appendf(nil, fullConfig, f.redis.Addr), 0o600); err != nil {
		t.Fatal(err)
	}
	f.server = testserver.Start(t, f.program, "", "--config", f.config)
	for range 8 {
		f.done("job", "post", "resize")
	}
	f.redis.Command("CONFIG", "SET", "maxmemory", "1mb")
	f.drains()
	f.server.Stop()
	f.server = testserver.Start(t, f.program, "", "--config", f.config)
	f.drains()
	f.redis.Command("CONFIG", "SET", "maxmemory", "0")
	testserver.Eventually(t, "the server says that there is room", func() bool { return f.page("/readyz") == "200\nready\n" })
	f.done("job", "post", "resize")
}

// drains does to four jobs what has to go on, and tries what may not.
func (f *fullStore) drains() {
	f.Helper()
	testserver.Eventually(f.T, "the server says that the store is full", func() bool {
		return strings.HasPrefix(f.page("/readyz"), "200\nready\n") && strings.Contains(f.page("/readyz"), "full")
	})
	page := f.page("/metrics")
	for _, want := range []string{
		`boardd_backend_full{backend="main",driver="redis"} 1`, `boardd_backend_limit_bytes{backend="main",driver="redis"} 1.048576e+06`,
		`boardd_backend_used_bytes{backend="main",driver="redis"} `,
	} {
		if !strings.Contains(page, want) {
			f.Errorf("the metrics do not say that the store is full by %s:\n%s", want, page)
		}
	}
	if out, err := f.run("backend", "list"); err != nil || !regexp.MustCompile(`main +redis +true +[0-9.]+ MiB +1\.0 MiB`).MatchString(out) {
		f.Errorf("backend list: %v\n%s", err, out)
	}
	if out, err := f.run("doctor", "--config", f.config); err == nil || !strings.Contains(out, "memory-full") {
		f.Errorf("doctor: %v\n%s", err, out)
	}
	if out, err := f.run("job", "post", "resize"); err == nil || !strings.Contains(out, "QUOTA_EXCEEDED") || !strings.Contains(out, "memory") {
		f.Errorf("a post: %v\n%s", err, out)
	}
	f.drain()
}

// drain does to four jobs what makes no board larger. Two of them are gone then.
func (f *fullStore) drain() {
	f.Helper()
	claims := f.claim(1)
	f.done("job", "extend", "--claims", claims)
	f.done("job", "consume", "--claims", claims)
	f.done("job", "abandon", "--claims", f.claim(1))
	claims = f.claim(1)
	f.done("job", "trash", "--claims", claims)
	trashed := strings.Fields(f.done("job", "list", "--state", "trashed", "-o", "json"))
	var list struct{ Jobs []struct{ UUID string } }
	if err := json.Unmarshal([]byte(strings.Join(trashed, " ")), &list); err != nil || len(list.Jobs) == 0 {
		f.Fatalf("the trash: %v, %v", trashed, err)
	}
	f.done("job", "restore", list.Jobs[0].UUID)
	f.done("job", "trash", list.Jobs[0].UUID)
	f.done("job", "purge", list.Jobs[0].UUID)
}
