// Package python holds the Python client, and here its tests: they are Python's
// own, run from the package as pip installs it.
package python_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// python is Debian's: TaskFlow is installed for it, and perhaps for no other one
// on the PATH.
const python = "/usr/bin/python3"

// needs is what the tests import, and the Debian package that has it. The tests
// of TaskFlow's that are borrowed import redis, and those that compare with its
// jobboards kazoo as well, though nothing here speaks to either.
var needs = map[string]string{
	"taskflow": "python3-taskflow", "redis": "python3-redis", "kazoo": "python3-kazoo", "testtools": "python3-testtools",
	"oslotest": "python3-oslotest", "testscenarios": "python3-testscenarios", "pip": "python3-pip",
	"setuptools": "python3-setuptools", "wheel": "python3-wheel",
}

// TestPython runs the modules of tests/, each in a process with servers of its
// own: most of them wait for leases to go by. What depends on the store is run
// on Redis as well.
func TestPython(t *testing.T) {
	t.Parallel()
	for module, pkg := range needs {
		if err := exec.CommandContext(t.Context(), python, "-c", "import "+module).Run(); err != nil {
			testneed.Skip(t, python+" has no "+module+" (Debian: "+pkg+")")
		}
	}
	program := testserver.Build(t, "./cmd/boardd")
	certificates := filepath.Dir(testserver.NewCertificates(t).CA)
	work := t.TempDir()
	site := install(t, work)
	modules := tests(t, work)
	if len(modules) == 0 {
		t.Fatal("there are no tests in tests/")
	}
	environment := append(os.Environ(), "PYTHONPATH="+site, "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore::RuntimeWarning",
		"BOARDD_PROGRAM="+program, "BOARDD_CERTIFICATES="+certificates)
	for _, module := range modules {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			run(t, work, module, environment)
		})
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		redis := testserver.StartRedis(t, testserver.RedisOptions{})
		plugins := filepath.Dir(testserver.Build(t, "./plugins/redis"))
		environment := append(slices.Clone(environment), "BOARDD_REDIS="+redis.Addr, "BOARDD_PLUGINS="+plugins)
		for _, module := range []string{"test_taskflow", "test_claims", "test_details", "test_conductor", "test_beside_redis"} {
			run(t, work, module, environment)
		}
	})
}

func run(t *testing.T, work, module string, environment []string) {
	t.Helper()
	tests := exec.CommandContext(t.Context(), python, "-m", "testtools.run", "tests."+module)
	tests.Dir = work // not beside the sources: what is installed has to be whole
	tests.Env = environment
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := string(out); !strings.Contains(text, "\nRan ") || strings.Contains(text, "\nRan 0 tests") {
		t.Fatalf("no test was run:\n%s", text)
	}
}

// install lets pip install the package into a folder, without a network, and
// returns that. Building leaves files beside the sources, so it is done to a copy.
func install(t *testing.T, work string) string {
	t.Helper()
	source, site := filepath.Join(work, "source"), filepath.Join(work, "site")
	for _, name := range []string{"pyproject.toml", "README.md"} {
		copyFile(t, name, filepath.Join(source, name))
	}
	copyFolder(t, "boardd_taskflow", filepath.Join(source, "boardd_taskflow"))
	pip := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
		"--no-build-isolation", "--no-cache-dir", "--root-user-action=ignore", "--target", site, source)
	if out, err := pip.CombinedOutput(); err != nil {
		t.Fatalf("pip install: %v\n%s", err, out)
	}
	return site
}

// tests copies the tests to where they are run, and returns the names of their
// modules.
func tests(t *testing.T, work string) []string {
	t.Helper()
	copyFolder(t, "tests", filepath.Join(work, "tests"))
	paths, err := filepath.Glob(filepath.Join(work, "tests", "test_*.py"))
	if err != nil {
		t.Fatal(err)
	}
	modules := make([]string, len(paths))
	for i, path := range paths {
		modules[i] = strings.TrimSuffix(filepath.Base(path), ".py")
	}
	return modules
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".py" {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err == nil {
			copyFile(t, path, filepath.Join(to, rest))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
