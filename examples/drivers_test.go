// Package examples tests the drivers beside it with the boardd that this source
// makes, which knows nothing of them.
package examples

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver/drivertest/seeded"
	"github.com/boardd/boardd/sdk/plugin"
)

// seededArg makes this program a driver that is wrong on purpose.
const seededArg = "-seeded-bug="

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && strings.HasPrefix(os.Args[1], seededArg) {
		bug, _ := seeded.Find(strings.TrimPrefix(os.Args[1], seededArg))
		plugin.Serve(bug.Program())
		return
	}
	os.Exit(m.Run())
}

// TestDrivers copies each driver into an empty plugin_dir, and then has it listed,
// checked and served from. Drivers that are wrong on purpose are checked, too.
func TestDrivers(t *testing.T) {
	t.Parallel()
	boardd := testserver.Build(t, "./cmd/boardd")
	before := digest(t, boardd)
	t.Cleanup(func() {
		if digest(t, boardd) != before {
			t.Error("the boardd under test is another one at the end")
		}
	})
	for name, install := range map[string]func(t *testing.T, path string){"sqlite": buildSQL, "sqlite-py": copySQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			install(t, path)
			t.Run("list", func(t *testing.T) {
				t.Parallel()
				out := run(t, 0, boardd, "plugin", "list", "--plugin-dir", dir)
				if !regexp.MustCompile(`(?m)^` + name + ` +1\.0\.0 .*` + regexp.QuoteMeta(path) + `$`).MatchString(out) {
					t.Errorf("plugin list does not show %s:\n%s", name, out)
				}
			})
			t.Run("check", func(t *testing.T) {
				t.Parallel()
				out := run(t, 0, boardd, "plugin", "check", path)
				if !strings.Contains(out, " checks passed, 0 failed") {
					t.Errorf("plugin check ended well and says:\n%s", out)
				}
			})
			t.Run("killed", func(t *testing.T) {
				t.Parallel()
				killed(t, path)
			})
			t.Run("serve", func(t *testing.T) {
				t.Parallel()
				serve(t, boardd, dir, name)
			})
		})
	}
	t.Run("seeded", func(t *testing.T) {
		t.Parallel()
		checkSeeded(t, boardd)
	})
}

// unseen says why some seeded bugs cannot be found in a program, or not soon.
var unseen = map[string]string{
	"keeps-buffers":  "no buffer crosses the process boundary",
	"cancel-lies":    "the host answers for a call that has ended",
	"two-winners":    "the host has never two ops for one job under way",
	"deaf-documents": "the check waits for a minute and a half",
}

// checkSeeded checks that plugin check finds every seeded bug in a program, and
// names the check that found it.
func checkSeeded(t *testing.T, boardd string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, bug := range seeded.All() {
		if bug.Lasting || bug.Hosts || unseen[bug.Name] != "" {
			continue // its store would have to outlive its process, or be seen by others
		}
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			out := run(t, 1, boardd, "plugin", "check", "--only", bug.Check, "--forgetful", `{"events":16}`, "--", self, seededArg+bug.Name)
			if !strings.Contains(out, "FAILED  "+bug.Check+"\n") {
				t.Errorf("plugin check does not blame %s:\n%s", bug.Check, out)
			}
		})
	}
}

// run runs a program that has to end with the given status, and returns what it
// printed.
func run(t *testing.T, status int, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("%s %s ended with %d (%v), want %d:\n%s", filepath.Base(program), strings.Join(args, " "), got, err, status, out)
	}
	return string(out)
}

func digest(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// buildSQL builds driver-sql in its own module. Its sources were read by
// testserver.Build.
func buildSQL(t *testing.T, path string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	build.Dir = "driver-sql"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}

const python = "/usr/bin/python3"

// copySQLite makes of driver-python what its README says.
func copySQLite(t *testing.T, path string) {
	t.Helper()
	copyPython(t, "driver-python/sqlite-py", path)
	describe(t, filepath.Dir(path))
}

// describe puts the messages of the protocol beside a driver in Python, in a folder.
func describe(t *testing.T, folder string) {
	t.Helper()
	testneed.Program(t, "protoc")
	if err := exec.CommandContext(t.Context(), python, "-c", "import google.protobuf").Run(); err != nil {
		testneed.Skip(t, python+" has no protobuf (Debian: python3-protobuf)")
	}
	sources(t, "../sdk/plugin/driver.proto") // which protoc reads: the test cache has to know
	stubs := exec.CommandContext(t.Context(), "protoc", "-I", "../sdk/plugin", "--python_out="+folder, "driver.proto")
	if out, err := stubs.CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, out)
	}
}

// copyPython copies a driver in Python, where there is what runs it.
func copyPython(t *testing.T, from, path string) {
	t.Helper()
	testneed.Program(t, python)
	if err := exec.CommandContext(t.Context(), python, "-c", "import grpc").Run(); err != nil {
		testneed.Skip(t, python+" has no grpc (Debian: python3-grpcio)")
	}
	script, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, script, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

// TestOnlySDK checks that driver-sql imports of this project only what is for
// everybody.
func TestOnlySDK(t *testing.T) {
	t.Parallel()
	for _, text := range sources(t, "driver-sql/*.go") {
		for _, path := range regexp.MustCompile(`"(github\.com/[^"]+)"`).FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(path[1], "github.com/boardd/boardd/sdk/") {
				t.Errorf("driver-sql imports %s, want only packages of sdk", path[1])
			}
		}
	}
}

func sources(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %d files", pattern, err, len(paths))
	}
	var texts []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}
