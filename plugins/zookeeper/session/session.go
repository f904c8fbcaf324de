// Package session keeps a session with ZooKeeper for as long as its owner wants
// one: many requests in flight on one connection, each bounded by its caller's
// context, every error as a job.Error that says whether something was changed,
// and a new session where the old one is lost.
package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/sdk/job"
)

// Config says how to reach ZooKeeper.
type Config struct {
	Servers []string      // HOST:PORT
	Chroot  string        // put before every path; empty: none
	Timeout time.Duration // of the session
	Scheme  string        // of Credentials, such as "digest"; empty: no authentication
	Secret  string        // the credentials, such as "user:password"
	TLS     *tls.Config   // nil: no TLS
	Logger  *slog.Logger
}

// Limits on what is sent and on what may wait.
const (
	// MaxRequest is what one request may hold, in bytes. A server closes the
	// connection over more than jute.maxbuffer, which is 1,048,575 unless set.
	MaxRequest = 1_000_000

	// MaxInFlight is how many requests may be under way at once.
	MaxInFlight = 512

	// overhead is what a request and each of its parts take besides paths and
	// data, at most, with room for an ACL.
	overhead = 256
)

// Client is a session with ZooKeeper, and the one after it. All methods may be
// called from many goroutines at once.
type Client struct {
	config Config
	slots  chan struct{}
	closed chan struct{}
	done   sync.WaitGroup

	mu      sync.Mutex
	conn    *zk.Conn
	authed  chan struct{} // closed when conn's credentials were given
	watched *atomic.Bool  // a node was ever watched on conn
	up      bool          // the session is there, as far as is known
	session int64         // its id
	epoch   uint64        // counts sessions
	reached uint64        // counts how often a server has taken a session, the same one or another
	lost    chan struct{} // closed when the session of this epoch is lost
	downAt  time.Time     // since when there is no connection
	changed chan struct{} // closed at the next change of the above
}

// Dial begins a session. It does not wait for it: see Ready.
func Dial(c Config) (*Client, error) {
	cl := &Client{
		config: c, slots: make(chan struct{}, MaxInFlight), closed: make(chan struct{}),
		lost: make(chan struct{}), changed: make(chan struct{}), downAt: time.Now(),
	}
	cl.mu.Lock()
	err := cl.dial()
	cl.mu.Unlock()
	if err != nil {
		return nil, err
	}
	cl.done.Go(cl.watchdog)
	return cl, nil
}

// dial makes a new connection, with no memory of an old one. Where it fails the old one
// stays. cl.mu is held.
func (cl *Client) dial() error {
	var conn *zk.Conn
	var known sync.WaitGroup
	known.Add(1)
	callback := func(e zk.Event) {
		if e.Type == zk.EventSession {
			known.Wait()
			cl.stateChanged(conn, e.State)
		}
	}
	watched := new(atomic.Bool)
	conn, _, err := zk.Connect(cl.config.Servers, cl.config.Timeout,
		zk.WithDialer(cl.gathering(watched)), zk.WithEventCallback(callback),
		zk.WithLogger(logger{cl.config.Logger}), zk.WithLogInfo(false), zk.WithMaxBufferSize(maxReply))
	if err != nil {
		known.Done()
		return &job.Error{Kind: job.Unavailable, Message: "ZooKeeper cannot be reached", Err: err}
	}
	authed := make(chan struct{})
	cl.conn, cl.authed, cl.watched = conn, authed, watched
	known.Done()
	if cl.config.Scheme == "" {
		close(authed)
	} else {
		cl.done.Go(func() {
			defer close(authed)
			cl.identify(conn)
		})
	}
	return nil
}

// identify gives conn's credentials until a server has answered. The library gives them again
// on its later connections, but only those that a server has taken once.
func (cl *Client) identify(conn *zk.Conn) {
	for {
		err := conn.AddAuth(cl.config.Scheme, []byte(cl.config.Secret))
		if err == nil {
			return
		}
		if !errors.Is(err, zk.ErrNoServer) && !lostConnection(err) {
			cl.config.Logger.Error("ZooKeeper did not take the credentials", "scheme", cl.config.Scheme, "error", err)
			return
		}
		cl.mu.Lock()
		replaced := conn != cl.conn
		cl.mu.Unlock()
		select {
		case <-cl.closed:
			return
		default:
		}
		if replaced {
			return
		}
	}
}

// maxReply bounds what a server may send at once: the names in a folder of a
// million jobs.
const maxReply = 64 << 20

// gathering reaches a server for the library. A connection in place of one on which a
// node was watched is a resumed one. The one before is closed: the library, which has one
// at a time, leaves it open where a server said that the session has expired.
func (cl *Client) gathering(watched *atomic.Bool) zk.Dialer {
	dial := cl.dialer()
	var before *gatherer
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		if before != nil {
			_ = before.Close() // it may have been
			before = nil
		}
		conn, err := dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		before = gather(conn)
		if watched.Load() {
			return resume(before), nil
		}
		return before, nil
	}
}

func (cl *Client) dialer() zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		if cl.config.TLS == nil {
			return (&net.Dialer{Timeout: timeout}).DialContext(context.Background(), network, address)
		}
		config := cl.config.TLS.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(address)
		}
		// A handshake with a server under load takes longer than to reach it.
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * timeout}, Config: config}
		ctx, cancel := context.WithTimeout(context.Background(), 5*timeout)
		defer cancel()
		return dialer.DialContext(ctx, network, address)
	}
}

// stateChanged is called by the library, which waits for it.
func (cl *Client) stateChanged(conn *zk.Conn, state zk.State) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if conn != cl.conn {
		return // a connection that was given up
	}
	switch state {
	case zk.StateHasSession:
		if id := conn.SessionID(); id != cl.session {
			cl.renew(id)
		}
		cl.up = true
		cl.reached++
	case zk.StateExpired:
		cl.renew(0)
		cl.up = false
	case zk.StateDisconnected:
		if cl.up {
			cl.downAt = time.Now()
		}
		cl.up = false
	default:
		return
	}
	cl.announce()
}

// watches notes that a node is watched on conn, unless err says that it is not.
func (cl *Client) watches(conn *zk.Conn, err error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if err == nil && conn == cl.conn {
		cl.watched.Store(true)
	}
}

// renew notes that the session is another one.
func (cl *Client) renew(id int64) {
	if cl.session != 0 || id == 0 {
		close(cl.lost)
		cl.lost = make(chan struct{})
	}
	cl.session = id
	cl.epoch++
	if id == 0 {
		cl.downAt = time.Now()
	}
}

func (cl *Client) announce() {
	close(cl.changed)
	cl.changed = make(chan struct{})
}

// watchdog gives up a connection that does not come back in two session
// timeouts, by when the session is lost anyhow, and makes a new one: the
// library would go on to ask for a state that is not behind what it has seen,
// and after a restore no server has one; and it would not look its servers'
// names up again.
func (cl *Client) watchdog() {
	tick := time.NewTicker(max(cl.config.Timeout/4, 50*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-cl.closed:
			return
		case <-tick.C:
		}
		cl.mu.Lock()
		var old *zk.Conn
		if !cl.up && time.Since(cl.downAt) > 2*cl.config.Timeout {
			old = cl.conn
			if cl.session != 0 {
				cl.renew(0)
			}
			cl.downAt = time.Now()
			if err := cl.dial(); err != nil {
				cl.config.Logger.Warn("a new connection to ZooKeeper cannot be made", "error", err)
				old = nil // which is kept
			}
			cl.announce()
		}
		cl.mu.Unlock()
		if old != nil {
			old.Close()
		}
	}
}

// Epoch returns a number that changes whenever a session is lost, and what is
// closed when that happens next.
func (cl *Client) Epoch() (uint64, <-chan struct{}) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.epoch, cl.lost
}

// Reached returns a number that changes whenever a server has taken a session, also the one that
// was there: ZooKeeper may have been put back in between to a state that has the session.
func (cl *Client) Reached() uint64 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.reached
}

// SessionID returns the session's id, as ephemeral nodes name their owner.
func (cl *Client) SessionID() int64 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.session
}

// Ready waits until there is a session.
func (cl *Client) Ready(ctx context.Context) error {
	for {
		cl.mu.Lock()
		up, changed := cl.up, cl.changed
		cl.mu.Unlock()
		if up {
			return nil
		}
		select {
		case <-changed:
		case <-cl.closed:
			return errClosed()
		case <-ctx.Done():
			return unavailable(ctx, "there is no connection to ZooKeeper at "+strings.Join(cl.config.Servers, ", "))
		}
	}
}

// Close ends the session and waits for what Dial started.
func (cl *Client) Close() {
	cl.mu.Lock()
	conn := cl.conn
	select {
	case <-cl.closed:
		cl.mu.Unlock()
		return
	default:
	}
	close(cl.closed)
	cl.mu.Unlock()
	conn.Close()
	cl.done.Wait()
}

func errClosed() error { return job.Errorf(job.Unavailable, "the session with ZooKeeper is closed") }

// unavailable is for what was not begun.
func unavailable(ctx context.Context, message string) error {
	if err := context.Cause(ctx); errors.Is(err, context.Canceled) {
		return &job.Error{Kind: job.Interrupted, Message: message, Err: err}
	}
	return &job.Error{Kind: job.Unavailable, Message: message, Err: ctx.Err()}
}

// logger hands the library's lines on.
type logger struct{ to *slog.Logger }

// Printf writes one line.
func (l logger) Printf(format string, args ...any) {
	l.to.Debug("the ZooKeeper library says something", "text", fmt.Sprintf(format, args...))
}
