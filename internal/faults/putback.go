package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
)

// kept is the folder of a store, and what to stop before it is touched.
type kept struct {
	folder string
	stop   func()
	start  func()
}

// keeps returns where the deployment's store keeps its data.
func (d *deployment) keeps(store string) kept {
	switch store {
	case Redis, Fleet:
		return kept{d.Redis[0].Dir, d.Redis[0].Kill, d.Redis[0].Restart}
	case Postgres:
		return kept{d.Postgres.Dir, d.Postgres.Kill, d.Postgres.Restart}
	case ZooKeeper:
		z, _ := d.Store[0].(member)
		return kept{z.Dir(0), z.Kill, z.Restart}
	}
	server := d.Servers[0]
	return kept{filepath.Join(server.Data, "backends", "main"), server.Kill, server.Launch}
}

// putBack copies the store's data after a third of the time, and puts the copy back after
// another third, as somebody does who restores a backup. The servers of a fleet have lost each
// other from the copy on until after that, so that each of them serves every board by itself.
func (d *deployment) putBack(t testing.TB, recorder *history.Recorder, s Schedule) {
	t.Helper()
	k, copied := d.keeps(s.Store), filepath.Join(t.TempDir(), "copy")
	wait := func() {
		timer := time.NewTimer(s.Length / 3)
		defer timer.Stop()
		<-timer.C
	}
	exchange := func(from, to string) {
		k.stop()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil { // whoever runs the store owns the files
			t.Fatalf("%v\n%s", err, out)
		}
		k.start()
	}
	apart := func(cut bool) {
		for _, way := range d.Ways {
			way.Sever(cut)
		}
	}
	wait()
	exchange(k.folder, copied)
	apart(true)
	wait()
	from := recorder.Now()
	exchange(copied, k.folder)
	apart(false)
	recorder.AddFault(from, "put back")
	wait()
}

// reported is what the first server says of losses.
func (d *deployment) reported(t testing.TB) string {
	t.Helper()
	info, err := d.each(t, secret)["server 0"].Board(board).Info(t.Context())
	if err != nil {
		t.Error(err)
	}
	return info.GetLoss()
}
