package store

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
)

// How much of its last changes a folder of documents says, besides the very last one.
const (
	maxRecent      = 32
	maxRecentBytes = 4 << 10
)

// A docChange is one change of a document, by the version that its folder got with it.
type docChange struct {
	version int32
	name    string
}

// recent is the last changes in a space of no board, which may have a document for each board.
// Each change is written into the folder's data with those that this driver knows of, so that a
// watcher reads what changed, and everything only where the data leaves a version out: programs
// of before write no data, and two drivers that write at once do not know of each other.
type recent struct {
	turn chan struct{} // has room for one: each change knows the one before

	mu     sync.Mutex
	folder int64       // the transaction that made the folder, whose versions these are
	last   []docChange // by their versions
}

// recentOf returns what is known of a space's changes; nil: those of a board's spaces, which
// are small, are not written down.
func (d *documents) recentOf(space driver.Space) *recent {
	if space.Board != "" {
		return nil
	}
	r, ok := d.recents.Load(space.Name)
	if !ok {
		r, _ = d.recents.LoadOrStore(space.Name, &recent{turn: make(chan struct{}, 1)})
	}
	return r.(*recent) //nolint:forcetypeassert // all values are
}

// commit makes a change of a document, which m has, and says in the folder which it was.
func (d *documents) commit(ctx context.Context, space driver.Space, name string, m *session.Multi) ([]session.Done, error) {
	r := d.recentOf(space)
	if r == nil {
		m.Set(d.folder(space), nil, -1)
		return m.Do(ctx)
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, alive(ctx)
	}
	defer func() { <-r.turn }()
	at := m.Set(d.folder(space), r.encode(name), -1)
	done, err := m.Do(ctx)
	if err == nil {
		r.learn(done[at].Stat.Czxid, docChange{done[at].Stat.Version, name})
	}
	return done, err
}

// learn keeps changes in a folder, if it is not one of before.
func (r *recent) learn(folder int64, changes ...docChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if folder < r.folder {
		return
	}
	if folder > r.folder {
		r.folder, r.last = folder, nil
	}
	r.last = append(r.last, changes...)
	byVersion := func(a, b docChange) int { return cmp.Compare(a.version, b.version) }
	slices.SortStableFunc(r.last, byVersion)
	r.last = slices.CompactFunc(r.last, func(a, b docChange) bool { return a.version == b.version })
	r.last = slices.Clone(r.last[max(0, len(r.last)-maxRecent):])
}

// encode is the folder's data with a change of the named document.
func (r *recent) encode(name string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return encodeRecent(name, r.folder, r.last)
}

const recentFormat = 1

func encodeRecent(name string, folder int64, last []docChange) []byte {
	w := writer{[]byte{recentFormat}}
	w.bytes([]byte(name))
	w.int(folder)
	for _, c := range slices.Backward(last) {
		if len(w.out)+len(c.name) > maxRecentBytes {
			break
		}
		w.int(int64(c.version))
		w.bytes([]byte(c.name))
	}
	return w.out
}

// decodeRecent returns the document of the change that wrote the data, and earlier changes in
// the folder that a transaction made.
func decodeRecent(data []byte) (name string, folder int64, earlier []docChange, err error) {
	if len(data) == 0 || data[0] != recentFormat {
		return "", 0, nil, errShort
	}
	d := reader{in: data[1:]}
	name, folder = string(d.bytes()), d.int()
	for len(d.in) > 0 && d.err == nil {
		earlier = append(earlier, docChange{int32(d.within(0, math.MaxInt32)), string(d.bytes())}) //nolint:gosec // it fits
	}
	return name, folder, earlier, d.err
}

// since returns the names of the documents that were changed after a version of the folder, as
// it was read. It returns false where some may be missing.
func (r *recent) since(node session.Node, folder int64, version int32) ([]string, bool) {
	now := node.Stat
	if now.Czxid != folder || now.Version < version {
		return nil, false
	}
	if name, of, earlier, err := decodeRecent(node.Data); err == nil {
		known := []docChange{{now.Version, name}}
		if of == folder {
			known = append(known, earlier...)
		}
		r.learn(folder, known...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]bool{}
	for next := version + 1; next <= now.Version; next++ {
		at, ok := slices.BinarySearchFunc(r.last, next, func(c docChange, v int32) int { return cmp.Compare(c.version, v) })
		if !ok || r.folder != folder {
			return nil, false
		}
		names[r.last[at].name] = true
	}
	return slices.Collect(maps.Keys(names)), true
}
