package store_test

import (
	"context"
	"net"
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

// persist repeats an op until it is known what became of it, as a host does.
func (k *desk) persist(op *driver.Op) driver.Result {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		r := k.driver.Apply(ctx, k.name, []driver.Op{*op})[0]
		cancel()
		switch r.Kind {
		case job.Unavailable, job.OutcomeUnknown, job.Interrupted:
			time.Sleep(20 * time.Millisecond)
			if k.Context().Err() != nil {
				return r
			}
		default:
			return r
		}
	}
}

// A deed is what one worker was told.
type deed struct {
	id       job.ID
	ended    bool // it was told that it consumed the job
	lost     bool // it was told that it had lost it
	acquired bool
}

// toil posts, claims and consumes until stop, and returns what it was told.
func (k *desk) toil(stop <-chan struct{}) []deed {
	var deeds []deed
	for n := 0; ; n++ {
		select {
		case <-stop:
			return deeds
		default:
		}
		d := deed{id: job.ID(random16())}
		p := &driver.Posting{ID: d.id, Name: text("job %d", n), Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
		if r := k.persist(&driver.Op{Kind: driver.Post, Job: d.id, Posting: p, Event: job.Posted, Request: random16()}); r.Kind != job.NoKind {
			k.Errorf("a post got %v (%s)", r.Kind, r.Message)
			return deeds
		}
		claim := claimOp(d.id, "worker", time.Minute)
		claim.Request, claim.Claim.Remember = random16(), n%2 == 0
		r := k.persist(&claim)
		if r.Kind != job.NoKind || len(r.Claims) != 1 {
			k.Errorf("nobody else wants the job, and a claim got %v (%s), passed over %+v", r.Kind, r.Message, r.Gone)
			deeds = append(deeds, d)
			continue
		}
		d.acquired = true
		if n%3 != 0 {
			remove := byToken(driver.Remove, r.Claims[0], job.ConsumedEvent)
			remove.Request = random16()
			r := k.persist(&remove)
			d.ended, d.lost = r.Kind == job.NoKind, r.Kind == job.LeaseLost
			if !d.ended {
				k.Errorf("a consumption got %v (%s)", r.Kind, r.Message)
			}
		}
		deeds = append(deeds, d)
	}
}

// through lets workers work while something happens, and checks afterwards that
// the store is as they were told.
func (k *desk) through(happen func()) {
	k.Helper()
	const workers = 8
	stop := make(chan struct{})
	deeds := make([][]deed, workers)
	var group sync.WaitGroup
	for i := range deeds {
		group.Go(func() { deeds[i] = k.toil(stop) })
	}
	happen()
	close(stop)
	group.Wait()
	n := 0
	for _, list := range deeds {
		for _, d := range list {
			n++
			want := job.Claimed
			if d.ended {
				want = job.Complete
			}
			if !d.lost && d.acquired {
				k.state(d.id, want, "as its worker was told")
			}
		}
	}
	if n == 0 {
		k.Errorf("nobody has done anything")
	}
	k.Logf("%d jobs", n)
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

// TestMinority has one server of three: it answers nobody.
func TestMinority(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3, Fast: true})
	k := sit(t, openWith(t, settingsOf(z.Servers(), map[string]any{"session_timeout": "2s"})), "/taskflow/jobs", nil)
	z.Kill(0)
	z.Kill(1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	op := driver.Op{Kind: driver.Remove, Job: job.ID(random16()), Request: random16()}
	if r := k.driver.Apply(ctx, k.name, []driver.Op{op})[0]; r.Kind == job.NoKind {
		t.Errorf("a minority changed something: %+v", r)
	}
	z.Start(0)
	id := job.ID(random16())
	p := &driver.Posting{ID: id, Name: "after", Encoding: job.JSON, Details: []byte(`{}`)}
	if r := k.persist(&driver.Op{Kind: driver.Post, Job: id, Posting: p, Request: random16()}); r.Kind != job.NoKind {
		t.Errorf("with a majority: %v (%s)", r.Kind, r.Message)
	}
}
