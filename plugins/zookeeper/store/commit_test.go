package store

import (
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// lockByTaskFlow has a conductor claim a job; again says that another one's claim ends first.
func lockByTaskFlow(t *testing.T, b *board, id job.ID, conductor string, again bool) {
	t.Helper()
	data, err := taskflow.EncodeLock(conductor)
	if err != nil {
		t.Fatal(err)
	}
	m := b.client().Multi(session.World())
	if again {
		m.Delete(b.at.Lock(b.known(id).node), -1)
	}
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
				lockByTaskFlow(t, b, op.Job, "a conductor", false)
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

// TestReleasedWhileClaimUnseen has a claim be ended by who names its owner, while another
// conductor's claim has taken its place and is not known here yet: that one stands.
func TestReleasedWhileClaimUnseen(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	for name, op := range map[string]driver.Op{
		"released": {Kind: driver.Release, Precondition: driver.Held, Owner: "first"},
		"consumed": {Kind: driver.Remove, Precondition: driver.HeldByOwner, Owner: "first"},
		"trashed":  {Kind: driver.Trash, Precondition: driver.HeldByOwner, Owner: "first"},
	} {
		t.Run(name, func(t *testing.T) {
			op.Job = s.post(t)
			lockByTaskFlow(t, b, op.Job, "first", false)
			if err := b.listFolder(t.Context(), b.lists.Load()); err != nil {
				t.Fatal(err)
			}
			if owner := b.known(op.Job).owner(); owner != "first" {
				t.Fatalf("the job is held by %q", owner)
			}
			b.listing.Lock()
			defer b.listing.Unlock()
			lockByTaskFlow(t, b, op.Job, "second", true)
			if r := s.Apply(t.Context(), "b", []driver.Op{op})[0]; r.Kind != job.NotOwner {
				t.Errorf("got %v (%s), want NOT_OWNER", r.Kind, r.Message)
			}
			if stat, err := s.client.Exists(t.Context(), b.at.Lock(b.known(op.Job).node)); err != nil || stat == nil {
				t.Errorf("the second conductor's lock is gone: %v", err)
			}
		})
	}
}
