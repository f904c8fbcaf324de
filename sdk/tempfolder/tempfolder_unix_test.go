//go:build unix

package plugin

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Folders that killed processes left are taken away: those that nobody has locked and
// that hold nothing but sockets. Others stay.
func TestSweepSockets(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "sweep") //nolint:usetesting // a socket's name is short, and that of t.TempDir has the test's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	old := time.Now().Add(-2 * staleAfter)
	folder := func(name string) string {
		path := filepath.Join(base, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	left, used, fresh, foreign, data := folder(socketPrefix+"1"), folder(socketPrefix+"2"), folder(socketPrefix+"3"), folder("boardd-dev-4"), folder(socketPrefix+"5")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(left, "plugin1"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.WriteFile(filepath.Join(data, "boards.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := lockFolder(used)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, path := range []string{left, used, foreign, data} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	sweepSockets(base, time.Now().Add(-staleAfter))
	for path, stays := range map[string]bool{left: false, used: true, fresh: true, foreign: true, data: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v; want it to stay: %v", filepath.Base(path), err, stays)
		}
	}
}
