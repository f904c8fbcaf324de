package store

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestExpiredNodes: who lists documents takes away the nodes of those that expired long ago, with
// the pieces of large ones, and leaves what was written a moment ago.
func TestExpiredNodes(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	d := s.documents
	for _, space := range []driver.Space{{Name: "catalog"}, {Board: b.spec.Name, Name: "kept"}} {
		put := func(name string, size int, expires time.Time) {
			if _, err := d.Put(t.Context(), space, driver.Document{Name: name, Data: bytes.Repeat([]byte("x"), size), Expires: expires}, 0); err != nil {
				t.Fatal(err)
			}
		}
		nodes := func() []string {
			if _, err := d.List(t.Context(), space, "", 0); err != nil {
				t.Fatal(err)
			}
			folder, err := d.client().List(t.Context(), d.folder(space))
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(folder.Names)
			return folder.Names
		}
		const gone = 2*atOnce + 1
		for i := range gone {
			put(fmt.Sprint("gone-", i), 10, time.Now().Add(-2*reapAfter))
		}
		put("large", 3*pieceSize, time.Now().Add(-2*reapAfter))
		put("later", 3*pieceSize, time.Now().Add(time.Hour))
		put("never", 10, time.Time{})
		d.reapAfter = reapAfter
		if n := len(nodes()); n != gone+3 {
			t.Errorf("there are %d nodes: want %d, which have just been written", n, gone+3)
		}
		d.reapAfter = time.Millisecond
		testserver.Eventually(t, "the nodes are old", func() bool { return len(nodes()) < gone })
		if left := nodes(); !slices.Equal(left, []string{"later", "never"}) {
			t.Errorf("there are %q: want later and never", left)
		}
		if doc, err := d.Get(t.Context(), space, "later"); err != nil || len(doc.Data) != 3*pieceSize {
			t.Errorf("later has %d bytes, %v", len(doc.Data), err)
		}
		if _, err := d.Get(t.Context(), space, "large"); job.KindOf(err) != job.NotFound {
			t.Errorf("large: %v, want NOT_FOUND", err)
		}
		put("large", 3*pieceSize, time.Now().Add(time.Hour)) // its name is free
	}
}
