package store

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// asked counts what a driver has asked for the sake of those who watch documents.
type asked struct {
	mu                          sync.Mutex
	looks, changes, reads, docs int // looks into the changes and what they found, reads of documents and what they found
}

type askedText struct{}

func (a *asked) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (a *asked) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch n := int(q.CommandTag.RowsAffected()); {
	case strings.Contains(q.SQL, "pg_snapshot_xip"):
		a.looks++
		a.changes += n // one more than there are changes, where there are none
	case strings.HasPrefix(q.SQL, "SELECT") && strings.Contains(q.SQL, ".documents WHERE board = $1"):
		a.reads++
		a.docs += n
	}
}

func (a *asked) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (a *asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, askedText{}, q.SQL)
}

func (a *asked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// take returns what was counted since the last time.
func (a *asked) take() (looks, changes, reads, docs int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	looks, changes, reads, docs = a.looks, a.changes, a.reads, a.docs
	a.looks, a.changes, a.reads, a.docs = 0, 0, 0, 0
	return looks, changes, reads, docs
}

// counted opens a driver that counts what it asks.
func counted(t testing.TB, addr string) (*store, *asked) {
	t.Helper()
	settings, err := readSettings([]byte(`{"url":"postgres://postgres@` + addr + `/postgres?sslmode=disable"}`))
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{}
	settings.pool.ConnConfig.Tracer = a
	s, err := reach(t.Context(), settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, a
}

// A known is what somebody who watches a space knows of it.
type known struct {
	mu     sync.Mutex
	data   map[string]string
	synced bool
	err    error
}

// watching watches a space until the test ends, and comes back when all is known.
func watching(t testing.TB, s *store, space driver.Space) *known {
	t.Helper()
	k := &known{data: map[string]string{}}
	var watch sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	watch.Go(func() {
		for c, err := range s.Documents().Watch(ctx, space) {
			k.note(&c, err)
		}
	})
	t.Cleanup(func() {
		cancel()
		watch.Wait()
	})
	testserver.Eventually(t, "everything is known", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.synced || k.err != nil
	})
	return k
}

func (k *known) note(c *driver.DocumentChange, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		k.err = err
	case c.Synced:
		k.synced = true
	case c.Deleted:
		delete(k.data, c.Document.Name)
	default:
		k.data[c.Document.Name] = string(c.Document.Data)
	}
}

// comes waits until this is known, and no more.
func (k *known) comes(t testing.TB, want map[string]string) {
	t.Helper()
	var last map[string]string
	defer func() {
		if t.Failed() {
			t.Logf("known is %v", last)
		}
	}()
	testserver.Eventually(t, fmt.Sprintf("%v is known", want), func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		if last = maps.Clone(k.data); k.err != nil {
			t.Fatalf("the watch ended: %v", k.err)
		}
		return maps.Equal(k.data, want)
	})
}

var (
	watched  = driver.Space{Name: "watched"}
	elsewise = driver.Space{Board: "b", Name: "settings"}
)

func putTo(t testing.TB, s *store, space driver.Space, name, data string, ifVersion uint64) uint64 {
	t.Helper()
	v, err := s.Documents().Put(t.Context(), space, driver.Document{Name: name, Data: []byte(data)}, ifVersion)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// plain is what a program of before the table of changes does for a document, with no word to
// anybody.
const (
	plainInsert = `INSERT INTO boardd.documents VALUES ('', 'watched', 'NAME', nextval('boardd.document_versions'), 0, 'DATA')`
	plainUpdate = `UPDATE boardd.documents SET version = nextval('boardd.document_versions'), data = 'DATA' WHERE board = '' AND space = 'watched' AND name = 'NAME'`
	plainDelete = `DELETE FROM boardd.documents WHERE board = '' AND space = 'watched' AND name = 'NAME'`
)

func plain(text, name, data string) string {
	return strings.NewReplacer("NAME", name, "DATA", data).Replace(text)
}

// TestPlainChanges: what a program that knows nothing of changes inserts, updates, deletes and
// empties is seen, whether it tells or not.
func TestPlainChanges(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	s, _ := counted(t, p.Addr)
	k := watching(t, s, watched)
	for _, tell := range []string{"", fmt.Sprintf("; SELECT pg_notify('%s', ' d')", s.channel())} {
		p.SQL("postgres", plain(plainInsert, "a", "one")+tell)
		k.comes(t, map[string]string{"a": "one"})
		p.SQL("postgres", plain(plainUpdate, "a", "two")+tell)
		k.comes(t, map[string]string{"a": "two"})
		p.SQL("postgres", plain(plainDelete, "a", "")+tell)
		k.comes(t, map[string]string{})
	}
	putTo(t, s, watched, "a", "three", 0)
	k.comes(t, map[string]string{"a": "three"})
	p.SQL("postgres", `TRUNCATE boardd.documents`)
	k.comes(t, map[string]string{})
}

// TestLateCommit: a change that was made before others, and is committed after them, is seen.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	s, _ := counted(t, p.Addr)
	was := putTo(t, s, watched, "deleted", "x", 0)
	k := watching(t, s, watched)
	late, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Close(context.WithoutCancel(t.Context())) }()
	for _, text := range []string{"BEGIN", plain(plainInsert, "late", "of before"), plain(plainDelete, "deleted", "")} {
		if _, err := late.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"deleted": "x"}
	for i := range 5 {
		name := strconv.Itoa(i)
		putTo(t, s, watched, name, "y", 0)
		want[name] = "y"
		k.comes(t, want)
	}
	if _, err := late.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	delete(want, "deleted")
	want["late"] = "of before"
	k.comes(t, want)
	if err := s.Documents().Delete(t.Context(), watched, "deleted", was); err == nil {
		t.Error("the document that was deleted late is there")
	}
}

// many makes n changes of documents that nobody watches, a thousand in a transaction.
func many(t testing.TB, p *testserver.Postgres, n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for range n / 1000 {
		_, err := conn.Exec(t.Context(), `INSERT INTO boardd.documents AS d SELECT '', 'many', n::text::bytea, 1, 0, '' FROM generate_series(1, 1000) n
			ON CONFLICT (board, space, name) DO UPDATE SET version = d.version + 1`)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// remembered returns how many changes are remembered.
func remembered(t testing.TB, p *testserver.Postgres) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(p.SQL("postgres", `SELECT count(*) FROM boardd.document_changes`)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// mostKept is how many changes may be there: what is remembered, and what comes until somebody
// takes the oldest away.
const mostKept = 2*behind + 2048

// TestAsleep has somebody who watches lose the server. What was deleted and changed meanwhile is
// read by its name; and where more was changed than is remembered, everything is read anew, and
// nothing stays that is gone.
func TestAsleep(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	proxy := testserver.NewProxy(t, p.Addr)
	s, count := counted(t, proxy.Addr())
	other, _ := counted(t, p.Addr)
	want := map[string]string{}
	versions := map[string]uint64{}
	for i := range 20 {
		name := strconv.Itoa(i)
		versions[name] = putTo(t, other, watched, name, "x", 0)
		want[name] = "x"
	}
	k := watching(t, s, watched)
	k.comes(t, want)
	for _, much := range []bool{false, true} {
		quiet(t, count)
		proxy.Sever(true)
		gone := strconv.FormatBool(much)
		name := map[bool]string{false: "3", true: "7"}[much]
		if err := other.Documents().Delete(t.Context(), watched, name, versions[name]); err != nil {
			t.Fatal(err)
		}
		putTo(t, other, watched, gone, "new", 0)
		delete(want, name)
		want[gone] = "new"
		if much {
			many(t, p, 2*behind+4000)
			if n := p.SQL("postgres", `SELECT count(*) FROM boardd.document_changes WHERE space = 'watched'`); n != "0\n" {
				t.Errorf("%s changes of the space are remembered: want none", strings.TrimSpace(n))
			}
			if n := remembered(t, p); n > mostKept {
				t.Errorf("%d changes are remembered: want at most %d", n, mostKept)
			}
		}
		proxy.Sever(false)
		k.comes(t, want)
		if _, _, _, docs := count.take(); !much && docs != 1 {
			t.Errorf("%d documents were read: want the one that is new", docs)
		}
	}
}

// TestDocumentsWhileTransactionHeld: a transaction of somebody else that is held open loses
// nothing, makes nobody read more, and when it ends what it has changed itself is read by its
// name, though more has been changed since than is remembered.
func TestDocumentsWhileTransactionHeld(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	s, count := counted(t, p.Addr)
	want := map[string]string{}
	for i := range 20 {
		name := strconv.Itoa(i)
		putTo(t, s, watched, name, "x", 0)
		want[name] = "x"
	}
	k := watching(t, s, watched)
	held, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close(context.WithoutCancel(t.Context())) }()
	for _, text := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", plain(plainUpdate, "5", "held"), plain(plainInsert, "held", "x")} {
		if _, err := held.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	many(t, p, 2*behind+4000)
	testserver.Eventually(t, "what was changed is looked through", func() bool {
		s.feed.ring()
		looks, changes, _, _ := count.take()
		return looks > 0 && changes <= looks
	})
	putTo(t, s, watched, "new", "y", 0)
	want["new"] = "y"
	k.comes(t, want)
	testserver.Eventually(t, "nothing is looked at again", func() bool {
		looks, changes, _, _ := count.take()
		return looks > 0 && changes <= looks
	})
	if _, err := held.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	want["5"], want["held"] = "held", "x"
	k.comes(t, want)
	if _, _, _, docs := count.take(); docs != 2 {
		t.Errorf("%d documents were read: want the two that the transaction changed", docs)
	}
	many(t, p, behind+16000) // of which the last take more away than they add
	if n := remembered(t, p); n > mostKept {
		t.Errorf("%d changes are remembered after the transaction has ended: want at most %d", n, mostKept)
	}
}

// burn uses numbers of transactions up.
func burn(t *testing.T, p *testserver.Postgres, n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for range n {
		if _, err := conn.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDump restores a dump under a running driver: in the place of the tables that it has, and
// on another server whose transactions have lower numbers, and which takes the place of the
// first.
func TestDump(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	second := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	burn(t, p, 500)
	s, ok := pair(t, p, second).(*store)
	if !ok {
		t.Fatal("it is no store")
	}
	v := putTo(t, s, watched, "kept", "x", 0)
	putTo(t, s, watched, "changed", "x", 0)
	many(t, p, 5000)
	dump := p.Dump("postgres", "boardd")
	k := watching(t, s, watched)
	dumped := map[string]string{"kept": "x", "changed": "x"}
	k.comes(t, dumped)
	change := func() {
		t.Helper()
		putTo(t, s, watched, "new", "z", 0)
		if err := s.Documents().Delete(t.Context(), watched, "kept", v); err != nil {
			t.Fatal(err)
		}
		k.comes(t, map[string]string{"changed": "x", "new": "z"})
	}
	change()
	p.Restore("postgres", "DROP SCHEMA boardd CASCADE;\n"+dump)
	k.comes(t, dumped)
	change()

	second.Restore("postgres", dump)
	if n := second.SQL("postgres", `SELECT count(*) > 0 FROM boardd.document_changes WHERE xact > pg_snapshot_xmax(pg_current_snapshot())`); n != "t\n" {
		t.Fatal("the second server's transactions have higher numbers than the first's")
	}
	p.Kill()
	k.comes(t, dumped)
	testserver.Eventually(t, "the second server takes changes", func() bool { return s.Health(t.Context()) == nil })
	change()
	many(t, second, 2*behind+16000)
	if n := second.SQL("postgres", `SELECT count(*) FROM boardd.document_changes WHERE xact > pg_snapshot_xmax(pg_current_snapshot())`); n != "0\n" {
		t.Errorf("%s changes of the first server are remembered: want none", strings.TrimSpace(n))
	}
	putTo(t, s, watched, "last", "z", 0)
	k.comes(t, map[string]string{"changed": "x", "new": "z", "last": "z"})
}

// TestManyAtOnce: a statement that changes many documents is told of as its space, and
// everything in that is read again.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	s, count := counted(t, p.Addr)
	putTo(t, s, elsewise, "a", "x", 0)
	putTo(t, s, watched, "a", "x", 0)
	k, e := watching(t, s, watched), watching(t, s, elsewise)
	before := remembered(t, p)
	p.SQL("postgres", `INSERT INTO boardd.documents SELECT '', 'watched', 'n' || n::text::bytea, 1, 0, 'x' FROM generate_series(1, 3000) n`)
	testserver.Eventually(t, "the documents are known", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return len(k.data) == 3001
	})
	if n := remembered(t, p) - before; n != 1 {
		t.Errorf("%d changes are remembered of one statement: want 1", n)
	}
	count.take()
	p.SQL("postgres", `DELETE FROM boardd.documents WHERE space = 'watched' AND name <> 'a'`)
	k.comes(t, map[string]string{"a": "x"})
	e.comes(t, map[string]string{"a": "x"})
	if _, _, reads, docs := count.take(); reads != 1 || docs != 1 {
		t.Errorf("%d documents were read in %d reads: want the one that is left", docs, reads)
	}
	if err := s.DropBoard(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	e.comes(t, map[string]string{})
}
