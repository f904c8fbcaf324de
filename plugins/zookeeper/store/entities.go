package store

import (
	"cmp"
	"context"
	"strings"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
)

// The entities of an open board are TaskFlow's own: nodes in a folder for each kind.
// TaskFlow's end with the session of who registered them. One that is registered
// through boardd is a lasting node with a term beside, where TaskFlow does not look.
// A name that cannot be one of TaskFlow's is kept as any other document.

// entity takes a document's name apart that is TaskFlow's to keep.
func (d *documents) entity(space driver.Space, name string) (kind, entity string, ok bool) {
	kind, entity, ok = strings.Cut(name, "/")
	if !ok || space.Name != driver.EntitySpace || kind != "conductor" || entity == "" || strings.Contains(entity, "/") ||
		entity == "." || entity == ".." || strings.ContainsFunc(entity, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", "", false
	}
	_, err := d.store.board(space.Board)
	return kind, entity, err == nil
}

func (d *documents) getEntity(ctx context.Context, space driver.Space, kind, entity string) (driver.Document, found, error) {
	b, err := d.store.board(space.Board)
	if err != nil {
		return driver.Document{}, found{}, err
	}
	node, err := d.client().Get(ctx, b.at.Entity(kind, entity))
	if session.NoNode(err) {
		return driver.Document{}, found{}, nil
	}
	if err != nil {
		return driver.Document{}, found{}, err
	}
	doc := driver.Document{Name: kind + "/" + entity, Data: node.Data, Version: uint64(node.Stat.Mzxid)}
	if node.Stat.EphemeralOwner == 0 {
		t, err := b.term(ctx, kind, entity)
		if err != nil {
			return driver.Document{}, found{}, err
		}
		doc.Expires = atMillis(t.expires)
	}
	return doc, found{there: true, live: !doc.Expired(d.now()), version: node.Stat.Version}, nil
}

// putEntity registers an entity: until its document expires, or, where it says no
// time, for as long as this driver's session lasts.
func (d *documents) putEntity(ctx context.Context, space driver.Space, kind, entity string, doc driver.Document, ifVersion uint64) (uint64, error) {
	old, f, err := d.getEntity(ctx, space, kind, entity)
	if err != nil {
		return 0, err
	}
	if err := document.Put(&doc, f.present(&old), ifVersion); err != nil {
		return 0, err
	}
	b, err := d.store.board(space.Board)
	if err != nil {
		return 0, err
	}
	for _, folder := range []string{b.at.Entities + "/" + kind, b.at.terms(kind)} {
		if err := d.client().EnsurePath(ctx, folder, b.nodeACL()); err != nil {
			return 0, err
		}
	}
	before, err := b.term(ctx, kind, entity)
	if err != nil {
		return 0, err
	}
	s, err := d.openShelf(ctx, space)
	if err != nil {
		return 0, err
	}
	path, flags := b.at.Entity(kind, entity), int32(session.Persistent)
	if doc.Expires.IsZero() {
		flags = session.Ephemeral
	}
	m := d.client().Multi(b.nodeACL())
	s.check(m)
	if f.there { // it may end with somebody's session, or not, and the new one otherwise
		m.Delete(path, f.version)
	}
	m.Create(path, doc.Data, flags)
	at := m.Set(path, doc.Data, 0)
	switch term := b.at.term(kind, entity); {
	case !doc.Expires.IsZero() && before.there:
		m.Set(term, encodeTerm(doc.Expires), before.version)
	case !doc.Expires.IsZero():
		m.Create(term, encodeTerm(doc.Expires), session.Persistent)
	case before.there:
		m.Delete(term, before.version)
	}
	done, err := m.Do(ctx)
	if moved, again := d.moved(ctx, s, err); moved || again != nil {
		return 0, cmp.Or(again, errUnmade)
	}
	if err != nil {
		return 0, changedMeanwhile(doc.Name, err)
	}
	return uint64(done[at].Stat.Mzxid), nil
}

// deleteEntity adds the deletion of an entity.
func (d *documents) deleteEntity(ctx context.Context, m *session.Multi, space driver.Space, kind, entity string, version int32) error {
	b, err := d.store.board(space.Board)
	if err != nil {
		return err
	}
	t, err := b.term(ctx, kind, entity)
	if err != nil {
		return err
	}
	m.Delete(b.at.Entity(kind, entity), version)
	if t.there {
		m.Delete(b.at.term(kind, entity), t.version)
	}
	return nil
}

// entities returns the names of TaskFlow's entities.
func (d *documents) entities(ctx context.Context, space driver.Space) ([]string, error) {
	b, err := d.store.board(space.Board)
	if err != nil || space.Name != driver.EntitySpace {
		return nil, nil //nolint:nilerr // a board that is not open has no path
	}
	folder, err := d.client().List(ctx, b.at.Entities+"/conductor")
	if session.NoNode(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range folder.Names {
		if _, _, ok := d.entity(space, "conductor/"+n); ok {
			names = append(names, "conductor/"+n)
		}
	}
	return names, nil
}

func (b *board) nodeACL() []session.ACL {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acl
}
