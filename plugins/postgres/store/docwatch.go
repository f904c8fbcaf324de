package store

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/document"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/sleep"
)

// documentPage is how many documents are read at once where all of a space are.
const documentPage = 256

// Watch reads everything that is there, and then what the feed names.
func (d documents) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		if err := space.Check(); err != nil {
			yield(driver.DocumentChange{}, err)
			return
		}
		w := d.feed.join(space)
		defer d.feed.leave(w)
		poll.Space(ctx, &w.Bell, func(ctx context.Context, t *document.Told) error { return d.follow(ctx, w, t) })(yield)
	}
}

// follow reads what a watcher has to read. What turns out to be of another origin than the
// feed's last look is read again after the next one: either of them was of a server that is
// not asked any more, or of a table that is gone.
func (d documents) follow(ctx context.Context, w *spaceWatch, t *document.Told) error {
	for {
		names, all, origin := d.feed.take(w)
		var same bool
		var err error
		if all {
			same, err = d.readAll(ctx, w.space, t, origin)
		} else {
			same, err = d.readNamed(ctx, w.space, t, append(names, t.Due(time.Now())...), origin)
		}
		if err != nil || same {
			return err
		}
		d.feed.again(w)
		if sleep.For(ctx, listenWait) != nil {
			return interrupted(ctx)
		}
	}
}

// readAll tells of all documents of a space, page by page. It ends early, as not the same, where
// a page is of another origin.
func (d documents) readAll(ctx context.Context, space driver.Space, t *document.Told, origin string) (same bool, err error) {
	there := map[string]bool{}
	for after := ""; ; {
		page, from, err := d.read(ctx, `SELECT name, version, expires, NULL::bytea`+thereNow+`AND name > $3 ORDER BY name LIMIT $4`,
			[]byte(space.Board), []byte(space.Name), []byte(after), documentPage)
		if err != nil || from != origin {
			return false, err
		}
		var fresh []string
		for i := range page {
			there[page[i].Name] = true
			if !t.Knows(&page[i]) {
				fresh = append(fresh, page[i].Name)
			}
		}
		if same, err := d.readNamed(ctx, space, t, fresh, origin); err != nil || !same {
			return false, err
		}
		if len(page) < documentPage {
			t.Only(there)
			return true, nil
		}
		after = page[len(page)-1].Name
		if !t.Tell() {
			return true, nil // nobody listens any more
		}
	}
}

// readNamed tells of the named documents of a space, or that they are gone.
func (d documents) readNamed(ctx context.Context, space driver.Space, t *document.Told, names []string, origin string) (same bool, err error) {
	for len(names) > 0 {
		part := names[:min(len(names), documentPage)]
		names = names[len(part):]
		list, from, err := d.read(ctx, `SELECT d.* FROM unnest($3::bytea[]) k (name) CROSS JOIN LATERAL (SELECT name, version, expires, data`+thereNow+`AND name = k.name OFFSET 0) d`,
			[]byte(space.Board), []byte(space.Name), texts(part))
		if err != nil || from != origin {
			return false, err
		}
		t.Named(part, list)
	}
	return true, nil
}

// read runs a statement that reads documents, and says of which origin they are.
func (d documents) read(ctx context.Context, text string, args ...any) (list []driver.Document, from string, err error) {
	conn, err := d.begin(ctx, func(queue *pgx.Batch) {
		queue.Queue(beginRead)
		queue.Queue(local)
		queue.Queue(d.sql(`SELECT ` + origin)).QueryRow(func(row pgx.Row) error { return row.Scan(&from) })
		queue.Queue(d.sql(text), args...).Query(func(rows pgx.Rows) (err error) {
			list, err = scanDocuments(rows)
			return err
		})
		queue.Queue("COMMIT")
	})
	if err != nil {
		return nil, "", err
	}
	d.abandon(conn)
	return list, from, nil
}

func scanDocuments(rows pgx.Rows) (list []driver.Document, err error) {
	var name, data []byte
	var doc driver.Document
	var expires int64
	_, err = pgx.ForEachRow(rows, []any{&name, &doc.Version, &expires, &data}, func() error {
		list = append(list, driver.Document{Name: string(name), Version: doc.Version, Expires: fromNanos(expires), Data: append([]byte(nil), data...)})
		return nil
	})
	return list, err
}
