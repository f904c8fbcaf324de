// Package teams is a policy for histories, whose decisions a checker can repeat: jobs of
// one team may be kept for its workers, and the label "rank" orders the board.
package teams

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/policy/build"
)

// Module builds the policy. It needs a compiler of C.
func Module(t testing.TB) []byte {
	t.Helper()
	folder := filepath.Join(testserver.Root(t), "internal", "faults", "teams", "policy")
	for _, name := range []string{"teams.c", build.ManifestFile} { // they belong to the test's inputs
		if _, err := os.ReadFile(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	module, err := build.Folder(t.Context(), folder, os.Environ())
	if _, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return module
}
