package store

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestDeaf has two drivers that hear no notifications, as behind some pools of
// connections: they find that out, and see each other's changes all the same.
func TestDeaf(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	p.SQL("postgres", `CREATE ROLE boardd LOGIN`)
	p.SQL("postgres", `CREATE DATABASE boardd OWNER boardd`)
	p.SQL("boardd", `REVOKE EXECUTE ON FUNCTION pg_catalog.pg_notify(text, text) FROM PUBLIC`)
	stores := make([]*store, 2)
	for i := range stores {
		d, err := openWith(t.Context(), map[string]any{"url": strings.Replace(p.URL("boardd"), "postgres@", "boardd@", 1)})
		s, ok := d.(*store)
		if err != nil || !ok {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
			t.Fatal(err)
		}
		stores[i] = s
	}
	seen, told := make(chan driver.Position), make(chan string)
	go func() {
		for step, err := range stores[1].Watch(t.Context(), "b", 0) {
			if err != nil {
				return // the test is over
			}
			seen <- step.Position
		}
	}()
	go func() {
		for change, err := range stores[1].Documents().Watch(t.Context(), driver.Space{Name: "s"}) {
			if err != nil {
				return // likewise
			}
			if !change.Synced {
				told <- change.Document.Name
			}
		}
	}()
	post := func() {
		t.Helper()
		r := stores[0].Apply(t.Context(), "b", postsOf(1))[0]
		select {
		case at := <-seen:
			if at != r.Position {
				t.Errorf("a post at position %d was seen at %d", r.Position, at)
			}
		case <-time.After(time.Minute):
			t.Fatal("a post was not seen by the other driver")
		}
	}
	post()
	testserver.Eventually(t, "the driver finds that nothing is heard", stores[0].news.isDeaf)
	post()
	if _, err := stores[0].Documents().Put(t.Context(), driver.Space{Name: "s"}, driver.Document{Name: "d"}, 0); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-told:
		if name != "d" {
			t.Errorf("the other driver was told of document %q, want d", name)
		}
	case <-time.After(time.Minute):
		t.Fatal("a document was not seen by the other driver")
	}
}

// TestNewsFit: what does not fit into one notification is told by the next.
func TestNewsFit(t *testing.T) {
	t.Parallel()
	n := news{wake: make(chan struct{}, 1), boards: map[int64]bool{}, spaces: map[string]bool{}}
	for id := range int64(3000) {
		n.add(id + 1e9)
	}
	for i := range maxSpaces {
		n.addSpace(driver.Space{Board: strconv.Itoa(i), Name: "settings"})
	}
	told := 0
	for len(n.wake) > 0 {
		<-n.wake
		text := n.take()
		if len(text) > 7999 {
			t.Errorf("a notification has %d bytes: PostgreSQL takes 7999", len(text))
		}
		told += len(strings.Fields(text))
	}
	if want := 3000 + maxSpaces + 1; told != want || len(n.boards) != 0 {
		t.Errorf("%d words were told of %d, and %d boards are left", told, want, len(n.boards))
	}
}

// BenchmarkHeard is the cost of a notification that tells of 1000 boards, by how many are open.
func BenchmarkHeard(b *testing.B) {
	const told = 1000
	var text strings.Builder
	for id := range told {
		text.WriteString(" " + strconv.Itoa(id+1))
	}
	for _, open := range []int64{told, 10 * told} {
		b.Run("open="+strconv.FormatInt(open, 10), func(b *testing.B) {
			s := &store{feed: newFeed(), boards: map[string]*board{}, taken: map[int64]*board{}, looked: map[string]*board{}, touched: map[int64]bool{}}
			for id := range open {
				s.keep(strconv.FormatInt(id, 10), &board{id: id + 1, watch: &watch{}})
			}
			for b.Loop() {
				s.heard(text.String())
			}
		})
	}
}

// TestAwayIsNotHurried has a server refuse connections for a minute, to a driver that hears
// nothing either: it tries a few times a second, however often it would ask one that answers.
func TestAwayIsNotHurried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		settings, err := readSettings([]byte(`{"url":"postgres://postgres@127.0.0.1:1/postgres?sslmode=disable"}`))
		if err != nil {
			t.Fatal(err)
		}
		var tries atomic.Int64
		settings.pool.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
			tries.Add(1)
			return nil, syscall.ECONNREFUSED
		}
		s, err := reach(t.Context(), settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.follow(settings)
		time.Sleep(time.Minute)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		// Three ask: who listens, who asks what is new, and who looks for documents.
		if most := int64(3 * time.Minute / listenWait); tries.Load() > most || tries.Load() < most/6 {
			t.Errorf("a server that is away was tried %d times in a minute: want at most %d, and not none", tries.Load(), most)
		}
	})
}
