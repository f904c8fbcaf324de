package board

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/boardd/boardd/host/board/jsontext"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Book is a logbook: what a job's Book points to, with what is written in it.
type Book struct {
	UUID, Name string
	Content    []byte // a JSON value
	Version    uint64 // 0: it is kept elsewhere
	Source     string // where it is kept
}

// ownBooks is the Source of books that are kept as the board's own documents.
const ownBooks = "boardd"

// Books reads books that another program keeps. Such books have no versions.
type Books interface {
	// Book returns a book, or NotFound. The uuid is text of at most
	// job.MaxBookName bytes.
	Book(ctx context.Context, uuid string) (Book, error)
}

// bookRecord is a book as its document holds it. The content is kept as text, so
// that it comes back byte for byte.
type bookRecord struct {
	Name    string `json:"name"`
	Content string `json:"content"`

	// Revision is the version that callers see. The document's own version counts the
	// changes of all documents of the store, and would show a caller how much others write.
	// A new book begins at a random revision. 0: the book was written before there were
	// revisions, and its version is the document's.
	Revision uint64 `json:"revision,omitempty"`
}

// version is what callers see as the version of a book that lies in doc.
func (r *bookRecord) version(doc *driver.Document) uint64 {
	if r.Revision == 0 {
		return doc.Version
	}
	return r.Revision
}

// follow gives the record the revision after before; a random one if before is 0
// or that would be too large.
func (r *bookRecord) follow(before uint64) {
	const most = 1 << 53 // above it, JSON readers that use float64 lose whole numbers
	if r.Revision = before + 1; before == 0 || r.Revision >= most {
		var random [8]byte
		_, _ = rand.Read(random[:]) // never fails
		r.Revision = 1 + binary.BigEndian.Uint64(random[:])>>12
	}
}

// PutBook writes a book if its present version is ifVersion (0: there is no such
// book yet; nil: any version), else the error is Aborted. It returns the new version.
func (b *Board) PutBook(ctx context.Context, book Book, ifVersion *uint64) (uint64, error) {
	if err := checkBook(&book); err != nil {
		return 0, err
	}
	if _, err := b.changing(ctx); err != nil {
		return 0, err
	}
	if err := b.checkElsewhere(ctx, book.UUID); err != nil {
		return 0, err
	}
	for try := 0; ; try++ {
		version, err := b.tryBook(ctx, &book, ifVersion)
		switch {
		case !errors.Is(err, job.Aborted):
			return version, err
		case ifVersion == nil && try < tries:
			continue
		}
		return 0, &job.Error{Op: "put book", Kind: job.Aborted, Message: "version: the book has another version by now: read it again", Err: err}
	}
}

// tryBook is PutBook over the book as it stands now.
func (b *Board) tryBook(ctx context.Context, book *Book, ifVersion *uint64) (uint64, error) {
	docs, space := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: driver.BookSpace}
	old, err := docs.Get(ctx, space, book.UUID)
	if err != nil && !errors.Is(err, job.NotFound) {
		return 0, err
	}
	var present uint64
	if err == nil {
		var r bookRecord
		_ = json.Unmarshal(old.Data, &r) // one that cannot be read has the document's version
		present = r.version(&old)
	}
	if ifVersion != nil && *ifVersion != present {
		return 0, job.Aborted
	}
	next := bookRecord{Name: book.Name, Content: string(book.Content)}
	next.follow(present)
	data, err := json.Marshal(next)
	if err != nil {
		return 0, &job.Error{Op: "put book", Kind: job.Internal, Err: err}
	}
	_, err = docs.Put(ctx, space, driver.Document{Name: book.UUID, Data: data}, old.Version)
	return next.Revision, err
}

// checkElsewhere refuses a book that is kept elsewhere: one of the same uuid here
// would hide it.
func (b *Board) checkElsewhere(ctx context.Context, uuid string) error {
	if b.spec.Books == nil {
		return nil
	}
	book, err := b.spec.Books.Book(ctx, uuid)
	switch {
	case errors.Is(err, job.NotFound):
		return nil
	case err == nil:
		return job.Errorf(job.Precondition, "the book %q is kept in %s, and is written there", shorten.To(uuid, 64), book.Source)
	}
	return err
}

func checkBook(book *Book) error {
	if book.UUID == "" {
		return job.Errorf(job.Invalid, "book.uuid: want 1 to %d bytes", job.MaxBookName)
	}
	if err := checkText("book.uuid", book.UUID, job.MaxBookName); err != nil {
		return err
	}
	if err := checkText("book.name", book.Name, job.MaxBookName); err != nil {
		return err
	}
	if len(book.Content) == 0 {
		book.Content = []byte("null")
	}
	return jsontext.CheckValue("book.content", book.Content, job.MaxBook)
}

// Book returns a book, or NotFound.
func (b *Board) Book(ctx context.Context, uuid string) (Book, error) {
	if uuid == "" || textProblem(uuid, job.MaxBookName) != "" {
		return Book{}, job.Errorf(job.Invalid, "uuid: want 1 to %d bytes of text", job.MaxBookName)
	}
	if _, err := b.serving(ctx); err != nil {
		return Book{}, err
	}
	doc, err := b.driver.Documents().Get(ctx, driver.Space{Board: b.spec.Key, Name: driver.BookSpace}, uuid)
	if errors.Is(err, job.NotFound) && b.spec.Books != nil {
		return b.spec.Books.Book(ctx, uuid)
	}
	if errors.Is(err, job.NotFound) {
		return Book{}, job.Errorf(job.NotFound, "there is no book %q on this board", shorten.To(uuid, 64))
	}
	if err != nil {
		return Book{}, err
	}
	var r bookRecord
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		return Book{}, &job.Error{Op: "get book", Kind: job.Corrupt, Message: "the book's record in the store cannot be read", Err: err}
	}
	return Book{UUID: uuid, Name: r.Name, Content: []byte(r.Content), Version: r.version(&doc), Source: ownBooks}, nil
}
