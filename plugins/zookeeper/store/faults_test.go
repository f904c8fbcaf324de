package store_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A proxy stands between a driver and a server, and can be cut.
type proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	deaf  bool // connections stay, and nothing comes through
	conns map[net.Conn]bool
	group sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, to: to, conns: map[net.Conn]bool{}}
	p.group.Go(p.serve)
	t.Cleanup(func() {
		_ = listener.Close()
		p.sever(true)
		p.group.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		to, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.to)
		p.mu.Lock()
		if err != nil || p.cut {
			_ = from.Close()
			if to != nil {
				_ = to.Close()
			}
			p.mu.Unlock()
			continue
		}
		p.conns[from], p.conns[to] = true, true
		p.mu.Unlock()
		p.group.Go(func() { p.pass(from, to) })
		p.group.Go(func() { p.pass(to, from) })
	}
}

// pass carries bytes until one side ends.
func (p *proxy) pass(to, from net.Conn) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		deaf := p.deaf
		p.mu.Unlock()
		if n > 0 && !deaf {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// sever ends every connection, and refuses new ones while cut.
func (p *proxy) sever(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) setDeaf(deaf bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = deaf
}

// TestCutConnection cuts the connection again and again, so that answers are
// lost of changes that were made.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	p := newProxy(t, z.Servers()[0])
	k := sit(t, openWith(t, settingsOf([]string{p.addr()}, nil)), "/taskflow/jobs", nil)
	k.watch()
	k.through(func() {
		for range 10 {
			time.Sleep(300 * time.Millisecond)
			p.sever(false)
		}
	})
	id := k.post("after", `{}`, nil)
	k.sees(id, job.Unclaimed, "a job was posted after all that")
}

// TestLostSession keeps the driver away until its session has expired.
func TestLostSession(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	p := newProxy(t, z.Servers()[0])
	d := openWith(t, settingsOf([]string{p.addr()}, map[string]any{"session_timeout": "1s"}))
	k := sit(t, d, "/taskflow/jobs", nil)
	generation := k.status.Generation
	k.through(func() {
		p.sever(true)
		time.Sleep(5 * time.Second) // ZooKeeper forgets a session two ticks after its timeout
		p.sever(false)
		time.Sleep(time.Second)
	})
	k.open()
	if k.status.Loss != "" || k.status.Generation != generation {
		t.Errorf("only the session was lost, and the board says %q at generation %d", k.status.Loss, k.status.Generation)
	}
	k.watch()
	id := k.post("after", `{}`, nil)
	k.sees(id, job.Unclaimed, "a job was posted after all that")
}

// TestDeafServer has a connection through which nothing comes any more.
func TestDeafServer(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	p := newProxy(t, z.Servers()[0])
	k := sit(t, openWith(t, settingsOf([]string{p.addr()}, map[string]any{"session_timeout": "2s"})), "/taskflow/jobs", nil)
	k.through(func() {
		time.Sleep(300 * time.Millisecond)
		p.setDeaf(true)
		time.Sleep(3 * time.Second)
		p.setDeaf(false)
		p.sever(false)
		time.Sleep(time.Second)
	})
}

// TestEnsemble kills the leader of three servers, and then another one, under
// load. Everything is written to the disk as in earnest.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	k.watch()
	k.through(func() {
		time.Sleep(time.Second)
		for range 2 {
			victim := max(z.Leader(), 0)
			z.Kill(victim)
			time.Sleep(2 * time.Second)
			z.Start(victim)
			time.Sleep(time.Second)
		}
	})
	id := k.post("after", `{}`, nil)
	k.sees(id, job.Unclaimed, "a job was posted after all that")
	if k.status.Durability != driver.Replicated {
		t.Errorf("three servers are %q", k.status.Durability)
	}
}

// TestServerRestart kills the only server under load: nothing that was
// acknowledged is lost.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	k.through(func() {
		time.Sleep(time.Second)
		z.Kill(0)
		time.Sleep(time.Second)
		z.Start(0)
		time.Sleep(time.Second)
	})
	k.open()
	if k.status.Loss != "" {
		t.Errorf("the server came back with everything, and the board says %q", k.status.Loss)
	}
}

// TestReadOnlyServer leaves one server of three, which then serves whoever only
// wants to read: boardd does not take it for the ensemble.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	minority(t, testserver.ZooKeeperOptions{Members: 3, Fast: true, Java: []string{"-Dreadonlymode.enabled=true"}}, "read-only")
}

// TestMinority leaves one server of three under load: it answers nobody.
func TestMinority(t *testing.T) {
	t.Parallel()
	minority(t, testserver.ZooKeeperOptions{Members: 3, Fast: true}, "not currently serving")
}

func minority(t *testing.T, o testserver.ZooKeeperOptions, says string) {
	t.Helper()
	z := testserver.ZooKeeper(t, o)
	k := sit(t, openWith(t, settingsOf(z.Servers(), map[string]any{"session_timeout": "2s"})), "/taskflow/jobs", nil)
	k.through(func() {
		time.Sleep(500 * time.Millisecond)
		z.Kill(0)
		z.Kill(1)
		k.until("the last server says "+says, func() bool { return strings.Contains(z.Says(2, "srvr"), says) })
		id := job.ID(random16())
		p := &driver.Posting{ID: id, Name: "never", Encoding: job.JSON, Details: []byte(`{}`)}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		op := driver.Op{Kind: driver.Post, Job: id, Posting: p, Request: random16()}
		if r := k.driver.Apply(ctx, k.name, []driver.Op{op})[0]; r.Kind == job.NoKind {
			t.Errorf("a minority has changed something: %+v", r)
		}
		z.Start(0)
		if r := k.persist(&op); r.Kind != job.NoKind {
			t.Errorf("with a majority: %v (%s)", r.Kind, r.Message)
		}
	})
}

// TestHungLeader stops the leader of three servers without a word, under load,
// and lets it go on when there is another one.
func TestHungLeader(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3, Fast: true, Config: []string{"syncLimit=4"}})
	k := sit(t, openWith(t, settingsOf(z.Servers(), map[string]any{"session_timeout": "4s"})), "/taskflow/jobs", nil)
	k.through(func() {
		time.Sleep(500 * time.Millisecond)
		leader := z.Leader()
		if leader < 0 {
			t.Error("nobody leads")
			return
		}
		z.Pause(leader)
		time.Sleep(4 * time.Second)
		z.Resume(leader)
		time.Sleep(time.Second)
	})
}
