package session

import (
	"bufio"
	"net"
	"runtime"
	"sync"
	"time"
)

// How much of a connection is read and written at once.
const (
	readAtOnce = 64 << 10
	mayWait    = 1 << 20 // bytes that are not sent yet; whoever has more waits
)

// A gatherer is a connection on which requests that come while others are being
// sent travel together, and as many answers as have come are read at once. The
// library makes a system call for each request and two for each answer, which is
// most of what a request costs this side when hundreds are under way.
//
// A request counts as sent when Write returns; if it cannot be sent the
// connection is closed, as the library does, and its answer never comes.
type gatherer struct {
	net.Conn
	in     *bufio.Reader
	readBy time.Time // for the reads to come; used by the one goroutine that reads

	mu      sync.Mutex
	moved   sync.Cond // out has room again, or something to send, or the end has come
	out     []byte
	writeBy time.Time
	failed  error
	ended   bool
	sender  sync.WaitGroup
}

func gather(conn net.Conn) *gatherer {
	g := &gatherer{Conn: conn}
	g.moved.L = &g.mu
	g.in = bufio.NewReaderSize(reads{g}, readAtOnce)
	g.sender.Go(g.send)
	return g
}

// reads are the reads that really happen. A deadline is only set for them.
type reads struct{ g *gatherer }

// Read reads what has come.
func (r reads) Read(p []byte) (int, error) {
	if err := r.g.Conn.SetReadDeadline(r.g.readBy); err != nil {
		return 0, err
	}
	return r.g.Conn.Read(p)
}

// Read returns what has come.
func (g *gatherer) Read(p []byte) (int, error) { return g.in.Read(p) }

// SetReadDeadline bounds the reads to come.
func (g *gatherer) SetReadDeadline(t time.Time) error {
	g.readBy = t
	return nil
}

// SetWriteDeadline bounds the sending of what is written from now on; the zero
// time, which the library sets when a Write has returned, leaves it as it is.
func (g *gatherer) SetWriteDeadline(t time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !t.IsZero() {
		g.writeBy = t
	}
	return nil
}

// SetDeadline is both.
func (g *gatherer) SetDeadline(t time.Time) error {
	_ = g.SetReadDeadline(t) // neither fails
	return g.SetWriteDeadline(t)
}

// Write hands p to the goroutine that sends.
func (g *gatherer) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.out) > mayWait && !g.ended {
		g.moved.Wait()
	}
	if g.ended {
		if g.failed != nil {
			return 0, g.failed
		}
		return 0, net.ErrClosed
	}
	g.out = append(g.out, p...)
	g.moved.Broadcast()
	return len(p), nil
}

// send sends what was written until the end.
func (g *gatherer) send() {
	var spare []byte
	for {
		g.mu.Lock()
		for len(g.out) == 0 && !g.ended {
			g.moved.Wait()
		}
		ended := g.ended
		g.mu.Unlock()
		if ended {
			return
		}
		runtime.Gosched() // others whom the last answers woke join this one
		g.mu.Lock()
		batch, by := g.out, g.writeBy
		g.out = spare[:0]
		g.moved.Broadcast()
		g.mu.Unlock()
		err := g.Conn.SetWriteDeadline(by)
		if err == nil {
			_, err = g.Conn.Write(batch)
		}
		if err != nil {
			g.end(err)
			return
		}
		spare = batch
		if cap(spare) > mayWait {
			spare = nil
		}
	}
}

// end closes the connection, which ends the reads as well.
func (g *gatherer) end(why error) {
	g.mu.Lock()
	if !g.ended {
		g.ended, g.failed = true, why
		g.moved.Broadcast()
	}
	g.mu.Unlock()
	_ = g.Conn.Close() // whatever it says, nothing more goes through it
}

// Close ends the connection. What was written and not sent is lost, as it may be
// on its way in any case.
func (g *gatherer) Close() error {
	g.end(nil)
	g.sender.Wait()
	return nil
}
