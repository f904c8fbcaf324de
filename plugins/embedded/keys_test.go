package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestManyKeys: of many keys each is had by the job that took it first, also after a restart,
// and is free when that has ended. BOARDD_TEST_KEYS says how many there are.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	keys := 5_000
	if text := os.Getenv("BOARDD_TEST_KEYS"); text != "" {
		var err error
		if keys, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "store")
	s, _ := openBoard(t, path, options{}, driver.BoardSpec{})
	id := func(round, n int) job.ID { return numberedID(uint64(round)<<40 + uint64(n)) } //nolint:gosec // not negative
	post := func(round, n int) driver.Op {
		op := postOf(id(round, n))
		op.Keys = []driver.Key{{Name: "key " + strconv.Itoa(n), Open: true}}
		return op
	}
	// each does an op for each key, and looks at what came of it.
	each := func(s *Store, op func(n int) driver.Op, right func(n int, r driver.Result) bool) {
		t.Helper()
		const batch = 4096
		for from := 0; from < keys; from += batch {
			var ops []driver.Op
			for n := from; n < min(from+batch, keys); n++ {
				ops = append(ops, op(n))
			}
			for i, r := range s.Apply(t.Context(), "b", ops) {
				if !right(from+i, r) {
					t.Fatalf("key %d of %d: got %v %s, taken by %v", from+i, keys, r.Kind, r.Message, r.Taken)
				}
			}
		}
	}
	done := func(_ int, r driver.Result) bool { return r.Kind == job.NoKind }
	taken := func(round int) func(int, driver.Result) bool {
		return func(n int, r driver.Result) bool { return r.Kind == job.AlreadyExists && r.Taken == id(round, n) }
	}
	each(s, func(n int) driver.Op { return post(1, n) }, done)
	each(s, func(n int) driver.Op { return post(2, n) }, taken(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = openBoard(t, path, options{}, driver.BoardSpec{})
	each(s, func(n int) driver.Op { return post(3, n) }, taken(1))
	each(s, func(n int) driver.Op {
		return driver.Op{Kind: driver.Remove, Job: id(1, n), Precondition: driver.Free, Event: job.CanceledEvent}
	}, done)
	each(s, func(n int) driver.Op { return post(4, n) }, done)
	each(s, func(n int) driver.Op { return post(5, n) }, taken(4))
}
