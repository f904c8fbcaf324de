package main

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/driver/poll"
)

// documents are the small versioned records. They need no open board.
type documents struct{ *store }

func (s *store) Documents() driver.Documents { return documents{s} }

// thereNow are the documents of a space that have not expired.
const thereNow = " FROM documents WHERE board = ? AND space = ? AND (expires = 0 OR expires > ?) "

func (d documents) Get(ctx context.Context, space driver.Space, name string) (doc driver.Document, err error) {
	if err := driver.CheckDocument(space, name); err != nil {
		return doc, err
	}
	err = d.read(ctx, func(q *session) error {
		if version, expires := q.document(space, name); version != 0 {
			doc = driver.Document{Name: name, Version: version, Expires: fromNanos(expires)}
			q.row(into(&doc.Data), "SELECT data FROM documents WHERE version = ?", version)
			return nil
		}
		return document.NotThere(name)
	})
	return doc, err
}

// document returns the version of a document, and when it expires; 0: there is none.
func (q *session) document(space driver.Space, name string) (version uint64, expires int64) {
	q.row(into(&version, &expires), "SELECT version, expires"+thereNow+"AND name = ?", space.Board, space.Name, nanos(time.Now()), name)
	return version, expires
}

func (d documents) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (version uint64, err error) {
	if err := document.Fits(&doc); err != nil {
		return 0, err
	}
	err = d.change(ctx, space, doc.Name, func(q *session, present uint64) error {
		if err := document.Put(&doc, present, ifVersion); err != nil {
			return err
		}
		q.row(into(&version), "INSERT OR REPLACE INTO documents (board, space, name, data, expires) VALUES (?, ?, ?, ?, ?) RETURNING version",
			space.Board, space.Name, doc.Name, append([]byte{}, doc.Data...), nanos(doc.Expires))
		return nil
	})
	return version, err
}

func (d documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	return d.change(ctx, space, name, func(q *session, present uint64) error {
		err := document.Delete(name, present, ifVersion)
		if err == nil {
			q.exec("DELETE FROM documents WHERE version = ?", ifVersion)
		}
		return err
	})
}

// change calls do with the present version of a document, which nobody else changes
// meanwhile.
func (d documents) change(ctx context.Context, space driver.Space, name string, do func(q *session, present uint64) error) error {
	if err := driver.CheckDocument(space, name); err != nil {
		return err
	}
	if b, err := d.board(space.Board); err == nil && b.Observe {
		return document.Observed(space.Board)
	}
	return d.write(ctx, func(q *session) error {
		present, _ := q.document(space, name)
		if q.err != nil {
			return q.err
		}
		return do(q, present)
	})
}

func (d documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	if limit <= 0 {
		limit = -1 // no limit, in SQLite's words
	}
	return d.list(ctx, space, func(*driver.Document) bool { return true }, "AND name > ? ORDER BY name LIMIT ?", after, limit)
}

func (d documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return poll.Documents(ctx, &d.bell, func(ctx context.Context, fresh func(*driver.Document) bool) ([]driver.Document, error) {
		return d.list(ctx, space, fresh, "")
	})
}

// list reads the documents of a space, with the data of those that are wanted.
func (d documents) list(ctx context.Context, space driver.Space, wanted func(*driver.Document) bool, which string, args ...any) (list []driver.Document, err error) {
	if err := space.Check(); err != nil {
		return nil, err
	}
	err = d.read(ctx, func(q *session) error {
		q.each(func(rows *sql.Rows) error {
			var doc driver.Document
			var expires int64
			err := rows.Scan(&doc.Name, &doc.Version, &expires)
			doc.Expires = fromNanos(expires)
			list = append(list, doc)
			return err
		}, "SELECT name, version, expires"+thereNow+which, append([]any{space.Board, space.Name, nanos(time.Now())}, args...)...)
		for i := range list {
			if doc := &list[i]; wanted(doc) {
				q.row(into(&doc.Data), "SELECT data FROM documents WHERE version = ?", doc.Version)
			}
		}
		return nil
	})
	return list, err
}
