package host_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
)

// The folder for compiled policies of a host that has no data folder is removed when it
// ends, and that of one that was killed when the next one begins. What else has such a
// name stays.
func TestPolicyFolders(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	long := time.Now().Add(-time.Hour)
	for _, inner := range []string{"boardd-policies-killed/own/x", "boardd-policies-killed/foreign", "boardd-policies-of-somebody/letters"} {
		if err := os.MkdirAll(filepath.Join(base, inner), 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(base, filepath.Dir(inner))
		if filepath.Base(path) == "own" {
			path = filepath.Dir(path)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	folders := func() []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(base, "boardd-policies-*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	h, err := host.Open(t.Context(), host.Config{Config: config.Config{Tenants: []string{"default"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(base, "boardd-policies-killed")); !os.IsNotExist(err) {
		t.Errorf("what was left behind by a host that was killed: %v", err)
	}
	if found := folders(); len(found) != 2 {
		t.Errorf("while a host runs there are %v; want its own, and the one of somebody else", found)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if found := folders(); len(found) != 1 || filepath.Base(found[0]) != "boardd-policies-of-somebody" {
		t.Errorf("after the host has ended there are %v", found)
	}
}
