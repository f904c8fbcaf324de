package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// documents are the small versioned records. They need no open board. Each change is
// one statement, which PostgreSQL commits by itself.
type documents struct{ *store }

// Documents returns the store's small versioned records.
func (s *store) Documents() driver.Documents { return documents{s} }

// clock is the server's time, as it is kept.
const clock = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000`

// thereNow are the documents of a space that have not expired.
const thereNow = ` FROM {s}.documents WHERE board = $1 AND space = $2 AND (expires = 0 OR expires > ` + clock + `) `

func (d documents) Get(ctx context.Context, space driver.Space, name string) (doc driver.Document, err error) {
	if err := check(space, name); err != nil {
		return doc, err
	}
	list, err := d.named(ctx, space, name, "data")
	switch {
	case err != nil:
		return doc, err
	case len(list) == 0:
		return doc, document.NotThere(name)
	}
	return list[0], nil
}

// named returns the document of a name with data, if it is there.
func (d documents) named(ctx context.Context, space driver.Space, name, data string) (list []driver.Document, err error) {
	list, _, err = d.read(ctx, `SELECT name, version, expires, `+data+thereNow+`AND name = $3`, []byte(space.Board), []byte(space.Name), []byte(name))
	return list, err
}

// maxName is the longest name of a document; the key of an index has to hold it.
const maxName = 1500

// check refuses a space or a name that cannot be kept.
func check(space driver.Space, name string) error {
	if n := len(space.Board) + len(space.Name) + len(name); n > maxName {
		return job.Errorf(job.Invalid, "board, space and name of the document have %d bytes: want at most %d", n, maxName)
	}
	return driver.CheckDocument(space, name)
}

// again does what may be done twice once more, if the connection was dead.
func (s *store) again(ctx context.Context, do func(ctx context.Context) error) error {
	err := s.within(ctx, do)
	if err != nil && useless(err) && !errors.Is(err, pgx.ErrNoRows) && ctx.Err() == nil {
		s.pool.Reset()
		err = s.within(ctx, do)
	}
	return err
}

// insertDocument puts a document where there is none, or one that has expired.
const insertDocument = `INSERT INTO {s}.documents AS d (board, space, name, expires, data, version)
	VALUES ($1, $2, $3, $4, $5, nextval('{s}.document_versions')) ON CONFLICT (board, space, name) DO UPDATE
	SET version = nextval('{s}.document_versions'), expires = excluded.expires, data = excluded.data
	WHERE d.expires <> 0 AND d.expires <= ` + clock + ` AND $6::bigint = 0 RETURNING version`

// updateDocument puts a document over the one that has a version. The new version is
// taken when the row is locked: so versions of a name only grow.
const updateDocument = `UPDATE {s}.documents SET version = nextval('{s}.document_versions'), expires = $4, data = $5
	WHERE board = $1 AND space = $2 AND name = $3 AND version = $6 AND (expires = 0 OR expires > ` + clock + `) RETURNING version`

func (d documents) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (version uint64, err error) {
	if err := errors.Join(check(space, doc.Name), document.Fits(&doc), d.observed(space)); err != nil {
		return 0, err
	}
	text := updateDocument
	if ifVersion == 0 {
		text = insertDocument
	}
	args := []any{[]byte(space.Board), []byte(space.Name), []byte(doc.Name), nanos(doc.Expires), append([]byte{}, doc.Data...), int64(ifVersion)} //nolint:gosec // one that is higher is none that was given
	err = d.change(ctx, space, text, args, &version)
	if errors.Is(err, pgx.ErrNoRows) {
		present, err := d.present(ctx, space, doc.Name)
		if err == nil {
			err = document.OtherVersion(doc.Name, present, ifVersion)
		}
		return 0, err
	}
	return version, err
}

// deleteDocument takes a number as well: others see by it that there is something to
// look at.
const deleteDocument = `WITH gone AS (
	DELETE FROM {s}.documents WHERE board = $1 AND space = $2 AND name = $3 AND version = $4 AND (expires = 0 OR expires > ` + clock + `) RETURNING 1
) SELECT nextval('{s}.document_versions') FROM gone`

func (d documents) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	if err := errors.Join(check(space, name), d.observed(space)); err != nil {
		return err
	}
	var version int64
	err := d.change(ctx, space, deleteDocument, []any{[]byte(space.Board), []byte(space.Name), []byte(name), int64(ifVersion)}, &version) //nolint:gosec // likewise
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	present, err := d.present(ctx, space, name)
	switch {
	case err != nil:
		return err
	case present == 0:
		return document.NotThere(name)
	}
	return document.OtherVersion(name, present, ifVersion)
}

// observed refuses a change to the documents of a board that is only observed.
func (d documents) observed(space driver.Space) error {
	if b, err := d.board(space.Board); err == nil && b.Observe {
		return document.Observed(space.Board)
	}
	return nil
}

// change runs a statement that changes a document, and reads its only row; none, as
// pgx.ErrNoRows, is a condition that was not met.
func (d documents) change(ctx context.Context, space driver.Space, text string, args []any, row any) error {
	var passage transition.Passage
	conn, err := d.begin(ctx, func(queue *pgx.Batch) {
		queue.Queue(beginWrite)
		queue.Queue(local)
		if space.Board != "" {
			d.queuePassage(queue, space.Board, &passage)
		}
	})
	if err != nil {
		return err
	}
	defer d.abandon(conn)
	if err := passage.Closed(); err != nil {
		return err
	}
	queue := &pgx.Batch{}
	none := false
	queue.Queue(d.sql(text), args...).QueryRow(func(r pgx.Row) error {
		err := r.Scan(row)
		if none = errors.Is(err, pgx.ErrNoRows); none {
			return nil
		}
		return err
	})
	if err := d.commit(ctx, conn, queue); err != nil {
		return err
	}
	if none {
		return pgx.ErrNoRows
	}
	d.feed.changed(space)
	d.news.addSpace(space)
	return nil
}

// present returns the version of a document; 0: there is none.
func (d documents) present(ctx context.Context, space driver.Space, name string) (version uint64, err error) {
	list, err := d.named(ctx, space, name, "NULL::bytea")
	if len(list) > 0 {
		version = list[0].Version
	}
	return version, err
}

func (d documents) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	if err := space.Check(); err != nil {
		return nil, err
	}
	var most *int // no limit
	if limit > 0 {
		most = &limit
	}
	list, _, err := d.read(ctx, `SELECT name, version, expires, data`+thereNow+`AND name > $3 ORDER BY name LIMIT $4`,
		[]byte(space.Board), []byte(space.Name), []byte(after), most)
	return list, err
}

// Documents that have expired are there for nobody, but their rows are: of servers that are no
// more, and of what says that a record was deleted. Each server takes such rows away now and then,
// whoever wrote them, so few in a statement that those who watch can be told which (see migration 6).
const (
	reapEvery = 15 * time.Minute
	reapMost  = 100
)

// reapExpired names the rows itself, so that one which somebody writes anew meanwhile stays, and
// two servers that reap at once wait for nobody.
const reapExpired = `DELETE FROM {s}.documents WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM {s}.documents WHERE expires <> 0 AND expires <= ` + clock + ` LIMIT $1 FOR UPDATE SKIP LOCKED))`

// reapForever takes away what has expired, and what is left of dropped boards, until ctx ends.
func (s *store) reapForever(ctx context.Context) {
	for sleep.For(ctx, reapEvery) == nil {
		if err := s.within(ctx, s.reap); err != nil && ctx.Err() == nil {
			s.log.Debug("documents that have expired are still there, which is tried again", "error", err)
		}
		if err := s.clearDropped(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("rows of boards that were dropped are still there, which is tried again", "error", err)
		}
	}
}

// reap takes away the documents that have expired by now.
func (s *store) reap(ctx context.Context) error {
	for gone := int64(reapMost); gone == reapMost; {
		tag, err := s.pool.Exec(ctx, s.sql(reapExpired), reapMost)
		if err != nil {
			return err
		}
		gone = tag.RowsAffected()
	}
	return nil
}
