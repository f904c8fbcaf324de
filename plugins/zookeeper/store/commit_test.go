package store

import (
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// lockByTaskFlow has a conductor claim a job.
func lockByTaskFlow(t *testing.T, b *board, id job.ID) {
	t.Helper()
	data, err := taskflow.EncodeLock("a conductor")
	if err != nil {
		t.Fatal(err)
	}
	m := b.client().Multi(session.World())
	m.Create(b.at.Lock(b.known(id).node), data, session.Persistent)
	if _, err := m.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestEndedWhileClaimUnseen has a job leave the board of which a conductor's claim is not known
// here yet: it is refused. Of one that nobody has claimed all is told without a list.
func TestEndedWhileClaimUnseen(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	for name, test := range map[string]struct {
		op     driver.Op
		locked bool
		want   job.Kind
	}{
		"trashed while it is claimed":  {driver.Op{Kind: driver.Trash, Precondition: driver.Free}, true, job.AlreadyClaimed},
		"canceled while it is claimed": {driver.Op{Kind: driver.Remove}, true, job.Aborted},
		"trashed":                      {driver.Op{Kind: driver.Trash, Precondition: driver.Free}, false, job.NoKind},
		"canceled":                     {driver.Op{Kind: driver.Remove}, false, job.NoKind},
	} {
		t.Run(name, func(t *testing.T) {
			op := test.op
			op.Job = s.post(t)
			if err := b.listFolder(t.Context(), b.lists.Load()); err != nil {
				t.Fatal(err)
			}
			b.listing.Lock()
			defer b.listing.Unlock()
			op.Version = b.known(op.Job).version()
			if test.locked {
				lockByTaskFlow(t, b, op.Job)
			}
			if r := s.Apply(t.Context(), "b", []driver.Op{op})[0]; r.Kind != test.want {
				t.Errorf("got %v (%s), want %v", r.Kind, r.Message, test.want)
			}
			stat, err := s.client.Exists(t.Context(), b.at.Board)
			if err != nil {
				t.Fatal(err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if balanced := b.folder.balanced(stat); balanced == test.locked {
				t.Errorf("nobody else has changed the folder: %v, want %v", balanced, !test.locked)
			}
		})
	}
}
