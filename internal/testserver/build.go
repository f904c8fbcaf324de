// Package testserver gives tests the real thing: the boardd program built from
// the sources at hand, and servers of it in processes of their own.
package testserver

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

// Build builds the program of a package, such as "./cmd/boardd", with the given build
// tags, and returns the path of a copy in a folder of its own. It reads the module's
// sources itself, since the cache of test results does not see what the compiler reads in
// a process of its own.
//
// What was built stays in .tools/programs, for the next test, whose process may be
// another: then the compiler only looks whether it is still right, once in a process, and
// links nothing.
func Build(t testing.TB, pkg string, tags ...string) string {
	t.Helper()
	root := Root(t)
	kept := filepath.Join(root, ".tools", "programs", strings.Join(append([]string{"tags"}, tags...), "-"), filepath.FromSlash(pkg))
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	defer locked(t, kept+".lock")()
	if !builtHere(kept) {
		readSources(t, root)
		run(t, compiler(t, root, "-tags", strings.Join(tags, ","), "-o", kept, pkg))
		remember(t, kept)
	}
	program := filepath.Join(t.TempDir(), filepath.Base(pkg))
	run(t, exec.CommandContext(t.Context(), "cp", kept, program)) // a process of its own: nothing that this one starts meanwhile has the copy open, and forbids to run it
	return program
}

// compiler is `go build` with some arguments. It builds as scripts/release.sh does, and the
// steps of .ci/run before the tests: what one of them has compiled the others use.
func compiler(t testing.TB, dir string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), "go", append([]string{"build", "-trimpath"}, args...)...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=off", "GOMEMLIMIT=2GiB") // collecting garbage is a fifth of what compilers compute
	return c
}

func run(t testing.TB, c *exec.Cmd) {
	t.Helper()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
}

// built has, by its path, what os.Stat says of each program that this process has built.
var built sync.Map

func remember(t testing.TB, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	built.Store(path, info)
}

// builtHere reports whether this process built the program at path, and nobody has replaced
// it since: the sources do not change while tests run, and to have the compiler look whether
// they did takes as long as many a test.
func builtHere(path string) bool {
	before, ok := built.Load(path)
	if !ok {
		return false
	}
	now, err := os.Stat(path)
	old, _ := before.(os.FileInfo)
	return err == nil && os.SameFile(now, old) && now.Size() == old.Size() && now.ModTime().Equal(old.ModTime())
}

// BuildWith builds boardd with drivers of plugins/ in the folder beside it, where it
// finds them, and returns the program.
func BuildWith(t testing.TB, drivers []string, tags ...string) string {
	t.Helper()
	program := Build(t, "./cmd/boardd", tags...)
	folder := filepath.Join(filepath.Dir(program), "plugins")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range drivers {
		if err := os.Rename(Build(t, "./plugins/"+name, tags...), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return program
}

// locked waits until no other process holds the lock of a file, and holds it until the
// caller calls what it returns.
func locked(t testing.TB, path string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	err = syscall.EINTR
	for errors.Is(err, syscall.EINTR) {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = file.Close() } // which ends the lock
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
