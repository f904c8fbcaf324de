// Package hashtree runs the example beside it, made small.
package hashtree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// TestRun hashes 400 files of Go's source while the server and the driver are
// killed twice each; the script itself proves the result.
func TestRun(t *testing.T) {
	t.Parallel()
	run(t, "BOARDD="+testserver.Build(t, "./cmd/boardd"))
}

const onPostgres = `
token "root" {
  roles  = ["operator"]
  secret = %q
}
backend "pg" {
  driver = "postgres"
  config = { url = %q }
}
board "default" {
  backend = "pg"
}
`

// TestRunOnPostgres is TestRun on PostgreSQL, of which all processes are killed as well.
func TestRunOnPostgres(t *testing.T) {
	t.Parallel()
	postgres := testserver.StartPostgres(t, testserver.PostgresOptions{})
	folder := t.TempDir()
	config, wanted := filepath.Join(folder, "boards.hcl"), filepath.Join(folder, "kill")
	if err := os.WriteFile(config, fmt.Appendf(nil, onPostgres, testserver.RootSecret, postgres.URL("postgres")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var killing sync.WaitGroup
	killing.Go(func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(wanted); err == nil {
				postgres.Kill()
				postgres.Restart()
				_ = os.Remove(wanted) // or the script waits, and the test's time is over
			}
			time.Sleep(20 * time.Millisecond) // the script tells by the file
		}
	})
	defer killing.Wait()
	defer stop()
	out := run(t, "BOARDD="+testserver.BuildWith(t, []string{"postgres"}), "CONFIG="+config, "BOARDD_TOKEN="+testserver.RootSecret,
		"DRIVER=plugins/postgres", "KILL_STORE=touch "+wanted+"; while [ -e "+wanted+" ]; do sleep 0.02; done")
	if !strings.Contains(out, "and its store:           2 times") {
		t.Errorf("the store was not killed:\n%s", out)
	}
}

// run runs the script, and returns what it printed.
func run(t *testing.T, env ...string) string {
	t.Helper()
	for _, program := range []string{"bash", "sha256sum", "curl", "pgrep", "python3"} {
		testneed.Program(t, program)
	}
	script, err := os.ReadFile("run.sh") // also makes the test cache see it
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "bash", "-c", string(script), "examples/hash-tree/run.sh")
	run.Dir = filepath.Join("..", "..")
	run.Env = append(append(os.Environ(), "FILES=400", "KILLS=2"), env...)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "400, each once") {
		t.Fatalf("the script did not say what it proved:\n%s", out)
	}
	return string(out)
}
