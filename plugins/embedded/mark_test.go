package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// lessOne makes a store that was killed, and lost the last change that it had
// acknowledged.
func lessOne(t *testing.T) (folder string) {
	t.Helper()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)), postOf(numberedID(2)))
	mustApply(t, s, postOf(numberedID(3)))
	at := s.committer.journal.At
	folder = crashed(t, s)
	name := filepath.Join(folder, wal.Files[s.committer.journal.Epoch%2])
	b, err := os.ReadFile(name)
	if err == nil {
		clear(b[at-40 : at])
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestLossIsTold checks who is told of a loss that a store found in itself: every host
// that has not heard of it, and of the boards that were there then.
func TestLossIsTold(t *testing.T) {
	t.Parallel()
	folder := lessOne(t)
	s, status := openBoard(t, folder, options{}, driver.BoardSpec{})
	if !strings.Contains(status.Loss, "acknowledged") || status.Generation != 2 {
		t.Errorf("generation %d, loss %q; want the second and a report", status.Generation, status.Loss)
	}
	if r := mustApply(t, s, postOf(numberedID(4)))[0]; uint64(r.Position) <= s.lost.generation || r.Position <= status.Position {
		t.Errorf("a post is at position %d: want it behind %d", r.Position, status.Position)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var again driver.BoardStatus
		s, again = openBoard(t, folder, options{}, driver.BoardSpec{})
		if again.Generation != 2 || !strings.Contains(again.Loss, "acknowledged") {
			t.Errorf("a host that remembers nothing: generation %d, loss %q; want the same again", again.Generation, again.Loss)
		}
		knows, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Witness: status.Witness})
		if err != nil || knows.Loss != "" || knows.Generation != 2 {
			t.Errorf("a host that was told: %+v, %v", knows, err)
		}
		other, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "new"})
		if err != nil || other.Loss != "" || other.Generation < 2 {
			t.Errorf("a board that is made later: %+v, %v", other, err)
		}
		mustApply(t, s)
	}
}

// TestNoMark checks that a store without its mark, or with one that cannot be read, is
// served, and has one again.
func TestNoMark(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"none":   os.Remove,
		"empty":  func(path string) error { return os.Truncate(path, 0) },
		"noise":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("noise", 1000)), 0o600) },
		"a half": func(path string) error { return os.Truncate(path, 40) },
	} {
		s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
		mustApply(t, s, postOf(numberedID(1)))
		folder := crashed(t, s)
		if err := spoil(filepath.Join(folder, markFile)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var status driver.BoardStatus
			s, status = openBoard(t, folder, options{}, driver.BoardSpec{})
			if status.Loss != "" || len(scanIDs(t, s)) != 1 {
				t.Errorf("%s: %+v", name, status)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, _, ok, err := openMarker(folder, s.logger); !ok || err != nil {
				t.Errorf("%s: there is no mark afterwards, %v", name, err)
			}
		}
	}
}

// TestMarkUnwritten checks that a mark which cannot be written stops nothing.
func TestMarkUnwritten(t *testing.T) {
	t.Parallel()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
	if err := s.marker.file.Close(); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, postOf(numberedID(1)))
	if !s.marker.failed {
		t.Error("nobody is told")
	}
	if err := s.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}

// TestDropIsMarked checks that a board which was dropped does not come back when the
// last page that says so is damaged, and nothing is said.
func TestDropIsMarked(t *testing.T) {
	t.Parallel()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	if err := s.DropBoard(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	path := s.folder.path
	tx, err := s.db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	newest, size := int64(tx.ID()%2), int64(tx.DB().Info().PageSize)
	if err := errors.Join(tx.Rollback(), s.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(path, dataFile), os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(make([]byte, 64), newest*size+pageHeader)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, err = open(t.Context(), path, options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	status, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	if err != nil || status.Loss == "" {
		if job.KindOf(err) != job.Corrupt {
			t.Errorf("%+v, %v: want the loss to be told", status, err)
		}
	}
}
