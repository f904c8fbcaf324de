package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// poster is a client of PostgreSQL that posts by SQL, and a driver that has the board open.
type poster struct {
	*testing.T
	server *testserver.Postgres
	driver driver.Driver
}

const postBoard = "acme/media"

func startPoster(t *testing.T) *poster {
	t.Helper()
	p := &poster{T: t, server: testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})}
	p.driver = p.open()
	p.watch(p.driver)
	return p
}

// open opens the board with a driver.
func (p *poster) open() driver.Driver {
	p.Helper()
	d, err := opened(p, p.server)
	must(p, d, err)
	p.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(p.Context(), driver.BoardSpec{Name: postBoard}); err != nil {
		p.Fatal(err)
	}
	return d
}

// watch watches the board with a driver until stop, and waits until the driver lists what is left.
func (p *poster) watch(d driver.Driver) (stop context.CancelFunc) {
	p.Helper()
	ctx, stop := context.WithCancel(p.Context())
	b, err := d.(*store).board(postBoard) //nolint:forcetypeassert // it is that of this package
	if err != nil {
		p.Fatal(err)
	}
	go follows(ctx, d, postBoard)
	testserver.Eventually(p, "what is left is listed", func() bool { return b.watch.inbox.lists(b) })
	return stop
}

// follows watches a board until the watch ends.
func follows(ctx context.Context, d driver.Driver, name string) {
	for _, err := range d.Watch(ctx, name, 0) {
		_ = err // it is the last then
	}
}

// connect connects as a role.
func (p *poster) connect(role string) *pgx.Conn {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), strings.Replace(p.server.URL("postgres"), "postgres@", role+"@", 1))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = conn.Close(context.WithoutCancel(p.Context())) })
	return conn
}

func (p *poster) exec(conn *pgx.Conn, text string, args ...any) {
	p.Helper()
	if _, err := conn.Exec(p.Context(), text, args...); err != nil {
		p.Fatalf("%s: %v", text, err)
	}
}

// waiting returns the names of what a driver lists as waiting, in its order.
func waiting(ctx context.Context, d driver.Driver) (names []string, list []driver.Record, err error) {
	for page, err := range d.Scan(ctx, postBoard, driver.ScanRequest{Set: driver.InboxPostings}) {
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.Records {
			_, name, _ := strings.Cut(string(r.Posting.Details), `"name": "`)
			name, _, _ = strings.Cut(name, `"`)
			names, list = append(names, name), append(list, r)
		}
	}
	return names, list, nil
}

// waits waits until exactly these wait, in any order that the driver chooses.
func (p *poster) waits(want ...string) {
	p.Helper()
	testserver.Eventually(p, fmt.Sprintf("what waits is %q", want), func() bool {
		got, _, err := waiting(p.Context(), p.driver)
		if err != nil {
			p.Fatal(err)
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}

// takenIn posts what waits, as a host does.
func takenIn(ctx context.Context, d driver.Driver) (first int, err error) {
	_, list, err := waiting(ctx, d)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return postLeft(ctx, d, list)
}

// postLeft posts what was left.
func postLeft(ctx context.Context, d driver.Driver, list []driver.Record) (first int, err error) {
	ops := make([]driver.Op, len(list))
	for i := range list {
		id := list[i].Posting.ID
		ops[i] = driver.Op{Kind: driver.Post, Job: id, Request: [16]byte(id), Inbox: list[i].Posting.Sequence, Posting: &driver.Posting{
			ID: id, Name: "j", Details: []byte(`{}`), Digest: [16]byte{1},
		}}
	}
	for _, r := range d.Apply(ctx, postBoard, ops) {
		switch {
		case r.Kind == job.NoKind && !r.Repeated:
			first++
		case r.Kind != job.NoKind && r.Kind != job.NotFound:
			err = errors.Join(err, r.Err(&ops[0]))
		}
	}
	return first, err
}

// TestLongTransaction: a transaction that is open for long keeps nobody else's postings from
// being seen, and is seen itself when it commits at last, whatever came and went meanwhile.
func TestLongTransaction(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	long, prepared, other := p.connect("postgres"), p.connect("postgres"), p.connect("postgres")
	p.exec(long, `BEGIN`)
	p.exec(long, `SELECT boardd.post($1, 'long')`, postBoard)
	p.exec(prepared, `BEGIN; SAVEPOINT a; SELECT boardd.post('acme/media', 'gone'); ROLLBACK TO a; SELECT boardd.post('acme/media', 'nested'); RELEASE a`)
	for round := range 3 {
		name := fmt.Sprintf("short %d", round)
		p.exec(other, `SELECT boardd.post($1, $2)`, postBoard, name)
		p.exec(other, `BEGIN; SELECT boardd.post('acme/media', 'never'); ROLLBACK`)
		p.waits(name)
		if n, err := takenIn(t.Context(), p.driver); n != 1 || err != nil {
			t.Fatalf("%d were posted, %v: want 1", n, err)
		}
	}
	p.exec(prepared, `COMMIT`)
	p.waits("nested")
	p.exec(long, `SELECT boardd.post($1, 'long too')`, postBoard)
	p.exec(long, `COMMIT`)
	p.waits("nested", "long", "long too")
	// Who opens the board only now sees the same.
	d := p.open()
	testserver.Eventually(t, "another driver sees three", func() bool { names, _, _ := waiting(t.Context(), d); return len(names) == 3 })
}

// TestPostsAreSeenOnce has several clients post, commit and roll back beside each other,
// while drivers take them in and are closed and opened, and PostgreSQL is killed.
func TestPostsAreSeenOnce(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	var mu sync.Mutex
	sure, maybe := map[string]bool{}, map[string]bool{} // uuids by whether their commit was acknowledged
	end := make(chan struct{})
	ended := func() bool {
		select {
		case <-end:
			return true
		default:
			return false
		}
	}
	var clients, drivers sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for n := 0; !ended(); n++ {
				ids, err := p.some(n%3 == 2)
				mu.Lock()
				for _, id := range ids {
					maybe[id] = true
					if err == nil && n%3 != 2 {
						sure[id] = true
					}
				}
				mu.Unlock()
			}
		})
	}
	for range 2 {
		drivers.Go(func() {
			for n := 0; !ended(); n++ {
				d, err := opened(t, p.server)
				if err != nil {
					continue // PostgreSQL is away
				}
				_, _ = d.OpenBoard(t.Context(), driver.BoardSpec{Name: postBoard})
				go follows(t.Context(), d, postBoard)
				for k := 0; k < 20 && !ended(); k++ {
					_, _ = takenIn(t.Context(), d)
				}
				_ = d.Close()
			}
		})
	}
	for range 2 {
		before := len(lockedCopy(&mu, sure))
		testserver.Eventually(t, "more was posted", func() bool { return len(lockedCopy(&mu, sure)) > before+100 })
		p.server.Kill()
		p.server.Restart()
	}
	close(end)
	clients.Wait()
	drivers.Wait()
	last := p.open()
	testserver.Eventually(t, "the inbox is empty", func() bool {
		_, err := takenIn(t.Context(), last)
		return err == nil && strings.TrimSpace(p.server.SQL("postgres", `SELECT count(*) FROM boardd.inbox`)) == "0"
	})
	there := map[string]bool{}
	for id := range strings.FieldsSeq(p.server.SQL("postgres", `SELECT job FROM boardd.jobs`)) {
		if there[id] = true; !maybe[id] {
			t.Errorf("job %s is there, and nobody committed its posting", id)
		}
	}
	for id := range sure {
		if !there[id] {
			t.Errorf("the posting of job %s was committed, and it is not there", id)
		}
	}
	t.Logf("%d postings were committed, %d jobs are there", len(sure), len(there))
}

func lockedCopy(mu *sync.Mutex, m map[string]bool) map[string]bool {
	mu.Lock()
	defer mu.Unlock()
	c := make(map[string]bool, len(m))
	for k := range m {
		c[k] = true
	}
	return c
}

// some posts a few jobs in one transaction. The uuids are of those whose commit was tried.
func (p *poster) some(rollback bool) (ids []string, err error) {
	conn, err := pgx.Connect(p.Context(), p.server.URL("postgres"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(p.Context())) }()
	tx, err := conn.Begin(p.Context())
	if err != nil {
		return nil, err
	}
	for range 3 {
		var id string
		if err := tx.QueryRow(p.Context(), `SELECT boardd.post($1, 'x')::text`, postBoard).Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if rollback {
		return nil, tx.Rollback(p.Context())
	}
	return ids, tx.Commit(p.Context())
}

// TestDroppedBoard: what was left for a board that was deleted before the commit is refused.
func TestDroppedBoard(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	conn := p.connect("postgres")
	p.exec(conn, `BEGIN`)
	p.exec(conn, `SELECT boardd.post($1, 'late')`, postBoard)
	if err := p.driver.DropBoard(t.Context(), postBoard); err != nil {
		t.Fatal(err)
	}
	if _, err := p.driver.OpenBoard(t.Context(), driver.BoardSpec{Name: "acme/other"}); err != nil {
		t.Fatal(err)
	}
	p.exec(conn, `COMMIT`)
	testserver.Eventually(t, "it is refused", func() bool {
		return strings.TrimSpace(p.server.SQL("postgres", `SELECT refused FROM boardd.left_postings`)) == "the board was deleted"
	})
}

// TestListComesBetweenPages: pages that were begun before the driver lists what waits go on as they
// began, and one that was begun with the list has all when that has ended.
func TestListComesBetweenPages(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	if err := p.driver.Close(); err != nil { // it would have it in its list
		t.Fatal(err)
	}
	p.exec(p.connect("postgres"), `SELECT boardd.post($1, 'job ' || n) FROM generate_series(1, 3) n`, postBoard)
	s := p.open().(*store) //nolint:forcetypeassert // it is that of this package
	b, err := s.board(postBoard)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]int{}
	page := func(after string) driver.Page {
		t.Helper()
		page, err := s.inboxPage(t.Context(), b, after, 1)
		if err != nil || len(page.Records) != 1 {
			t.Fatalf("a page after %q: %+v, %v", after, page, err)
		}
		seen[page.Records[0].Posting.Sequence]++
		return page
	}
	after := page("").Next
	p.watch(s)
	if after = page(after).Next; page(after).Next != "" || len(seen) != 3 {
		t.Errorf("three pages have %v: want three postings", seen)
	}
	clear(seen)
	after = page("").Next
	b.watch.inbox.stop()
	for after != "" {
		after = page(after).Next
	}
	if len(seen) != 3 {
		t.Errorf("the list ended behind the first page: %v", seen)
	}
}

// TestScanOfAFreshBoard: whoever opens a board finds at once all that waits for it, so that
// nobody who looks takes the inbox for an empty one and drops it.
func TestScanOfAFreshBoard(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	if err := p.driver.Close(); err != nil { // it would have it in its list
		t.Fatal(err)
	}
	conn := p.connect("postgres")
	p.exec(conn, `SELECT boardd.post($1, 'job ' || n) FROM generate_series(1, 3) n`, postBoard)
	finds := func(d driver.Driver, want int) {
		t.Helper()
		if names, _, err := waiting(t.Context(), d); err != nil || len(names) != want {
			t.Errorf("what waits is %q, %v: want %d", names, err, want)
		}
	}
	d := p.open()
	finds(d, 3)
	p.watch(d)
	p.exec(conn, `SELECT boardd.post($1, 'later')`, postBoard)
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: postBoard}); err != nil {
		t.Fatal(err)
	}
	finds(d, 4)
	var names []string // one by one, while nobody watches
	for req, fresh := (driver.ScanRequest{Set: driver.InboxPostings, Limit: 1}), p.open(); ; {
		for page, err := range fresh.Scan(t.Context(), postBoard, req) {
			if err != nil {
				t.Fatal(err)
			}
			names, req.After = append(names, page.Records[0].Posting.ID.String()), page.Next
		}
		if req.After == "" {
			break
		}
	}
	if len(names) != 4 {
		t.Errorf("page by page %d are found: want 4", len(names))
	}
}

// TestUnwatchedInbox: a driver that nobody watches the board through, as another server has it,
// lists nothing of what is left for it, and does again when somebody watches.
func TestUnwatchedInbox(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	other := &poster{T: t, server: p.server, driver: p.open()}
	stop := other.watch(other.driver)
	conn := p.connect("postgres")
	p.exec(conn, `SELECT boardd.post($1, 'job') FROM generate_series(1, 20)`, postBoard)
	testserver.Eventually(t, "both list 20", func() bool { return p.queued() == 20 && other.queued() == 20 })
	stop()
	testserver.Eventually(t, "the list is given up", func() bool { return other.queued() == 0 })
	p.exec(conn, `SELECT boardd.post($1, 'job') FROM generate_series(1, 20)`, postBoard)
	testserver.Eventually(t, "40 wait", func() bool { return p.queued() == 40 })
	const later = "acme/later" // what is left for it is seen by the same looks, and comes after them
	if _, err := other.driver.OpenBoard(t.Context(), driver.BoardSpec{Name: later}); err != nil {
		t.Fatal(err)
	}
	go follows(t.Context(), other.driver, later)
	p.exec(conn, `SELECT boardd.post($1, 'job')`, later)
	testserver.Eventually(t, "the other driver has looked", func() bool { return other.queuedOf(later) == 1 })
	if n := other.queued(); n != 0 {
		t.Errorf("%d are listed for nobody", n)
	}
	other.watch(other.driver)
	if n := other.queued(); n != 40 {
		t.Errorf("%d are listed for who watches again: want 40", n)
	}
}

// TestPostDocumented runs what docs/postgres.md shows of posting by SQL.
func TestPostDocumented(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	for _, begin := range []string{"```txt\nBEGIN;", "```txt\nSELECT * FROM boardd.post_many(", "```txt\nCREATE ROLE app", "```txt\nSELECT board, uuid"} {
		p.server.SQL("postgres", documented(t, begin, "```"))
	}
	p.waits("invoice", "resize", "resize")
	if _, err := p.connect("app").Exec(t.Context(), `SELECT boardd.post('acme/media', 'x')`); err != nil {
		t.Errorf("the role that the page makes may not post: %v", err)
	}
}

// queued returns how many numbers the driver has in its list of what waits.
func (p *poster) queued() int { return p.queuedOf(postBoard) }

func (p *poster) queuedOf(name string) int {
	b, err := p.driver.(*store).board(name) //nolint:forcetypeassert // it is that of this package
	if err != nil {
		p.Fatal(err)
	}
	b.watch.inbox.mu.Lock()
	defer b.watch.inbox.mu.Unlock()
	return len(b.watch.inbox.queue)
}

// TestTakenLeavesTheList: what was posted is not asked for once more.
func TestTakenLeavesTheList(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	p.exec(p.connect("postgres"), `SELECT boardd.post($1, 'job') FROM generate_series(1, 20)`, postBoard)
	testserver.Eventually(t, "20 wait", func() bool { return p.queued() == 20 })
	if n, err := takenIn(t.Context(), p.driver); n != 20 || err != nil {
		t.Fatalf("%d were posted, %v: want 20", n, err)
	}
	if n := p.queued(); n != 0 {
		t.Errorf("%d are in the list though all were posted", n)
	}
}

// TestDumpedPostings: rows of an inbox that was dumped have numbers of transactions which this
// server has not come to, or had long ago. Each is found once as its board is opened.
func TestDumpedPostings(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	dumped := func(name string, xact uint64) {
		p.server.SQL("postgres", fmt.Sprintf(`INSERT INTO boardd.inbox SELECT nextval('boardd.inbox_numbers'), '%d', board, gen_random_uuid(), '{"name": "%s"}', 16, now(), 'x'
			FROM boardd.boards WHERE name = '%s'`, xact, name, postBoard))
	}
	conn := p.connect("postgres")
	p.exec(conn, `SELECT boardd.post($1, 'first')`, postBoard)
	p.waits("first")
	dumped("future", 1<<40)
	dumped("past", 3)
	p.exec(conn, `SELECT boardd.post($1, 'new')`, postBoard)
	p.waits("first", "new")
	if _, err := p.driver.OpenBoard(t.Context(), driver.BoardSpec{Name: postBoard}); err != nil {
		t.Fatal(err)
	}
	p.waits("first", "future", "past", "new")
	for n := range 3 { // each is seen by a later look
		p.exec(conn, `SELECT boardd.post($1, 'newer')`, postBoard)
		testserver.Eventually(t, "it is seen", func() bool { return p.queued() > 4+n })
	}
	if n := p.queued(); n != 7 {
		t.Errorf("%d are in the list: want each of 7 once", n)
	}
}

// TestManyWait: what is read of an inbox does not grow with what waits in it, though the
// statements were planned when it was empty.
func TestManyWait(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	conn := p.connect("postgres")
	p.exec(conn, `ALTER TABLE boardd.inbox SET (autovacuum_enabled = off)`) // that would have them planned anew
	p.exec(conn, `VACUUM ANALYZE boardd.inbox`)
	for range 10 {
		p.exec(conn, `SELECT boardd.post($1, 'job')`, postBoard)
		testserver.Eventually(t, "one waits", func() bool { return p.queued() == 1 })
		if n, err := takenIn(t.Context(), p.driver); n != 1 || err != nil {
			t.Fatalf("%d were posted, %v: want 1", n, err)
		}
	}
	const many = 20000
	p.exec(conn, `INSERT INTO boardd.inbox SELECT nextval('boardd.inbox_numbers'), pg_current_xact_id(), board, gen_random_uuid(), '{"name": "job"}', 16, now(), 'x'
		FROM boardd.boards, generate_series(1, $1)`, many)
	testserver.Eventually(t, "all are seen", func() bool { return p.queued() == many })
	for range 10 {
		for page, err := range p.driver.Scan(t.Context(), postBoard, driver.ScanRequest{Set: driver.InboxPostings, Limit: inboxPage}) {
			if err != nil {
				t.Fatal(err)
			}
			if n, err := postLeft(t.Context(), p.driver, page.Records); n != inboxPage || err != nil {
				t.Fatalf("%d were posted, %v: want %d", n, err, inboxPage)
			}
		}
	}
	if err := p.driver.Close(); err != nil { // then what it did is in the statistics
		t.Fatal(err)
	}
	read := strings.TrimSpace(p.server.SQL("postgres", `SELECT sum(idx_tup_read) < 4 * `+fmt.Sprint(many)+` FROM pg_stat_user_indexes WHERE relname = 'inbox'`))
	if read != "t" {
		t.Errorf("%d postings of %d were taken in, and %s rows were read by indexes", 10*inboxPage, many,
			strings.TrimSpace(p.server.SQL("postgres", `SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'inbox'`)))
	}
}
