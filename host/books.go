package host

import (
	"context"
	"errors"
	"net/url"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/logbook"
	"github.com/boardd/boardd/sdk/job"
)

// booksOf returns where TaskFlow keeps the books of a board's jobs, or nil.
func (h *Host) booksOf(c config.Board) board.Books {
	switch at := c.Books; {
	case at.Directory != "":
		return directoryBooks(at.Directory)
	case at.Backend != "":
		return storeBooks{h, at.Backend, at.Path}
	}
	return nil
}

// directoryBooks is the path of a folder of this machine.
type directoryBooks string

func (d directoryBooks) Book(ctx context.Context, uuid string) (board.Book, error) {
	from := url.URL{Scheme: "dir", Path: string(d)}
	book, err := logbook.Read(ctx, logbook.Dir(d), uuid)
	return board.Book{UUID: uuid, Name: book.Name, Content: book.Content, Source: from.String()}, told(err)
}

// told makes an error about a book that can be read in part one that callers are
// told: the record is TaskFlow's, and whoever wrote it wants to know which.
func told(err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok && e.Kind == job.Corrupt {
		return &job.Error{Op: e.Op, Kind: job.Precondition, Message: e.Message, Err: e.Err}
	}
	return err
}

// storeBooks are below a path in the store of a backend, whichever has its name when they are read.
type storeBooks struct {
	host    *Host
	backend string
	path    string
}

func (s storeBooks) Book(ctx context.Context, uuid string) (board.Book, error) {
	on := s.host.backend(s.backend)
	from := url.URL{Scheme: on.config.Driver, Host: on.config.Name, Path: s.path}
	book := board.Book{UUID: uuid, Source: from.String()}
	r := on.running.Load()
	switch {
	case r == nil:
		return book, job.Errorf(job.Unavailable, "the driver of the backend %s, where TaskFlow's books are, does not run: the server's log says why", on.config.Name)
	case !r.info.Logbooks:
		return book, job.Errorf(job.Precondition, "the driver of the backend %s, which is %s, cannot read TaskFlow's books", on.config.Name, on.config.Driver)
	case !logbook.IsName(uuid):
		return book, job.Errorf(job.NotFound, "there is no book %q", uuid)
	}
	doc, err := r.driver.Documents().Get(ctx, driver.Space{Name: driver.LogbookSpace}, driver.LogbookName(s.path, uuid))
	if err != nil {
		return book, told(err)
	}
	book.Content = doc.Data
	if book.Name, err = logbook.NameOf(doc.Data); err != nil {
		return book, &job.Error{Op: "get book", Kind: job.Corrupt, Message: "the driver gave a book that is no JSON object", Err: err}
	}
	return book, nil
}
