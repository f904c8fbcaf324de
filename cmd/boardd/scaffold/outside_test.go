package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/build"
)

// offline is the environment of somebody who is in no checkout of this repository, and
// has the modules that the go command needs already.
func offline(more ...string) []string {
	return append(append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS=-mod=readonly -trimpath"), more...)
}

// fetch gets the modules that a folder needs, as the first build of anybody would.
func fetch(t *testing.T, folder string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "./...")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
}

// TestDriverInGo builds a new driver, and has its own test run a part of the suite.
func TestDriverInGo(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "go")
	folder := filepath.Join(t.TempDir(), "mine")
	if err := Driver("go", "mine", folder); err != nil {
		t.Fatal(err)
	}
	fetch(t, folder)
	for _, args := range [][]string{{"build", "-o", "mine.bin", "."}, {"test", "-run", "TestConformance/post", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = folder, offline()
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "no tests to run") {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestPolicies builds a new policy in each language, and runs the tests of that in Go.
// What they answer is compared by boardd policy test, in testdata/script.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for language, program := range map[string]string{"go": "go", "c": "wasm-ld", "rust": "/usr/bin/rustc", "assemblyscript": "asc"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			env := offline()
			if language == "assemblyscript" {
				tools, err := filepath.Abs("../../../.tools/assemblyscript/node_modules/.bin") // where scripts/setup.sh puts asc
				if err != nil {
					t.Fatal(err)
				}
				program = filepath.Join(tools, program)
			}
			testneed.Program(t, program)
			folder := filepath.Join(t.TempDir(), "mine")
			if err := Policy(language, "mine", folder); err != nil {
				t.Fatal(err)
			}
			if language == "assemblyscript" { // what npm install would do
				if err := os.Symlink(filepath.Dir(filepath.Dir(program)), filepath.Join(folder, "node_modules")); err != nil {
					t.Fatal(err)
				}
			}
			if language == "go" {
				fetch(t, folder)
			}
			module, err := build.Folder(t.Context(), folder, env)
			if err != nil {
				t.Fatal(err)
			}
			text, err := policy.FindManifest(module)
			if err != nil || !strings.Contains(string(text), `"name": "mine"`) {
				t.Errorf("the manifest is %s, %v", text, err)
			}
			if language != "go" {
				return
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
			cmd.Dir, cmd.Env = folder, env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("go test: %v\n%s", err, out)
			}
		})
	}
}

// TestTwice leaves a folder alone that is there.
func TestTwice(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := Driver("python", "mine", folder); !os.IsExist(err) {
		t.Errorf("a driver where something is: %v", err)
	}
	if err := Policy("c", "mine", folder); !os.IsExist(err) {
		t.Errorf("a policy where something is: %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}
