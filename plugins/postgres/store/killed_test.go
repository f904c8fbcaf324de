package store

import (
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/job"
)

// TestRestartedServer runs the checks of restarts with a PostgreSQL that is killed each
// time before the store is opened again.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	shared := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	drivertest.Run(t, drivertest.Harness{
		Open: func(t drivertest.T) driver.Driver { d, err := opened(t, shared); return must(t, d, err) },
		Store: func(dt drivertest.T) func() driver.Driver {
			p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true}) // a process that is killed loses nothing by it
			first := true
			return func() driver.Driver {
				if !first {
					p.Kill()
					p.Restart()
				}
				first = false
				d, err := opened(dt, p)
				return must(dt, d, err)
			}
		},
		Only: []string{"restart"},
	})
}

// TestKilledServer kills PostgreSQL again and again while two drivers post to a board.
// What was acknowledged is there, what was said not to be done is not, and the drivers go
// on by themselves.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	drivers := make([]driver.Driver, 2)
	for i := range drivers {
		d, err := opened(t, p)
		drivers[i] = must(t, d, err)
		t.Cleanup(func() { _ = d.Close() })
		if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
			t.Fatal(err)
		}
	}
	said := map[job.ID]driver.Result{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := make(chan struct{})
	for _, d := range drivers {
		wg.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				ops := postsOf(8)
				results := d.Apply(t.Context(), "b", ops)
				if results[0].Kind != job.NoKind {
					time.Sleep(10 * time.Millisecond) // nobody tells when the server is back
					_, _ = d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
				}
				mu.Lock()
				for k := range ops {
					said[ops[k].Job] = results[k]
				}
				mu.Unlock()
			}
		})
	}
	for range 3 {
		before := acknowledged(&mu, said)
		testserver.Eventually(t, "the drivers have posted more", func() bool { return acknowledged(&mu, said) > before+32 })
		p.Kill()
		p.Restart()
	}
	close(end)
	wg.Wait()
	judge(t, drivers[0], said)
}

// postsOf makes posts of new jobs.
func postsOf(n int) []driver.Op {
	ops := make([]driver.Op, n)
	for i := range ops {
		var id job.ID
		_, _ = rand.Read(id[:]) // never fails
		p := &driver.Posting{ID: id, Name: "j", Details: []byte(`{}`), Digest: [16]byte{1}}
		ops[i] = driver.Op{Kind: driver.Post, Job: id, Posting: p, Request: [16]byte(id)}
	}
	return ops
}

func acknowledged(mu *sync.Mutex, said map[job.ID]driver.Result) (n int) {
	mu.Lock()
	defer mu.Unlock()
	for _, r := range said {
		if r.Kind == job.NoKind {
			n++
		}
	}
	return n
}

// judge compares what was said of posts with what there is.
func judge(t *testing.T, d driver.Driver, said map[job.ID]driver.Result) {
	t.Helper()
	var ids []job.ID
	kinds := map[job.Kind]int{}
	for id, r := range said {
		ids = append(ids, id)
		kinds[r.Kind]++
	}
	if status, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil || status.Loss != "" {
		t.Fatalf("after the last kill: %q, %v", status.Loss, err)
	}
	records, err := d.Read(t.Context(), "b", ids, 0)
	if err != nil {
		t.Fatal(err)
	}
	positions := map[driver.Position]bool{}
	for i := range records {
		there, r := records[i].State == job.Unclaimed, said[ids[i]]
		switch r.Kind {
		case job.NoKind:
			if !there || positions[r.Position] {
				t.Errorf("an acknowledged post at position %d: is there: %v, another has its position: %v", r.Position, there, positions[r.Position])
			}
			positions[r.Position] = true
		case job.OutcomeUnknown:
		case job.Unavailable:
			if there {
				t.Errorf("a post that was said not to be done is there: %s", r.Message)
			}
		default:
			t.Errorf("a post while PostgreSQL was killed: %v, %s", r.Kind, r.Message)
		}
	}
	t.Logf("posts by how they were answered: %v", kinds)
}

// TestReadOnlyServer: a server that takes no changes is told apart from one that is gone.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	d, err := openWith(t.Context(), map[string]any{"url": p.URL("postgres"), "max_connections": minConnections})
	must(t, d, err)
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	full := make([]*pgxpool.Conn, minConnections-1) // no more may be there, and a new one would be refused
	for i := range full {
		if full[i], err = d.(*store).pool.Acquire(t.Context()); err != nil { //nolint:forcetypeassert // it is that of this package
			t.Fatal(err)
		}
	}
	for _, conn := range full {
		conn.Release()
	}
	p.SQL("postgres", `ALTER SYSTEM SET default_transaction_read_only = on`)
	p.SQL("postgres", `SELECT pg_reload_conf()`)
	testserver.Eventually(t, "health tells of it", func() bool {
		err := d.Health(t.Context())
		return job.KindOf(err) == job.Unavailable && strings.Contains(err.Error(), "read-only")
	})
	// Not over connections of before either.
	if r := d.Apply(t.Context(), "b", postsOf(1))[0]; r.Kind != job.Unavailable || !strings.Contains(r.Message, "read-only") {
		t.Errorf("a post to a server that takes no changes: %v, %q", r.Kind, r.Message)
	}
	if _, err := d.Documents().Put(t.Context(), driver.Space{Name: "s"}, driver.Document{Name: "d"}, 0); job.KindOf(err) != job.Unavailable {
		t.Errorf("a document on a server that takes no changes: %v", err)
	}
	p.Kill()
	testserver.Eventually(t, "health tells that nobody answers", func() bool {
		err := d.Health(t.Context())
		return job.KindOf(err) == job.Unavailable && strings.Contains(err.Error(), "not reachable")
	})
	r := d.Apply(t.Context(), "b", postsOf(1))
	if r[0].Kind != job.Unavailable || !strings.Contains(r[0].Message, "not reachable") {
		t.Errorf("a post to a server that is gone: %v, %q", r[0].Kind, r[0].Message)
	}
}
