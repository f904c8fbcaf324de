package examples

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/internal/testserver"
)

// laterChecks are those that the old driver fails, since the contract asked for what
// they check only later. Nothing may be added to them: a new check that it fails is a
// promise that drivers of protocol 1 never gave. Those of several hosts on one store are
// not counted: it has no field yet in which to say that a store is for one.
var laterChecks = []string{"loss/seen", "loss/told-again"}

// TestOldDriver has the present boardd check and use a driver that was written when
// protocol 1 was new, and that shares no code or description with it.
func TestOldDriver(t *testing.T) {
	t.Parallel()
	boardd := testserver.Build(t, "./cmd/boardd")
	dir := t.TempDir()
	path := filepath.Join(dir, "old")
	copyPython(t, "testdata/protocol-1/sqlite-py", path)
	t.Run("check", func(t *testing.T) {
		t.Parallel()
		out := run(t, 1, boardd, "plugin", "check", path)
		var failed []string
		for _, line := range regexp.MustCompile(`(?m)^FAILED  (\S+)$`).FindAllStringSubmatch(out, -1) {
			if !strings.HasPrefix(line[1], "hosts/") {
				failed = append(failed, line[1])
			}
		}
		slices.Sort(failed)
		if diff := cmp.Diff(laterChecks, failed); diff != "" {
			t.Errorf("an old driver fails other checks than it did (-then +now):\n%s\n%s", diff, out)
		}
	})
	t.Run("serve", func(t *testing.T) {
		t.Parallel()
		serve(t, boardd, dir, "old")
	})
}
