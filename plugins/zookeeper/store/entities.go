package store

import (
	"context"
	"strings"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
)

// The entities of an open board are TaskFlow's own: nodes that end with the
// session of who registered them, in a folder for each kind. A name that cannot
// be one of TaskFlow's is kept as any other document.

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

func (d *documents) entityPath(space driver.Space, kind, entity string) string {
	b, err := d.store.board(space.Board)
	if err != nil {
		return d.path(space, kind+"/"+entity)
	}
	return b.at.Entity(kind, entity)
}

func (d *documents) getEntity(ctx context.Context, space driver.Space, kind, entity string) (driver.Document, found, error) {
	node, err := d.client().Get(ctx, d.entityPath(space, kind, entity))
	if session.NoNode(err) {
		return driver.Document{}, found{}, nil
	}
	if err != nil {
		return driver.Document{}, found{}, err
	}
	doc := driver.Document{Name: kind + "/" + entity, Data: node.Data, Version: uint64(node.Stat.Mzxid)}
	return doc, found{there: true, live: true, version: node.Stat.Version}, nil
}

// putEntity registers an entity for as long as this driver's session lasts.
// Expires is not kept: the session's end is.
func (d *documents) putEntity(ctx context.Context, space driver.Space, kind, entity string, doc driver.Document, ifVersion uint64) (uint64, error) {
	old, f, err := d.getEntity(ctx, space, kind, entity)
	if err != nil {
		return 0, err
	}
	if old.Version != ifVersion {
		return 0, otherVersion(doc.Name, old.Version, ifVersion)
	}
	path := d.entityPath(space, kind, entity)
	b, err := d.store.board(space.Board)
	if err != nil {
		return 0, err
	}
	if err := d.client().EnsurePath(ctx, b.at.Entities+"/"+kind, b.nodeACL()); err != nil {
		return 0, err
	}
	m := d.client().Multi(b.nodeACL())
	var at int
	if f.there {
		at = m.Set(path, doc.Data, f.version)
	} else {
		m.Create(path, doc.Data, session.Ephemeral)
		at = m.Set(path, doc.Data, 0)
	}
	done, err := m.Do(ctx)
	if err != nil {
		return 0, changedMeanwhile(doc.Name, err)
	}
	return uint64(done[at].Stat.Mzxid), nil
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
