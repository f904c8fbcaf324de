package session

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/sdk/job"
)

// Stat is a node's.
type Stat = zk.Stat

// ACL is who may do what with a node.
type ACL = zk.ACL

// Event says that a watch fired, or that it is lost (Err).
type Event = zk.Event

// The answers of ZooKeeper that callers act on.
var (
	ErrNoNode     = zk.ErrNoNode
	ErrNodeExists = zk.ErrNodeExists
	ErrBadVersion = zk.ErrBadVersion
	ErrNotEmpty   = zk.ErrNotEmpty
)

// How often a request is made that cannot have done harm, and how long it waits
// for a connection before it is made again.
const (
	tries    = 4
	patience = 10 * time.Second
)

// run makes a request, and once more where that does no harm: when it was never
// sent, and if it only reads also when the connection is lost.
func run[V any](ctx context.Context, cl *Client, change bool, request func(*zk.Conn) (V, error)) (V, error) {
	for try := 1; ; try++ {
		value, err := once(ctx, cl, change, request)
		again := errors.Is(err, zk.ErrNoServer) || !change && errors.Is(err, zk.ErrConnectionClosed)
		if !again || try == tries || cl.soon(ctx) != nil {
			return value, err
		}
	}
}

// soon waits for a connection, but not for ever.
func (cl *Client) soon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return cl.Ready(ctx)
}

// once makes a request on a goroutine of its own, since the library waits for the
// answer whatever happens, and gives up waiting when ctx ends.
func once[V any](ctx context.Context, cl *Client, change bool, request func(*zk.Conn) (V, error)) (V, error) {
	var none V
	if err := ctx.Err(); err != nil {
		return none, &job.Error{Kind: job.Interrupted, Err: err}
	}
	select {
	case cl.slots <- struct{}{}:
	case <-cl.closed:
		return none, errClosed()
	case <-ctx.Done():
		return none, &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
	}
	cl.mu.Lock()
	conn, authed := cl.conn, cl.authed
	cl.mu.Unlock()
	type answer struct {
		value V
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		<-authed
		value, err := request(conn)
		<-cl.slots
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, classify(a.err, change)
	case <-ctx.Done():
	}
	kind := job.Interrupted
	if change {
		kind = job.OutcomeUnknown
	}
	return none, &job.Error{Kind: kind, Message: "ZooKeeper did not answer in time", Err: ctx.Err()}
}

// classify says of an error whether something was changed. ZooKeeper's own
// answers stay findable with errors.Is.
func classify(err error, change bool) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoServer), !change && lostConnection(err):
		return &job.Error{Kind: job.Unavailable, Message: "there is no connection to ZooKeeper", Err: err}
	case lostConnection(err):
		return &job.Error{Kind: job.OutcomeUnknown, Message: "the connection to ZooKeeper was lost before it answered", Err: err}
	case errors.Is(err, zk.ErrNoNode):
		return &job.Error{Kind: job.NotFound, Err: err}
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNotEmpty):
		return &job.Error{Kind: job.Aborted, Err: err}
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return &job.Error{Kind: job.Precondition, Message: "ZooKeeper does not permit it", Err: err}
	case errors.Is(err, zk.ErrInvalidPath):
		return &job.Error{Kind: job.Invalid, Message: "ZooKeeper takes no such path", Err: err}
	}
	return &job.Error{Kind: job.Unavailable, Message: "ZooKeeper refused", Err: err}
}

// Lost reports whether an error of a request says that its connection ended: behind the
// next one the request may be made again, or what became of it be looked for.
func Lost(err error) bool {
	failed, ok := errors.AsType[*job.Error](err)
	if !ok || failed.Err == nil {
		return false
	}
	return failed.Kind == job.OutcomeUnknown || failed.Kind == job.Unavailable && (errors.Is(err, zk.ErrNoServer) || lostConnection(failed.Err))
}

// lostConnection reports whether a request may or may not have been carried out.
func lostConnection(err error) bool {
	known := refused(err)
	for _, sure := range []error{
		zk.ErrAPIError, zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty,
		zk.ErrInvalidACL, zk.ErrInvalidFlags, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrSessionMoved,
	} {
		known = known || errors.Is(err, sure)
	}
	return !known
}

// refused reports whether an error is an answer that the library has no name for, such as that a
// quota is reached (-125) or that the server has too much to do (-127). The codes from -100 on
// downwards say that nothing was done; those above are of a server that has failed.
func refused(err error) bool {
	text, unnamed := strings.CutPrefix(err.Error(), "unknown error: ")
	code, wrong := strconv.Atoi(text)
	return unnamed && wrong == nil && code <= -100
}

// Conflict reports whether a Multi was refused since a node was not as it
// expected.
func Conflict(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) ||
		errors.Is(err, zk.ErrNotEmpty) || errors.Is(err, zk.ErrNoChildrenForEphemerals)
}

// NoNode reports whether the answer was that there is no such node.
func NoNode(err error) bool { return errors.Is(err, zk.ErrNoNode) }

// A Node is what Get returns.
type Node struct {
	Data []byte
	Stat *Stat
}

// Get reads a node.
func (cl *Client) Get(ctx context.Context, path string) (Node, error) {
	return run(ctx, cl, false, func(c *zk.Conn) (Node, error) {
		data, stat, err := c.Get(cl.config.Chroot + path)
		return Node{data, stat}, err
	})
}

// GetWatched reads a node and watches it.
func (cl *Client) GetWatched(ctx context.Context, path string) (Node, <-chan Event, error) {
	type watched struct {
		node  Node
		event <-chan Event
	}
	w, err := run(ctx, cl, false, func(c *zk.Conn) (watched, error) {
		data, stat, event, err := c.GetW(cl.config.Chroot + path)
		cl.watches(c, err)
		return watched{Node{data, stat}, event}, err
	})
	return w.node, w.event, err
}

// A Folder is what List returns. Event is nil where no watch was asked for.
type Folder struct {
	Names []string
	Stat  *Stat
	Event <-chan Event
}

// List returns the names in a folder, in no order.
func (cl *Client) List(ctx context.Context, path string) (Folder, error) {
	return run(ctx, cl, false, func(c *zk.Conn) (Folder, error) {
		names, stat, err := c.Children(cl.config.Chroot + path)
		return Folder{Names: names, Stat: stat}, err
	})
}

// ListWatched is List with a watch that fires once, when a name comes or goes.
func (cl *Client) ListWatched(ctx context.Context, path string) (Folder, error) {
	return run(ctx, cl, false, func(c *zk.Conn) (Folder, error) {
		names, stat, event, err := c.ChildrenW(cl.config.Chroot + path)
		cl.watches(c, err)
		return Folder{names, stat, event}, err
	})
}

// Exists returns a node's stat, or nil if there is none.
func (cl *Client) Exists(ctx context.Context, path string) (*Stat, error) {
	return run(ctx, cl, false, func(c *zk.Conn) (*Stat, error) {
		there, stat, err := c.Exists(cl.config.Chroot + path)
		if !there {
			stat = nil
		}
		return stat, err
	})
}

// ExistsWatched is Exists with a watch for the node's coming, going and change.
func (cl *Client) ExistsWatched(ctx context.Context, path string) (*Stat, <-chan Event, error) {
	type watched struct {
		stat  *Stat
		event <-chan Event
	}
	w, err := run(ctx, cl, false, func(c *zk.Conn) (watched, error) {
		there, stat, event, err := c.ExistsW(cl.config.Chroot + path)
		cl.watches(c, err)
		if !there {
			stat = nil
		}
		return watched{stat, event}, err
	})
	return w.stat, w.event, err
}

// ACLOf returns who may do what with a node.
func (cl *Client) ACLOf(ctx context.Context, path string) ([]ACL, error) {
	return run(ctx, cl, false, func(c *zk.Conn) ([]ACL, error) {
		acl, _, err := c.GetACL(cl.config.Chroot + path)
		return acl, err
	})
}

// Sync makes the reads that follow see every change that was acknowledged to
// anybody before.
func (cl *Client) Sync(ctx context.Context, path string) error {
	_, err := run(ctx, cl, false, func(c *zk.Conn) (string, error) { return c.Sync(cl.config.Chroot + path) })
	return err
}
