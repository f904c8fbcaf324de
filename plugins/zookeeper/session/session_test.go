package session_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/job"
)

func dial(t *testing.T, servers []string) *session.Client {
	t.Helper()
	return dialFor(t, servers, 2*time.Second)
}

func dialFor(t *testing.T, servers []string, timeout time.Duration) *session.Client {
	t.Helper()
	c, err := session.Dial(session.Config{Servers: servers, Timeout: timeout, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestRequests makes each request, and looks at what its errors say.
func TestRequests(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	c, ctx := dial(t, z.Servers()), t.Context()
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsurePath(ctx, "/a/b", session.World()); err != nil {
		t.Fatal(err)
	}
	m := c.Multi(session.World())
	seq := m.Create("/a/b/n", []byte("x"), session.Persistent|session.Sequential)
	set := m.Set("/a", []byte("y"), 0)
	done, err := m.Do(ctx)
	if err != nil || done[seq].Path != "/a/b/n0000000000" || done[set].Stat.Version != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	folder, err := c.ListWatched(ctx, "/a/b")
	if err != nil || len(folder.Names) != 1 || folder.Stat.NumChildren != 1 {
		t.Errorf("%+v, %v", folder, err)
	}
	for what, tc := range map[string]struct {
		change func(*session.Multi)
		want   job.Kind
	}{
		"another version":     {func(m *session.Multi) { m.Set("/a", nil, 7) }, job.Aborted},
		"there already":       {func(m *session.Multi) { m.Create("/a", nil, session.Persistent) }, job.Aborted},
		"not empty":           {func(m *session.Multi) { m.Delete("/a", -1) }, job.Aborted},
		"not there":           {func(m *session.Multi) { m.Check("/c", -1) }, job.NotFound},
		"more than a request": {func(m *session.Multi) { m.Set("/a", make([]byte, session.MaxRequest), -1) }, job.Invalid},
		"no path":             {func(m *session.Multi) { m.Create("c", nil, session.Persistent) }, job.Unavailable},
	} {
		m := c.Multi(session.World())
		m.Create("/a/b/never", nil, session.Persistent)
		tc.change(m)
		if _, err := m.Do(ctx); job.KindOf(err) != tc.want {
			t.Errorf("%s: got %v, want %v", what, err, tc.want)
		}
	}
	if stat, err := c.Exists(ctx, "/a/b/never"); err != nil || stat != nil {
		t.Errorf("a transaction that was refused has made a node: %v, %v", stat, err)
	}
	// Just under the limit the server still takes it.
	m = c.Multi(session.World())
	m.Set("/a", make([]byte, session.MaxRequest-1000), -1)
	if _, err := m.Do(ctx); err != nil || m.Size() > session.MaxRequest {
		t.Errorf("a request of %d bytes: %v", m.Size(), err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Get(canceled, "/a"); job.KindOf(err) != job.Interrupted {
		t.Errorf("a read whose caller has left: %v", err)
	}
	if !errors.Is(func() error { _, err := c.Get(ctx, "/c"); return err }(), session.ErrNoNode) {
		t.Errorf("ZooKeeper's own answer is not found in the error")
	}
}

// TestNewSession stops the only server for longer than the session lasts.
func TestNewSession(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	c := dial(t, z.Servers())
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, lost := c.Epoch()
	z.Kill(0)
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	m := c.Multi(session.World())
	m.Create("/a", nil, session.Persistent)
	if _, err := m.Do(short); err == nil {
		t.Errorf("a change was made without a server")
	}
	<-lost // given up after two timeouts
	z.Start(0)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, _ := c.Epoch(); after == before {
		t.Errorf("it is another session, and the same epoch %d", after)
	}
	if _, err := c.Exists(t.Context(), "/zookeeper"); err != nil {
		t.Errorf("the new session: %v", err)
	}
}

// TestWatchesOutliveConnections cuts the connection again and again under load: what was
// changed meanwhile is told to who watches it, and before any answer shows it.
func TestWatchesOutliveConnections(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	proxy := testserver.NewProxy(t, z.Servers()[0])
	c, other := dialFor(t, []string{proxy.Addr()}, 10*time.Second), dialFor(t, z.Servers(), 10*time.Second)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	if err := other.EnsurePath(ctx, "/watched", session.World()); err != nil {
		t.Fatal(err)
	}
	type watch struct {
		version int32
		told    <-chan session.Event
	}
	var watched atomic.Pointer[watch]
	for range 32 {
		load.Go(func() {
			for ctx.Err() == nil {
				w := watched.Load()
				node, err := c.Get(ctx, "/watched")
				if err != nil || w == nil || node.Stat.Version <= w.version {
					continue
				}
				select {
				case <-w.told:
				default:
					t.Errorf("an answer shows version %d, and the watch since version %d has told nothing", node.Stat.Version, w.version)
				}
			}
		})
	}
	before, _ := c.Epoch()
	for round := range 3 {
		node, told, err := c.GetWatched(ctx, "/watched")
		if err != nil {
			t.Fatal(err)
		}
		watched.Store(&watch{node.Stat.Version, told})
		proxy.Sever(true)
		m := other.Multi(session.World())
		m.Set("/watched", []byte{byte(round)}, -1)
		if _, err := m.Do(ctx); err != nil {
			t.Fatal(err)
		}
		proxy.Sever(false)
		select {
		case <-told:
		case <-time.After(20 * time.Second):
			t.Fatalf("round %d: the change was not told", round)
		}
	}
	if after, _ := c.Epoch(); after != before {
		t.Errorf("the session was lost: %d, %d", before, after)
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	c := dial(t, []string{"127.0.0.1:1"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := c.Ready(ctx); job.KindOf(err) != job.Unavailable {
		t.Errorf("nobody is there: %v", err)
	}
}

// TestQuota has a server refuse a change with a code that the library has no name for: nothing
// was done, and to send it again is of no use.
func TestQuota(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true, Java: []string{"-Dzookeeper.enforceQuota=true"}})
	c, ctx := dialFor(t, z.Servers(), 10*time.Second), t.Context()
	if err := c.EnsurePath(ctx, "/full", session.World()); err != nil {
		t.Fatal(err)
	}
	m := c.Multi(session.World())
	m.Create("/zookeeper/quota/full", nil, session.Persistent)
	m.Create("/zookeeper/quota/full/zookeeper_limits", []byte("count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1"), session.Persistent)
	m.Create("/zookeeper/quota/full/zookeeper_stats", []byte("count=1,bytes=0"), session.Persistent)
	if _, err := m.Do(ctx); err != nil {
		t.Fatal(err)
	}
	m = c.Multi(session.World())
	m.Create("/full/one more", nil, session.Persistent)
	if _, err := m.Do(ctx); job.KindOf(err) != job.Unavailable || session.Lost(err) {
		t.Errorf("a node above the quota: %v (%v, lost: %v), want it refused", err, job.KindOf(err), session.Lost(err))
	}
}

// TestLargeList lists more names than ZooKeeper's own clients take at once.
func TestLargeList(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	c := dialFor(t, z.Servers(), 10*time.Second)
	if err := c.EnsurePath(t.Context(), "/many", session.World()); err != nil {
		t.Fatal(err)
	}
	const nodes, each, name = 6000, 500, 200
	for range nodes / each {
		m := c.Multi(session.World())
		for range each {
			m.Create("/many/"+strings.Repeat("n", name), nil, session.Persistent|session.Sequential)
		}
		if _, err := m.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := c.List(t.Context(), "/many")
	if err != nil || len(folder.Names) != nodes {
		t.Errorf("%d names of %d, in about %d bytes: %v", len(folder.Names), nodes, nodes*(name+14), err)
	}
}
