package store

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A key is a node, which the transaction of a post or a restore writes together with the
// job, by its version. Nothing is written to it when its job ends: whether that is on the
// board is read when somebody wants the key. If it comes back from the trash meanwhile, that
// writes the key as well, and the version is another.
type keyNode struct {
	transition.Entry
	onBoard bool
	there   bool
	version int32
}

// keyNodes are the keys of one change, for transition.Kept.
type keyNodes map[string]*keyNode

// Entry is what is kept under a key.
func (k keyNodes) Entry(name string) (e transition.Entry, onBoard bool, _ error) {
	return k[name].Entry, k[name].onBoard, nil
}

// takenError says that a job has a key.
type takenError struct {
	name string
	by   job.ID
}

func (e *takenError) Error() string { return "job " + e.by.String() + " has the key " + e.name }

// encodeKey writes what a key's node holds: the job, a byte that says whether it has the key
// while it is on the board, until when in milliseconds, and the number.
func encodeKey(e *transition.Entry) []byte {
	open := byte(0)
	if e.Open {
		open = 1
	}
	data := append(append(make([]byte, 0, 40), e.Job[:]...), open)
	return binary.AppendUvarint(binary.AppendVarint(data, millis(e.Until)), e.Number)
}

func decodeKey(data []byte) (e transition.Entry, err error) {
	bad := errors.New("it is no entry of a key")
	if len(data) < 17 {
		return e, bad
	}
	e.Job, e.Open = job.ID(data[:16]), data[16] == 1
	until, n := binary.Varint(data[17:])
	if n <= 0 {
		return e, bad
	}
	number, m := binary.Uvarint(data[17+n:])
	if m <= 0 || 17+n+m != len(data) {
		return e, bad
	}
	e.Until, e.Number = atMillis(until), number
	return e, nil
}

// readKeys reads keys, and whether their jobs are on the board.
func (b *board) readKeys(ctx context.Context, keys []driver.Key) (keyNodes, error) {
	nodes := keyNodes{}
	for i := range keys {
		k := &keyNode{}
		nodes[keys[i].Name] = k
		path := b.at.key(keys[i].Name)
		node, err := b.client().Get(ctx, path)
		if session.NoNode(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if k.Entry, err = decodeKey(node.Data); err != nil {
			return nil, &job.Error{Kind: job.Corrupt, Message: path + " cannot be read", Err: err}
		}
		k.there, k.version = true, node.Stat.Version
		if k.Open {
			v, err := b.fetch(ctx, k.Job, recorded)
			if err != nil {
				return nil, err
			}
			k.onBoard = v.onBoard()
		}
	}
	return nodes, nil
}

// takeKeys makes a change that takes keys, which do carries out, with what it calls add for.
// One that was refused since another host has taken a key is tried with what that says now.
func (b *board) takeKeys(ctx context.Context, id job.ID, keys []driver.Key, do func(add func(*session.Multi)) error) error {
	if len(keys) == 0 {
		return do(func(*session.Multi) {})
	}
	nodes, err := b.readKeys(ctx, keys)
	if err == nil && nodes.missing() { // perhaps the folder too, on a board of before
		b.mu.Lock()
		acl := b.acl
		b.mu.Unlock()
		err = b.client().EnsurePath(ctx, b.at.keys(), acl)
	}
	for synced := false; ; {
		if err != nil {
			return err
		}
		now := b.now().wall
		name, by, _ := transition.Taken(&driver.Op{Job: id, Keys: keys}, now, nodes)
		if name != "" && synced {
			return &takenError{name, by}
		}
		if name == "" {
			failed := do(func(m *session.Multi) { b.addKeys(m, id, keys, nodes, now) })
			if failed == nil || !session.Conflict(failed) {
				return failed
			}
			if synced, err = true, b.client().Sync(ctx, b.at.Board); err != nil {
				return errors.Join(err, failed)
			}
			before := nodes
			if nodes, err = b.readKeys(ctx, keys); err == nil && nodes.same(before) {
				return failed // it is the job that was changed
			}
			continue
		}
		if synced, err = true, b.client().Sync(ctx, b.at.Board); err == nil {
			nodes, err = b.readKeys(ctx, keys)
		}
	}
}

// freeKey reports whether what a key's node holds says nothing any more. A key that cannot be
// read, or whose job cannot, stays.
func (b *board) freeKey(ctx context.Context, data []byte) bool {
	e, err := decodeKey(data)
	if err != nil || !e.Dead(false, b.now().wall) {
		return false
	}
	if !e.Open {
		return true
	}
	if v := b.known(e.Job); v != nil && v.onBoard() {
		return false
	}
	v, err := b.fetch(ctx, e.Job, recorded) // another host may have put it back since
	return err == nil && !v.onBoard() && !v.adrift()
}

func (k keyNodes) missing() bool {
	for _, one := range k {
		if !one.there {
			return true
		}
	}
	return false
}

func (k keyNodes) same(other keyNodes) bool {
	for name, a := range k {
		if b := other[name]; a.there != b.there || a.version != b.version {
			return false
		}
	}
	return true
}

// addKeys adds the keys to a transaction.
func (b *board) addKeys(m *session.Multi, id job.ID, keys []driver.Key, nodes keyNodes, now time.Time) {
	for i := range keys {
		k := nodes[keys[i].Name]
		e := transition.Take(&keys[i], id, now, k.Entry)
		if path, data := b.at.key(keys[i].Name), encodeKey(&e); k.there {
			m.Set(path, data, k.version)
		} else {
			m.Create(path, data, session.Persistent)
		}
	}
}
