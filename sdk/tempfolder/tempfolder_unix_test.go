//go:build unix

package tempfolder

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Folders that killed processes left are removed by the next one that makes one of their
// kind: those that nobody has locked and that hold nothing that is not of that kind.
// Others stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	sockets := Kind{Prefix: "of-sockets-", Ours: func(e fs.DirEntry) bool { return e.Type() == fs.ModeSocket }}
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
	left, fresh, foreign, data := folder(sockets.Prefix+"a1"), folder(sockets.Prefix+"a3"), folder("boardd-dev-4"), folder(sockets.Prefix+"a5")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(left, "plugin1"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.WriteFile(filepath.Join(data, "boards.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := sockets.Make(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{left, used.Path, foreign, data} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	next, err := sockets.Make(base)
	if err != nil {
		t.Fatal(err)
	}
	for path, stays := range map[string]bool{left: false, used.Path: true, next.Path: true, fresh: true, foreign: true, data: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v; want it to stay: %v", filepath.Base(path), err, stays)
		}
	}
	for _, f := range []*Folder{used, next} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
			t.Errorf("a folder that was closed: %v", err)
		}
	}
}
