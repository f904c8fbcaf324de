package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestExpiredRows: rows of documents that have expired are taken away, by two drivers at once,
// and no others.
func TestExpiredRows(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	var stores [2]*store
	for i := range stores {
		d, err := opened(t, p)
		stores[i] = must(t, d, err).(*store)
		t.Cleanup(func() { _ = d.Close() })
	}
	docs, space := stores[0].Documents(), driver.Space{Name: "served"}
	rows := func() (n int) {
		if err := stores[0].pool.QueryRow(t.Context(), stores[0].sql(`SELECT count(*) FROM {s}.documents WHERE space = 'served'`)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	put := func(name string, expires time.Time) {
		if _, err := docs.Put(t.Context(), space, driver.Document{Name: name, Data: []byte("x"), Expires: expires}, 0); err != nil {
			t.Fatal(err)
		}
	}
	const gone = 3*reapMost + 1
	for i := range gone {
		put(fmt.Sprint("gone-", i), time.Now().Add(-time.Minute))
	}
	put("later", time.Now().Add(time.Hour))
	put("never", time.Time{})
	if n := rows(); n != gone+2 {
		t.Fatalf("there are %d rows: want %d", n, gone+2)
	}
	var reaping sync.WaitGroup
	for _, s := range stores {
		reaping.Go(func() {
			if err := s.reap(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	reaping.Wait()
	if n := rows(); n != 2 {
		t.Errorf("there are %d rows: want 2", n)
	}
	for _, name := range []string{"later", "never"} {
		if _, err := docs.Get(t.Context(), space, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	put("gone-7", time.Now().Add(time.Hour)) // its name is free
}
