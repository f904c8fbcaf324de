package memdriver

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/driver/transition"
)

type place struct {
	space driver.Space
	name  string
}

// documents is every document of the store, under one mutex.
type documents struct {
	store *store

	mu       sync.Mutex
	version  uint64 // of the last change to any of them, so that no name sees one twice
	docs     map[place]driver.Document
	passages map[string]transition.Passage // by board
	bell     poll.Bell                     // has a lock of its own
}

func (d *documents) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	if err := checkDocument(ctx, space, name); err != nil {
		return driver.Document{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, ok := d.get(place{space, name}, time.Now())
	if !ok {
		return driver.Document{}, document.NotThere(name)
	}
	return doc, nil
}

// size is that of all documents, in bytes.
func (d *documents) size() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, doc := range d.docs {
		n += int64(len(doc.Data))
	}
	return n
}

// get returns a document that has not expired. The caller holds d.mu.
func (d *documents) get(at place, now time.Time) (driver.Document, bool) {
	doc, ok := d.docs[at]
	if ok && doc.Expired(now) {
		delete(d.docs, at)
		return driver.Document{}, false
	}
	return doc, ok
}

func (d *documents) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if err := d.checkChange(ctx, space, doc.Name); err != nil {
		return 0, err
	}
	if err := document.Fits(&doc); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.passages[space.Board].Closed(); err != nil {
		return 0, err
	}
	at := place{space, doc.Name}
	present, _ := d.get(at, time.Now())
	if err := document.Put(&doc, present.Version, ifVersion); err != nil {
		return 0, err
	}
	d.version++
	doc.Version, doc.Data = d.version, bytes.Clone(doc.Data)
	d.docs[at] = doc
	d.bell.Ring()
	return doc.Version, nil
}

func (d *documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	if err := d.checkChange(ctx, space, name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.passages[space.Board].Closed(); err != nil {
		return err
	}
	at := place{space, name}
	present, _ := d.get(at, time.Now())
	if err := document.Delete(name, present.Version, ifVersion); err != nil {
		return err
	}
	delete(d.docs, at)
	d.bell.Ring()
	return nil
}

func (d *documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	if err := checkSpace(ctx, space); err != nil {
		return nil, err
	}
	list := d.list(space)
	list = slices.DeleteFunc(list, func(doc driver.Document) bool { return doc.Name <= after })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, nil
}

// list returns what a space holds, by name.
func (d *documents) list(space driver.Space) []driver.Document {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	var list []driver.Document
	for at, doc := range d.docs {
		if at.space == space && !doc.Expired(now) {
			list = append(list, doc)
		}
	}
	slices.SortFunc(list, func(a, b driver.Document) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (d *documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return poll.Documents(ctx, &d.bell, func(ctx context.Context, _ func(*driver.Document) bool) ([]driver.Document, error) {
		if err := checkSpace(ctx, space); err != nil {
			return nil, err
		}
		return d.list(space), nil
	})
}

// drop takes away every document of a board.
func (d *documents) drop(board string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := range d.docs {
		if at.space.Board == board && board != "" {
			delete(d.docs, at)
		}
	}
	delete(d.passages, board)
	d.bell.Ring()
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
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spec.Observe {
		return document.Observed(space.Board)
	}
	return nil
}

func checkSpace(ctx context.Context, space driver.Space) error {
	if err := space.Check(); err != nil {
		return err
	}
	return ended(ctx)
}

func checkDocument(ctx context.Context, space driver.Space, name string) error {
	if err := driver.CheckDocument(space, name); err != nil {
		return err
	}
	return ended(ctx)
}
