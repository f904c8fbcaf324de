package session

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/sdk/job"
)

// A Multi is a list of changes that are made all together or not at all.
type Multi struct {
	client *Client
	acl    []ACL
	ops    []any
	size   int
}

// Multi begins a list of changes. What it creates gets acl.
func (cl *Client) Multi(acl []ACL) *Multi { return &Multi{client: cl, acl: acl} }

// How a node is created.
const (
	Persistent = 0
	Ephemeral  = zk.FlagEphemeral
	Sequential = zk.FlagSequence
)

// Create adds the creation of a node; flags are Persistent, Ephemeral,
// Sequential. It returns its place in the list, as each of these methods does.
func (m *Multi) Create(path string, data []byte, flags int32) int {
	return m.add(path, data, &zk.CreateRequest{Path: m.client.config.Chroot + path, Data: data, Acl: m.acl, Flags: flags})
}

// Set adds a change of a node's data; version -1 is any.
func (m *Multi) Set(path string, data []byte, version int32) int {
	return m.add(path, data, &zk.SetDataRequest{Path: m.client.config.Chroot + path, Data: data, Version: version})
}

// Delete adds the deletion of a node; version -1 is any.
func (m *Multi) Delete(path string, version int32) int {
	return m.add(path, nil, &zk.DeleteRequest{Path: m.client.config.Chroot + path, Version: version})
}

// Check adds the condition that a node is there; version -1 is any.
func (m *Multi) Check(path string, version int32) int {
	return m.add(path, nil, &zk.CheckVersionRequest{Path: m.client.config.Chroot + path, Version: version})
}

func (m *Multi) add(path string, data []byte, op any) int {
	m.size += overhead + len(m.client.config.Chroot) + len(path) + len(data)
	m.ops = append(m.ops, op)
	return len(m.ops) - 1
}

// Len returns how many changes there are.
func (m *Multi) Len() int { return len(m.ops) }

// Size returns about how many bytes the request has; it is no less than they are.
func (m *Multi) Size() int { return m.size }

// A Done is what one change of a Multi gave.
type Done struct {
	Path string // that was created
	Stat *Stat  // after Set
}

// Do makes the changes.
func (m *Multi) Do(ctx context.Context) ([]Done, error) {
	if m.size > MaxRequest {
		return nil, job.Errorf(job.Invalid, "the change has %d bytes altogether: ZooKeeper takes at most %d in one step", m.size, MaxRequest)
	}
	answers, err := run(ctx, m.client, true, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(m.ops...) })
	if err != nil {
		return nil, err
	}
	if len(answers) != len(m.ops) {
		return nil, job.Errorf(job.OutcomeUnknown, "ZooKeeper answered %d changes of %d", len(answers), len(m.ops))
	}
	done := make([]Done, len(answers))
	for i, a := range answers {
		done[i] = Done{strings.TrimPrefix(a.String, m.client.config.Chroot), a.Stat}
	}
	return done, nil
}

// World is the ACL of TaskFlow's own nodes: everybody may do everything.
func World() []ACL { return zk.WorldACL(zk.PermAll) }

// Creator is an ACL by which who created a node may do everything, and nobody
// else anything.
func Creator() []ACL { return zk.AuthACL(zk.PermAll) }

// EnsurePath makes a folder and those above it, where they are missing.
func (cl *Client) EnsurePath(ctx context.Context, path string, acl []ACL) error {
	stat, err := cl.Exists(ctx, path)
	if err != nil || stat != nil || path == "" {
		return err
	}
	if err := cl.ensureParent(ctx, path, acl); err != nil {
		return err
	}
	m := cl.Multi(acl)
	m.Create(path, nil, Persistent)
	if _, err = m.Do(ctx); Conflict(err) && !NoNode(err) {
		return nil // somebody else made it
	}
	return err
}

func (cl *Client) ensureParent(ctx context.Context, path string, acl []ACL) error {
	if parent := path[:strings.LastIndexByte(path, '/')]; parent != "" {
		return cl.EnsurePath(ctx, parent, acl)
	}
	for i := range len(cl.config.Chroot) {
		if i+1 < len(cl.config.Chroot) && cl.config.Chroot[i+1] != '/' {
			continue
		}
		_, err := run(ctx, cl, true, func(c *zk.Conn) (string, error) { return c.Create(cl.config.Chroot[:i+1], nil, 0, acl) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}
