package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/backup"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const fast = 1 << 40 // bytes a second

func parts(list ...driver.BackupPart) iter.Seq2[driver.BackupPart, error] {
	return func(yield func(driver.BackupPart, error) bool) {
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

var two = []driver.BackupPart{
	{Name: "boards.db", Size: 10, Data: []byte("01234")},
	{Data: []byte("56789")},
	{Name: "boards.mark", Size: 3, Data: []byte("abc")},
}

func archive(t testing.TB) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	m := backup.Manifest{Boardd: "1.2.3", Backend: "main", Driver: "embedded", Begun: time.Unix(1_700_000_000, 0).UTC()}
	if err := backup.Write(t.Context(), out, &m, parts(two...), fast); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBackup writes a backup, and reads it from an archive and from a folder.
func TestBackup(t *testing.T) {
	t.Parallel()
	text := archive(t)
	folder := filepath.Join(t.TempDir(), "new", "main")
	m, err := backup.Archive(bytes.NewReader(text)).Unpack(folder, true)
	if err != nil || m.Backend != "main" || m.Driver != "embedded" || m.Boardd != "1.2.3" || m.Bytes() != 13 || m.Begun.Unix() != 1_700_000_000 {
		t.Fatalf("%+v, %v", m, err)
	}
	if m, err := backup.Folder(folder).Check(); err != nil || len(m.Files) != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	store := t.TempDir() // which is empty
	if _, err := backup.Folder(folder).Unpack(store, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"boards.db": "0123456789", "boards.mark": "abc"} {
		if got, err := os.ReadFile(filepath.Join(store, name)); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(store, backup.ManifestFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store has the manifest: %v", err)
	}
	if _, err := backup.Folder(folder).Unpack(store, false); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("over a store: %v", err)
	}
}

// TestPartial: what a killed one left is taken away by the next, and nothing that another is at.
func TestPartial(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	left, fresh := filepath.Join(parent, ".main.partial-1"), filepath.Join(parent, ".main.partial-2")
	for _, folder := range []string{left, fresh} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "boards.db"), []byte("01234"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if old := time.Now().Add(-time.Hour); os.Chtimes(left, old, old) != nil {
		t.Fatal("its time cannot be set")
	}
	if _, err := backup.Archive(bytes.NewReader(archive(t))).Unpack(filepath.Join(parent, "main"), false); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(parent, ".*"))
	if err != nil || !slices.Equal(names, []string{fresh}) {
		t.Errorf("there are %v (%v): want what is new alone", names, err)
	}
}

// TestCutAndDamaged cuts an archive at each byte, and changes each byte of its files.
func TestCutAndDamaged(t *testing.T) {
	t.Parallel()
	text := archive(t)
	whole := bytes.LastIndex(text, []byte("}")) + 1 // the end of the manifest
	parent := t.TempDir()
	for n := range whole {
		_, err := backup.Archive(bytes.NewReader(text[:n])).Check()
		if err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Fatalf("the first %d bytes of %d: %v", n, len(text), err)
		}
	}
	for at, name := range map[int]string{512: "boards.db", 521: "boards.db", 1536: "boards.mark"} {
		bad := bytes.Clone(text)
		bad[at] ^= 1
		_, err := backup.Archive(bytes.NewReader(bad)).Unpack(filepath.Join(parent, "main"), true)
		if err == nil || !strings.HasPrefix(err.Error(), name+" is damaged") {
			t.Errorf("byte %d: %v, want %s", at, err, name)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("what was refused left %v, %v", left, err)
	}
}

// TestDamagedFolder damages a backup that lies in a folder.
func TestDamagedFolder(t *testing.T) {
	t.Parallel()
	for want, damage := range map[string]func(folder string) error{
		"boards.mark is missing":                    func(f string) error { return os.Remove(filepath.Join(f, "boards.mark")) },
		"boards.db has 9 bytes":                     func(f string) error { return os.Truncate(filepath.Join(f, "boards.db"), 9) },
		"boards.mark is damaged":                    func(f string) error { return os.WriteFile(filepath.Join(f, "boards.mark"), []byte("abd"), 0o600) },
		"it has no manifest.json":                   func(f string) error { return os.Remove(filepath.Join(f, backup.ManifestFile)) },
		"manifest.json cannot be read":              func(f string) error { return os.Truncate(filepath.Join(f, backup.ManifestFile), 20) },
		"manifest.json is of format 2":              manifest(`{"format":2}`),
		"manifest.json names no file":               manifest(`{"format":1}`),
		`manifest.json names a file "../boards.db"`: manifest(`{"format":1,"files":[{"name":"../boards.db"}]}`),
	} {
		folder := filepath.Join(t.TempDir(), "main")
		if _, err := backup.Archive(bytes.NewReader(archive(t))).Unpack(folder, true); err != nil {
			t.Fatal(err)
		}
		if err := damage(folder); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Folder(folder).Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func manifest(text string) func(folder string) error {
	return func(f string) error { return os.WriteFile(filepath.Join(f, backup.ManifestFile), []byte(text), 0o600) }
}

// TestForeignArchives reads archives that no backup is.
func TestForeignArchives(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"../x": "no backup has", "X": "no backup has", "x/y": "no backup has", "link": "is no file"} {
		out := &bytes.Buffer{}
		w := tar.NewWriter(out)
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg}
		if name == "link" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, "/etc/passwd"
		}
		if err := errors.Join(w.WriteHeader(h), w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Archive(out).Unpack(filepath.Join(t.TempDir(), "main"), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	large := &bytes.Buffer{}
	w := tar.NewWriter(large)
	_ = w.WriteHeader(&tar.Header{Name: backup.ManifestFile, Typeflag: tar.TypeReg, Size: backup.MaxManifest + 1}) // a bytes.Buffer takes everything
	_, _ = w.Write(make([]byte, backup.MaxManifest+1))
	if _, err := backup.Archive(large).Check(); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("a large manifest: %v", err)
	}
}

// TestStrangeDrivers has drivers yield what no backup may have.
func TestStrangeDrivers(t *testing.T) {
	t.Parallel()
	file := func(name string, size int64, data string) driver.BackupPart {
		return driver.BackupPart{Name: name, Size: size, Data: []byte(data)}
	}
	for want, list := range map[string][]driver.BackupPart{
		"has no file":                   nil,
		"more of a file than":           {file("a", 1, "ab")},
		"yields more":                   {file("", 0, "a")},
		"less of a file than":           {file("a", 2, "a"), file("b", 0, "")},
		"yields less":                   {file("a", 2, "a")},
		`"../a" of 0 bytes`:             {file("../a", 0, "")},
		`"manifest.json" of 0 bytes`:    {file("manifest.json", 0, "")},
		`"a" of 0 bytes, which no`:      {file("a", 0, ""), file("a", 0, "")},
		`a file "a" of -1 bytes, which`: {file("a", -1, "")},
	} {
		err := backup.Write(t.Context(), io.Discard, &backup.Manifest{}, parts(list...), fast)
		if job.KindOf(err) != job.Internal || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRate reads so many bytes a second as were asked for.
func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := backup.Write(t.Context(), io.Discard, &backup.Manifest{}, parts(two...), 2); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 6500*time.Millisecond {
			t.Errorf("13 bytes at 2 a second took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := backup.Write(ctx, io.Discard, &backup.Manifest{}, parts(two...), 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the time is over", err)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add(archive(f))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = backup.Archive(bytes.NewReader(text)).Check() // it must only not panic
	})
}
