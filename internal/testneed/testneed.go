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
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(tb, "the program "+name+" is not installed")
	}
	return path
}

// Skip ends the test because something that it needs is missing. The reason
// says what.
func Skip(tb testing.TB, reason string) {
	tb.Helper()
	if os.Getenv("BOARDD_TEST_ALL") == "1" {
		tb.Fatalf("%s, and BOARDD_TEST_ALL=1 wants every test to run; scripts/setup.sh installs what is missing", reason)
	}
	tb.Skip(reason)
}
