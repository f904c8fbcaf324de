package store_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// stopped stops all servers while something happens to their data.
func stopped(z *testserver.ZooKeeperEnsemble, happen func(data string, server int)) {
	for i := range z.Servers() {
		z.Kill(i)
	}
	var group sync.WaitGroup
	for i := range z.Servers() {
		happen(filepath.Join(z.Dir(i), "version-2"), i)
		group.Go(func() { z.Start(i) })
	}
	group.Wait()
}

// backup is a copy of the data of all servers.
type backup struct {
	*testing.T
	servers *testserver.ZooKeeperEnsemble
	folder  string
}

// backedUp stops the servers and copies their data.
func backedUp(t *testing.T, z *testserver.ZooKeeperEnsemble) *backup {
	t.Helper()
	b := &backup{t, z, t.TempDir()}
	stopped(z, func(data string, server int) { copied(t, data, b.of(server)) })
	return b
}

func (b *backup) of(server int) string { return filepath.Join(b.folder, text("%d", server)) }

// putBack stops the servers and gives them the data that they had.
func (b *backup) putBack() {
	b.Helper()
	stopped(b.servers, func(data string, server int) { copied(b.T, b.of(server), data) })
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestPutBack puts the data of three servers back to what they were. Since they elect a leader
// again, their numbers go on beyond those of before: a host that was there finds out that
// something is lost all the same.
func TestPutBack(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3, Fast: true})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	k.post("stays", `{}`, nil)
	before := backedUp(t, z)
	k.open()
	if k.status.Loss != "" {
		t.Fatalf("the servers came back with everything, and the loss is %q", k.status.Loss)
	}
	k.post("is lost", `{}`, nil)
	k.spec.Seen = k.status.Position
	before.putBack()
	stopped(z, func(string, int) {})
	generation := k.status.Generation
	k.open()
	if k.status.Loss == "" || k.status.Generation != generation+1 {
		t.Errorf("loss %q, generation %d; want some, %d", k.status.Loss, k.status.Generation, generation+1)
	}
	k.spec.Seen = 0
	k.open()
	if k.status.Loss != "" {
		t.Errorf("the loss is told once more: %s", k.status.Loss)
	}
}

// TestPutBackAndGoneOn has another host, which knew nothing of what was lost, write more since than
// that was.
func TestPutBackAndGoneOn(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3, Fast: true})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	k.post("stays", `{}`, nil)
	before := backedUp(t, z)
	k.open()
	k.post("is lost", `{}`, nil)
	before.putBack()
	other := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	for range 5 {
		other.post("is posted since", `{}`, nil)
	}
	generation := k.status.Generation
	k.open()
	if k.status.Loss == "" || k.status.Generation != generation+1 {
		t.Errorf("loss %q, generation %d; want some, %d", k.status.Loss, k.status.Generation, generation+1)
	}
	k.open()
	if k.status.Loss != "" {
		t.Errorf("the loss is told once more: %s", k.status.Loss)
	}
	k.post("comes after it", `{}`, nil)
}
