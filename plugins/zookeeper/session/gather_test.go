package session

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// countedConn counts the calls that would be system calls.
type countedConn struct {
	net.Conn

	mu            sync.Mutex
	reads, writes int
}

func (c *countedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	return c.Conn.Read(p)
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.writes++
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// TestGather sends many small pieces while the other side is slow: they arrive
// whole, in order, and in few calls; so do the answers.
func TestGather(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	counted := &countedConn{Conn: near}
	g := gather(counted)
	const pieces = 1000
	var sent []byte
	for i := range pieces {
		piece := []byte{byte(i), byte(i >> 8), 7}
		sent = append(sent, piece...)
		if n, err := g.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("what was sent did not arrive as it was: %v", err)
	}
	go func() { _, _ = far.Write(sent) }() // the check below sees whether it came
	for i := range pieces {
		piece := make([]byte, 3)
		if _, err := io.ReadFull(g, piece); err != nil || !bytes.Equal(piece, sent[3*i:3*i+3]) {
			t.Fatalf("piece %d: %v, %v", i, piece, err)
		}
	}
	counted.mu.Lock()
	defer counted.mu.Unlock()
	if counted.writes > 3 || counted.reads > 3 {
		t.Errorf("%d pieces took %d writes and %d reads, want few", pieces, counted.writes, counted.reads)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := g.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write after the end: %v", err)
	}
}

// TestGatherDeadlines ends what takes too long, and with it the connection.
func TestGatherDeadlines(t *testing.T) {
	t.Parallel()
	near, _ := net.Pipe()
	g := gather(near)
	_ = g.SetReadDeadline(time.Now().Add(-time.Second)) // never fails
	if _, err := g.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("a read past its deadline: %v", err)
	}
	_ = g.SetDeadline(time.Now().Add(-time.Second))
	_ = g.SetWriteDeadline(time.Time{}) // as the library does after each write
	if _, err := g.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	g.sender.Wait() // it gives up
	if _, err := g.Write([]byte{1}); !isTimeout(err) {
		t.Errorf("a write after one that could not be sent: %v", err)
	}
	_ = g.SetReadDeadline(time.Time{})
	if _, err := g.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a read of a connection that is given up: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestGatherWaits bounds what may wait to be sent.
func TestGatherWaits(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	g := gather(near)
	done := make(chan error, 1)
	go func() {
		var err error
		for range 5 {
			if _, e := g.Write(make([]byte, mayWait)); e != nil {
				err = e
			}
		}
		done <- err
	}()
	g.mu.Lock()
	waiting := len(g.out)
	g.mu.Unlock()
	if waiting > 2*mayWait {
		t.Errorf("%d bytes wait", waiting)
	}
	n, err := io.CopyN(io.Discard, far, 5*mayWait)
	if e := <-done; e != nil || err != nil {
		t.Errorf("%d bytes came: %v, %v", n, e, err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestGatherOne: the library leaves a connection open on which a server said that the session has
// expired, and dials again. The one before is closed then.
func TestGatherOne(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dial := (&Client{}).gathering(new(atomic.Bool))
	var far [2]net.Conn
	for n := range far {
		near, err := dial("tcp", listener.Addr().String(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		if far[n], err = listener.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	if err := far[0].SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := far[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the first connection is open beside the second one: %v", err)
	}
}
