package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// Put writes a document if its version is the expected one. A large one is
// written in pieces first, and its head last.
func (d *documents) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if err := d.checkChange(ctx, space, doc.Name); err != nil {
		return 0, err
	}
	if err := document.Fits(&doc); err != nil {
		return 0, err
	}
	kind, entity, registers := d.entity(space, doc.Name)
	for {
		var version uint64
		var err error
		if registers {
			version, err = d.putEntity(ctx, space, kind, entity, doc, ifVersion)
		} else {
			version, err = d.put(ctx, space, &doc, ifVersion)
		}
		if !errors.Is(err, errUnmade) {
			return version, err
		}
		if err := d.client().Ready(ctx); err != nil {
			return 0, err
		}
	}
}

// errUnmade says of a change whose answer was lost that it was not made.
var errUnmade = errors.New("it was not made")

// put is one try of Put.
func (d *documents) put(ctx context.Context, space driver.Space, doc *driver.Document, ifVersion uint64) (uint64, error) {
	old, f, err := d.get(ctx, space, doc.Name)
	if err != nil && job.KindOf(err) != job.Corrupt {
		return 0, err
	}
	if err := document.Put(doc, f.present(&old), ifVersion); err != nil {
		return 0, err
	}
	err = d.ensure(ctx, space)
	var s shelf
	if err == nil {
		s, err = d.openShelf(ctx, space)
	}
	if err != nil {
		if ctx.Err() == nil && session.Lost(err) {
			return 0, errUnmade
		}
		return 0, err
	}
	h, before := newHead(doc), f
	version, err := d.write(ctx, s, space, doc, &h, &f)
	if job.KindOf(err) != job.OutcomeUnknown || ctx.Err() != nil {
		return version, err
	}
	for d.client().Ready(ctx) == nil {
		now, g, again := d.get(ctx, space, doc.Name)
		switch {
		case ctx.Err() == nil && session.Lost(again):
			continue
		case again != nil:
		case now.Version != old.Version && g.there && bytes.Equal(g.head.encode(), h.encode()):
			return now.Version, nil
		case !g.live && !before.live, now.Version == old.Version && g.live:
			return 0, errUnmade
		}
		break
	}
	return 0, err
}

// write makes what was found the document.
func (d *documents) write(ctx context.Context, s shelf, space driver.Space, doc *driver.Document, h *head, f *found) (uint64, error) {
	path, acl := d.path(space, doc.Name), d.acl()
	m := d.client().Multi(acl)
	if h.pieces > 0 && !f.there {
		// The pieces lie below the head, which says until then that there is nothing.
		first := head{expires: 1}
		before := d.client().Multi(acl)
		before.Create(path, first.encode(), session.Persistent)
		s.check(before)
		if _, err := before.Do(ctx); err != nil {
			return 0, d.unwritten(ctx, s, space, doc.Name, err)
		}
		f.there, f.version, f.head = true, 0, first
	}
	if err := d.cut(ctx, path, doc.Data, h); err != nil {
		return 0, err
	}
	if h.pieces > 0 {
		failpoint.Hit("zookeeper/document/pieces-written")
	}
	s.check(m)
	var at int
	if f.there {
		at = m.Set(path, h.encode(), f.version)
	} else {
		m.Create(path, nil, session.Persistent)
		at = m.Set(path, h.encode(), 0)
	}
	f.head.drop(m, path)
	failpoint.Hit("zookeeper/document/before-multi")
	done, err := d.commit(ctx, space, doc.Name, m)
	failpoint.Hit("zookeeper/document/after-multi")
	if err != nil {
		return 0, d.unwritten(ctx, s, space, doc.Name, err)
	}
	return uint64(done[at].Stat.Mzxid), nil
}

// unwritten says why a transaction did not change a document. Where a node is missing,
// somebody else has removed the folder or the document, and where the shelf is another the board
// moves or did so: who asked looks again.
func (d *documents) unwritten(ctx context.Context, s shelf, space driver.Space, name string, err error) error {
	if moved, again := d.moved(ctx, s, err); moved || again != nil {
		return cmp.Or(again, errUnmade)
	}
	if session.NoNode(err) {
		d.made.Delete(d.folder(space))
		return errUnmade
	}
	return changedMeanwhile(name, err)
}

// cut writes the pieces of a large document.
func (d *documents) cut(ctx context.Context, path string, data []byte, h *head) error {
	for i := range h.pieces {
		m := d.client().Multi(d.acl())
		m.Create(h.piece(path, i), data[i*pieceSize:min((i+1)*pieceSize, len(data))], session.Persistent)
		if _, err := m.Do(ctx); err != nil {
			return changedMeanwhile(path, err)
		}
	}
	return nil
}

// Delete takes a document away if its version is the expected one.
func (d *documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	if err := d.checkChange(ctx, space, name); err != nil {
		return err
	}
	err := d.removed(ctx, space, name, ifVersion)
	for job.KindOf(err) == job.OutcomeUnknown && ctx.Err() == nil {
		if d.client().Ready(ctx) != nil {
			return err
		}
		// If it is gone now, nobody can say by whom, and it does not matter.
		if again := d.removed(ctx, space, name, ifVersion); job.KindOf(again) != job.NotFound {
			err = again
			continue
		}
		return nil
	}
	return err
}

// removed is remove, as often as the board's shelf is another one.
func (d *documents) removed(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	for {
		if err := d.remove(ctx, space, name, ifVersion); !errors.Is(err, errUnmade) {
			return err
		}
		if err := d.client().Ready(ctx); err != nil {
			return err
		}
	}
}

// remove is one try of Delete.
func (d *documents) remove(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	doc, f, err := d.get(ctx, space, name)
	if err == nil {
		err = document.Delete(name, f.present(&doc), ifVersion)
	}
	if err != nil {
		return err
	}
	s, err := d.openShelf(ctx, space)
	if err != nil {
		return err
	}
	m := d.client().Multi(nil)
	s.check(m)
	if kind, entity, ok := d.entity(space, name); ok {
		if err := d.deleteEntity(ctx, m, space, kind, entity, f.version); err != nil {
			return err
		}
		_, err = m.Do(ctx)
	} else {
		if err := d.drop(ctx, m, d.path(space, name), f.version); err != nil {
			return err
		}
		_, err = d.commit(ctx, space, name, m)
	}
	if err != nil {
		return d.unwritten(ctx, s, space, name, err)
	}
	return nil
}

// drop adds the deletion of a head of a version, and of all pieces below it, also of such as a
// writer left that did not come to its end.
func (d *documents) drop(ctx context.Context, m *session.Multi, path string, version int32) error {
	folder, err := d.client().List(ctx, path)
	if err != nil && !session.NoNode(err) {
		return err
	}
	for _, name := range folder.Names {
		m.Delete(path+"/"+name, -1)
	}
	m.Delete(path, version)
	return nil
}
