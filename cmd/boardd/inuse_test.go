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

// Who is told that a store is in use is told which process to stop: the server, and
// not the driver, which the server would start again.
func TestInUseNamesTheServer(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, putBackConfig, "embedded", "", ""), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, program, "", "--config", config)
	c := exec.CommandContext(t.Context(), program, "doctor", "--config", config)
	c.Env = append(os.Environ(), "BOARDD_DATA_DIR="+server.Data)
	out, err := c.CombinedOutput()
	if want := fmt.Sprintf("in use by process %d", server.PID()); !strings.Contains(string(out), want) {
		t.Errorf("boardd doctor: %v\n%s\nwant %q", err, out, want)
	}
}
