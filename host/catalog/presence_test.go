package catalog_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// The spaces in which hosts say what they are, and which boards they serve.
var (
	hostDocs = driver.Space{Name: "hosts"}
	wordDocs = driver.Space{Name: "hosts-boards"}
)

// numbered is a place of boardd's own choice, and its board.
func numbered(i int) (catalog.Location, catalog.Use) {
	l := at("namespace", fmt.Sprintf("boardd:{t/b%06d}", i))
	u := use(fmt.Sprintf("b%06d", i))
	u.Location, u.Settings = l.String(), map[string]string{"lease": "30s"}
	return l, u
}

// with returns the use with another lease.
func with(u catalog.Use, lease string) catalog.Use {
	u.Settings = map[string]string{"lease": lease}
	return u
}

func present(docs driver.Documents, id string) *catalog.Presence {
	return catalog.NewPresence(docs, catalog.Host{ID: id, Version: "1"}, quiet())
}

// runs has a presence keep itself up until the test ends or stop is called.
func runs(t *testing.T, p *catalog.Presence) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// serve has a presence serve boards, all at once, and fails the test where that fails.
func serve(t testing.TB, p *catalog.Presence, numbers ...int) {
	t.Helper()
	var wg sync.WaitGroup
	for _, i := range numbers {
		wg.Go(func() {
			l, u := numbered(i)
			if _, err := p.Serve(t.Context(), l, u); err != nil {
				t.Errorf("board %d is not served: %v", i, err)
			}
		})
	}
	wg.Wait()
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// serversOf returns who serves a board at its place.
func serversOf(t testing.TB, docs driver.Documents, number int) []string {
	t.Helper()
	_, u := numbered(number)
	servers, err := catalog.Servers(t.Context(), docs, []catalog.Use{u})
	if err != nil {
		t.Fatal(err)
	}
	return servers[0]
}

func wantServers(t testing.TB, when string, docs driver.Documents, number int, want ...string) {
	t.Helper()
	if got := serversOf(t, docs, number); !slices.Equal(got, want) {
		t.Errorf("%s: board %d is served by %v, want %v", when, number, got, want)
	}
}

// wordsIn returns the documents in which hosts say which boards they serve.
func wordsIn(t testing.TB, docs driver.Documents) []driver.Document {
	t.Helper()
	list, err := docs.List(t.Context(), wordDocs, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestWordsCostTheSame: a board that opens or closes costs the same writes beside ten
// others and beside a thousand, and none of them is written again to say that the host
// lives.
func TestWordsCostTheSame(t *testing.T) {
	t.Parallel()
	type cost struct {
		writes      map[string]int
		bytes, most int
	}
	measure := func(t *testing.T, boards int) (costs []cost) {
		t.Helper()
		docs := tallied(t)
		p := present(docs, "host-a")
		add := func() {
			writes, bytes, most := docs.since()
			costs = append(costs, cost{writes, bytes, most})
		}
		stop := runs(t, p)
		serve(t, p, upTo(boards)...)
		if writes, _, most := docs.since(); writes["hosts-boards"] != boards || writes["hosts"] > 2 || most > 300 {
			t.Errorf("%d boards were opened with writes %v, up to %d bytes each", boards, writes, most)
		}
		time.Sleep(2 * time.Minute) // what is looked at once more is looked at
		synctest.Wait()
		docs.since()
		lists := docs.listed(wordDocs)
		serve(t, p, boards)
		add()
		l, u := numbered(boards)
		if err := p.Leave(t.Context(), l, u); err != nil {
			t.Fatal(err)
		}
		add()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		add()
		if n := docs.listed(wordDocs) - lists; n != 0 {
			t.Errorf("all words were listed %d times though nobody died", n)
		}
		if n := len(wordsIn(t, docs)); n != boards {
			t.Errorf("there are words of %d places, want %d", n, boards)
		}
		stop()
		return costs
	}
	var few, many []cost
	synctest.Test(t, func(t *testing.T) { few = measure(t, 10) })
	synctest.Test(t, func(t *testing.T) { many = measure(t, 1000) })
	for i, what := range []string{"opens", "closes", "stays for ten minutes"} {
		if a, b := few[i], many[i]; !maps.Equal(a.writes, b.writes) || a.bytes != b.bytes || a.most != b.most {
			t.Errorf("a board %s: %+v beside ten, %+v beside a thousand", what, a, b)
		}
	}
	if want := map[string]int{"hosts-boards": 1}; !maps.Equal(many[0].writes, want) || !maps.Equal(many[1].writes, want) {
		t.Errorf("a board opens with writes %v and closes with %v, want %v", many[0].writes, many[1].writes, want)
	}
	if w := many[2].writes; w["hosts-boards"] != 0 || w["hosts"] < 30 || w["hosts"] > 50 {
		t.Errorf("in ten minutes there are writes %v, want about 40 to the host's own document", w)
	}
}

// TestAHostDies: what it said counts no more as soon as its own document has lapsed, and
// is taken out by one that lives; what the living say stays.
func TestAHostDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		b, behind := present(docs, "host-b"), counting(docs)
		c := present(behind, "host-c")
		runs(t, b)
		runs(t, c)
		time.Sleep(3 * time.Minute)     // what is looked for at the start was
		dead := present(docs, "host-a") // it says nothing by itself
		serve(t, dead, upTo(300)...)
		serve(t, b, 0, 1, 1000)
		serve(t, c, 2)
		wantServers(t, "while it lives", docs, 0, "host-a", "host-b")
		time.Sleep(50 * time.Second)
		wantServers(t, "after it died", docs, 0, "host-b")
		wantServers(t, "after it died", docs, 3)
		if n := len(wordsIn(t, docs)); n != 301 {
			t.Errorf("words of %d places are there before they were swept, want 301", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		list := wordsIn(t, docs)
		if n := len(list); n != 4 {
			t.Errorf("words of %d places are left, want 4", n)
		}
		for _, doc := range list {
			if strings.Contains(string(doc.Data), "host-a") {
				t.Errorf("what the host said is left: %s", doc.Data)
			}
		}
		for number, want := range map[int][]string{0: {"host-b"}, 1: {"host-b"}, 1000: {"host-b"}, 2: {"host-c"}} {
			wantServers(t, "after the sweep", docs, number, want...)
		}
		if n := behind.listed(wordDocs); n != 0 {
			t.Errorf("the second of two hosts has looked at all words as well, %d times", n)
		}
	})
}

// TestAllHostsDie: who comes next takes out what they left, also under the name of one.
func TestAllHostsDie(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		serve(t, present(docs, "host-a"), 0, 1, 2)
		serve(t, present(docs, "host-b"), 2, 3, 4)
		again := present(docs, "host-b")
		serve(t, again, 2) // before the time of the one before is over
		wantServers(t, "another run of the host", docs, 2, "host-a", "host-b")
		wantServers(t, "another run of the host", docs, 3)
		runs(t, again)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := len(wordsIn(t, docs)); n != 1 {
			t.Errorf("words of %d places are left, want 1", n)
		}
		wantServers(t, "at the end", docs, 2, "host-b")
	})
}

// behind is the store as a host has it whose clock is behind the store's.
type behind struct {
	driver.Documents

	by time.Duration
}

func (b behind) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if !doc.Expires.IsZero() {
		doc.Expires = doc.Expires.Add(-b.by)
	}
	return b.Documents.Put(ctx, space, doc, ifVersion)
}

// TestAHostsClockIsBehind: a host whose words are gone for the store as soon as they are said
// serves boards nevertheless, and lives for the others.
func TestAHostsClockIsBehind(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{31 * time.Second, 46 * time.Second, 10 * time.Minute, 5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			docs := store(t)
			p := present(behind{docs, by}, "a")
			runs(t, p)
			serve(t, p, 1)
			for range 8 {
				wantServers(t, fmt.Sprintf("%v behind", by), docs, 1, "a")
				time.Sleep(time.Minute)
			}
		})
	}
}

// TestAHostComesBack: one of which nothing was heard for too long, so that others took out
// what it had said, says it all again.
func TestAHostComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		behind := counting(docs)
		a, b := present(behind, "host-a"), present(docs, "host-b")
		runs(t, a)
		runs(t, b)
		const boards = 600 // more than are brought in line at a time
		serve(t, a, upTo(boards)...)
		serve(t, b, boards-1)
		behind.failing(func(string, driver.Space) (before, after error) { return job.Unavailable, nil })
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := len(wordsIn(t, docs)); n != 1 {
			t.Errorf("words of %d places are there while the host is away, want 1", n)
		}
		behind.failing(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range boards - 1 {
			wantServers(t, "back", docs, i, "host-a")
		}
		wantServers(t, "back", docs, boards-1, "host-a", "host-b")
	})
}

// TestAStoreIsPutBack: what a store lost of what a host said is said again.
func TestAStoreIsPutBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		wait time.Duration // between what is lost and the loss
	}{{"what was just written", time.Second}, {"some minutes", 3 * time.Minute}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				docs := store(t)
				p := present(docs, "host-a")
				runs(t, p)
				serve(t, p, 0, 1)
				time.Sleep(time.Minute)
				synctest.Wait()
				own, err := docs.Get(t.Context(), hostDocs, "host-a")
				if err != nil {
					t.Fatal(err)
				}
				serve(t, p, 2)
				time.Sleep(c.wait)
				synctest.Wait()
				putBack(t, docs, own, 2)
				time.Sleep(time.Minute)
				synctest.Wait()
				for i := range 3 {
					wantServers(t, "after the store was put back", docs, i, "host-a")
				}
			})
		})
	}
}

// putBack takes a board's words away, as they were not there at the time of a host's
// document, and puts that back if it was written since.
func putBack(t *testing.T, docs driver.Documents, own driver.Document, number int) {
	t.Helper()
	for _, doc := range wordsIn(t, docs) {
		if strings.Contains(string(doc.Data), fmt.Sprintf("b%06d", number)) {
			if err := docs.Delete(t.Context(), wordDocs, doc.Name, doc.Version); err != nil {
				t.Fatal(err)
			}
		}
	}
	now, err := docs.Get(t.Context(), hostDocs, own.Name)
	if err == nil && now.Version != own.Version {
		own.Expires = now.Expires
		_, err = docs.Put(t.Context(), hostDocs, own, now.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPresenceInThePlaceOfAnother: where a host replaces a driver, and so its presence in the store,
// the one before takes nothing away that the new one has said.
func TestPresenceInThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		stop := runs(t, present(docs, "a"))
		synctest.Wait()
		next := present(docs, "a")
		runs(t, next)
		synctest.Wait()
		stop()
		synctest.Wait()
		if hosts, err := next.Hosts(t.Context()); err != nil || len(hosts) != 1 {
			t.Errorf("the hosts that live are %v, %v: want a, whose presence was replaced", hosts, err)
		}
	})
}
