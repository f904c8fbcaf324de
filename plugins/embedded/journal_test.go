package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// crashed copies the files of an open store one after the other, as a crash might
// leave them.
func crashed(t testing.TB, s *Store) string {
	t.Helper()
	path := t.TempDir()
	for _, name := range append([]string{dataFile, markFile}, wal.Files[:]...) {
		b, err := os.ReadFile(filepath.Join(s.folder.path, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(path, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// unclosed makes a store that was never closed, with a journal of so many bytes an
// epoch. The last change is the posting of job 1,000 alone; before is what there
// was without it.
func unclosed(t *testing.T, journalBytes int64) (path string, content, before map[string]driver.Record) {
	t.Helper()
	s, _ := openBoard(t, t.TempDir(), options{limits: storageLimits{journalBytes: journalBytes}}, driver.BoardSpec{})
	for n := range uint64(40) {
		id := numberedID(n + 1)
		op := postOf(id)
		op.Posting.Details = bytes.Repeat([]byte{byte(n)}, int(n)*20)
		op.Attach = []driver.Attachment{{Name: "log", Data: []byte(fmt.Sprint("attached to ", n))}}
		mustApply(t, s, op)
		if n%3 == 0 {
			continue
		}
		r := mustApply(t, s, claimOf(id, id))
		if n%3 == 1 {
			mustApply(t, s, consumeOf(id, r[0].Claims[0].Token))
		}
		if _, err := s.Documents().Put(t.Context(), driver.Space{Board: "b", Name: "notes"}, driver.Document{Name: fmt.Sprint(n), Data: []byte("x")}, 0); err != nil {
			t.Fatal(err)
		}
	}
	before = everything(t, s)
	mustApply(t, s, postOf(numberedID(1000)))
	return crashed(t, s), everything(t, s), before
}

func openCopy(t *testing.T, path string) (*Store, error) {
	t.Helper()
	s, err := open(t.Context(), path, options{})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = s.Close() })
	_, err = s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	return s, err
}

// TestReplay opens stores that were never closed, in one epoch of the journal and
// after many.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, 4 << 10, 16 << 20} {
		path, want, _ := unclosed(t, size)
		for range 2 { // the second time from what the first left
			s, err := openCopy(t, path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, everything(t, s)); diff != "" {
				t.Fatalf("with epochs of %d bytes: -want +got\n%s", size, diff)
			}
			docs, err := s.Documents().List(t.Context(), driver.Space{Board: "b", Name: "notes"}, "", 0)
			if err != nil || len(docs) != 26 {
				t.Errorf("%d documents, %v; want 26", len(docs), err)
			}
			path = crashed(t, s)
		}
	}
}

// TestJournalDamage flips bits in a journal, cuts it off and fills its end with
// something else. Each must be found, or make no difference. Only the last record
// may be lost, and that is told.
func TestJournalDamage(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{16 << 10, 16 << 20} {
		path, want, before := unclosed(t, size)
		refused, lost, same := 0, 0, 0
		for n := range 60 {
			damaged := t.TempDir()
			if err := os.CopyFS(damaged, os.DirFS(path)); err != nil {
				t.Fatal(err)
			}
			what := damage(t, damaged, n)
			s, err := openCopy(t, damaged)
			if err != nil {
				refused++
				if !errors.Is(err, job.Corrupt) || !strings.Contains(err.Error(), "boards.journal.") {
					t.Errorf("%s: refused with %v, want Corrupt and the file", what, err)
				}
				continue
			}
			switch got := everything(t, s); {
			case cmp.Equal(got, want):
				same++
			case cmp.Equal(got, before) && s.lost.found:
				lost++
			default:
				t.Errorf("%s: -want +got\n%s", what, cmp.Diff(want, got))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if refused == 0 {
			t.Errorf("with epochs of %d bytes: of 60 damaged journals none was refused, %d were without the last record, %d whole", size, lost, same)
		}
	}
}

// damage does one harm to one of the journals of a folder, and says which.
func damage(t *testing.T, path string, n int) string {
	t.Helper()
	name := filepath.Join(path, wal.Files[rand.IntN(2)])
	file, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		name = filepath.Join(path, wal.Files[1]) // the first epoch is in it
		file, err = os.ReadFile(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(file, "\x00"))
	var what string
	switch n % 3 {
	case 0:
		at, bit := rand.IntN(used), rand.IntN(8)
		file[at] ^= 1 << bit
		what = fmt.Sprintf("bit %d of byte %d of %d flipped", bit, at, used)
	case 1:
		at := rand.IntN(used)
		file = file[:at]
		what = fmt.Sprintf("cut off at %d of %d", at, used)
	case 2:
		at := used + rand.IntN(len(file)-used)
		for i := at; i < min(at+5000, len(file)); i++ {
			file[i] = byte(rand.Uint32())
		}
		what = fmt.Sprintf("noise from %d, after %d", at, used)
	}
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(name) + " " + what
}

// TestJournalCutAtItsOldSize cuts a journal off where it was grown, so that what is
// left is a sound chain.
func TestJournalCutAtItsOldSize(t *testing.T) {
	t.Parallel()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
	for n := range uint64(60) {
		op := postOf(numberedID(n + 1))
		op.Posting.Details = make([]byte, 50_000)
		mustApply(t, s, op)
	}
	path := crashed(t, s)
	name := filepath.Join(path, wal.Files[1])
	info, err := os.Stat(name)
	if err != nil || info.Size() < 2*wal.Unit {
		t.Fatalf("the journal did not grow: %v, %v", info, err)
	}
	for size := int64(wal.Unit); size < info.Size(); size += wal.Unit {
		cut := t.TempDir()
		if err := errors.Join(os.CopyFS(cut, os.DirFS(path)), os.Truncate(filepath.Join(cut, wal.Files[1]), size)); err != nil {
			t.Fatal(err)
		}
		if _, err := openCopy(t, cut); !errors.Is(err, job.Corrupt) || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("cut to %d bytes: %v; want Corrupt", size, err)
		}
	}
}

// TestUnfinishedRecord checks that a record that was cut off while it was written
// is left out, and that the store goes on behind it.
func TestUnfinishedRecord(t *testing.T) {
	t.Parallel()
	var s *Store
	stop := false
	s, _ = openBoard(t, t.TempDir(), options{
		exit: func(int) {},
		disk: wal.Disk{Write: func(f *os.File, b []byte, at int64) error {
			if stop && len(b) > 100 {
				b = b[:len(b)/2]
			}
			_, err := f.WriteAt(b, at)
			if stop {
				err = errors.New("the power is gone")
			}
			return err
		}},
	}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	stop = true
	if r := s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(2))})[0]; r.Kind != job.OutcomeUnknown {
		t.Fatalf("the answer is %v", r.Kind)
	}
	path := crashed(t, s)
	after, err := openCopy(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if ids := scanIDs(t, after); len(ids) != 1 {
		t.Errorf("%d jobs are there, want the first alone", len(ids))
	}
	mustApply(t, after, postOf(numberedID(2)), postOf(numberedID(3)))
	again, err := openCopy(t, crashed(t, after))
	if err != nil {
		t.Fatal(err)
	}
	if ids := scanIDs(t, again); len(ids) != 3 {
		t.Errorf("%d jobs are there, want 3", len(ids))
	}
}

// TestJournalOfAnother checks that a file without its journal, or with that of
// another store, is refused, and one that was closed needs none.
func TestJournalOfAnother(t *testing.T) {
	t.Parallel()
	path, _, _ := unclosed(t, 0)
	other, _, _ := unclosed(t, 0)
	if err := os.Remove(filepath.Join(path, wal.Files[1])); err != nil {
		t.Fatal(err)
	}
	if _, err := openCopy(t, path); !errors.Is(err, job.Corrupt) || !strings.Contains(err.Error(), "from one backup") {
		t.Errorf("without its journal: %v; want Corrupt and what to do", err)
	}
	b, err := os.ReadFile(filepath.Join(other, wal.Files[1]))
	if err == nil {
		err = os.WriteFile(filepath.Join(path, wal.Files[1]), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openCopy(t, path); !errors.Is(err, job.Corrupt) {
		t.Errorf("with the journal of another store: %v; want Corrupt", err)
	}
	s, err := openCopy(t, other)
	if err != nil {
		t.Fatal(err)
	}
	want := everything(t, s)
	if err := errors.Join(s.Close(), os.Remove(filepath.Join(other, wal.Files[1]))); err != nil {
		t.Fatal(err)
	}
	if s, err = openCopy(t, other); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, everything(t, s)); diff != "" {
		t.Errorf("closed, and without its journal: -want +got\n%s", diff)
	}
}

// TestOlderFileBesideJournals puts a file back and leaves the journals that came
// after it. Nothing of them may come back, although their epochs are counted again.
func TestOlderFileBesideJournals(t *testing.T) {
	t.Parallel()
	s, _ := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(s.folder.file())
	if err != nil {
		t.Fatal(err)
	}
	s, _ = openBoard(t, s.folder.path, options{}, driver.BoardSpec{})
	for n := range uint64(5) {
		mustApply(t, s, postOf(numberedID(n+10)))
	}
	path := crashed(t, s)
	if err := os.WriteFile(filepath.Join(path, dataFile), file, 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(3) { // of the same lengths as what was there before
		if s, err = openCopy(t, path); err != nil {
			t.Fatal(err)
		}
		mustApply(t, s, postOf(numberedID(n+20)))
		if s, err = openCopy(t, crashed(t, s)); err != nil {
			t.Fatal(err)
		}
		if ids := scanIDs(t, s); len(ids) != int(n)+2 {
			t.Fatalf("%d jobs are there, want %d: %v", len(ids), n+2, ids)
		}
		path = s.folder.path
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOlderFormat opens a file of before there was a journal.
func TestOlderFormat(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s, _ := openBoard(t, path, options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	toFile(t, s)
	err := s.update(func(tx *bbolt.Tx) (bool, error) {
		head := tx.Bucket(storeBucket)
		return true, errors.Join(head.Delete(journalKey), putHead(head, formatKey, []byte{formatWithout}))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s, _ = openBoard(t, path, options{}, driver.BoardSpec{})
	if s.format != formatWithout {
		t.Errorf("it is of format %d before anything was changed", s.format)
	}
	mustApply(t, s, postOf(numberedID(2)))
	s, err = openCopy(t, crashed(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if ids := scanIDs(t, s); len(ids) != 2 || s.format != formatKeyless {
		t.Errorf("%d jobs are there in format %d, want 2 in %d", len(ids), s.format, formatKeyless)
	}
}

// TestCursor compares a cursor over a file and two memtables with a sorted list, in
// both directions, after random changes in each.
func TestCursor(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), options{})
	defer s.Close()
	for round := range 60 {
		b := &board{name: fmt.Sprint("cursor", round)}
		b.number = s.numberOf(b.name)
		want := map[uint64]bool{}
		memtables := [3]*memtable{newMemtable(), newMemtable(), newMemtable()}
		for i, l := range memtables {
			for range rand.IntN(20) {
				n, gone := rand.Uint64N(30), i > 0 && rand.IntN(3) == 0
				id := newTableID(b.number, inTrash)
				l.Set(cell{key: append(id[:], uintKey(n)...), value: []byte{byte(i)}, gone: gone})
				want[n] = !gone
			}
		}
		if err := s.checkpoint(memtables[0], s.reached); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(want, func(_ uint64, there bool) bool { return !there })
		m := &snapshot{store: s, over: overlay{recent: memtables[2], frozen: memtables[1]}}
		checkCursor(t, m.table(b, inTrash), slices.Sorted(maps.Keys(want)))
		if err := m.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func checkCursor(t *testing.T, in *table, want []uint64) {
	t.Helper()
	c := in.cursor()
	collect := func(key, _ []byte, step func() ([]byte, []byte)) (got []uint64) {
		for ; key != nil; key, _ = step() {
			n, err := keyUint(key)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		return got
	}
	for from := range uint64(31) {
		at, _ := slices.BinarySearch(want, from)
		key, value := c.seek(uintKey(from))
		if got := collect(key, value, c.next); !slices.Equal(got, want[at:]) {
			t.Fatalf("from %d: %v, want %v", from, got, want[at:])
		}
		back := slices.Clone(want[:at])
		slices.Reverse(back)
		key, value = c.before(uintKey(from))
		if got := collect(key, value, c.prev); !slices.Equal(got, back) {
			t.Fatalf("before %d: %v, want %v", from, got, back)
		}
		if (in.get(uintKey(from)) != nil) != slices.Contains(want, from) {
			t.Fatalf("%d is there: %v", from, !slices.Contains(want, from))
		}
	}
	key, value := c.first()
	if got := collect(key, value, c.next); !slices.Equal(got, want) {
		t.Fatalf("all: %v, want %v", got, want)
	}
	back := slices.Clone(want)
	slices.Reverse(back)
	key, value = c.last()
	if got := collect(key, value, c.prev); !slices.Equal(got, back) {
		t.Fatalf("all backwards: %v, want %v", got, back)
	}
}

func FuzzEntries(f *testing.F) {
	w := recordWriter{}
	w.reset()
	b := &table{board: &board{name: "b"}, place: newTableID(1, inJobs)}
	w.put(b, uintKey(1), []byte("value"))
	w.remove(b, uintKey(2))
	w.put(&table{place: newTableID(0, inDocuments)}, []byte("k"), nil)
	f.Add(w.b[wal.Head:])
	f.Fuzz(func(t *testing.T, body []byte) {
		_ = eachEntry(body, func(e *recordEntry) error {
			if len(e.key) == 0 || !isBucket(e.board, e.bucket) {
				t.Errorf("a wrong entry is passed on: %+v", e)
			}
			return nil
		})
	})
}
