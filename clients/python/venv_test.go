package python_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// TestVirtualEnvironment goes the way that docs/python.md shows to somebody new, on a machine
// without a network: a wheel is built and installed into an environment that has nothing else,
// and the page's programs run there, one after the other.
func TestVirtualEnvironment(t *testing.T) {
	t.Parallel()
	for module, pkg := range map[string]string{"pip": "python3-pip", "setuptools": "python3-setuptools", "wheel": "python3-wheel", "ensurepip": "python3-venv"} {
		if err := exec.CommandContext(t.Context(), python, "-c", "import "+module).Run(); err != nil {
			testneed.Skip(t, python+" has no "+module+" (Debian: "+pkg+")")
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "python.md"))
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	venv := filepath.Join(work, "boardd-venv")
	wheels := []string{"-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", "wheels", sources(t, work)}
	if !strings.Contains(string(text), "\npython3 "+strings.Join(wheels[:len(wheels)-1], " ")+" ./clients/python\n") {
		t.Errorf("docs/python.md does not say how the wheel is built without a network: %v", wheels)
	}
	runIn(t, work, nil, python, wheels...)
	built, err := filepath.Glob(filepath.Join(work, "wheels", "boardd-*.whl"))
	if err != nil || len(built) != 1 {
		t.Fatalf("pip built %v (%v), want one wheel", built, err)
	}
	runIn(t, work, nil, python, "-m", "venv", venv)
	runIn(t, work, nil, filepath.Join(venv, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-index", built[0])
	server := testserver.Start(t, testserver.Build(t, "./cmd/boardd"), "")
	var programs []string
	for i, part := range strings.Split(string(text), "\n```python\n") {
		if block, _, closed := strings.Cut(part, "```"); i > 0 && closed {
			programs = append(programs, block)
		}
	}
	if len(programs) < 4 {
		t.Fatalf("docs/python.md has %d programs, want at least 4", len(programs))
	}
	page := filepath.Join(work, "page.py")
	if err := os.WriteFile(page, []byte(strings.Join(programs, "\n")+"\nprint(boardd.__file__, worked)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := runIn(t, work, []string{"BOARDD_ADDR=" + server.Addr, "BOARDD_TOKEN=dev"}, filepath.Join(venv, "bin", "python"), page)
	if !strings.Contains(out, venv) || !strings.Contains(out, "['photo', 'photo', 'album']") {
		t.Errorf("the page's programs print:\n%s", out)
	}
}

// runIn runs a program in a folder, with no Python but the one that it is of.
func runIn(t *testing.T, folder string, environment []string, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir, command.Env = folder, append(os.Environ(), append(environment, "PYTHONPATH=", "PIP_ROOT_USER_ACTION=ignore")...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}
