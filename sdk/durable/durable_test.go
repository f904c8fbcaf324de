package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/boardd/boardd/sdk/durable"
)

// A file is written whole, or the one before it stays; nothing is left beside it.
func TestWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "file")
	for _, text := range []string{"first", "second"} {
		if err := durable.WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, text)
	}
	if err := durable.NewFile(path, []byte("third")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a new file where there is one: %v", err)
	}
	wantFile(t, path, "second")
	next := filepath.Join(filepath.Dir(path), "next")
	if err := durable.NewFile(next, []byte("third")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, next, "third")
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(folder, nil); err == nil {
		t.Error("a folder was written over")
	}
	for dir, want := range map[string]int{filepath.Dir(path): 2, filepath.Dir(folder): 1} {
		if found, err := os.ReadDir(dir); err != nil || len(found) != want {
			t.Errorf("%s holds %v, %v; want %d", dir, found, err, want)
		}
	}
}

func wantFile(t *testing.T, path, text string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != text || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %q, %v, %v; want %q", path, data, info.Mode(), err, text)
	}
}

// A folder that is not there cannot be made durable.
func TestSyncFolder(t *testing.T) {
	t.Parallel()
	if err := durable.SyncFolder(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := durable.SyncFolder(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
