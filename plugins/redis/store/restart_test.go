package store_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestNobodyRemembers restarts the server and every host, none of which has kept
// a memory: it can't be told whether anything was lost, and the first says so.
func TestNobodyRemembers(t *testing.T) {
	t.Parallel()
	server, save, restart := rolledBack(t)
	b := newBench(t, server, nil)
	c := b.claim(b.post("kept"), "w")
	save()
	again := newBench(t, server, nil)
	if again.open.Loss != "" {
		t.Errorf("nothing was restarted, and a host without a memory is told %q", again.open.Loss)
	}
	for _, h := range []*bench{b, again} {
		if err := h.d.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	restart()
	observer := newBench(t, server, func(s *driver.BoardSpec) { s.Observe = true })
	first := newBench(t, server, nil)
	for name, h := range map[string]*bench{"one that only observes": observer, "the first": first} {
		if !strings.Contains(h.open.Loss, "cannot be told") || h.open.Generation != 1 {
			t.Errorf("%s: generation %d, loss %q; want 1, and that it cannot be told", name, h.open.Generation, h.open.Loss)
		}
	}
	first.reopen()
	if second := newBench(t, server, nil); first.open.Loss != "" || second.open.Loss != "" {
		t.Errorf("told once more: %q, %q", first.open.Loss, second.open.Loss)
	}
	first.must(tokenOp(driver.Remove, c)) // what was not lost is as good as before
}

// TestRestartEndsWatch opens a board again while it is watched, as hosts do each minute. A
// restart ends the watch all the same: nobody would look at the board again otherwise.
func TestRestartEndsWatch(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	b := newBench(t, server, nil)
	kept := b.claim(b.post("kept"), "w")
	began, ended := make(chan struct{}), make(chan error, 1)
	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); watching.Wait() })
	watching.Go(func() {
		first := sync.OnceFunc(func() { close(began) })
		for _, err := range b.d.Watch(ctx, b.board, 0) {
			if err != nil {
				ended <- err
			}
			first()
		}
	})
	<-began
	b.reopen()
	server.Kill()
	server.Restart()
	select {
	case err := <-ended:
		if job.KindOf(err) != job.Unavailable {
			t.Errorf("the watch ends with %v, want UNAVAILABLE", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the watch goes on though the board has to be opened again")
	}
	b.refusedUntilOpened(tokenOp(driver.Extend, kept)) // before, the first one may be what finds out, and its outcome unknown
	b.reopen()
	b.must(tokenOp(driver.Extend, kept))
}

// A relay passes what it gets on to a server, and connects anew behind its
// client's back when the server was away. So the client never learns of that
// from a connection, as one does not whose op was on its way to another one.
type relay struct {
	to   string
	addr string
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		work.Wait()
	})
	r := &relay{to: to, addr: l.Addr().String()}
	work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { _ = client.Close() })
			work.Go(func() {
				defer stop()
				r.serve(ctx, client)
			})
		}
	})
	return r
}

// serve sends each piece that the client writes to the server as it is now.
func (r *relay) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	var server net.Conn
	var gone chan struct{} // closed when the server has closed this connection
	var answers sync.WaitGroup
	defer answers.Wait()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			if server != nil {
				_ = server.Close()
			}
			return
		}
		if server != nil {
			select {
			case <-gone:
				server = nil
			default:
			}
		}
		if server == nil {
			if server, err = (&net.Dialer{}).DialContext(ctx, "tcp", r.to); err != nil {
				return
			}
			gone = make(chan struct{})
			from, closed := server, gone
			answers.Go(func() {
				defer close(closed)
				defer from.Close()
				_, _ = io.Copy(client, from)
			})
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestGoneBeyond has another host go on, after a rollback, beyond everything that
// a host has seen which does not know yet that there was one.
func TestGoneBeyond(t *testing.T) {
	t.Parallel()
	server, save, restart := rolledBack(t)
	d := openAt(t, newRelay(t, server.Addr).addr)
	t.Cleanup(func() { _ = d.Close() })
	a := &bench{T: t, d: d, board: "b", spec: driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"octavia_jobboard"}`)}}
	a.reopen()
	kept := a.post("kept")
	save()
	lost := a.claim(a.post("lost"), "w")
	restart()
	b := newBench(t, server, nil)
	for range 5 {
		b.post("in its place")
	}
	if b.open.Position >= lost.Position || b.open.Generation != 1 {
		t.Fatalf("the other host begins at %d in generation %d", b.open.Position, b.open.Generation)
	}
	testserver.Eventually(t, "the relay has seen the restart", func() bool { return d.Health(t.Context()) == nil })
	a.refusedUntilOpened(driver.Op{Kind: driver.Update, Job: kept, Status: &[]byte{'x'}})
	if rec := b.read(kept); rec.Version != 1 {
		t.Errorf("a host that did not know of the rollback has changed a job: %+v", rec)
	}
	a.reopen()
	if a.open.Loss == "" || a.open.Generation != 2 {
		t.Errorf("opened after all: generation %d, loss %q", a.open.Generation, a.open.Loss)
	}
	if r := b.do(driver.Op{Kind: driver.Update, Job: kept, Status: &[]byte{'x'}}); r.Kind != job.Unavailable {
		t.Errorf("the other host, which has not heard of the loss: %v, want UNAVAILABLE", r.Kind)
	}
}
