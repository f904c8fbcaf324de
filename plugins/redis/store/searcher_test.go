package store

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// written are the settings of a board that other programs write to.
const written = `{"foreign":true}`

// A server is one of several that watch boards in one Redis.
type server struct {
	*testing.T

	store *Store

	mu   sync.Mutex
	seen map[job.ID]bool // of which a change was told: true, of another program
}

func openStore(t *testing.T, addr string) *Store {
	t.Helper()
	settings, err := json.Marshal(map[string]string{"address": addr})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), driver.Config{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*Store)
}

// watching returns a server that watches boards with some settings.
func watching(t *testing.T, addr, settings string, boards ...string) *server {
	t.Helper()
	s := &server{T: t, store: openStore(t, addr), seen: map[job.ID]bool{}}
	var running sync.WaitGroup
	t.Cleanup(func() { s.close(); running.Wait() })
	for _, name := range boards {
		if _, err := s.store.OpenBoard(t.Context(), driver.BoardSpec{Name: name, Settings: []byte(settings)}); err != nil {
			t.Fatal(err)
		}
		follows := make(chan struct{})
		running.Go(func() {
			first := sync.OnceFunc(func() { close(follows) })
			defer first()
			for changes, err := range s.store.Watch(t.Context(), name, 1<<40) { // from now on
				if err != nil {
					return // it was closed, or the test has failed
				}
				first()
				s.tell(changes.List)
			}
		})
		<-follows
	}
	return s
}

func (s *server) close() {
	if err := s.store.Close(); err != nil {
		s.Error(err)
	}
}

func (s *server) tell(list []driver.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		s.seen[list[i].Job] = s.seen[list[i].Job] || list[i].Event == job.ForeignChange
	}
}

func (s *server) saw(n int) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.seen[numbered(n)]
	}
}

// told is saw for any change.
func (s *server) told(n int) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, ok := s.seen[numbered(n)]
		return ok
	}
}

// searches reports whether this is the server that searches the board b.
func (s *server) searches() bool {
	b, err := s.store.board("b")
	return err == nil && b.searching.Load() != nil
}

func (s *server) counted(bad int64) func() bool {
	return func() bool {
		s.Helper()
		c, err := s.store.Count(s.Context(), "b")
		if err != nil {
			s.Fatal(err)
		}
		return c.Bad == bad
	}
}

func (s *server) among() int {
	s.store.budget.mu.Lock()
	defer s.store.budget.mu.Unlock()
	return s.store.budget.servers
}

// TestOneSearches has two servers watch a board. One searches it, both see what another
// program did, and a posting that cannot be read; and the other one takes over.
func TestOneSearches(t *testing.T) {
	t.Parallel()
	f := newPlain(t)
	first := watching(t, f.server.Addr, written, "b")
	testserver.Eventually(t, "the first one searches", first.searches)
	second := watching(t, f.server.Addr, written, "b")
	for n := range 3 {
		f.post(n)
		testserver.Eventually(t, "the first one sees a post", first.saw(n))
		testserver.Eventually(t, "the second one does", second.saw(n))
		testserver.Eventually(t, "one of them searches", func() bool { return first.searches() != second.searches() })
	}
	f.set("b:listings", numbered(9).String(), "no msgpack")
	testserver.Eventually(t, "the first one counts what cannot be read", first.counted(1))
	testserver.Eventually(t, "the second one does", second.counted(1))
	f.end(9)
	testserver.Eventually(t, "the first one counts it no more", first.counted(0))
	testserver.Eventually(t, "the second one neither", second.counted(0))
	first.close()
	testserver.Eventually(t, "the second one searches", second.searches)
	f.post(4)
	testserver.Eventually(t, "it sees a post", second.saw(4))
}

// TestSearcherIsGone has a server search whose turn another one has taken since, and then
// be gone without a word.
func TestSearcherIsGone(t *testing.T) {
	t.Parallel()
	f := newPlain(t)
	s := watching(t, f.server.Addr, written, "b")
	testserver.Eventually(t, "it searches", s.searches)
	if err := f.client.Set(t.Context(), "b:boardd:searcher", "another", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "it leaves off", func() bool { return !s.searches() })
	f.post(1)
	if err := f.client.PExpire(t.Context(), "b:boardd:searcher", searcherLease).Err(); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "it searches again", s.searches)
	testserver.Eventually(t, "it sees what happened meanwhile", s.saw(1))
	testserver.Eventually(t, "it says so", func() bool { return f.client.Get(t.Context(), "b:boardd:searcher").Val() == s.store.self })
}

// TestLongRest checks that a server keeps its turn through a rest that is longer than it.
func TestLongRest(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	if err := f.sweep.rest(t.Context(), searcherLease+searcherTime); err != nil {
		t.Fatal(err)
	}
	if who, err := f.client.Get(t.Context(), "b:boardd:searcher").Result(); err != nil || who != f.store.self {
		t.Errorf("after the rest %q searches, %v; want %q", who, err, f.store.self)
	}
}

// TestBudgetAmongServers checks that servers which search different boards of one Redis
// count each other, as long as they are there.
func TestBudgetAmongServers(t *testing.T) {
	t.Parallel()
	f := newPlain(t)
	first, second := watching(t, f.server.Addr, written, "a", "b"), watching(t, f.server.Addr, written, "c")
	for name, s := range map[string]*server{"first": first, "second": second} {
		testserver.Eventually(t, "the "+name+" knows of both", func() bool { return s.among() == 2 })
	}
	first.close()
	testserver.Eventually(t, "the second is alone", func() bool { return second.among() == 1 })
	second.close()
	testserver.Eventually(t, "nothing says that anybody searches", func() bool {
		n, err := f.client.Exists(t.Context(), searchers, "a:boardd:searcher", "b:boardd:searcher", "c:boardd:searcher").Result()
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

// TestOverlongTurn checks that a search which lasts leaves off in its midst when another
// server has taken over.
func TestOverlongTurn(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	if err := f.client.Set(t.Context(), "b:boardd:searcher", "another", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	f.sweep.kept = time.Time{}
	if err := f.sweep.listings(t.Context(), 0); err != errTaken {
		t.Errorf("a search while another server searches: %v", err)
	}
}

// TestSearchGoesOn has a watch of before a restart last until the next one has begun: the
// board as it was opened last is searched all the same.
func TestSearchGoesOn(t *testing.T) {
	t.Parallel()
	f := newPlain(t)
	s := &server{T: t, store: openStore(t, f.server.Addr), seen: map[job.ID]bool{}}
	open := func() {
		if _, err := s.store.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(written)}); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	t.Cleanup(func() { s.close(); running.Wait() })
	watch := func(each func(driver.Changes)) {
		begun := make(chan struct{})
		running.Go(func() {
			first := sync.OnceFunc(func() { close(begun) })
			defer first()
			for changes, err := range s.store.Watch(t.Context(), "b", 1<<40) {
				if err != nil {
					return
				}
				first()
				each(changes)
			}
		})
		<-begun
	}
	open()
	release := make(chan struct{})
	watch(func(driver.Changes) { <-release })
	testserver.Eventually(t, "the board is searched", s.searches)
	b, err := s.store.board("b")
	if err != nil {
		t.Fatal(err)
	}
	b.opening.Load().expire()
	testserver.Eventually(t, "that search ends", func() bool { return !s.searches() })
	open()
	watch(func(c driver.Changes) { s.tell(c.List) })
	close(release)
	f.post(1)
	testserver.Eventually(t, "what another program posts is seen", s.saw(1))
}
