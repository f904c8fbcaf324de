// Package testserver gives tests the real thing: the boardd program built from
// the sources at hand, and servers of it in processes of their own.
package testserver

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Root returns the module's top folder, found from the test's working folder.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(text), "module github.com/boardd/boardd\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod of boardd in this folder or above it")
		}
	}
}

// Build builds the program of a package, such as "./cmd/boardd", and returns its
// path. It reads the module's sources itself, since the cache of test results
// does not see what the compiler reads in a process of its own.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	root := Root(t)
	readSources(t, root)
	program := filepath.Join(t.TempDir(), filepath.Base(pkg))
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return program
}

func readSources(t testing.TB, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return filepath.SkipDir
		case entry.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		case strings.HasSuffix(path, ".go") || entry.Name() == "go.mod":
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
