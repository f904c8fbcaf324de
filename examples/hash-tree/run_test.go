// Package hashtree runs the example beside it, made small.
package hashtree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// TestRun hashes 400 files of Go's source while the server and the driver are
// killed twice each; the script itself proves the result.
func TestRun(t *testing.T) {
	for _, program := range []string{"bash", "sha256sum", "curl", "pgrep", "python3"} {
		testneed.Program(t, program)
	}
	boardd := testserver.Build(t, "./cmd/boardd")
	script, err := os.ReadFile("run.sh") // also makes the test cache see it
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "bash", "-c", string(script), "examples/hash-tree/run.sh")
	run.Dir = filepath.Join("..", "..")
	run.Env = append(os.Environ(), "FILES=400", "KILLS=2", "BOARDD="+boardd)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "400, each once") {
		t.Fatalf("the script did not say what it proved:\n%s", out)
	}
}
