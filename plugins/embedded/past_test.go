package embedded

import (
	"fmt"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestTombstoneCap checks that the oldest tombstones make room, that a damaged
// one does not stop this, and that the effective window is told.
func TestTombstoneCap(t *testing.T) {
	t.Parallel()
	hand := &handClock{}
	path := t.TempDir()
	spec := driver.BoardSpec{MaxTombstones: 10, Window: time.Hour}
	s, _ := openBoard(t, path, options{clock: hand.clock(1)}, spec)
	end := func(n uint64) {
		hand.turn(time.Second, time.Second)
		mustApply(t, s, postOf(numberedID(n)), driver.Op{Kind: driver.Remove, Job: numberedID(n)})
	}
	for n := range uint64(10) {
		end(n + 1)
	}
	toFile(t, s)
	err := s.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("board/b")).Bucket(tombstoneBucket)
		key, _ := bucket.Cursor().First()
		return bucket.Put(key, []byte("damaged"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = openBoard(t, path, options{clock: hand.clock(1)}, spec)
	for n := range uint64(10) {
		end(n + 11)
	}
	spec.Name = "b"
	status, err := s.OpenBoard(t.Context(), spec)
	if err != nil || status.Window >= time.Minute {
		t.Errorf("the window is told as %v, %v: want what ten tombstones a second apart reach back", status.Window, err)
	}
	if ended := scanEnded(t, s); ended != 10 {
		t.Errorf("%d ended jobs are kept, want 10", ended)
	}
	records, err := s.Read(t.Context(), "b", []job.ID{numberedID(10), numberedID(11)}, 0)
	if err != nil || records[0].State != job.Unknown || records[1].State != job.Complete {
		t.Errorf("%+v, %v: want the eleventh to be the oldest that is known", records, err)
	}
}

func scanEnded(t *testing.T, s *Store) (n int) {
	t.Helper()
	for page, err := range s.Scan(t.Context(), "b", driver.ScanRequest{Set: driver.EndedJobs}) {
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Records)
	}
	return n
}

// TestExpiredDocumentsGo checks that documents that nobody takes away leave the
// file some time after they expired.
func TestExpiredDocumentsGo(t *testing.T) {
	t.Parallel()
	hand := &handClock{}
	s, _ := openBoard(t, t.TempDir(), options{clock: hand.clock(1)}, driver.BoardSpec{})
	space := driver.Space{Board: "b", Name: driver.EntitySpace}
	put := func(name string, expires time.Time) {
		if _, err := s.Documents().Put(t.Context(), space, driver.Document{Name: name, Expires: expires}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 100 {
		put(fmt.Sprint("short/", n), s.clock.wall().Add(time.Minute))
	}
	hand.turn(time.Hour, time.Hour)
	for n := range 10 {
		put(fmt.Sprint("long/", n), time.Time{})
	}
	n := 0
	toFile(t, s)
	err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(documentsBucket).ForEach(func(_, _ []byte) error {
			n++
			return nil
		})
	})
	if err != nil || n != 10 {
		t.Errorf("%d documents are in the file, %v: want 10", n, err)
	}
}

// TestSlowWatcher checks that a watcher that looks only now and then, so that
// its changes are in the file alone, misses nothing and sees each change once.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	s, status := openBoard(t, t.TempDir(), options{limits: storageLimits{ringBytes: 2000}}, driver.BoardSpec{})
	const jobs = 300
	at, seen := status.Position, 0
	step := func(until driver.Position) {
		for changes, err := range s.Watch(t.Context(), "b", at) {
			if err != nil || changes.Resync {
				t.Fatalf("%+v, %v", changes, err)
			}
			for _, c := range changes.List {
				if seen++; c.Position != driver.Position(seen) || c.Record == nil {
					t.Fatalf("change %d is %+v", seen, c)
				}
			}
			if at = changes.Position; at >= until {
				return
			}
		}
	}
	for n := range uint64(jobs) {
		id := numberedID(n + 1)
		r := mustApply(t, s, postOf(id), claimOf(id, id))
		last := mustApply(t, s, consumeOf(id, r[1].Claims[0].Token))[0].Position
		if n%37 == 0 || n == jobs-1 {
			step(last)
		}
	}
	if seen != 3*jobs {
		t.Errorf("%d changes were seen, want %d", seen, 3*jobs)
	}
}

// TestAnswerCap: what the board says of its window holds for the answers that it remembers, too.
func TestAnswerCap(t *testing.T) {
	t.Parallel()
	hand := &handClock{}
	spec := driver.BoardSpec{Name: "b", MaxTombstones: 10, Window: time.Hour}
	s, _ := openBoard(t, t.TempDir(), options{clock: hand.clock(1)}, spec)
	mustApply(t, s, postOf(numberedID(1)))
	for n := range uint64(20) {
		hand.turn(time.Second, time.Second)
		mustApply(t, s, driver.Op{Kind: driver.Update, Job: numberedID(1), Request: numberedID(n + 1<<40), Event: job.ForeignChange, Status: &[]byte{}})
	}
	status, err := s.OpenBoard(t.Context(), spec)
	if err != nil || status.Window >= time.Minute {
		t.Errorf("the window is told as %v, %v: want what ten answers a second apart reach back", status.Window, err)
	}
}
