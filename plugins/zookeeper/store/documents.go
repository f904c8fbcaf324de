package store

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/job"
)

// Documents lie in one folder for each space. Each change of one is a change of
// the folder's own data as well, so that one watch tells of all of them, and a
// document's version is the number of the transaction that wrote it: it grows
// even over a deletion.
type documents struct {
	store   *Store
	made    sync.Map // folders that are there
	shelves sync.Map // by their paths, those that were open when they were read
	recents sync.Map // by the names of spaces of no board, what was changed there last

	latest atomic.Int64 // that now has said, in Unix milliseconds

	reapAfter time.Duration // as the constant, but in tests
}

// MaxDocumentName is the longest name of a document, in bytes.
const MaxDocumentName = 1024

func (d *documents) client() *session.Client { return d.store.client }

func (d *documents) folder(space driver.Space) string {
	return documentFolder(d.store.settings.root, space)
}

func (d *documents) path(space driver.Space, name string) string {
	return d.folder(space) + "/" + escape(name)
}

func (d *documents) check(ctx context.Context, space driver.Space, name string) error {
	if err := driver.CheckDocument(space, name); err != nil {
		return err
	}
	if space == (driver.Space{Name: driver.LogbookSpace}) {
		return job.Errorf(job.Unsupported, "TaskFlow's logbooks can only be read one by one")
	}
	if len(name) > MaxDocumentName {
		return job.Errorf(job.Invalid, "the document's name has %d bytes: want at most %d", len(name), MaxDocumentName)
	}
	return alive(ctx)
}

// checkChange refuses to change anything of a board that is only observed.
func (d *documents) checkChange(ctx context.Context, space driver.Space, name string) error {
	if err := d.check(ctx, space, name); err != nil {
		return err
	}
	b, err := d.store.board(space.Board)
	if err != nil {
		return nil // documents need no open board
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spec.Observe {
		return document.Observed(space.Board)
	}
	return nil
}

// Get returns a document.
func (d *documents) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	if space == (driver.Space{Name: driver.LogbookSpace}) {
		return d.logbook(ctx, name)
	}
	if err := d.check(ctx, space, name); err != nil {
		return driver.Document{}, err
	}
	if err := d.client().Sync(ctx, d.store.settings.root); err != nil {
		return driver.Document{}, err
	}
	doc, found, err := d.get(ctx, space, name)
	if err != nil {
		return driver.Document{}, err
	}
	if !found.live {
		return driver.Document{}, document.NotThere(name)
	}
	return doc, nil
}

// A found is what lies where a document would.
type found struct {
	there   bool // a node
	live    bool // a document that has not expired
	version int32
	head    head
	changed time.Time // when the node was written last
}

// present is the version of what was found, 0 if it has expired.
func (f *found) present(doc *driver.Document) uint64 {
	if !f.live {
		return 0
	}
	return doc.Version
}

// get reads a document whole. One whose pieces are replaced while they are read
// is read again.
func (d *documents) get(ctx context.Context, space driver.Space, name string) (driver.Document, found, error) {
	if kind, entity, ok := d.entity(space, name); ok {
		return d.getEntity(ctx, space, kind, entity)
	}
	path := d.path(space, name)
	for range maxReads {
		node, err := d.client().Get(ctx, path)
		if session.NoNode(err) {
			return driver.Document{}, found{}, nil
		}
		if err != nil {
			return driver.Document{}, found{}, err
		}
		h, err := decodeHead(node.Data)
		if err != nil {
			return driver.Document{}, found{}, job.Errorf(job.Corrupt, "document %q at %s cannot be read: %v", name, path, err)
		}
		doc := driver.Document{Name: name, Data: h.data, Version: uint64(node.Stat.Mzxid), Expires: atMillis(h.expires)}
		f := found{there: true, live: !doc.Expired(d.now()), version: node.Stat.Version, head: h, changed: time.UnixMilli(node.Stat.Mtime)}
		if !f.live || h.pieces == 0 {
			return doc, f, nil
		}
		doc.Data, err = d.join(ctx, path, &h)
		if err == nil {
			return doc, f, nil
		}
		if !session.NoNode(err) {
			return driver.Document{}, found{}, err
		}
	}
	return driver.Document{}, found{}, job.Errorf(job.Unavailable, "document %q changes all the time: it could not be read", name)
}

// join reads the pieces of a large document.
func (d *documents) join(ctx context.Context, path string, h *head) ([]byte, error) {
	pieces := make([][]byte, h.pieces)
	work := make([]func(context.Context) error, h.pieces)
	for i := range work {
		work[i] = func(ctx context.Context) error {
			node, err := d.client().Get(ctx, h.piece(path, i))
			pieces[i] = node.Data
			return err
		}
	}
	if err := together(ctx, work); err != nil {
		return nil, err
	}
	return slices.Concat(pieces...), nil
}

// now is the store's time as it is known here. It does not go back by as much as it may
// be misjudged by, so that a document which has expired stays so; further back it goes if
// somebody has set the clock.
func (d *documents) now() time.Time {
	now := d.store.clock.wall(time.Now()).UnixMilli()
	latest := d.latest.Load()
	if back := latest - now; back > 0 && back <= maxHearing.Milliseconds() {
		return time.UnixMilli(latest)
	}
	d.latest.CompareAndSwap(latest, now) // or another one has said it at the same moment
	return time.UnixMilli(now)
}

// List returns documents in the order of their names.
func (d *documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	if err := d.check(ctx, space, "any"); err != nil {
		return nil, err
	}
	if err := d.client().Sync(ctx, d.store.settings.root); err != nil {
		return nil, err
	}
	names, err := d.names(ctx, space)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n <= after })
	var list []driver.Document
	for part := range slices.Chunk(names, atOnce) {
		docs, err := d.some(ctx, space, part)
		if err != nil {
			return nil, err
		}
		list = append(list, docs...)
		if limit > 0 && len(list) >= limit {
			return list[:limit], nil
		}
	}
	return list, nil
}

// some reads those of the named documents that are there.
func (d *documents) some(ctx context.Context, space driver.Space, names []string) ([]driver.Document, error) {
	docs := make([]driver.Document, len(names))
	live := make([]bool, len(names))
	work := make([]func(context.Context) error, len(names))
	for i, name := range names {
		work[i] = func(ctx context.Context) error {
			doc, f, err := d.get(ctx, space, name)
			docs[i], live[i] = doc, f.live
			if err == nil && d.left(&f) {
				d.reap(ctx, space, name, &f)
			}
			return err
		}
	}
	if err := together(ctx, work); err != nil {
		return nil, err
	}
	list := docs[:0]
	for i := range docs {
		if live[i] {
			list = append(list, docs[i])
		}
	}
	return list, nil
}

// reapAfter is how long ago a document has to have expired, and its node to have been written,
// before the node is taken away: by far longer than the store's time may be misjudged by, and
// than the pieces of a large document take, whose node says meanwhile that there is none.
const reapAfter = time.Hour

// left reports whether there is a node of a document that has been gone for long. Those of
// entities are TaskFlow's.
func (d *documents) left(f *found) bool {
	old := d.now().Add(-d.reapAfter)
	return f.there && !f.live && f.head.expires != 0 && atMillis(f.head.expires).Before(old) && f.changed.Before(old)
}

// reap takes away the node of a document that has expired. Nobody has to be told, and if it fails,
// the next one who comes across it tries again.
func (d *documents) reap(ctx context.Context, space driver.Space, name string, f *found) {
	if d.checkChange(ctx, space, name) != nil {
		return
	}
	path := d.path(space, name)
	s, err := d.openShelf(ctx, space)
	if err == nil {
		m := d.client().Multi(nil)
		s.check(m)
		if err = d.drop(ctx, m, path, f.version); err == nil {
			_, err = m.Do(ctx)
		}
	}
	if err != nil {
		d.store.log.Debug("the node of a document that has expired is still there", "path", path, "error", err)
	}
}

// names returns the names in a space, in order.
func (d *documents) names(ctx context.Context, space driver.Space) ([]string, error) {
	folder, err := d.client().List(ctx, d.folder(space))
	if err != nil && !session.NoNode(err) {
		return nil, err
	}
	var names []string
	for _, n := range folder.Names {
		if name, ok := unescape(n); ok {
			names = append(names, name)
		}
	}
	entities, err := d.entities(ctx, space)
	names = append(names, entities...)
	slices.SortFunc(names, strings.Compare)
	return slices.Compact(names), err
}

// ensure makes a space's folder.
func (d *documents) ensure(ctx context.Context, space driver.Space) error {
	path := d.folder(space)
	if _, ok := d.made.Load(path); ok {
		return nil
	}
	if err := d.client().EnsurePath(ctx, path, d.acl()); err != nil {
		return err
	}
	d.made.Store(path, true)
	return nil
}

// acl is for documents: nobody but boardd has to read them.
func (d *documents) acl() []session.ACL {
	if d.store.settings.session.Scheme != "" {
		return session.Creator()
	}
	return session.World()
}

func changedMeanwhile(name string, err error) error {
	if session.Conflict(err) {
		return &job.Error{Kind: job.Aborted, Message: "document " + name + " was changed meanwhile: read it again", Err: err}
	}
	return err
}
