package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// held is what a watcher of a space knows.
type held struct {
	mu   sync.Mutex
	docs map[string]string
}

// hold has a watcher keep what it is told, until the test ends.
func hold(t *testing.T, d driver.Driver, space driver.Space) *held {
	t.Helper()
	h := &held{docs: map[string]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	t.Cleanup(watcher.Wait)
	t.Cleanup(cancel)
	watcher.Go(func() {
		for change, err := range d.Documents().Watch(ctx, space) {
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			h.mu.Lock()
			switch {
			case change.Deleted:
				delete(h.docs, change.Document.Name)
			case !change.Synced:
				h.docs[change.Document.Name] = string(change.Document.Data)
			}
			h.mu.Unlock()
		}
	})
	return h
}

func (h *held) has(name, data string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	got, ok := h.docs[name]
	return ok && got == data
}

func (h *held) lacks(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.docs[name]
	return !ok
}

var everyone = driver.Space{Name: "catalog"}

func put(t *testing.T, d driver.Driver, name, data string, version uint64) uint64 {
	t.Helper()
	version, err := d.Documents().Put(t.Context(), everyone, driver.Document{Name: name, Data: []byte(data)}, version)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// TestChangeAmongMany changes one of 500 documents as often as 40 times, and counts what
// ZooKeeper was asked: a watcher reads what changed. Of a program of before, whose change says
// not what it was, it hears all the same.
func TestChangeAmongMany(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	here, there := openWith(t, settingsOf(z.Servers(), nil)), openWith(t, settingsOf(z.Servers(), nil))
	const many, changes = 500, 40
	for i := range many {
		put(t, there, fmt.Sprint("board/", i), "at first", 0)
	}
	known := hold(t, here, everyone)
	testserver.Eventually(t, "everything is read", func() bool { return known.has(fmt.Sprint("board/", many-1), "at first") })

	version := put(t, there, "one", "0", 0)
	before := packets(t, z)
	for i := range changes {
		version = put(t, there, "one", fmt.Sprint("n", i), version)
		testserver.Eventually(t, "the change is seen", func() bool { return known.has("one", fmt.Sprint("n", i)) })
	}
	if got := packets(t, z) - before; got > 30*changes {
		t.Errorf("%d changes of one of %d documents took %d requests, want at most 30 each", changes, many, got)
	}
	if err := there.Documents().Delete(t.Context(), everyone, "one", version); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "it is seen to be gone", func() bool { return known.lacks("one") })

	raw, _, err := zk.Connect(z.Servers(), 10*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	const folder = "/boardd/.documents/all/catalog"
	if _, err := raw.Multi(&zk.SetDataRequest{Path: folder, Version: -1}, &zk.DeleteRequest{Path: folder + "/board%2f7", Version: -1}); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "what a program of before deleted is seen to be gone", func() bool { return known.lacks("board/7") })
	put(t, there, "board/8", "later", versionOf(t, here, "board/8"))
	testserver.Eventually(t, "what follows is seen", func() bool { return known.has("board/8", "later") })
}

func versionOf(t *testing.T, d driver.Driver, name string) uint64 {
	t.Helper()
	doc, err := d.Documents().Get(t.Context(), everyone, name)
	if err != nil {
		t.Fatal(err)
	}
	return doc.Version
}

// TestChangesByMany has three drivers with four writers each change the same few documents
// at random, and checks that watchers of all end with what there is.
func TestChangesByMany(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	var drivers []driver.Driver
	var watchers []*held
	for range 3 {
		d := openWith(t, settingsOf(z.Servers(), nil))
		drivers, watchers = append(drivers, d), append(watchers, hold(t, d, everyone))
	}
	var writers sync.WaitGroup
	for n := range 12 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // a test's choices
			docs := drivers[n%3].Documents()
			for i := range 60 {
				name := fmt.Sprint("d", random.IntN(20))
				old, err := docs.Get(t.Context(), everyone, name)
				if err != nil && job.KindOf(err) != job.NotFound {
					t.Error(err)
					return
				}
				if old.Version != 0 && random.IntN(3) == 0 {
					err = docs.Delete(t.Context(), everyone, name, old.Version)
				} else {
					_, err = docs.Put(t.Context(), everyone, driver.Document{Name: name, Data: fmt.Appendf(nil, "%d.%d", n, i)}, old.Version)
				}
				if kind := job.KindOf(err); err != nil && kind != job.Aborted && kind != job.NotFound {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	list, err := drivers[0].Documents().List(t.Context(), everyone, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range watchers {
		testserver.Eventually(t, fmt.Sprintf("watcher %d knows what there is", i), func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, doc := range list {
				if h.docs[doc.Name] != string(doc.Data) {
					return false
				}
			}
			return len(h.docs) == len(list)
		})
	}
}
