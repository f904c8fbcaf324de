package poll_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/job"
)

// TestChanges has a watcher read a log in steps, sleep, and be told of what comes, of
// what was forgotten, and of the end.
func TestChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var bell poll.Bell
		var mu sync.Mutex // of all that the watcher and the test have in common
		last, oldest := driver.Position(5), driver.Position(1)
		looks := 0
		since := func(_ context.Context, after driver.Position) (driver.Changes, error) {
			mu.Lock()
			defer mu.Unlock()
			looks++
			if after+1 < oldest {
				return driver.Changes{Resync: true, Position: last}, nil
			}
			step := driver.Changes{Position: after}
			for step.Position < last && len(step.List) < 2 {
				step.Position++
				step.List = append(step.List, driver.Change{Position: step.Position})
			}
			return step, nil
		}
		var told []string
		var end error
		go func() {
			for step, err := range poll.Changes(t.Context(), &bell, 0, since) {
				mu.Lock()
				told, end = append(told, fmt.Sprint(len(step.List), step.Position, step.Resync)), err
				mu.Unlock()
			}
		}()
		want := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, lines) {
				t.Errorf("told %q, want %q", told, lines)
			}
			told = nil
		}
		want("2 2 false", "2 4 false", "1 5 false")
		looked := func() int {
			mu.Lock()
			defer mu.Unlock()
			return looks
		}
		before := looked()
		time.Sleep(time.Hour)
		if n := looked(); n != before {
			t.Errorf("nobody rang, and the watcher looked %d times", n-before)
		}
		grow := func(to, from driver.Position) {
			mu.Lock()
			defer mu.Unlock()
			last, oldest = to, from
		}
		grow(6, 1)
		bell.Ring()
		want("1 6 false")
		grow(90, 80)
		bell.Ring()
		want("0 90 true")
		bell.Close()
		want("0 0 false")
		if job.KindOf(end) != job.Unavailable {
			t.Errorf("the store was closed, and the watch ended with %v", end)
		}
	})
}

// TestDocuments has a watcher told of what is there, what changes, and what expires at
// its time.
func TestDocuments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var bell poll.Bell
		var mu sync.Mutex // likewise
		docs := []driver.Document{{Name: "a", Version: 1}, {Name: "b", Version: 2, Expires: time.Now().Add(time.Minute)}}
		read := 0 // how often data was wanted
		list := func(_ context.Context, fresh func(*driver.Document) bool) (now []driver.Document, err error) {
			mu.Lock()
			defer mu.Unlock()
			for _, d := range docs {
				if d.Expired(time.Now()) {
					continue
				}
				if fresh(&d) {
					read++
				}
				now = append(now, d)
			}
			return now, nil
		}
		var told []string
		var end error
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for c, err := range poll.Documents(ctx, &bell, list) {
				mu.Lock()
				told, end = append(told, fmt.Sprint(c.Document.Name, c.Document.Version, c.Deleted, c.Synced)), err
				mu.Unlock()
			}
		}()
		want := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, lines) {
				t.Errorf("told %q, want %q", told, lines)
			}
			told = nil
		}
		want("a1 false false", "b2 false false", "0 false true")
		bell.Ring()
		want()
		mu.Lock()
		docs[0].Version = 3
		mu.Unlock()
		bell.Ring()
		want("a3 false false")
		time.Sleep(time.Minute)
		want("b0 true false")
		if read != 3 {
			t.Errorf("data was wanted %d times, want 3", read)
		}
		cancel()
		want("0 false false")
		if job.KindOf(end) != job.Interrupted {
			t.Errorf("the watcher went, and its watch ended with %v", end)
		}
	})
}

// TestStoreBehind: a store whose clock is behind has a document still that has expired here. It
// is asked again, and not without a pause.
func TestStoreBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var bell poll.Bell
		expires := time.Now().Add(time.Minute)
		behind := time.Second
		asked := 0
		told := ""
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for c, err := range poll.Space(ctx, &bell, func(_ context.Context, t *document.Told) error {
			asked++
			doc := driver.Document{Name: "a", Version: 1, Expires: expires}
			if doc.Expired(time.Now().Add(-behind)) {
				t.Gone("a")
			} else {
				t.Is(doc)
			}
			return nil
		}) {
			if told += fmt.Sprint(c.Document.Name, c.Deleted, err != nil, " "); c.Deleted {
				break
			}
		}
		if want := "afalse false false false atrue false "; told != want {
			t.Errorf("told %q, want %q", told, want)
		}
		if most := 25; asked > most {
			t.Errorf("the store was asked %d times in the second that it is behind: want at most %d", asked, most)
		}
	})
}

// TestRingAfterClose: a store may be written to while a watcher hears that it is closed.
func TestRingAfterClose(t *testing.T) {
	t.Parallel()
	var b poll.Bell
	b.Close()
	for range 2 {
		list := func(context.Context, func(*driver.Document) bool) ([]driver.Document, error) { return nil, nil }
		for _, err := range poll.Documents(t.Context(), &b, list) {
			if err == nil {
				continue // what is there is told before the end
			}
			if job.KindOf(err) != job.Unavailable {
				t.Errorf("the end of a watch: %v", err)
			}
		}
		b.Ring()
	}
}
