package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// sample makes a store with something of everything and returns its file and
// what can be read from it.
func sample(t *testing.T) (file []byte, content map[string]driver.Record) {
	t.Helper()
	path := t.TempDir()
	s := openStore(t, path, options{})
	if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	var ops []driver.Op
	for n := range uint64(200) {
		op := postOf(numberedID(n + 1))
		op.Posting.Details = bytes.Repeat([]byte{byte(n)}, int(n)*3)
		op.Attach = []driver.Attachment{{Name: "log", Data: []byte(fmt.Sprint("attached to ", n))}}
		ops = append(ops, op)
	}
	mustApply(t, s, ops...)
	for n := range uint64(60) {
		id := numberedID(n + 1)
		r := mustApply(t, s, claimOf(id, id))[0]
		end := consumeOf(id, r.Claims[0].Token)
		switch n % 4 {
		case 1:
			end.Kind = driver.Trash
		case 2:
			end.Ending = &driver.Ending{Outcome: job.Failed, Keep: time.Hour, Data: []byte("final"), KeepPosting: true, KeepAttached: true}
		case 3:
			continue
		}
		mustApply(t, s, end)
	}
	content = everything(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(path, dataFile))
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := readMeta(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return file[:int(m.high)*int(m.pageSize)], content // behind this is only room
}

// toFile has everything written to the store's file.
func toFile(t testing.TB, s *Store) {
	t.Helper()
	if err := s.committer.alone(t.Context(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func mustApply(t testing.TB, s *Store, ops ...driver.Op) []driver.Result {
	t.Helper()
	results := s.Apply(t.Context(), "b", ops)
	for i, r := range results {
		if r.Kind != job.NoKind || ops[i].Kind == driver.Claim && len(r.Claims) == 0 {
			t.Fatalf("op %d of kind %d: %v %s %+v", i, ops[i].Kind, r.Kind, r.Message, r.Skipped)
		}
	}
	return results
}

// everything reads all records by what they are and whose.
func everything(t *testing.T, s *Store) map[string]driver.Record {
	t.Helper()
	all := map[string]driver.Record{}
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs, driver.EndedJobs} {
		req := driver.ScanRequest{Set: set, Parts: driver.Details | driver.Attached | driver.FinalData}
		for page, err := range s.Scan(t.Context(), "b", req) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Records {
				if r.Holder != nil {
					r.Holder.Remaining = 0
				}
				all[fmt.Sprint(set, r.Posting.ID)] = r
			}
		}
	}
	return all
}

// place puts a file in a folder of its own, as a store.
func place(t *testing.T, file []byte) string {
	t.Helper()
	path := inMemory(t)
	if err := os.WriteFile(filepath.Join(path, dataFile), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// openDamaged opens what may be damaged, has it looked at, and leaves nothing of it. It
// reports whether it could be opened. Where that is refused the error's kind must say so.
func openDamaged(t *testing.T, file []byte, look func(*Store)) (opened bool) {
	t.Helper()
	path := place(t, file)
	defer func() { _ = os.RemoveAll(path) }() // hundreds of them are more than memory has room for
	s, err := open(t.Context(), path, options{})
	if err == nil {
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		if _, err = s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err == nil {
			look(s)
			return true
		}
	}
	if !errors.Is(err, job.Corrupt) && !errors.Is(err, job.Precondition) {
		t.Errorf("a damaged file is refused with %v: want Corrupt", err)
	}
	return false
}

// TestBitFlips flips bits all over a store. Each must be found, or make no
// difference: nothing wrong is ever read.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	file, want := sample(t)
	const flips = 80
	refused, bad := 0, 0
	for n := range flips {
		damaged := bytes.Clone(file)
		at := rand.IntN(len(damaged))
		damaged[at] ^= 1 << rand.IntN(8)
		opened := openDamaged(t, damaged, func(s *Store) {
			got := everything(t, s)
			if len(got) < len(want) {
				bad++
			}
			for key, record := range got {
				if !reflect.DeepEqual(want[key], record) && !older(t, s) {
					t.Fatalf("flip %d in byte %d: %s is read wrongly (-want +got)\n%s", n, at, key, cmp.Diff(want[key], record))
				}
			}
			if len(got) < len(want) && !older(t, s) && len(badRecords(t, s)) == 0 {
				t.Fatalf("flip %d in byte %d: %d records are missing, and nothing is reported", n, at, len(want)-len(got))
			}
		})
		if !opened {
			refused++
		}
	}
	if refused == 0 || bad == 0 {
		t.Errorf("%d files were refused and %d had bad records: want some of both", refused, bad)
	}
}

// TestDamagedStructure flips what holds records together and has no checksum: the
// names of buckets, and how many elements a page has.
func TestDamagedStructure(t *testing.T) {
	t.Parallel()
	file, want := sample(t)
	var places []int
	for _, name := range append(slices.Clone(boardBuckets), stateKey, storeBucket, boardPrefix) {
		for at := 0; ; at++ {
			next := bytes.Index(file[at:], name)
			if next < 0 {
				break
			}
			at += next
			places = append(places, at)
		}
	}
	m, _, err := readMeta(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for at := 2 * int(m.pageSize); at < len(file); at += int(m.pageSize) {
		places = append(places, at+10, at+11)
	}
	refused := 0
	for _, at := range places {
		for bit := range 8 {
			damaged := bytes.Clone(file)
			damaged[at] ^= 1 << bit
			opened := openDamaged(t, damaged, func(s *Store) {
				if got := everything(t, s); len(got) < len(want) && len(badRecords(t, s)) == 0 {
					t.Errorf("bit %d of byte %d: %d records are missing, and nothing is reported", bit, at, len(want)-len(got))
				}
			})
			if !opened {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// older reports whether the store is as it was before its last commit, which
// is where it goes back to when its newer head is damaged.
func older(t *testing.T, s *Store) bool {
	t.Helper()
	heads, err := inspect(s.folder.file())
	if err != nil {
		t.Fatal(err)
	}
	return heads < 2
}

func badRecords(t *testing.T, s *Store) (all []driver.BadRecord) {
	t.Helper()
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs, driver.EndedJobs} {
		req := driver.ScanRequest{Set: set, Parts: driver.Details | driver.Attached | driver.FinalData}
		for page, err := range s.Scan(t.Context(), "b", req) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page.Bad...)
		}
	}
	return all
}

// TestCutOff cuts a store off at many places. A file that is shorter than it
// says is refused and never touched by a memory map.
func TestCutOff(t *testing.T) {
	t.Parallel()
	file, want := sample(t)
	refused := 0
	for range 60 {
		opened := openDamaged(t, file[:rand.IntN(len(file))], func(s *Store) {
			if got := everything(t, s); len(got) != len(want) {
				t.Fatalf("%d records of %d are left, and nothing was said", len(got), len(want))
			}
		})
		if !opened {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestCopiedWhileWritten copies a store at arbitrary moments, as a crash of the
// machine would leave it, and opens the copies.
func TestCopiedWhileWritten(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s := openStore(t, path, options{})
	defer s.Close()
	if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	opened := 0
	for n := range uint64(20) {
		ops := make([]driver.Op, 50)
		for i := range ops {
			ops[i] = postOf(numberedID(n*100 + uint64(i) + 1))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Apply(t.Context(), "b", ops)
		}()
		path := crashed(t, s)
		<-done
		copied, err := openCopy(t, path)
		if err != nil { // a torn copy may be refused
			if !errors.Is(err, job.Corrupt) {
				t.Errorf("a torn copy is refused with %v: want Corrupt", err)
			}
			continue
		}
		opened++
		records := everything(t, copied)
		if len(records) != int(n)*50 && len(records) != int(n+1)*50 {
			t.Errorf("a copy has %d records: want %d or %d, which were acknowledged", len(records), n*50, (n+1)*50)
		}
		if bad := badRecords(t, copied); len(bad) > 0 {
			t.Errorf("a copy has bad records: %v", bad)
		}
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}
	if opened == 0 {
		t.Error("no copy could be opened")
	}
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	db, err := bbolt.Open(foreign, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("x"))
			return err
		})
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, says string
		file       []byte
		kind       job.Kind
	}{
		{"empty", "neither of its two heads", nil, job.Corrupt},
		{"text", "neither of its two heads", []byte(strings.Repeat("hello\n", 5000)), job.Corrupt},
		{"foreign", "boardd did not make", other, job.Corrupt},
		{"newer", fmt.Sprintf("format %d, and this boardd reads format %d", formatVersion+1, formatVersion), newerFormat(t), job.Precondition},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := place(t, test.file)
			_, err := open(t.Context(), path, options{})
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want %v, the path and %q", err, test.kind, test.says)
			}
			after, err := os.ReadFile(filepath.Join(path, dataFile))
			if err != nil || !bytes.Equal(after, test.file) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

func newerFormat(t *testing.T) []byte {
	t.Helper()
	path := t.TempDir()
	s := openStore(t, path, options{})
	err := s.db.Update(func(tx *bbolt.Tx) error { return putHead(tx.Bucket(storeBucket), formatKey, []byte{formatVersion + 1}) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(path, dataFile))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBadRecord damages single records and looks at what the others become.
func TestBadRecord(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s := openStore(t, path, options{})
	spec := driver.BoardSpec{Name: "b"}
	if _, err := s.OpenBoard(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, postOf(numberedID(1)), postOf(numberedID(2)), postOf(numberedID(3)))
	toFile(t, s)
	err := s.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("board/b")).Bucket(jobsBucket)
		value := bytes.Clone(bucket.Get(uintKey(2)))
		value[len(value)-1] ^= 1
		return bucket.Put(uintKey(2), value)
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path, options{})
	defer s.Close()
	if _, err := s.OpenBoard(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if bad := badRecords(t, s); len(bad) != 1 || bad[0].Key != "jobs/2" {
		t.Errorf("the bad records are %v, want jobs/2", bad)
	}
	if got := scanIDs(t, s); len(got) != 2 {
		t.Errorf("%d jobs are left, want 2", len(got))
	}
	if n, err := s.Count(t.Context(), "b"); err != nil || n.Bad != 1 || n.Open != 2 {
		t.Errorf("counts %+v, %v; want 1 bad, 2 open", n, err)
	}
	if _, err := s.Read(t.Context(), "b", []job.ID{numberedID(2)}, 0); !errors.Is(err, job.Corrupt) {
		t.Errorf("reading it gives %v, want Corrupt", err)
	}
	r := s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(2)), claimOf(numberedID(2), [16]byte{1}), claimOf(numberedID(3), [16]byte{2})})
	if r[0].Kind != job.Corrupt {
		t.Errorf("posting it again gives %v, want CORRUPT", r[0].Kind)
	}
	if len(r[1].Skipped) != 1 || r[1].Skipped[0].Kind != job.Corrupt {
		t.Errorf("claiming it gives %+v, want it gone as CORRUPT", r[1])
	}
	if len(r[2].Claims) != 1 {
		t.Errorf("claiming another gives %+v", r[2])
	}
}

func scanIDs(t *testing.T, s *Store) (ids []job.ID) {
	t.Helper()
	for page, err := range s.Scan(t.Context(), "b", driver.ScanRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			ids = append(ids, r.Posting.ID)
		}
	}
	return ids
}
