package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// fill puts documents into a space by SQL.
func fill(t testing.TB, p *testserver.Postgres, space driver.Space, n int) {
	t.Helper()
	p.SQL("postgres", fmt.Sprintf(`INSERT INTO boardd.documents SELECT '%s', '%s', lpad(n::text, 6, '0')::bytea, nextval('boardd.document_versions'), 0, 'some data'
		FROM generate_series(1, %d) n`, space.Board, space.Name, n))
}

// crowd has so many spaces of boards watched.
func crowd(t testing.TB, s *store, p *testserver.Postgres, n int) {
	t.Helper()
	for i := range n {
		space := driver.Space{Board: strconv.Itoa(i), Name: "settings"}
		fill(t, p, space, 1)
		watching(t, s, space)
	}
}

// quiet waits until nobody reads anything.
func quiet(t testing.TB, count *asked) {
	t.Helper()
	testserver.Eventually(t, "nothing is read any more", func() bool {
		looks, changes, reads, _ := count.take()
		return looks > 0 && changes <= looks && reads == 0
	})
}

// TestChangeCostsItself: a change of one document has one document read, whatever else is in
// its space, and whatever others are watched: one's own, that of another driver, and one of a
// program that says no more than that there was one.
func TestChangeCostsItself(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	s, count := counted(t, p.Addr)
	other, _ := counted(t, p.Addr)
	crowd(t, s, p, 50)
	fill(t, p, watched, 3000)
	k := watching(t, s, watched)
	knows := func(name, data string) {
		t.Helper()
		testserver.Eventually(t, name+" is known", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.data[name] == data
		})
	}
	for name, change := range map[string]func(name string){
		"own":    func(name string) { putTo(t, s, watched, name, "x", 0) },
		"other":  func(name string) { putTo(t, other, watched, name, "x", 0) },
		"untold": func(name string) { p.SQL("postgres", plain(plainInsert, name, "x")) },
		"plain": func(name string) {
			p.SQL("postgres", plain(plainInsert, name, "x")+fmt.Sprintf("; SELECT pg_notify('%s', ' d')", s.channel()))
		},
	} {
		quiet(t, count)
		change(name)
		knows(name, "x")
		if looks, changes, reads, docs := count.take(); reads != 1 || docs != 1 || changes > looks { // one that finds none has a row, too
			t.Errorf("%s: %d documents were read in %d reads after %d looks with %d rows: want one", name, docs, reads, looks, changes)
		}
	}
	quiet(t, count)
	for i := range 10 {
		putTo(t, other, driver.Space{Name: "unwatched"}, strconv.Itoa(i), "x", 0)
	}
	putTo(t, s, watched, "last", "x", 0)
	knows("last", "x")
	if _, _, reads, docs := count.take(); reads != 1 || docs != 1 {
		t.Errorf("behind ten changes of a space that nobody watches, %d documents were read in %d reads: want one", docs, reads)
	}
}

// TestToldNarrowly: a notification names the spaces, so that nobody looks who watches none of
// them, in words that a program of before takes for none of its own.
func TestToldNarrowly(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	s, _ := counted(t, p.Addr)
	listener, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close(context.WithoutCancel(t.Context())) }()
	if _, err := listener.Exec(t.Context(), "LISTEN "+s.channel()); err != nil {
		t.Fatal(err)
	}
	putTo(t, s, watched, "a", "x", 0)
	told, err := listener.WaitForNotification(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	documents := false
	for word := range strings.FieldsSeq(told.Payload) {
		if documents = documents || word == "d"; word == "d" {
			continue
		}
		if _, err := strconv.ParseInt(word, 10, 64); err == nil {
			t.Errorf("a program of before takes %q for a board", word)
		}
	}
	if !documents {
		t.Errorf("a program of before is told %q, and of no documents", told.Payload)
	}
	here := store{feed: newFeed(), boards: map[string]*board{}}
	here.feed.join(elsewise)
	here.news = news{wake: make(chan struct{}, 1), spaces: map[string]bool{}}
	for i := range maxSpaces + 1 {
		here.news.addSpace(driver.Space{Board: strconv.Itoa(i), Name: "settings"})
	}
	everything := here.news.take()
	for text, want := range map[string]bool{
		told.Payload:                             false,
		" d " + wordOf(elsewise):                 true,
		told.Payload + " 17 " + wordOf(elsewise): true,
		" d":                                     true, // of a program of before
		" 17 d 18":                               true,
		" 17":                                    false,
		everything:                               true, // too many to name them
	} {
		here.heard(text)
		if woken := len(here.feed.wake) > 0; woken != want {
			t.Errorf("told %q, and a look begins: %v, want %v", text, woken, want)
		}
		for len(here.feed.wake) > 0 {
			<-here.feed.wake
		}
	}
}

// BenchmarkDocumentChange is the cost of one change of a document to a driver that watches its
// space, by how many documents are in it and how many other spaces are watched: rows read is
// those of the changes and of documents.
func BenchmarkDocumentChange(b *testing.B) {
	for _, documents := range []int{100, 100_000} {
		for _, others := range []int{1, 500} {
			b.Run(fmt.Sprintf("documents=%d/others=%d", documents, others), func(b *testing.B) {
				p := testserver.StartPostgres(b, testserver.PostgresOptions{Fast: true})
				s, count := counted(b, p.Addr)
				crowd(b, s, p, others)
				fill(b, p, watched, documents)
				told := make(chan uint64, 1)
				ready := make(chan struct{})
				go func() {
					for c, err := range s.Documents().Watch(b.Context(), watched) {
						switch {
						case err != nil:
							return // it is over
						case c.Synced:
							close(ready)
						case c.Document.Name == "changed":
							told <- c.Document.Version
						}
					}
				}()
				<-ready
				version := uint64(0)
				quiet(b, count)
				b.ReportAllocs()
				for b.Loop() {
					version = putTo(b, s, watched, "changed", "x", version)
					for v := range told {
						if v == version {
							break
						}
					}
				}
				looks, changes, reads, docs := count.take()
				n := float64(b.N)
				b.ReportMetric(float64(looks+reads)/n, "queries/op")
				b.ReportMetric(float64(changes+docs)/n, "rows/op")
			})
		}
	}
}
