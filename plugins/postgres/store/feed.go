package store

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/sleep"
)

// A feed tells those who watch documents which were changed. It looks for all of them at once,
// so that a change costs one look here and a read by those who watch its space, however many
// others are watched, and however much is in them.
type feed struct {
	wake chan struct{} // has room for one

	mu     sync.Mutex
	spaces map[driver.Space]map[*spaceWatch]bool
	words  map[string]int // how many watch a space that has a word
	origin string         // of what was read last
	closed bool

	last changesSeen // of the look's own
}

// A spaceWatch is one who watches the documents of a space, and what it has still to read. The
// feed's lock guards it.
type spaceWatch struct {
	poll.Bell
	space driver.Space
	all   bool            // everything
	names map[string]bool // these documents
}

// changesSeen is up to where the changes of documents have been read.
type changesSeen struct {
	origin  string   // empty: nothing was read
	number  int64    // of a change, drawn before the snapshot
	top     string   // of the snapshot: transactions from here on had not begun,
	running []string // and of those before these were under way
}

// behind is by how many changes a look may be late. The tables keep twice as many.
const behind = 32768

// mostNames is how many documents a watcher reads by their names; instead of more it reads all.
const mostNames = 8192

func newFeed() feed {
	return feed{wake: make(chan struct{}, 1), spaces: map[driver.Space]map[*spaceWatch]bool{}, words: map[string]int{}}
}

// join adds somebody who watches a space, and has everything to read.
func (f *feed) join(space driver.Space) *spaceWatch {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &spaceWatch{space: space, all: true}
	if f.spaces[space] == nil {
		f.spaces[space] = map[*spaceWatch]bool{}
	}
	f.spaces[space][w] = true
	f.words[wordOf(space)]++
	if f.closed {
		w.Close()
	}
	return w
}

func (f *feed) leave(w *spaceWatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.spaces[w.space], w); len(f.spaces[w.space]) == 0 {
		delete(f.spaces, w.space)
	}
	word := wordOf(w.space)
	if f.words[word]--; f.words[word] == 0 {
		delete(f.words, word)
	}
}

// watches reports whether somebody here watches a space that has the word.
func (f *feed) watches(word string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.words[word] > 0
}

// changed has a look begin if somebody here watches a space.
func (f *feed) changed(space driver.Space) {
	if f.watches(wordOf(space)) {
		f.ring()
	}
}

// ring has a look begin.
func (f *feed) ring() {
	select {
	case f.wake <- struct{}{}:
	default: // there will be one
	}
}

// close ends every watch.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, watches := range f.spaces {
		for w := range watches {
			w.Close()
		}
	}
}

// take returns what a watcher has to read, and of which origin that has to be.
func (f *feed) take(w *spaceWatch) (names []string, all bool, origin string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range w.names {
		names = append(names, name)
	}
	all, w.all, w.names = w.all, false, nil
	return names, all, f.origin
}

// again has a watcher read everything again, after another look.
func (f *feed) again(w *spaceWatch) {
	f.mu.Lock()
	w.all = true
	f.mu.Unlock()
	f.ring()
}

// A changedDocument is what one row of the changes says: of a space without a name everything
// may have been changed, and without a space all there is.
type changedDocument struct{ board, space, name []byte }

// share wakes those whose spaces were changed, or if everything is to be read, everybody.
func (f *feed) share(changes []changedDocument, everything bool, origin string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.origin = origin
	for _, c := range changes {
		everything = everything || len(c.space) == 0
		for w := range f.spaces[driver.Space{Board: string(c.board), Name: string(c.space)}] {
			w.read(c.name)
			w.Ring()
		}
	}
	if !everything {
		return
	}
	for _, watches := range f.spaces {
		for w := range watches {
			w.read(nil)
			w.Ring()
		}
	}
}

// read notes a document that has to be read; nil: all.
func (w *spaceWatch) read(name []byte) {
	if w.all = w.all || name == nil || len(w.names) >= mostNames; w.all {
		w.names = nil
		return
	}
	if w.names == nil {
		w.names = map[string]bool{}
	}
	w.names[string(name)] = true
}

// origin tells apart the servers, and the tables on one of them, whose transactions and
// changes are counted apart: a table that was restored from a dump is another one.
const origin = `(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint || '/' || to_regclass('{s}.documents')::oid`

// beginEach begins a transaction in which each statement sees what was committed before it.
const beginEach = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"

// findChanged returns the changes of documents that are visible now and were not in the last
// snapshot: such a one is of a transaction that the last one lists as running, or that began
// after it. There is always a row, for the snapshot's sake. Rows of transactions that have not
// begun were dumped from another server.
const findChanged = `SELECT now.origin, now.number, now.top, now.running, c.space IS NOT NULL, c.board, c.space, c.name FROM (
		SELECT ` + origin + ` AS origin, (SELECT last_value FROM {s}.document_change_numbers) AS number,
			pg_snapshot_xmax(pg_current_snapshot())::text AS top, ARRAY(SELECT pg_snapshot_xip(pg_current_snapshot())::text) AS running
	) now LEFT JOIN (
		SELECT board, space, name FROM {s}.document_changes WHERE xact >= $1::text::xid8 AND xact < pg_snapshot_xmax(pg_current_snapshot())
		UNION SELECT board, space, name FROM {s}.document_changes WHERE xact = ANY($2::text[]::xid8[])
	) c ON true`

// readChanges looks once for documents that were changed, and tells those who watch them.
func (s *store) readChanges(ctx context.Context) error {
	last := s.feed.last
	if last.origin == "" {
		last.top, last.running = "9223372036854775807", nil // no change is wanted
	}
	var now changesSeen
	var number int64 // drawn after the snapshot
	var changes []changedDocument
	conn, err := s.begin(ctx, func(queue *pgx.Batch) {
		changes = nil
		queue.Queue(beginEach)
		queue.Queue(local)
		queue.Queue(s.sql(`SELECT last_value FROM {s}.document_change_numbers`)).QueryRow(func(row pgx.Row) error { return row.Scan(&now.number) })
		queue.Queue(s.sql(findChanged), last.top, last.running).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var c changedDocument
				var there bool
				if err := rows.Scan(&now.origin, &number, &now.top, &now.running, &there, &c.board, &c.space, &c.name); err != nil {
					return err
				}
				if there {
					changes = append(changes, c)
				}
			}
			return rows.Err()
		})
		queue.Queue("COMMIT")
	})
	if err != nil {
		return err
	}
	s.abandon(conn)
	s.feed.last = now
	s.feed.share(changes, now.origin != last.origin || number-last.number > behind, now.origin)
	return nil
}

// followDocuments looks for documents that were changed whenever there may be some.
func (s *store) followDocuments(ctx context.Context) {
	for {
		select {
		case <-s.feed.wake:
		case <-ctx.Done():
			return
		}
		wait := tellEvery // what is changed meanwhile is found by one look
		if err := s.readChanges(ctx); err != nil {
			if ctx.Err() == nil {
				s.log.Debug("PostgreSQL cannot be asked which documents were changed, which is tried again", "error", err)
			}
			s.feed.ring()
			wait = listenWait
		}
		if sleep.For(ctx, wait) != nil {
			return
		}
	}
}
