package testserver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

// earlier is the commit whose programs this version has to work beside, unless BOARDD_TEST_BEFORE
// names others. It moves on when a version is released.
const earlier = "f9d0e73e3bfd3d2effeb8cb830f077a3afb223f5"

// Earlier returns the commits whose programs a test runs beside those of this version: those that
// BOARDD_TEST_BEFORE names, or one with BOARDD_TEST_ALL=1, where the clone has it. Elsewhere the test
// is skipped, since it builds the programs of each.
func Earlier(t testing.TB) []string {
	t.Helper()
	commits := strings.Fields(os.Getenv("BOARDD_TEST_BEFORE"))
	switch {
	case len(commits) > 0:
		return commits
	case os.Getenv("BOARDD_TEST_ALL") != "1":
		testneed.Skip(t, "BOARDD_TEST_BEFORE names no commit whose programs are to be built")
	case exec.CommandContext(t.Context(), "git", "-C", Root(t), "cat-file", "-e", earlier+"^{commit}").Run() != nil:
		t.Log("nothing is run: this is no clone with all of the history")
		return nil // and no part is missing that could be installed
	}
	return []string{earlier}
}

// BuildBefore builds packages of an earlier commit of this repository, such as
// "./cmd/boardd", into a folder that stays for the next test, and returns the folder. Their
// names are those of the packages.
func BuildBefore(t testing.TB, commit string, pkgs ...string) string {
	t.Helper()
	root := Root(t)
	git := func(args ...string) ([]byte, error) {
		return exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).Output()
	}
	whole, err := git("rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		testneed.Skip(t, "this clone does not have the commit "+commit)
	}
	folder := filepath.Join(root, ".tools", "programs", "commit-"+strings.TrimSpace(string(whole)))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	defer locked(t, folder+".lock")()
	var missing []string
	for _, pkg := range pkgs {
		if _, err := os.Stat(filepath.Join(folder, filepath.Base(pkg))); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return folder
	}
	archive, err := git("archive", commit)
	if err != nil {
		t.Fatal(err)
	}
	sources := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", sources)
	unpack.Stdin = bytes.NewReader(archive)
	run(t, unpack)
	run(t, compiler(t, sources, append([]string{"-o", folder}, missing...)...))
	return folder
}
