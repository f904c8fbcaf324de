package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// TestUnit has systemd read the units, with the program in its place.
func TestUnit(t *testing.T) {
	t.Parallel()
	for file, name := range map[string]string{"boardd.service": "boardd.service", "boardd-worker@.service": "boardd-worker@default.service"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			testUnit(t, file, name)
		})
	}
}

func testUnit(t *testing.T, file, name string) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		testneed.Skip(t, "systemd-analyze (Debian: systemd) reads the unit")
	}
	text, err := os.ReadFile(filepath.Join("systemd", file))
	if err != nil {
		t.Fatal(err)
	}
	program := testserver.Build(t, "./cmd/boardd")
	unit := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/boardd", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput(); err != nil || strings.Contains(string(out), name+":") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, m := range regexp.MustCompile(`(?m)^Exec\w+=(\S+/boardd) ([a-z ]+) (.*)$`).FindAllStringSubmatch(string(text), -1) {
		help, err := exec.CommandContext(t.Context(), program, append(strings.Fields(m[2]), "--help")...).Output()
		if err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(m[3], -1) {
			if !strings.Contains(string(help), flag+" ") {
				t.Errorf("%s: boardd %s has no %s", m[0], m[2], flag)
			}
		}
	}
}
