package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// groupedPost posts a job of a group.
func (k *desk) groupedPost(group string) (job.ID, driver.Result) {
	id := job.ID(random16())
	p := &driver.Posting{ID: id, Name: "grouped", Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
	return id, k.do(driver.Op{Kind: driver.Post, Job: id, Posting: p, Event: job.Posted, Group: group})
}

// grouped is groupedPost of a job that has to be taken.
func (k *desk) grouped(group string) job.ID {
	k.Helper()
	id, r := k.groupedPost(group)
	if r.Kind != job.NoKind {
		k.Fatalf("a post of the group %q: %v (%s)", group, r.Kind, r.Message)
	}
	return id
}

// tally asks how a group stands.
func (k *desk) tally(op driver.Op) driver.Group {
	k.Helper()
	op.Kind = driver.Tally
	return *k.must(op).Group
}

// TestGroupsStranger lets TaskFlow end jobs of a group: they are counted where they went, and
// what waits for the group comes when the last one is gone.
func TestGroupsStranger(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	ids := map[string]job.ID{}
	for _, how := range []string{"consume", "trash", "here"} {
		ids[how] = p.grouped("night")
	}
	then := driver.Op{Kind: driver.Post, Job: job.ID(random16()), Event: job.Posted, Emptied: "night"}
	then.Posting = &driver.Posting{ID: then.Job, Name: "then", Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
	p.tally(driver.Op{Group: "night", Close: true})
	for _, how := range []string{"consume", "trash"} {
		if err := p.python.Claim(ids[how].String(), "py", 0); err != nil {
			t.Fatal(err)
		}
		if r := p.do(then); r.Kind != job.Precondition {
			t.Errorf("before the end of a job by %s: %v (%s)", how, r.Kind, r.Message)
		}
		if err := p.python.End(how, ids[how].String(), "py"); err != nil {
			t.Fatal(err)
		}
	}
	p.until("both are counted", func() bool {
		return p.tally(driver.Op{Group: "night"}) == driver.Group{Open: 1, Trashed: 1, Consumed: 1, Closed: true}
	})
	p.must(byToken(driver.Remove, p.claim(ids["here"], "boardd", time.Minute), job.ConsumedEvent))
	p.must(then)
	// What TaskFlow has set aside goes on like any other.
	p.must(driver.Op{Kind: driver.Restore, Job: ids["trash"], Event: job.Restored})
	if g := p.tally(driver.Op{Group: "night"}); g != (driver.Group{Open: 1, Consumed: 2, Closed: true, Followed: true}) {
		t.Errorf("a job was put back: %+v", g)
	}
	p.must(driver.Op{Kind: driver.Trash, Job: ids["trash"], Event: job.TrashedEvent})
	p.must(driver.Op{Kind: driver.Purge, Job: ids["trash"], Event: job.PurgedEvent})
	if g := p.tally(driver.Op{Group: "night"}); g != (driver.Group{Purged: 1, Consumed: 2, Closed: true, Followed: true}) {
		t.Errorf("it was purged: %+v", g)
	}
}

// TestGroupsPurgedUnseen purges a job that TaskFlow has consumed a moment ago: it counts as
// consumed, whether that was written down before or not.
func TestGroupsPurgedUnseen(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	for range 5 {
		id := p.grouped("night")
		if err := p.python.Claim(id.String(), "py", 0); err != nil {
			t.Fatal(err)
		}
		if err := p.python.End("consume", id.String(), "py"); err != nil {
			t.Fatal(err)
		}
		p.until("it is purged", func() bool {
			return p.do(driver.Op{Kind: driver.Purge, Job: id, Event: job.PurgedEvent}).Kind == job.NoKind
		})
	}
	if g := p.tally(driver.Op{Group: "night"}); g != (driver.Group{Consumed: 5}) {
		t.Errorf("five were consumed: %+v", g)
	}
}

// TestGroupsHosts has two hosts post and end jobs of one group side by side, which one of them
// closes; a post that is repeated by the host that did not make it is known there, also once
// the group is closed. Another host counts the same after them.
func TestGroupsHosts(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first := openWith(t, settingsOf(z.Servers(), nil))
	hosts := []*desk{sit(t, first, "/taskflow/jobs", nil), sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)}
	const each = 20
	ids := make([]job.ID, len(hosts)*each)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			id, r := hosts[i%2].groupedPost("night")
			if ids[i] = id; r.Kind != job.NoKind {
				t.Errorf("post %d: %v (%s)", i, r.Kind, r.Message)
			}
		})
	}
	group.Wait()
	last := driver.Op{Kind: driver.Post, Job: job.ID(random16()), Event: job.Posted, Group: "night"}
	last.Posting = &driver.Posting{ID: last.Job, Name: "last", Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
	hosts[0].must(last)
	if g := hosts[0].tally(driver.Op{Group: "night", Close: true}); g != (driver.Group{Open: int64(len(ids)) + 1, Closed: true}) {
		t.Errorf("the group was closed with %+v", g)
	}
	if r := hosts[1].do(last); r.Kind != job.NoKind || !r.Repeated {
		t.Errorf("the other host's post once more: %v (%s), want it Repeated", r.Kind, r.Message)
	}
	if _, r := hosts[1].groupedPost("night"); r.Kind != job.Precondition || r.Message != `the group "night" is closed` {
		t.Errorf("a post of a closed group: %v (%s)", r.Kind, r.Message)
	}
	for i, id := range ids {
		group.Go(func() {
			if r := hosts[(i+1)%2].do(driver.Op{Kind: driver.Remove, Job: id, Event: job.CanceledEvent, Ending: &driver.Ending{Outcome: job.Canceled}}); r.Kind != job.NoKind {
				t.Errorf("the end of job %d: %v (%s)", i, r.Kind, r.Message)
			}
		})
	}
	group.Wait()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	third := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	if g := third.tally(driver.Op{Group: "night"}); g != (driver.Group{Open: 1, Canceled: int64(len(ids)), Closed: true}) {
		t.Errorf("all but one were ended: %+v", g)
	}
}
