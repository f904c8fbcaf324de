package store

import (
	"context"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A shelf is the folder of all documents of a board. Its own data says whether they may be
// changed, which not every program that changes them has the board open to see. Only moves write
// it, and each change of a document checks its version.
type shelf struct {
	path    string
	there   bool
	closed  bool
	version int32
}

// closedMark is the data of a shelf whose documents may not be changed.
const closedMark = "closed"

func markOf(closed bool) []byte {
	if closed {
		return []byte(closedMark)
	}
	return nil
}

// readShelf reads a board's shelf.
func (d *documents) readShelf(ctx context.Context, board string) (shelf, error) {
	s := shelf{path: boardDocuments(d.store.settings.root, board)}
	node, err := d.client().Get(ctx, s.path)
	if session.NoNode(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.there, s.closed, s.version = true, len(node.Data) > 0, node.Stat.Version
	return s, nil
}

// openShelf returns the shelf of a space, which is as it was read some time ago: the change that
// checks its version finds out. Where that is closed it is refused. A space of no board has none.
func (d *documents) openShelf(ctx context.Context, space driver.Space) (shelf, error) {
	if space.Board == "" {
		return shelf{}, nil
	}
	path := boardDocuments(d.store.settings.root, space.Board)
	if kept, ok := d.shelves.Load(path); ok {
		return kept.(shelf), nil //nolint:forcetypeassert // all values are
	}
	if err := d.client().EnsurePath(ctx, path, d.acl()); err != nil {
		return shelf{}, err
	}
	s, err := d.readShelf(ctx, space.Board)
	switch {
	case err != nil:
		return s, err
	case s.closed:
		return s, job.Errorf(job.Unavailable, transition.Frozen)
	case s.there:
		d.shelves.Store(path, s)
	}
	return s, nil
}

// check adds that the documents may be changed.
func (s *shelf) check(m *session.Multi) {
	if s.path != "" {
		m.Check(s.path, s.version)
	}
}

// moved reports whether a change was refused since the shelf is another one, or closed, so that
// it has to be read again.
func (d *documents) moved(ctx context.Context, s shelf, refused error) (bool, error) {
	if s.path == "" || !session.Conflict(refused) {
		return false, nil
	}
	stat, err := d.client().Exists(ctx, s.path)
	if err != nil {
		return false, err
	}
	if stat != nil && stat.Version == s.version {
		return false, nil
	}
	d.shelves.Delete(s.path)
	return true, nil
}
