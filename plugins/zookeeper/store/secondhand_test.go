package store

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// list has this host list TaskFlow's folder.
func (l *late) list() {
	l.Helper()
	if err := l.listFolder(l.Context(), l.lists.Load()); err != nil {
		l.Fatal(err)
	}
}

// end has TaskFlow put a job into the trash, or consume it.
func (l *late) end(v *view, trash bool) {
	l.Helper()
	var ops []any
	if trash {
		data, _, err := l.conn.Get(l.at.Job(v.node))
		if err != nil {
			l.Fatal(err)
		}
		ops = append(ops, &zk.CreateRequest{Path: l.at.Trashed(v.node), Data: data, Acl: zk.WorldACL(zk.PermAll)})
	}
	if _, err := l.conn.Multi(append(ops, &zk.DeleteRequest{Path: l.at.Job(v.node), Version: -1})...); err != nil {
		l.Fatal(err)
	}
}

// elsewhere returns the board as the other host has it.
func (l *late) elsewhere() *board {
	l.Helper()
	b, err := l.other.board("b")
	if err != nil {
		l.Fatal(err)
	}
	return b
}

// TestToldSecondHand has another program change a job, and another host see that first and
// write it down: watchers of this host are told of it all the same.
func TestToldSecondHand(t *testing.T) {
	t.Parallel()
	foreign := func(l *late) *view {
		l.postByTaskFlow()
		l.list()
		return l.known(job.ID{1})
	}
	ours := func(l *late) *view {
		id := l.other.post(l.T)
		l.list()
		return l.known(id)
	}
	for name, test := range map[string]struct {
		post   func(*late) *view
		change func(*late, *view)
		want   job.State
	}{
		"TaskFlow's, set aside": {foreign, func(l *late, v *view) { l.end(v, true) }, job.Trashed},
		"set aside":             {ours, func(l *late, v *view) { l.end(v, true) }, job.Trashed},
		"consumed":              {ours, func(l *late, v *view) { l.end(v, false) }, job.Complete},
		"unlocked":              {claimedElsewhere, (*late).unlock, job.Unclaimed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLate(t)
			v := test.post(l)
			other := l.elsewhere()
			testserver.Eventually(t, "the other host knows the job", func() bool { return other.known(v.id) != nil && other.known(v.id).node != "" })
			seen := l.horizon
			test.change(l, v)
			testserver.Eventually(t, "the other host has written the change down", func() bool {
				now := other.known(v.id)
				return now != nil && now.recZxid > v.recZxid && now.rec.claim == nil
			})
			if err := l.touch(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the folder, and the log
				l.mu.Lock()
				l.folder.next, l.log.follower.next = time.Time{}, time.Time{}
				l.mu.Unlock()
				if err := l.look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if !slices.ContainsFunc(slices.Concat(l.events.list, l.events.waiting), func(c driver.Change) bool {
				return c.Job == v.id && uint64(c.Position) > seen && c.Event == job.ForeignChange && c.Record.State == test.want
			}) {
				t.Errorf("watchers are not told that the job is %v", test.want)
			}
		})
	}
}

// claimedElsewhere has the other host claim a job, which counts for a limit.
func claimedElsewhere(l *late) *view {
	id := l.other.post(l.T)
	l.other.one(l.T, driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{
		Count: 1, Owner: "w", Lease: time.Hour,
		Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte{1}, Limits: []driver.Limit{{Key: "claims", Max: 5}}}},
	}})
	l.list()
	return l.known(id)
}

// unlock has another program take a lock away.
func (l *late) unlock(v *view) {
	if err := l.conn.Delete(l.at.Lock(v.node), -1); err != nil {
		l.Fatal(err)
	}
}

// TestLockSeenAfterChange has this host change a job between what TaskFlow does to its lock
// and the next list: that shows what was done.
func TestLockSeenAfterChange(t *testing.T) {
	t.Parallel()
	lock := func(l *late, v *view) {
		data, err := taskflow.EncodeLock("TaskFlow's worker")
		if err != nil {
			l.Fatal(err)
		}
		if _, err := l.conn.Create(l.at.Lock(v.node), data, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			l.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		before, between func(*late, *view)
		locked          bool
	}{
		"taken":    {func(*late, *view) {}, lock, true},
		"released": {lock, (*late).unlock, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLate(t)
			id := l.other.post(t)
			l.list()
			test.before(l, l.known(id))
			l.list()
			v := l.known(id)
			test.between(l, v)
			if _, _, err := l.commit(t.Context(), v, &change{rec: v.rec.clone(), event: job.OperationEvent, changed: true}); err != nil {
				t.Fatal(err)
			}
			l.list()
			if now := l.known(id); (now.lock != nil) != test.locked {
				t.Errorf("the lock is known as %+v, and is there: %v", now.lock, test.locked)
			}
		})
	}
}

// TestLockReplaced has another conductor claim a job that the first one has given back, between
// two lists, and nothing else happen on the board: the second claim is seen.
func TestLockReplaced(t *testing.T) {
	t.Parallel()
	l := newLate(t)
	id := l.other.post(t)
	l.list()
	lockByTaskFlow(t, l.board, id, "a conductor", false)
	l.list()
	if err := l.sweepLocks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.list(); l.sweep.wanted {
		t.Error("locks are looked at though nobody has changed the folder")
	}
	lockByTaskFlow(t, l.board, id, "the next one", true)
	l.list()
	if err := l.sweepLocks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if owner := l.known(id).owner(); owner != "the next one" {
		t.Errorf("the job is %s's, want the next one's", owner)
	}
}

// TestFoundWhileListed has a job be read that another program has posted, while the folder is
// being listed and nobody has read the posting yet.
func TestFoundWhileListed(t *testing.T) {
	t.Parallel()
	l := newLate(t)
	l.list()
	l.postByTaskFlow()
	l.listing.Lock()
	l.lists.Add(1)
	l.mu.Lock()
	l.poll(&l.folder)
	fired := l.folder.dirty
	l.mu.Unlock()
	if !fired {
		t.Fatal("the folder was changed, and its watch has not fired")
	}
	l.begin(&l.folder)
	found := make(chan *view)
	go func() {
		v, err := l.refresh(context.WithoutCancel(t.Context()), job.ID{1}, anywhere)
		if err != nil {
			t.Error(err)
		}
		found <- v
	}()
	for range 20 { // so that who reads has come to wait for the list
		if err := l.touch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.listAnew(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.listed.Store(l.lists.Load())
	l.listing.Unlock()
	if v := <-found; v == nil || v.node == "" {
		t.Errorf("a job that is on the board is read as %+v", v)
	}
}

// TestForgottenByAll has the host that is not first end jobs and give answers: once they are too
// old nothing is left of them, in ZooKeeper or in a host's memory.
func TestForgottenByAll(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	other, c := inside(t, z, Options{})
	for _, s := range []*Store{s, other} {
		if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Window: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	testserver.Eventually(t, "the hosts know each other", func() bool { return len(*b.hosts.list.Load()) == 2 && len(*c.hosts.list.Load()) == 2 })
	if b.hosts.first("b") {
		s = other
	}
	for n := range 20 {
		r := s.one(t, driver.Op{Kind: driver.Claim, Request: [16]byte{1, byte(n)}, Claim: &driver.ClaimSpec{
			Count: 1, Owner: "w", Lease: time.Minute, Remember: true,
			Candidates: []driver.Candidate{{Job: s.post(t), Nonce: [16]byte{1, byte(n)}}},
		}})
		s.one(t, driver.Op{Kind: driver.Remove, Job: r.Claims[0].Job, Precondition: driver.HeldByToken, Token: r.Claims[0].Token})
	}
	m := s.client.Multi(b.acl)
	m.Create(b.at.answer([16]byte{9}), nil, session.Persistent) // of a host that is gone
	if _, err := m.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*board{b, c} {
		b.mu.Lock()
		b.past.counters = time.Time{}
		b.mu.Unlock()
	}
	testserver.Eventually(t, "nothing is left", func() bool {
		folder, err := s.client.List(t.Context(), b.at.answers())
		if err != nil {
			t.Fatal(err)
		}
		left := len(folder.Names)
		for _, b := range []*board{b, c} {
			b.mu.Lock()
			left += len(b.jobs) + len(b.past.answers)
			b.mu.Unlock()
		}
		return left == 0
	})
}

// TestDroppedElsewhere has one host drop a board that another one has open: that one does not
// make it again, unless it is opened there once more.
func TestDroppedElsewhere(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first, _ := inside(t, z, Options{})
	second, b := inside(t, z, Options{})
	b.mu.Lock()
	id := b.root.id
	b.mu.Unlock()
	if err := first.DropBoard(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the other host has looked for the board", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.root.id != id || !b.loaded && b.fault != nil && strings.Contains(b.fault.Error(), "is gone")
	})
	if stat, err := second.client.Exists(t.Context(), b.at.own); err != nil || stat != nil {
		t.Errorf("the board that was dropped is there again: %+v, %v", stat, err)
	}
	if _, err := second.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	second.post(t)
}

// goneLines are the lines of a log that say that a board is gone, as far as somebody takes them.
type goneLines chan string

func (l goneLines) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "is gone") {
		select {
		case l <- string(line):
		default:
		}
	}
	return len(line), nil
}

// TestDroppedElsewhereRests has a host say once that another one has dropped a board. It keeps
// nothing of it, and looks for it no more until it is there again.
func TestDroppedElsewhereRests(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first, _ := inside(t, z, Options{})
	gone := make(goneLines, 2)
	_, b := insideLogged(t, z.Servers(), slog.NewTextHandler(gone, nil), Options{})
	id := first.post(t)
	testserver.Eventually(t, "the other host knows the job", func() bool { return b.known(id) != nil })
	if err := first.DropBoard(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	<-gone
	select {
	case line := <-gone:
		t.Errorf("the other host looks for the board again: %s", line)
	case <-time.After(time.Second):
	}
	if v := b.known(id); v != nil {
		t.Errorf("the other host still knows %+v", v)
	}
	if _, err := first.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the other host follows the board that was made again", func() bool {
		_, loaded := b.reading()
		return loaded
	})
}
