package embedded

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// backedUp puts a backup of a store into a folder. during is called after each part.
func backedUp(t *testing.T, s *Store, during func()) (folder string, err error) {
	t.Helper()
	files, name, sizes := map[string]*bytes.Buffer{}, "", map[string]int64{}
	for p, err := range s.Backup(t.Context()) {
		if err != nil {
			return "", err
		}
		if p.Name != "" {
			name = p.Name
			files[name], sizes[name] = &bytes.Buffer{}, p.Size
		}
		files[name].Write(p.Data)
		during()
	}
	folder = t.TempDir()
	for name, b := range files {
		if int64(b.Len()) != sizes[name] {
			t.Errorf("%s has %d bytes, and %d were foretold", name, b.Len(), sizes[name])
		}
		if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, nil
}

// TestBackup copies a store while it is changed and its file is written, and opens the
// copy.
func TestBackup(t *testing.T) {
	t.Parallel()
	s, before := openBoard(t, t.TempDir(), options{limits: storageLimits{journalBytes: 32 << 10}}, driver.BoardSpec{})
	details := bytes.Repeat([]byte("x"), 3000)
	large := func(n uint64) driver.Op {
		op := postOf(numberedID(n))
		op.Posting.Details = details
		return op
	}
	const first = uint64(400)
	for n := range first {
		mustApply(t, s, large(n+1))
	}
	doc := driver.Document{Name: "d", Data: []byte("text")}
	if _, err := s.Documents().Put(t.Context(), driver.Space{Board: "b", Name: "n"}, doc, 0); err != nil {
		t.Fatal(err)
	}
	next := first
	folder, err := backedUp(t, s, func() { // the pages of before are wanted by others
		for range 100 {
			next++
			mustApply(t, s, large(next), driver.Op{Kind: driver.Remove, Job: numberedID(next - first)})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.copying.Load() != nil {
		t.Error("the pages of before are still held")
	}
	if heads, err := inspect(filepath.Join(folder, dataFile)); err != nil || heads != 2 {
		t.Fatalf("the copy has %d sound heads: %v", heads, err)
	}

	for range 2 { // a host that remembers nothing is told each time
		r, status := openBoard(t, folder, options{}, driver.BoardSpec{})
		if status.Generation != before.Generation+1 || !strings.Contains(status.Loss, "was put back from a backup") || uint64(status.Position) <= first {
			t.Errorf("generation %d at position %d, loss %q; want the next one, and a report", status.Generation, status.Position, status.Loss)
		}
		counts, err := r.Count(t.Context(), "b")
		if err != nil || counts.Open != int64(first) || counts.Bad > 0 {
			t.Errorf("there are %+v, %v; want %d jobs", counts, err, first)
		}
		ids := make([]job.ID, first)
		for n := range first {
			ids[n] = numberedID(n + 1)
		}
		records, err := r.Read(t.Context(), "b", ids, driver.Details)
		if err != nil {
			t.Fatal(err)
		}
		for n := range records {
			if records[n].State != job.Unclaimed || !bytes.Equal(records[n].Posting.Details, details) {
				t.Fatalf("job %d is %v with %d bytes", n+1, records[n].State, len(records[n].Posting.Details))
			}
		}
		if got, err := r.Documents().Get(t.Context(), driver.Space{Board: "b", Name: "n"}, "d"); err != nil || string(got.Data) != "text" {
			t.Errorf("the document is %q, %v", got.Data, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupGivesWay checks that a change of the file waits no longer for a backup than
// it may, and that the next backup is well.
func TestBackupGivesWay(t *testing.T) {
	t.Parallel()
	var s *Store
	var stuck sync.Once
	waits := false
	o := options{patience: time.Millisecond, limits: storageLimits{journalBytes: 1 << 10}}
	o.commit = func(tx *bbolt.Tx) error { // as if it waited for the map
		if waits {
			stuck.Do(func() {
				for c := s.copying.Load(); c != nil && c.held(); {
					time.Sleep(time.Millisecond) // as bbolt would
				}
			})
		}
		return tx.Commit()
	}
	s, _ = openBoard(t, t.TempDir(), o, driver.BoardSpec{})
	for n := range uint64(2000) { // more than one part
		mustApply(t, s, postOf(numberedID(n+1)))
	}
	begun := false
	_, err := backedUp(t, s, func() {
		if !begun {
			begun, waits = true, true
			mustApply(t, s, postOf(numberedID(9999)))
		}
	})
	if job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "given up") || !strings.Contains(err.Error(), "higher rate") {
		t.Errorf("%v; want that it was given up", err)
	}
	if _, err := backedUp(t, s, func() {}); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestBackupsOneByOne has a second backup, one whose caller goes away, and one of a store
// that is closed.
func TestBackupsOneByOne(t *testing.T) {
	t.Parallel()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	_, err := backedUp(t, s, func() {
		if _, err := backedUp(t, s, func() {}); job.KindOf(err) != job.Precondition {
			t.Errorf("a second one: %v, want %v", err, job.Precondition)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range s.Backup(ctx) {
		cancel()
		if err != nil && job.KindOf(err) != job.Interrupted {
			t.Error(err)
		}
	}
	for _, err := range s.Backup(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if _, err := backedUp(t, s, func() {}); err != nil {
		t.Errorf("after one that nobody wanted more of: %v", err)
	}
	for _, err := range s.Backup(t.Context()) {
		if err := errors.Join(err, s.Close()); err != nil { // while the pages are held
			t.Error(err)
		}
		break
	}
	if _, err := backedUp(t, s, func() {}); job.KindOf(err) != job.Unavailable || errors.Is(err, context.Canceled) {
		t.Errorf("of a closed store: %v, want %v", err, job.Unavailable)
	}
}
