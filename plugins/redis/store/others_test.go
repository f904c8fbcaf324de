package store

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/connect"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestForeignDefault checks to which boards other programs are taken to write.
func TestForeignDefault(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]bool{
		``:                                      false,
		`{}`:                                    false,
		`{"events":10}`:                         false,
		`{"namespace":"octavia_jobboard"}`:      true,
		`{"no_namespace":true}`:                 true,
		`{"namespace":"boardd:{tenant/board}"}`: false,
		`{"namespace":"boardd:{tenant/board}","foreign":true}`: true,
		`{"namespace":"octavia_jobboard","foreign":false}`:     false,
		`{"foreign":true}`: true,
	} {
		st, err := (&Store{}).readSettings(&driver.BoardSpec{Name: "b", Settings: []byte(settings)})
		if err != nil || st.foreign != want {
			t.Errorf("%s: other programs write: %v, %v; want %v", settings, st != nil && st.foreign, err, want)
		}
	}
}

func (s *server) found() bool {
	b, err := s.store.board("b")
	return err == nil && b.others.write()
}

// TestOthersAreFound has another program write to a board that boardd alone is said to
// write: it is found by what it posts, ends, or does to a job that boardd then changes, and
// all that it does is searched for from then on.
func TestOthersAreFound(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(f *field, s *server){
		"posts":   func(f *field, _ *server) { f.post(5000) },
		"ends":    func(f *field, _ *server) { f.end(7) },
		"trashes": func(f *field, _ *server) { f.set("b:trash", numbered(7).String(), "x"); f.end(7) },
		"claims": func(f *field, s *server) {
			f.claim(numbered(7))
			spec := &driver.ClaimSpec{Count: 1, Owner: "w", Lease: time.Minute, Candidates: []driver.Candidate{{Job: numbered(7), Nonce: [16]byte{1}}}}
			r := s.store.Apply(f.Context(), "b", []driver.Op{{Kind: driver.Claim, Claim: spec, Event: job.ClaimedEvent}})[0]
			if len(r.Claims) != 0 || len(r.Skipped) != 1 || r.Skipped[0].Kind != job.AlreadyClaimed {
				f.Errorf("a job that another program holds was claimed: %+v", r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, `{}`)
			s := watching(t, f.server.Addr, `{"foreign":false}`, "b")
			if s.searches() || s.found() {
				t.Fatal("others are searched for from the beginning")
			}
			does(f, s)
			testserver.Eventually(t, "another program is found", s.found)
			testserver.Eventually(t, "it is searched for", s.searches)
			f.post(6000)
			testserver.Eventually(t, "what it posts next is seen", s.saw(6000))
			for finding, err := range s.store.Examine(t.Context(), "b") {
				if err != nil {
					t.Fatal(err)
				}
				if finding.Code == "foreign-writers" {
					return
				}
			}
			t.Error("an examination does not say so")
		})
	}
}

// TestPastOthers has other programs be past: what they had posted, and ended, before the
// board was opened by a server is no reason to search.
func TestPastOthers(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.client.IncrBy(t.Context(), "b:sequence", 3) // posted and ended before anybody looked
	counted, err := f.sweep.count(t.Context())
	if err != nil || counted.unreconciled() != 3 {
		t.Fatalf("%d posts are not boardd's, %v", counted.unreconciled(), err)
	}
	if counted.others(3) {
		t.Errorf("what is past is taken for a change: %s", counted.difference())
	}
	if !counted.others(2) {
		t.Errorf("one more post is no change: %s", counted.difference())
	}
	s := watching(t, f.server.Addr, `{}`, "b")
	b, err := s.store.board("b")
	if err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the board is looked at", func() bool {
		s.store.rounds.mu.Lock()
		defer s.store.rounds.mu.Unlock()
		return s.store.rounds.boards[b] != nil && s.store.rounds.fresh[b] == nil
	})
	if s.found() {
		t.Errorf("what is past is taken for a change")
	}
	f.post(5000)
	testserver.Eventually(t, "one more post is found", s.found)
}

// TestLostWake has a server miss what is published. A round finds that the board was changed.
func TestLostWake(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	s := watching(t, f.server.Addr, `{}`, "b")
	wake := f.board.opening.Load().keys.wake
	testserver.Eventually(t, "Redis tells of the board", func() bool { return s.store.tells(wake) })
	if err := s.store.wakes.pubsub.Unsubscribe(t.Context(), wake); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "it does no more", func() bool {
		return strings.Contains(f.server.Command("PUBSUB", "NUMSUB", wake), ":0")
	})
	f.apply(posting(5000, `{}`))
	testserver.Eventually(t, "the post is told all the same", s.told(5000))
}

// TestNumbersAgree changes a board through two servers in every way at once, and checks that
// the numbers never tell of another program.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	other := openStore(t, f.server.Addr)
	t.Cleanup(func() { _ = other.Close() })
	if _, err := other.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var changing sync.WaitGroup
	for part, s := range []*Store{f.store, other, f.store, other} {
		changing.Go(func() { livesOf(t, s, part, stop) })
	}
	for range 300 {
		counted, err := f.sweep.count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if counted.others(0) {
			t.Errorf("the numbers tell of another program: %s", counted.difference())
			break
		}
	}
	close(stop)
	changing.Wait()
}

// livesOf posts jobs, and ends them in every way, until it is stopped.
func livesOf(t *testing.T, s *Store, part int, stop <-chan struct{}) {
	t.Helper()
	apply := func(op driver.Op) driver.Result { return s.Apply(t.Context(), "b", []driver.Op{op})[0] }
	for n := 10_000 * (part + 1); ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		id := numbered(n)
		op := posting(n, `{}`)
		if r := apply(op); r.Kind != job.NoKind {
			t.Errorf("Post: %v %s", r.Kind, r.Message)
			return
		}
		spec := &driver.ClaimSpec{Count: 1, Owner: "w", Lease: time.Minute, Candidates: []driver.Candidate{{Job: id, Nonce: [16]byte{byte(n)}}}}
		r := apply(driver.Op{Kind: driver.Claim, Claim: spec, Event: job.ClaimedEvent})
		if len(r.Claims) != 1 {
			t.Errorf("Claim: %v %s", r.Kind, r.Message)
			return
		}
		held := driver.Op{Job: id, Precondition: driver.HeldByToken, Token: r.Claims[0].Token}
		switch held.Kind, held.Event = driver.Remove, job.ConsumedEvent; n % 3 {
		case 0:
			apply(held)
		case 1:
			held.Kind, held.Event = driver.Trash, job.TrashedEvent
			apply(held)
			apply(driver.Op{Kind: driver.Restore, Job: id, Event: job.Restored})
		default:
			held.Kind, held.Event = driver.Trash, job.TrashedEvent
			apply(held)
			apply(driver.Op{Kind: driver.Purge, Job: id, Event: job.PurgedEvent})
		}
	}
}

// TestManyBoards opens and watches many boards that boardd alone writes. They need no more
// connections than one, no pattern, and nothing that Redis does for one of them touches
// another one.
func TestManyBoards(t *testing.T) {
	t.Parallel()
	f := newPlain(t)
	names := []string{"b"}
	for i := range 300 {
		names = append(names, fmt.Sprintf("board %d", i))
	}
	s := watching(t, f.server.Addr, `{}`, names...)
	var posting sync.WaitGroup
	for i, name := range names {
		posting.Go(func() {
			op := driver.Op{Kind: driver.Post, Job: numbered(i), Posting: &driver.Posting{ID: numbered(i), Name: "job", Digest: numbered(i)}, Event: job.Posted}
			if r := s.store.Apply(t.Context(), name, []driver.Op{op})[0]; r.Kind != job.NoKind {
				t.Errorf("board %s: %v %s", name, r.Kind, r.Message)
			}
		})
	}
	posting.Wait()
	if n := strings.Count(f.server.Command("CLIENT", "LIST"), " laddr=") - 1; n > connect.Connections+1 || n < 2 { // but who asks
		t.Errorf("%d boards have %d connections, want at most %d", len(names), n, connect.Connections+1)
	}
	if got := f.server.Command("PUBSUB", "NUMPAT"); strings.TrimSpace(got) != ":0" {
		t.Errorf("Redis compares what is published with %s patterns, want none", got)
	}
	if n := f.client.Exists(t.Context(), searchers, "b:boardd:searcher").Val(); n != 0 {
		t.Errorf("boards that boardd alone writes are searched")
	}
}
