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
	"github.com/boardd/boardd/sdk/job"
)

type place struct {
	space driver.Space
	name  string
}

// documents is every document of the store, under one mutex.
type documents struct {
	store *store

	mu      sync.Mutex
	version uint64 // of the last change to any of them, so that no name sees one twice
	docs    map[place]driver.Document
	changed chan struct{} // closed at the next change
}

func (d *documents) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	if err := checkDocument(ctx, space, name); err != nil {
		return driver.Document{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, ok := d.get(place{space, name}, time.Now())
	if !ok {
		return driver.Document{}, noDocument(name)
	}
	return doc, nil
}

// get returns a document that has not expired.
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
	if len(doc.Data) > driver.MaxDocument {
		return 0, job.Errorf(job.Invalid, "document %q has %d bytes: want at most %d", doc.Name, len(doc.Data), driver.MaxDocument)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := place{space, doc.Name}
	present, _ := d.get(at, time.Now())
	if present.Version != ifVersion {
		return 0, otherVersion(doc.Name, present.Version, ifVersion)
	}
	d.version++
	doc.Version, doc.Data = d.version, bytes.Clone(doc.Data)
	d.docs[at] = doc
	d.wake()
	return doc.Version, nil
}

func (d *documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	if err := d.checkChange(ctx, space, name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := place{space, name}
	present, ok := d.get(at, time.Now())
	switch {
	case !ok:
		return noDocument(name)
	case present.Version != ifVersion:
		return otherVersion(name, present.Version, ifVersion)
	}
	delete(d.docs, at)
	d.wake()
	return nil
}

func (d *documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	if err := checkSpace(ctx, space); err != nil {
		return nil, err
	}
	list, _ := d.list(space)
	list = slices.DeleteFunc(list, func(doc driver.Document) bool { return doc.Name <= after })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, nil
}

// list returns what a space holds, by name, and what is closed when that changes.
func (d *documents) list(space driver.Space) ([]driver.Document, <-chan struct{}) {
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
	return list, d.changed
}

func (d *documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		err := checkSpace(ctx, space)
		sent := map[string]uint64{}
		for synced := false; err == nil; synced = true {
			list, changed := d.list(space)
			for _, change := range differences(sent, list) {
				if !yield(change, nil) {
					return
				}
			}
			if !synced && !yield(driver.DocumentChange{Synced: true}, nil) {
				return
			}
			err = d.wait(ctx, changed, list)
		}
		yield(driver.DocumentChange{}, err)
	}
}

// differences returns what a watcher that has sent has still to send, and
// notes it as sent.
func differences(sent map[string]uint64, list []driver.Document) []driver.DocumentChange {
	var changes []driver.DocumentChange
	there := map[string]bool{}
	for _, doc := range list {
		there[doc.Name] = true
		if sent[doc.Name] != doc.Version {
			sent[doc.Name] = doc.Version
			changes = append(changes, driver.DocumentChange{Document: doc})
		}
	}
	for name := range sent {
		if !there[name] {
			delete(sent, name)
			changes = append(changes, driver.DocumentChange{Document: driver.Document{Name: name}, Deleted: true})
		}
	}
	return changes
}

// wait returns nil when something changed or one of the documents expires.
func (d *documents) wait(ctx context.Context, changed <-chan struct{}, list []driver.Document) error {
	var expiry <-chan time.Time
	var first time.Time
	for _, doc := range list {
		if !doc.Expires.IsZero() && (first.IsZero() || doc.Expires.Before(first)) {
			first = doc.Expires
		}
	}
	if !first.IsZero() {
		timer := time.NewTimer(time.Until(first))
		defer timer.Stop()
		expiry = timer.C
	}
	select {
	case <-changed:
	case <-expiry:
	case <-ctx.Done():
	case <-d.store.closed:
		return job.Errorf(job.Unavailable, "the store was closed")
	}
	return ended(ctx)
}

func (d *documents) wake() {
	close(d.changed)
	d.changed = make(chan struct{})
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
	d.wake()
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
		return job.Errorf(job.Precondition, "board %q is only observed: nothing may be changed", space.Board)
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

func noDocument(name string) error {
	return job.Errorf(job.NotFound, "there is no document %q", name)
}

func otherVersion(name string, present, want uint64) error {
	return job.Errorf(job.Aborted, "document %q has version %d, not %d: read it again", name, present, want)
}
