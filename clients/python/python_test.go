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
	"sync"
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
	"setuptools": "python3-setuptools", "wheel": "python3-wheel", "mypy": "mypy", "flask": "python3-flask",
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
	example, page := filepath.Join(work, "main.py"), filepath.Join(work, "python.md")
	copyFile(t, filepath.Join("..", "..", "examples", "web-python", "main.py"), example)
	copyFile(t, filepath.Join("..", "..", "docs", "python.md"), page)
	environment := append(os.Environ(), "PYTHONPATH="+site, "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore::RuntimeWarning",
		"BOARDD_DRAIN_DELAY=0s", "BOARDD_PROGRAM="+program, "BOARDD_CERTIFICATES="+certificates, "BOARDD_EXAMPLE="+example, "BOARDD_PAGE="+page)
	for _, module := range modules {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			run(t, work, module, environment)
		})
	}
	for name, command := range map[string][]string{"check": {"tests.checked"}, "check-asyncio": {"tests.checked", "asyncio"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := exec.CommandContext(t.Context(), program, append([]string{"client", "check", "--", python, "-m"}, command...)...)
			check.Dir, check.Env = work, environment
			if out, err := check.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		redis := testserver.StartRedis(t, testserver.RedisOptions{})
		plugins := filepath.Dir(testserver.Build(t, "./plugins/redis"))
		environment := append(slices.Clone(environment), "BOARDD_REDIS="+redis.Addr, "BOARDD_PLUGINS="+plugins)
		var modules sync.WaitGroup // all at once: they mostly wait
		for _, module := range []string{"test_taskflow", "test_claims", "test_details", "test_conductor", "test_beside_redis", "with_fleet"} {
			modules.Go(func() { run(t, work, module, environment) })
		}
		modules.Wait()
	})
}

// TestOctavia runs Octavia's own conductor and poster on boards of boardd.
func TestOctavia(t *testing.T) {
	t.Parallel()
	for module, pkg := range map[string]string{"octavia": "python3-octavia", "testtools": "python3-testtools", "oslotest": "python3-oslotest", "pip": "python3-pip"} {
		if err := exec.CommandContext(t.Context(), python, "-c", "import "+module).Run(); err != nil {
			testneed.Skip(t, python+" has no "+module+" (Debian: "+pkg+")")
		}
	}
	work := t.TempDir()
	site, allow := install(t, work), filepath.Join(work, "allow_boardd.py")
	_ = tests(t, work)
	copyFile(t, filepath.Join("..", "..", "examples", "octavia", "allow_boardd.py"), allow)
	copyFile(t, filepath.Join("..", "..", "examples", "octavia", "kolla", "octavia.conf"), filepath.Join(work, "kolla.conf"))
	run(t, work, "with_octavia", append(os.Environ(), "PYTHONPATH="+site, "PYTHONDONTWRITEBYTECODE=1",
		"BOARDD_DRAIN_DELAY=0s", "BOARDD_PROGRAM="+testserver.Build(t, "./cmd/boardd"), "BOARDD_ALLOW="+allow))
}

func run(t *testing.T, work, module string, environment []string) {
	t.Helper()
	tests := exec.CommandContext(t.Context(), python, "-m", "testtools.run", "tests."+module)
	tests.Dir = work // not beside the sources: what is installed has to be whole
	tests.Env = environment
	out, err := tests.CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "\nRan ") || strings.Contains(text, "\nRan 0 tests") {
		t.Errorf("%s: %v, or no test was run:\n%s", module, err, text)
	}
}

// sources copies what the package is built of, since building leaves files beside it.
func sources(t *testing.T, work string) string {
	t.Helper()
	source := filepath.Join(work, "source")
	for _, name := range []string{"pyproject.toml", "README.md", "boardd/py.typed"} {
		copyFile(t, name, filepath.Join(source, name))
	}
	for _, name := range []string{"boardd", "boardd_taskflow"} {
		copyFolder(t, name, filepath.Join(source, name))
	}
	return source
}

// install lets pip install the package into a folder, without a network, and
// returns that.
func install(t *testing.T, work string) string {
	t.Helper()
	source, site := sources(t, work), filepath.Join(work, "site")
	pip := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
		"--no-build-isolation", "--no-cache-dir", "--root-user-action=ignore", "--target", site, source)
	if out, err := pip.CombinedOutput(); err != nil {
		t.Fatalf("pip install: %v\n%s", err, out)
	}
	return site
}

// TestTypes: the types of the package boardd hold, in mypy's strictest manner.
func TestTypes(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), python, "-c", "import mypy").Run(); err != nil {
		testneed.Skip(t, python+" has no mypy (Debian: mypy)")
	}
	folder := t.TempDir()
	copyFile(t, "pyproject.toml", filepath.Join(folder, "pyproject.toml"))
	copyFolder(t, "boardd", filepath.Join(folder, "boardd"))
	mypy := exec.CommandContext(t.Context(), python, "-m", "mypy", "--python-version", "3.9", "boardd")
	mypy.Dir = folder
	if out, err := mypy.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestDistributions builds what would be published, and looks at what it contains.
func TestDistributions(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"setuptools", "wheel"} {
		if err := exec.CommandContext(t.Context(), python, "-c", "import "+module).Run(); err != nil {
			testneed.Skip(t, python+" has no "+module+" (Debian: python3-"+module+")")
		}
	}
	folder := sources(t, t.TempDir())
	const code = `
import sys, tarfile, zipfile
from setuptools import build_meta
wheel, source = build_meta.build_wheel("out"), build_meta.build_sdist("out")
sys.stdout = sys.__stdout__
print("WHEEL", *zipfile.ZipFile("out/" + wheel).namelist())
print("SOURCE", *tarfile.open("out/" + source).getnames())
`
	build := exec.CommandContext(t.Context(), python, "-c", code)
	build.Dir = folder
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, kind := range []string{"WHEEL ", "SOURCE "} {
		_, names, _ := strings.Cut(string(out), "\n"+kind)
		names, _, _ = strings.Cut(names, "\n")
		for _, want := range []string{"boardd/__init__.py", "boardd/run.py", "boardd/py.typed", "boardd_taskflow/board.py"} {
			if !strings.Contains(names+" ", want+" ") {
				t.Errorf("%sof it has no %s: %s", kind, want, names)
			}
		}
		if strings.Contains(names, "tests/") {
			t.Errorf("%sof it has the tests: %s", kind, names)
		}
	}
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
