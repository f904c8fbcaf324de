package api

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// tlsHandshake is the first byte of what a TLS client says (RFC 8446, 5.1).
	tlsHandshake = 22

	// hearOut is for how long who speaks plain HTTP to a port of TLS is read from
	// after the answer, and hearOutBytes how much.
	hearOut      = 500 * time.Millisecond
	hearOutBytes = 256 << 10
)

// secured is a listener of a port that speaks TLS. net/http answers plain HTTP there with
// what is wrong, and closes before it has read the request to its end, which resets the
// connection: the answer is lost then where the reset is faster than its reader. These
// connections are heard out first.
type secured struct{ net.Listener }

// Accept takes a connection.
func (s secured) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &securedConn{Conn: conn}, nil
}

type securedConn struct {
	net.Conn

	heard           bool // Read's own: one goroutine reads a connection
	plain, answered atomic.Bool
}

// Read notes what the client speaks.
func (c *securedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard {
		c.heard = true
		c.plain.Store(p[0] != tlsHandshake)
	}
	return n, err
}

// Write notes that the client was told something.
func (c *securedConn) Write(p []byte) (int, error) {
	if c.plain.Load() {
		c.answered.Store(true)
	}
	return c.Conn.Write(p)
}

// Close ends the connection, once who speaks no TLS has read the answer or has had the
// time to.
func (c *securedConn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.answered.Load() && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(hearOut))
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, hearOutBytes))
	}
	return c.Conn.Close()
}
