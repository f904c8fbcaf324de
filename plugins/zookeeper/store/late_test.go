package store

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/job"
)

// A late board is one that is followed by hand, beside another host and TaskFlow.
type late struct {
	*testing.T
	*board
	other *Store
	conn  *zk.Conn
}

func newLate(t *testing.T) *late {
	t.Helper()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	other, _ := inside(t, z, Options{})
	_, b := inside(t, z, Options{})
	b.stop()
	b.running.Wait()
	conn, _, err := zk.Connect(z.Servers(), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &late{t, b, other, conn}
}

// postElsewhere has another host post a job, of which this one knows by the folder. It
// returns the change's position, and its entry in the log.
func (l *late) postElsewhere() (position uint64, path string) {
	id := l.other.post(l.T)
	if err := l.listFolder(l.Context(), l.lists.Load()); err != nil {
		l.Fatal(err)
	}
	return l.known(id).recZxid, l.at.logEntry(l.series(), l.log.number)
}

// postByTaskFlow has TaskFlow post a job, and this host know of a later change.
func (l *late) postByTaskFlow() (position uint64, path string) {
	data, err := taskflow.EncodeZooKeeper(&taskflow.Posting{ID: job.ID{1}, Name: "TaskFlow's"})
	if err != nil {
		l.Fatal(err)
	}
	path, err = l.conn.Create(l.at.JobPrefix(), data, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		l.Fatal(err)
	}
	_, stat, err := l.conn.Exists(path)
	if err != nil {
		l.Fatal(err)
	}
	if err := l.touch(l.Context()); err != nil {
		l.Fatal(err)
	}
	return uint64(stat.Czxid), path
}

// permit says who may do what with a node.
func (l *late) permit(path string, perms int32) {
	l.Helper()
	if _, err := l.conn.SetACL(path, zk.WorldACL(perms), -1); err != nil {
		l.Fatalf("%s: %v", path, err)
	}
}

// told returns the positions at which watchers were told of changes, or will be.
func (l *late) told() (list []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range slices.Concat(l.events.list, l.events.waiting) {
		list = append(list, uint64(c.Position))
	}
	return list
}

// TestToldWhereItHappened has a host know that something was changed, and fail to read
// what: once it can be read, watchers are told of it where it happened.
func TestToldWhereItHappened(t *testing.T) {
	t.Parallel()
	listLog := func(ctx context.Context, l *late) error { return l.listLog(ctx) }
	listFolder := func(ctx context.Context, l *late) error { return l.listFolder(ctx, l.lists.Load()) }
	for name, test := range map[string]struct {
		change func(*late) (position uint64, path string)
		look   func(context.Context, *late) error
		listed bool // it is one node that cannot be read, and not the list of names
		again  bool // who looks does so again, as after a connection that was lost
	}{
		"the log":                 {(*late).postElsewhere, listLog, false, true},
		"an entry of the log":     {(*late).postElsewhere, listLog, true, true},
		"the folder":              {(*late).postByTaskFlow, listFolder, false, false},
		"a posting in the folder": {(*late).postByTaskFlow, listFolder, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLate(t)
			position, path := test.change(l)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.listed {
				l.permit(path, zk.PermAll&^zk.PermRead)
			} else {
				cancel()
			}
			if err := test.look(ctx, l); err == nil {
				t.Fatal("what cannot be read was read")
			}
			l.permit(path, zk.PermAll)
			if err := l.touch(t.Context()); err != nil { // so that this host knows of a later change
				t.Fatal(err)
			}
			for range 2 { // the folder, and the log
				l.mu.Lock()
				l.log.dirty = l.log.dirty || test.again
				l.folder.next, l.log.follower.next = time.Time{}, time.Time{}
				l.mu.Unlock()
				if err := l.look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if told := l.told(); !slices.Equal(told, []uint64{position}) || l.events.told < position {
				t.Errorf("watchers are told of changes at %d, up to %d; want one at %d", told, l.events.told, position)
			}
		})
	}
}

// TestAnswerOfLogBefore has the answer to a change come after the log has begun anew: the
// change was read with the board, and the number of its entry means nothing any more.
func TestAnswerOfLogBefore(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	s, b := inside(t, z, Options{})
	id := s.post(t)
	times, _ := b.reading()
	next, ch, w := unanswered(t, b, id, [16]byte{})
	b.mu.Lock()
	acl := b.acl
	b.mu.Unlock()
	if err := b.renewLog(t.Context(), acl); !errors.Is(err, errAgain) {
		t.Fatal(err)
	}
	b.reload(errAgain)
	testserver.Eventually(t, "the board is read anew", func() bool {
		now, loaded := b.reading()
		return loaded && now > times
	})
	b.mu.Lock()
	b.settle(next, ch, w)
	ahead := len(b.log.ahead)
	b.mu.Unlock()
	if told := toldOf(b, id); len(told) > 0 || ahead > 0 {
		t.Errorf("watchers are told of the change once more, at %v; %d entries of the log are awaited", told, ahead)
	}
}

// TestAnswerOfNextSession has a host hear of a change in another session than the one that
// its watches are of: they say nothing of what was before.
func TestAnswerOfNextSession(t *testing.T) {
	t.Parallel()
	l := newLate(t)
	lost := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = lost
	l.reached(l.horizon + 1)
	l.advance()
	if l.events.told != l.horizon {
		t.Fatalf("watchers are told up to %d, want %d", l.events.told, l.horizon)
	}
	close(lost)
	l.reached(l.horizon + 1)
	l.advance()
	if l.events.told != l.horizon-1 {
		t.Errorf("watchers are told up to %d, by watches that say nothing of what was after %d", l.events.told, l.horizon-1)
	}
}
