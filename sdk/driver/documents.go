package driver

import (
	"context"
	"iter"
	"time"
)

// Space names a set of documents: a board's, or with an empty Board one that
// belongs to the whole backend, such as the host's catalog. Name is made of
// [a-z0-9._-].
type Space struct {
	Board string
	Name  string
}

// The spaces that a driver may have to know, since a shared store keeps them in
// a form of its own.
const (
	EntitySpace  = "entities" // who works here; names are KIND/NAME, data is JSON
	SettingSpace = "settings" // a board's own settings
	BookSpace    = "books"    // logbooks, by uuid
)

// LogbookSpace is a space of no board, in which a driver whose Info says
// Logbooks shows the books that TaskFlow keeps in its store. A document's name
// is the path of TaskFlow's persistence, a line feed and the book's uuid; its
// Data is a JSON object as package logbook makes it. Only Get serves it.
const LogbookSpace = "taskflow-logbooks"

// LogbookName returns the name of a document in LogbookSpace.
func LogbookName(path, uuid string) string { return path + "\n" + uuid }

// Document is a small versioned record.
type Document struct {
	Name    string
	Data    []byte
	Version uint64    // set by the store; at least 1, grows with each change of this name, also over its deletion
	Expires time.Time // zero: never; the store may take it away from then on
}

// Expired reports whether the document is there no more at a time of the
// store's wall clock.
func (d *Document) Expired(now time.Time) bool {
	return !d.Expires.IsZero() && !now.Before(d.Expires)
}

// MaxDocument is the largest document, in bytes; every store takes it. A store
// that cannot hold as much in one record splits it, and writes the head last.
const MaxDocument = 8 << 20

// Documents keeps documents. Every change is a compare-and-set. A document that
// has expired is not there. A board's documents need no open board, and are
// dropped with it.
type Documents interface {
	// Get returns the document, or NotFound.
	Get(ctx context.Context, space Space, name string) (Document, error)

	// Put writes doc if the present version is ifVersion (0: there is none) and
	// returns the new version; otherwise it is Aborted.
	Put(ctx context.Context, space Space, doc Document, ifVersion uint64) (uint64, error)

	// Delete takes a document away if its version is ifVersion; otherwise it is
	// Aborted, or NotFound if there is none.
	Delete(ctx context.Context, space Space, name string, ifVersion uint64) error

	// List returns up to limit documents whose names come after the given one,
	// in the order of their names as bytes. A limit of 0 is none.
	List(ctx context.Context, space Space, after string, limit int) ([]Document, error)

	// Watch streams first what there is, and then each change at once. It ends
	// with an error: Interrupted when ctx ends, another when the store is lost.
	Watch(ctx context.Context, space Space) iter.Seq2[DocumentChange, error]
}

// DocumentChange is a step of a watch. Changes of one document come in their order, and may
// be merged; those of different documents come in any order.
type DocumentChange struct {
	Document Document
	Deleted  bool
	Synced   bool // no document: everything that was there at the start has been sent
}
