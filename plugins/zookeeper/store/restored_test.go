package store

import (
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestRestoredWhileLookingAway has one host set a job aside and restore it, or end it
// and post it again, while another one that knows its first posting is busy. What that
// one finds is another posting of the same job: it is still there, and nobody writes
// down that it has ended.
func TestRestoredWhileLookingAway(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first, _ := inside(t, z, Options{})
	second, b := inside(t, z, Options{})
	id := first.post(t)
	p := &driver.Posting{ID: id, Name: "a job", Encoding: job.JSON, Details: []byte(`{}`)}
	for _, tc := range []struct {
		name string
		off  driver.OpKind
		on   driver.Op
	}{
		{"restored", driver.Trash, driver.Op{Kind: driver.Restore, Job: id}},
		{"posted anew", driver.Trash, driver.Op{Kind: driver.Post, Job: id, Posting: p}},
	} {
		testserver.Eventually(t, "the second host knows the job", func() bool {
			v := b.known(id)
			return v != nil && v.node != ""
		})
		b.mu.Lock() // it looks away
		first.one(t, driver.Op{Kind: tc.off, Job: id})
		if tc.on.Kind == driver.Post {
			first.one(t, driver.Op{Kind: driver.Purge, Job: id})
		}
		placed := uint64(first.one(t, tc.on).Position)
		b.mu.Unlock()
		if err := b.bury(t.Context()); err != nil {
			t.Fatal(err)
		}
		testserver.Eventually(t, "the second host has read the job", func() bool {
			v := b.known(id)
			return v != nil && v.recZxid >= placed
		})
		for n, s := range []*Store{first, second} {
			list, err := s.Read(t.Context(), "b", []job.ID{id}, 0)
			if err != nil || list[0].State != job.Unclaimed || uint64(list[0].Position) != placed {
				t.Errorf("%s: host %d says %v at position %d (%v), want UNCLAIMED at %d", tc.name, n, list[0].State, list[0].Position, err, placed)
			}
		}
	}
}

// TestPurgedWhileRead has one host purge a job that another one has found in the trash and
// is about to read: what that one reads is no job in the trash without its details. One
// whose posting somebody took out of TaskFlow's trash by hand is shown without.
func TestPurgedWhileRead(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first, _ := inside(t, z, Options{})
	second, b := inside(t, z, Options{})
	for _, purged := range []bool{true, false} {
		id := first.post(t)
		first.one(t, driver.Op{Kind: driver.Trash, Job: id})
		v, err := b.steady(t.Context(), id, anywhere)
		if err != nil || v.state(b.now()) != job.Trashed {
			t.Fatal(v, err)
		}
		if purged {
			first.one(t, driver.Op{Kind: driver.Purge, Job: id})
		} else {
			m := b.client().Multi(nil)
			m.Delete(v.rec.trash, -1)
			if _, err := m.Do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.client().Sync(t.Context(), b.at.Board); err != nil {
			t.Fatal(err)
		}
		details, err := b.details(t.Context(), v)
		if purged && !session.NoNode(err) || !purged && (err != nil || details != nil) {
			t.Errorf("purged %v: the details are %q, %v", purged, details, err)
		}
		list, err := second.Read(t.Context(), "b", []job.ID{id}, driver.Details)
		if want := map[bool]job.State{true: job.Unknown, false: job.Trashed}[purged]; err != nil || list[0].State != want && (want != job.Unknown || list[0].State != job.Complete) {
			t.Errorf("purged %v: the job is %v, %v", purged, list[0].State, err)
		}
	}
}
