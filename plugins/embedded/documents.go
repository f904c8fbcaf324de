package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/job"
)

// documents is the store's driver.Documents. They lie in one bucket, by board,
// space and name.
type documents struct {
	store    *Store
	watchers map[*documentWatch]struct{} // under the store's gate
	swept    []byte                      // the committer's: where the search for expired ones goes on
}

func newDocuments(s *Store) *documents {
	return &documents{store: s, watchers: map[*documentWatch]struct{}{}}
}

// edit is a document that a transaction changed.
type edit struct {
	space driver.Space
	name  string
}

// boardDocuments begins the keys of all documents of a board.
func boardDocuments(board string) []byte {
	return append([]byte{byte(len(board))}, board...)
}

// spacePrefix begins the keys of all documents of a space.
func spacePrefix(space driver.Space) []byte {
	return append(append(boardDocuments(space.Board), space.Name...), 0)
}

func documentKey(space driver.Space, name string) []byte { return append(spacePrefix(space), name...) }

// splitDocumentKey is the reverse of documentKey.
func splitDocumentKey(key []byte) (edit, bool) {
	if len(key) == 0 || len(key) < 1+int(key[0]) {
		return edit{}, false
	}
	board, rest := key[1:1+int(key[0])], key[1+int(key[0]):]
	space, name, ok := bytes.Cut(rest, []byte{0})
	return edit{driver.Space{Board: string(board), Name: string(space)}, string(name)}, ok
}

func decodeDocument(key, value []byte, name string) (driver.Document, error) {
	body, err := unseal(kindDocument, key, value)
	if err != nil {
		return driver.Document{}, err
	}
	r := reader{b: body}
	doc := driver.Document{Name: name, Version: r.uvarint(), Expires: timeOf(r.int64())}
	doc.Data = clone(r.bytes())
	return doc, r.done()
}

func badDocument(name string, err error) error {
	return &job.Error{Kind: job.Corrupt, Message: fmt.Sprintf("document %q cannot be read", name), Err: err}
}

// find reads a document that is there and has not expired.
func findDocument(in *table, space driver.Space, name string, now time.Time) (doc driver.Document, ok bool, err error) {
	key := documentKey(space, name)
	value := in.get(key)
	if value == nil {
		return doc, false, nil
	}
	if doc, err = decodeDocument(key, value, name); err != nil {
		return doc, false, badDocument(name, err)
	}
	return doc, !doc.Expired(now), nil
}

// Get returns a document.
func (d *documents) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	if err := checkDocument(ctx, space, name); err != nil {
		return driver.Document{}, err
	}
	var doc driver.Document
	var ok bool
	err := d.store.read(nil, func(m *snapshot) (err error) {
		doc, ok, err = findDocument(m.table(nil, inDocuments), space, name, d.store.clock.wall())
		return err
	})
	if err == nil && !ok {
		err = document.NotThere(name)
	}
	if err != nil {
		return driver.Document{}, err
	}
	return doc, nil
}

// Put writes a document if its present version is the given one.
func (d *documents) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if err := d.checkChange(ctx, space, doc.Name); err != nil {
		return 0, err
	}
	if err := document.Fits(&doc); err != nil {
		return 0, err
	}
	var version uint64
	var refused error
	err := d.store.committer.do(ctx, 1, len(doc.Data), func(t *txn) {
		present, err := t.presentDocument(space, doc.Name)
		if err == nil {
			err = t.openFor(space)
		}
		if err == nil {
			err = document.Put(&doc, present.Version, ifVersion)
		}
		switch {
		case err != nil:
			refused = err
		case len(doc.Data) > max(maxFullDocument, len(present.Data)) && t.crowded():
			refused = errNoRoom
		default:
			version = t.putDocument(space, &doc)
		}
	})
	if err != nil {
		return 0, err
	}
	return version, refused
}

// Delete takes a document away if its version is the given one.
func (d *documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	if err := d.checkChange(ctx, space, name); err != nil {
		return err
	}
	var refused error
	err := d.store.committer.do(ctx, 1, 0, func(t *txn) {
		present, err := t.presentDocument(space, name)
		if err == nil {
			err = t.openFor(space)
		}
		if err == nil {
			err = document.Delete(name, present.Version, ifVersion)
		}
		if refused = err; err == nil {
			t.edited = append(t.edited, edit{space, name})
			t.remove(t.documentTable(), documentKey(space, name))
		}
	})
	if err != nil {
		return err
	}
	return refused
}

// List returns documents by name.
func (d *documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	if err := checkDocument(ctx, space, "any"); err != nil {
		return nil, err
	}
	var list []driver.Document
	err := d.store.read(nil, func(m *snapshot) (err error) {
		list, err = listDocuments(m, space, after, limit, d.store.clock.wall())
		return err
	})
	return list, err
}

func listDocuments(m *snapshot, space driver.Space, after string, limit int, now time.Time) ([]driver.Document, error) {
	prefix := spacePrefix(space)
	from := prefix
	if after != "" {
		from = append(documentKey(space, after), 0) // the first key that could come after it
	}
	var list []driver.Document
	cursor := m.table(nil, inDocuments).cursor()
	for key, value := cursor.seek(from); bytes.HasPrefix(key, prefix); key, value = cursor.next() {
		name := string(key[len(prefix):])
		doc, err := decodeDocument(key, value, name)
		if err != nil {
			return nil, badDocument(name, err)
		}
		if doc.Expired(now) {
			continue
		}
		if list = append(list, doc); limit > 0 && len(list) == limit {
			break
		}
	}
	return list, nil
}

// presentDocument reads a document; one that is not there has version 0.
func (t *txn) presentDocument(space driver.Space, name string) (driver.Document, error) {
	doc, ok, err := findDocument(t.documentTable(), space, name, t.at.wall)
	if !ok {
		doc = driver.Document{}
	}
	return doc, err
}

// documentTable returns the table of all documents.
func (t *txn) documentTable() *table {
	if t.documents == nil {
		t.documents = t.table(nil, inDocuments)
	}
	return t.documents
}

// putDocument writes a document under the next version. Versions are counted
// over all documents, so that no name sees one twice, even after a deletion.
func (t *txn) putDocument(space driver.Space, doc *driver.Document) uint64 {
	version := t.nextSequence(t.documentTable())
	t.edited = append(t.edited, edit{space, doc.Name})
	t.put(t.documentTable(), kindDocument, documentKey(space, doc.Name), 2*binary.MaxVarintLen64+8+len(doc.Data), func(b []byte) []byte {
		b = binary.AppendUvarint(b, version)
		b = appendInt64(b, nanos(doc.Expires))
		return appendBytes(b, doc.Data)
	})
	return version
}

// sweep takes expired documents away, a few with each commit that changed
// documents. Watchers count the time themselves and are told once more.
func (d *documents) sweep(t *txn) {
	if len(t.edited) == 0 {
		return
	}
	cursor := t.documentTable().cursor()
	key, value := cursor.seekAfter(d.swept)
	for range sweepStep {
		if key == nil {
			break
		}
		at := bytes.Clone(key)
		doc, err := decodeDocument(at, value, "")
		if e, ok := splitDocumentKey(at); ok && err == nil && doc.Expired(t.at.steady) {
			t.edited = append(t.edited, e)
			t.remove(t.documentTable(), at)
		}
		d.swept = at
		key, value = cursor.next()
	}
	if key == nil {
		d.swept = nil
	}
}

// sweepStep is how many documents one commit looks at.
const sweepStep = 32

// dropDocuments takes away every document of a board from the file, and says
// which those were.
func dropDocuments(tx *bbolt.Tx, board string) (edited []edit, err error) {
	prefix := boardDocuments(board)
	cursor := tx.Bucket(documentsBucket).Cursor()
	for key, _ := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, _ = cursor.Seek(prefix) {
		if e, ok := splitDocumentKey(key); ok {
			edited = append(edited, e)
		}
		if err := cursor.Delete(); err != nil {
			return nil, err
		}
	}
	return edited, nil
}

func (d *documents) checkChange(ctx context.Context, space driver.Space, name string) error {
	if err := checkDocument(ctx, space, name); err != nil {
		return err
	}
	d.store.mu.Lock()
	b := d.store.boards[space.Board]
	d.store.mu.Unlock()
	if b == nil {
		return nil
	}
	if spec := b.spec.Load(); spec != nil && spec.Observe {
		return document.Observed(space.Board)
	}
	return nil
}

func checkDocument(ctx context.Context, space driver.Space, name string) error {
	if err := driver.CheckDocument(space, name); err != nil {
		return err
	}
	switch {
	case len(space.Name) > maxSpaceName:
		return job.Errorf(job.Invalid, "the space's name has %d bytes: want at most %d", len(space.Name), maxSpaceName)
	case len(space.Board) > driver.MaxBoardName:
		return job.Errorf(job.Invalid, "the board's name has %d bytes: want at most %d", len(space.Board), driver.MaxBoardName)
	case len(name) > maxDocumentName:
		return job.Errorf(job.Invalid, "the document's name has %d bytes: want at most %d", len(name), maxDocumentName)
	}
	if err := ctx.Err(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	return nil
}
