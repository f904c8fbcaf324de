// Package testneed lets a test name the real parts that it cannot do without: a
// program, a library, a right. Where one is missing the test is skipped with its
// name, so that a fresh clone passes everywhere; where BOARDD_TEST_ALL is 1 it
// fails instead, so that continuous integration cannot pass by skipping.
package testneed

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program, or ends the test if there is none.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(t, "the program "+name+" is not installed")
	}
	return path
}

// Skip ends the test because something that it needs is missing. The reason
// says what.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("BOARDD_TEST_ALL") == "1" {
		t.Fatalf("%s, and BOARDD_TEST_ALL=1 wants every test to run; scripts/setup.sh installs what is missing", reason)
	}
	t.Skip(reason)
}
