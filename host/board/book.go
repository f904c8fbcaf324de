package board

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
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

// Books is where books are kept by somebody else. They have no versions.
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
}

// PutBook writes a book if its version is ifVersion (0: there is none; nil:
// whatever stands there), else it is Aborted. It returns the new version.
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
	data, err := json.Marshal(bookRecord{book.Name, string(book.Content)})
	if err != nil {
		return 0, &job.Error{Op: "put book", Kind: job.Internal, Err: err}
	}
	doc := driver.Document{Name: book.UUID, Data: data}
	if ifVersion == nil {
		return b.putDocument(ctx, driver.BookSpace, doc)
	}
	version, err := b.driver.Documents().Put(ctx, driver.Space{Board: b.spec.Key, Name: driver.BookSpace}, doc, *ifVersion)
	if errors.Is(err, job.Aborted) {
		return 0, &job.Error{Op: "put book", Kind: job.Aborted, Message: "version: the book has another version by now: read it again", Err: err}
	}
	return version, err
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
		return job.Errorf(job.Precondition, "the book %q is kept in %s, and is written there", cut(uuid, 64), book.Source)
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
	return checkValue("book.content", book.Content, job.MaxBook)
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
		return Book{}, job.Errorf(job.NotFound, "there is no book %q on this board", cut(uuid, 64))
	}
	if err != nil {
		return Book{}, err
	}
	var r bookRecord
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		return Book{}, &job.Error{Op: "get book", Kind: job.Corrupt, Message: "the book's record in the store cannot be read", Err: err}
	}
	return Book{UUID: uuid, Name: r.Name, Content: []byte(r.Content), Version: doc.Version, Source: ownBooks}, nil
}
