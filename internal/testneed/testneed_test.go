package testneed_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

// double stands for a test that Program or Skip ends.
type double struct {
	testing.TB

	skipped, failed string
}

type ended struct{}

func (d *double) Helper() {}

func (d *double) Skip(args ...any) {
	d.skipped = fmt.Sprint(args...)
	panic(ended{})
}

func (d *double) Fatalf(format string, args ...any) {
	d.failed = fmt.Sprintf(format, args...)
	panic(ended{})
}

// run calls f as a test would and reports how it ended.
func run(t *testing.T, f func(testing.TB)) (d *double) {
	t.Helper()
	d = &double{TB: t}
	defer func() {
		if p := recover(); p != nil && p != (ended{}) {
			panic(p)
		}
	}()
	f(d)
	return d
}

func TestProgram(t *testing.T) {
	var path string
	d := run(t, func(tb testing.TB) { path = testneed.Program(tb, "go") })
	if d.skipped != "" || d.failed != "" || filepath.Base(path) != "go" {
		t.Errorf("go: got %q, skipped %q, failed %q", path, d.skipped, d.failed)
	}
}

func TestMissing(t *testing.T) {
	const name = "no-such-program-on-any-machine"
	missing := func(tb testing.TB) { testneed.Program(tb, name) }

	t.Setenv("BOARDD_TEST_ALL", "")
	if d := run(t, missing); d.skipped != "the program "+name+" is not installed" || d.failed != "" {
		t.Errorf("skipped %q, failed %q", d.skipped, d.failed)
	}
	t.Setenv("BOARDD_TEST_ALL", "1")
	if d := run(t, missing); d.skipped != "" || d.failed == "" {
		t.Errorf("under BOARDD_TEST_ALL=1: skipped %q, failed %q", d.skipped, d.failed)
	}
}
