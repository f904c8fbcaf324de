package store

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/job"
)

// TestSightingsStayFew has another program post job after job, and take all of them
// away: what is written down of them is in few nodes, every job in one, and none is left.
func TestSightingsStayFew(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	_, b := inside(t, z, Options{})
	c, _, err := zk.Connect(z.Servers(), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after a minute still not so: %s", what)
			}
		}
	}
	kept := func(n int) func() bool {
		return func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			sum := 0
			for _, live := range b.seen.chunks {
				sum += live
			}
			return len(b.seen.of) == n && sum == n && len(b.seen.fresh) == 0 && len(b.seen.chunks) <= seenNodes+1
		}
	}
	var paths []string
	for n := range seenNodes + 5 {
		id := newID()
		path, err := c.Create(b.at.JobPrefix(), fmt.Appendf(nil, `{"uuid": %q, "name": "a job", "details": {}}`, id), zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
		until(fmt.Sprintf("%d jobs are written down", n+1), func() bool {
			b.mu.Lock()
			known := b.jobs[id] != nil
			b.mu.Unlock()
			if known {
				if err := b.keepSightings(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return known && kept(n+1)()
		})
	}
	for _, path := range paths {
		if err := c.Delete(path, -1); err != nil {
			t.Fatal(err)
		}
	}
	until("nothing is left", func() bool {
		names, _, err := c.Children(b.at.seen())
		return err == nil && len(names) == 0 && kept(0)()
	})
}

func FuzzDecodeSightings(f *testing.F) {
	f.Add(encodeSightings(nil))
	f.Add(encodeSightings([]sighting{{job.ID{1}, "job0000000001", 7, 9}, {job.ID{2}, "", 0, -1}}))
	f.Add([]byte{seenFormat, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		list := decodeSightings(data)
		if again := decodeSightings(encodeSightings(list)); len(again) != len(list) || !bytes.Equal(encodeSightings(again), encodeSightings(list)) {
			t.Errorf("%v was read back as %v", list, again)
		}
	})
}

func newID() (id job.ID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
