package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// atRest is a store that nobody has open, and what a host knows of it.
type atRest struct {
	folder     string
	spec       driver.BoardSpec // with what the host remembers
	generation uint64
	content    map[string]driver.Record
	documents  map[driver.Space][]driver.Document
}

// Documents of the store's own, and of the board.
var restSpaces = []driver.Space{{Name: "books"}, {Board: "b", Name: "notes"}}

// leave makes a store with a life behind it: it was closed once, and then worked on
// until it was stopped, or killed.
func leave(t *testing.T, killed bool) *atRest {
	t.Helper()
	path := t.TempDir()
	s := openStore(t, path, options{})
	status, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	a := &atRest{generation: status.Generation, spec: driver.BoardSpec{Name: "b", Witness: status.Witness}}
	work := func(s *Store, from uint64) {
		for n := from; n < from+60; n++ {
			id := numberedID(n)
			mustApply(t, s, postOf(id))
			a.write(t, s, n)
			if n%3 == 0 {
				r := mustApply(t, s, claimOf(id, id))[0]
				a.spec.Seen = mustApply(t, s, consumeOf(id, r.Claims[0].Token))[0].Position
			}
		}
		last := numberedID(from + 60)
		a.spec.Seen = mustApply(t, s, postOf(last))[0].Position
		a.write(t, s, from+60) // the last that was acknowledged is a document
	}
	work(s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path, options{})
	if _, err := s.OpenBoard(t.Context(), a.spec); err != nil {
		t.Fatal(err)
	}
	work(s, 100)
	a.content = everything(t, s)
	if a.documents, err = documentsOf(t, s); err != nil {
		t.Fatal(err)
	}
	a.folder = path
	if killed {
		a.folder = crashed(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return a
}

// write changes documents: one that is there, a new one, and one that goes.
func (a *atRest) write(t *testing.T, s *Store, n uint64) {
	t.Helper()
	for _, space := range restSpaces {
		put := func(name string) {
			old, _ := s.Documents().Get(t.Context(), space, name) // none has version 0
			doc := driver.Document{Name: name, Data: fmt.Append(nil, "document ", n)}
			if _, err := s.Documents().Put(t.Context(), space, doc, old.Version); err != nil {
				t.Fatal(err)
			}
		}
		put("the one")
		if put(fmt.Sprint("no ", n)); n%4 != 0 {
			continue
		}
		doc, err := s.Documents().Get(t.Context(), space, fmt.Sprint("no ", n))
		if err == nil {
			err = s.Documents().Delete(t.Context(), space, doc.Name, doc.Version)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func documentsOf(t *testing.T, s *Store) (map[driver.Space][]driver.Document, error) {
	t.Helper()
	all := map[driver.Space][]driver.Document{}
	for _, space := range restSpaces {
		list, err := s.Documents().List(t.Context(), space, "", 0)
		if err != nil {
			return nil, err
		}
		all[space] = list
	}
	return all, nil
}

// damage makes a copy of the folder with one damage in one of its files, and says
// which.
func (a *atRest) damage(t *testing.T, r *rand.Rand) (folder, what string) {
	t.Helper()
	folder = inMemory(t)
	copyFiles(t, a.folder, folder)
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	path := files[r.IntN(len(files))]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := usedOf(data)
	if used == 0 {
		used = len(data)
	}
	at := 0
	if used > 0 {
		at = r.IntN(used)
		if r.IntN(2) == 0 {
			at = max(0, used-1-r.IntN(min(used, 300))) // the last records
		}
	}
	name := filepath.Base(path)
	switch r.IntN(4) {
	case 0:
		what = fmt.Sprintf("%s: bit of byte %d of %d is flipped", name, at, len(data))
		if len(data) > 0 {
			data[at] ^= 1 << r.IntN(8)
		}
	case 1:
		n := min(1+r.IntN(600), len(data)-at)
		what = fmt.Sprintf("%s: %d bytes from %d of %d are zero", name, n, at, len(data))
		clear(data[at : at+n])
	case 2:
		what = fmt.Sprintf("%s: cut off at %d of %d", name, at, len(data))
		data = data[:at]
	default:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return folder, name + ": deleted"
	}
	writeSparse(t, path, data)
	return folder, what
}

// copyFiles copies the files of a folder, and not the room at their ends.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		writeSparse(t, filepath.Join(to, filepath.Base(path)), data)
	}
}

// usedOf returns where the zeros at the end of a file begin: most of a journal is room
// that nobody has used yet.
func usedOf(data []byte) int {
	const step = 64 << 10
	zeros, used := make([]byte, step), len(data)
	for used >= step && bytes.Equal(data[used-step:used], zeros) {
		used -= step
	}
	for used > 0 && data[used-1] == 0 {
		used--
	}
	return used
}

// writeSparse writes a file without the blocks at its end that are zero.
func writeSparse(t *testing.T, path string, data []byte) {
	t.Helper()
	err := os.WriteFile(path, data[:usedOf(data)], 0o600)
	if err == nil {
		err = os.Truncate(path, int64(len(data)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// inMemory makes a folder in memory, where the system has one for that: what damage does
// has nothing to do with how slow a disk is.
func inMemory(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("/dev/shm", "boardd-damaged") //nolint:usetesting // in memory, wherever the test keeps its files
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// TestDamagedAtRest damages every file of a store that was stopped or killed, 200
// times. Each damage is refused, or harmless, or the board is served with the loss
// reported and in another generation. No job and no document is lost silently, neither
// before a host that remembers the board nor before one that remembers nothing.
func TestDamagedAtRest(t *testing.T) {
	t.Parallel()
	const damages = 100 // of each sort of end
	for name, killed := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := leave(t, killed)
			r := rand.New(rand.NewPCG(16, 5))
			outcomes := map[string]int{}
			for range damages {
				folder, what := a.damage(t, r)
				forgetful := inMemory(t)
				copyFiles(t, folder, forgetful)
				outcome := a.judge(t, folder, what, a.spec)
				outcomes[outcome]++
				if outcome == "reported" && a.judge(t, forgetful, what, driver.BoardSpec{Name: "b"}) == "harmless" {
					t.Errorf("%s: a host that remembers the board is told of a loss, and one that does not is not", what)
				}
				_, _ = os.RemoveAll(folder), os.RemoveAll(forgetful) // there is no room for all of them
			}
			t.Log(outcomes)
			if outcomes["refused"] == 0 || outcomes["harmless"] == 0 || outcomes["reported"] == 0 {
				t.Errorf("%v: want some of each", outcomes)
			}
		})
	}
}

// judge opens a damaged store as a host would and says what came of it.
func (a *atRest) judge(t *testing.T, folder, what string, spec driver.BoardSpec) string {
	t.Helper()
	s, err := open(t.Context(), folder, options{})
	var status driver.BoardStatus
	if err == nil {
		defer func() { _ = s.Close() }()
		status, err = s.OpenBoard(t.Context(), spec)
	}
	if err != nil {
		if !errors.Is(err, job.Corrupt) && !errors.Is(err, job.Precondition) {
			t.Errorf("%s: refused with %v: want Corrupt", what, err)
		}
		return "refused"
	}
	if status.Loss != "" {
		if status.Generation <= a.generation {
			t.Errorf("%s: the loss is reported (%s), and the generation is %d as before", what, status.Loss, status.Generation)
		}
		return "reported"
	}
	if len(badRecords(t, s)) > 0 {
		return "reported"
	}
	got := everything(t, s)
	if !reflect.DeepEqual(a.content, got) {
		t.Errorf("%s: nothing is said, and the content is another one: %d records, want %d", what, len(got), len(a.content))
	}
	documents, err := documentsOf(t, s)
	if errors.Is(err, job.Corrupt) {
		return "refused"
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if diff := cmp.Diff(a.documents, documents); diff != "" {
		t.Errorf("%s: nothing is said, and the documents are others: -want +got\n%s", what, diff)
	}
	return "harmless"
}
