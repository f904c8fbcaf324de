package catalog_test

import (
	"errors"
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

// TestHostsRace: of hosts that begin to serve a board at the same moment, of each two at
// least one sees the other.
func TestHostsRace(t *testing.T) {
	t.Parallel()
	for range 20 {
		docs := store(t)
		const hosts = 6
		var seen [hosts]map[string]map[string]string
		var wg sync.WaitGroup
		for i := range hosts {
			wg.Go(func() {
				l, u := numbered(0)
				others, err := present(docs, fmt.Sprint("host-", i)).Serve(t.Context(), l, with(u, fmt.Sprint(i, "s")))
				if err != nil {
					t.Error(err)
				}
				seen[i] = others
			})
		}
		wg.Wait()
		for i := range hosts {
			for j := range i {
				one, other := seen[i][fmt.Sprint("host-", j)]["lease"], seen[j][fmt.Sprint("host-", i)]["lease"]
				if one != fmt.Sprint(j, "s") && other != fmt.Sprint(i, "s") {
					t.Fatalf("host %d sees %v, and host %d sees %v", i, seen[i], j, seen[j])
				}
			}
		}
		if n := len(serversOf(t, docs, 0)); n != hosts {
			t.Fatalf("%d hosts serve the board, want %d", n, hosts)
		}
	}
}

// TestHostsDisputeAPlace: two hosts that try two boards at one place hear of each other's
// settings only for the board that both mean.
func TestHostsDisputeAPlace(t *testing.T) {
	t.Parallel()
	docs := store(t)
	a, b := present(docs, "host-a"), present(docs, "host-b")
	l, has := numbered(0)
	wants := with(use("another"), "60s")
	wants.Location = l.String()
	for _, c := range []struct {
		p    *catalog.Presence
		use  catalog.Use
		want map[string]map[string]string
	}{
		{a, has, nil},
		{b, wants, nil},
		{b, has, map[string]map[string]string{"host-a": {"lease": "30s"}}},
		{a, wants, map[string]map[string]string{"host-b": {"lease": "60s"}}},
	} {
		others, err := c.p.Serve(t.Context(), l, c.use)
		if err != nil || !maps.EqualFunc(others, c.want, maps.Equal[map[string]string]) {
			t.Errorf("others serve %s as %v, %v; want %v", c.use.Board, others, err, c.want)
		}
	}
	if err := a.Leave(t.Context(), l, wants); err != nil {
		t.Fatal(err)
	}
	servers, err := catalog.Servers(t.Context(), docs, []catalog.Use{has, wants})
	if err != nil || !slices.Equal(servers[0], []string{"host-a", "host-b"}) || !slices.Equal(servers[1], []string{"host-b"}) {
		t.Errorf("got %v, %v", servers, err)
	}
}

// TestServersOfManyPlaces: those of many boards are listed, those of few are looked up, and
// both say the same.
func TestServersOfManyPlaces(t *testing.T) {
	t.Parallel()
	docs := store(t)
	a, b := present(docs, "host-a"), present(docs, "host-b")
	const boards = 700 // more than two pages
	serve(t, a, upTo(boards)...)
	serve(t, b, 5, 699)
	uses := make([]catalog.Use, boards+1)
	for i := range uses {
		_, uses[i] = numbered(i)
	}
	all, err := catalog.Servers(t.Context(), docs, uses)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 5, 698, 699, 700} {
		if one := serversOf(t, docs, i); !slices.Equal(one, all[i]) {
			t.Errorf("board %d is served by %v in the list, and by %v alone", i, all[i], one)
		}
	}
	part, err := catalog.Servers(t.Context(), docs, uses[300:400])
	if err != nil || !slices.EqualFunc(part, all[300:400], slices.Equal[[]string]) {
		t.Errorf("some of the boards are served by %v, %v; among all it is %v", part, err, all[300:400])
	}
	if len(all[0]) != 1 || len(all[5]) != 2 || len(all[700]) != 0 {
		t.Errorf("got %v, %v, %v", all[0], all[5], all[700])
	}
}

// TestListedInPart: hosts that could be listed only in part are not known, so that nobody
// is taken for gone who may be in the other part.
func TestListedInPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := tallied(t)
		ctx := t.Context()
		a, b := present(docs, "host-a"), present(docs, "host-b")
		runs(t, a)
		runs(t, b)
		serve(t, a, 0)
		serve(t, b, 0, 1)
		inPart := func(in driver.Space) {
			docs.failing(func(op string, space driver.Space) (before, after error) {
				if op == "list" && space == in {
					return job.Unavailable, nil
				}
				return nil, nil
			})
		}
		inPart(hostDocs)
		l, u := numbered(0)
		_, err := present(docs, "host-c").Serve(ctx, l, u)
		wantKind(t, "hosts in part", err, job.Unavailable)
		_, err = catalog.Servers(ctx, docs, []catalog.Use{u})
		wantKind(t, "hosts in part", err, job.Unavailable)
		time.Sleep(5 * time.Minute) // in which all is swept once
		synctest.Wait()
		inPart(wordDocs)
		many := slices.Repeat([]catalog.Use{u}, 20)
		_, err = catalog.Servers(ctx, docs, many)
		wantKind(t, "words in part", err, job.Unavailable)
		docs.failing(nil)
		wantServers(t, "after that", docs, 0, "host-a", "host-b")
		wantServers(t, "after that", docs, 1, "host-b")
	})
}

// TestTheStoreFails: who asked is told, and what was to be said is said when the store is
// back, whether it was a board that came or one that went.
func TestTheStoreFails(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection broke")
	for _, c := range []struct {
		name string
		fail func(op string, space driver.Space) (before, after error)
	}{
		{"nothing is written", func(op string, space driver.Space) (before, after error) {
			if space == wordDocs && op != "get" {
				return job.Unavailable, nil
			}
			return nil, nil
		}},
		{"nothing is answered", func(string, driver.Space) (before, after error) { return job.Unavailable, nil }},
		{"all answers are lost", func(string, driver.Space) (before, after error) { return nil, lost }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				docs := tallied(t)
				p := present(docs, "host-a")
				runs(t, p)
				serve(t, p, 0, 1)
				docs.failing(c.fail)
				l, u := numbered(0)
				if err := p.Leave(t.Context(), l, u); err == nil {
					t.Error("leaving is said to be done")
				}
				l, u = numbered(2)
				if _, err := p.Serve(t.Context(), l, u); err == nil {
					t.Error("serving is said to be done")
				}
				time.Sleep(20 * time.Second) // in which the host's own document is tried as well
				docs.failing(nil)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				wantServers(t, "at last", docs, 0)
				wantServers(t, "at last", docs, 1, "host-a")
				wantServers(t, "at last", docs, 2, "host-a")
			})
		})
	}
}

// TestWordsThatCannotBeRead: what is no word is nobody's and goes; what a newer host says in
// a form of its own is left alone, and keeps others off.
func TestWordsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		ctx := t.Context()
		p := present(docs, "host-a")
		serve(t, p, 0, 1, 2)
		for _, doc := range wordsIn(t, docs) {
			next := driver.Document{Name: doc.Name, Data: []byte(`{"format":2,"record":{"new":true}}`)}
			if !strings.Contains(string(doc.Data), "b000002") {
				next.Data = []byte("{no")
			}
			if _, err := docs.Put(ctx, wordDocs, next, doc.Version); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := docs.Put(ctx, wordDocs, driver.Document{Name: "of-no-place", Data: []byte("{no")}, 0); err != nil {
			t.Fatal(err)
		}
		wantServers(t, "with what cannot be read", docs, 0)
		serve(t, p, 0)
		wantServers(t, "said again", docs, 0, "host-a")
		l, u := numbered(2)
		_, err := p.Serve(ctx, l, u)
		wantKind(t, "a newer form", err, job.Precondition)
		runs(t, p)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		wantServers(t, "when the host has looked once more", docs, 1, "host-a")
		var left []string
		for _, doc := range wordsIn(t, docs) {
			left = append(left, string(doc.Data))
		}
		if all := strings.Join(left, "\n"); len(left) != 3 || !strings.Contains(all, `"new":true`) {
			t.Errorf("there are\n%s", all)
		}
	})
}

// BenchmarkServe opens a board and closes it beside those that are open already.
func BenchmarkServe(b *testing.B) {
	for _, open := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint(open), func(b *testing.B) {
			docs := tallied(b)
			p := present(docs, "host-a")
			serve(b, p, upTo(open)...)
			docs.since()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l, u := numbered(open + i)
				if _, err := p.Serve(b.Context(), l, u); err != nil {
					b.Fatal(err)
				}
				if err := p.Leave(b.Context(), l, u); err != nil {
					b.Fatal(err)
				}
			}
			writes, bytes, _ := docs.since()
			b.ReportMetric(float64(writes["hosts"]+writes["hosts-boards"])/float64(b.N), "writes/op")
			b.ReportMetric(float64(bytes)/float64(b.N), "written-B/op")
		})
	}
}
