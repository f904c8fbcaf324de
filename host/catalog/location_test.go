package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func at(setting, value string) catalog.Location {
	return catalog.LocationOf(fmt.Appendf(nil, `{%q:%q}`, setting, value), "t/b")
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		setting, a, b string
		want          bool
	}{
		{"namespace", "octavia", "octavia", true},
		{"namespace", "octavia", "octavia:eu", false}, // octavia:eu:listings is no key of octavia's
		{"namespace", "octavia:eu", "octavia:eu:2", false},
		{"namespace", "octavia", "octavia:listings", false},
		{"namespace", "octavia", "octavia:boardd", true}, // boardd's own keys of octavia begin so
		{"namespace", "octavia", "octavia:boardd:eu", true},
		{"namespace", "octavia:eu", "octavia:boardd", false},
		{"namespace", "boardd", "boardd:{a/c}", false},
		{"namespace", "octavia", "octavia2", false},
		{"namespace", "boardd:{a/b}", "boardd:{a/c}", false},
		{"path", "/a/jobs", "/a/jobs", true},
		{"path", "/a/jobs/", "/a//jobs", true},
		{"path", "/a/./jobs", "/a/x/../jobs", true},
		{"path", "/a/jobs", "/a/jobs/deeper", true},
		{"path", "/a/jobs", "/b/jobs", false},
		{"path", "/a/jobs", "/a/jobs2", false},             // TaskFlow keeps the trash of both in /a/.trash, as of any siblings
		{"path", "/octavia", "/taskflow", false},           // and of these in /.trash
		{"path", "/a/b/jobs", "/a/c", false},               // /a/b/.trash and /a/.trash
		{"path", "/a/jobs/jobs", "/a/x", false},            // /a/.trash/.trash is no job in /a/.trash
		{"path", "/a/jobs", "/a/.trash", true},             // what the one sets aside would be the other's jobs
		{"path", "/a/jobs", "/a/.entities", true},          // likewise
		{"path", "/a/jobs", "/a/.boardd/jobs", true},       // what boardd keeps of the one
		{"path", "/a/jobs", "/a/.boardd", true},            // around that
		{"path", "/a/jobs", "/a/.boardd/x", false},         // where there may be a board x
		{"path", "/x/jobs/jobs", "/x/.trash/y", false},     // both have their trash in /x/.trash/.trash, as siblings have
		{"path", "/x/jobs/jobs", "/x/.trash/.trash", true}, // TaskFlow replaces every occurrence of the last part
		{"path", "/boardd/acme/a/Jobs", "/boardd/acme/b/Jobs", false},
		{"path", "/boardd/a/b.trash/Jobs", "/boardd/a/b/Jobs", false},
	} {
		if got := at(c.setting, c.a).Overlaps(at(c.setting, c.b)); got != c.want {
			t.Errorf("%s %s and %s: overlap is %v, want %v", c.setting, c.a, c.b, got, c.want)
		}
		if got := at(c.setting, c.b).Overlaps(at(c.setting, c.a)); got != c.want {
			t.Errorf("%s %s and %s: overlap is %v, want %v", c.setting, c.b, c.a, got, c.want)
		}
	}
	if a, b := catalog.LocationOf([]byte(`{"no_namespace":true}`), "a"), catalog.LocationOf([]byte(`{"no_namespace":true,"events":9}`), "b"); !a.Overlaps(b) {
		t.Error("two boards without a namespace have the same keys")
	}
	plain := catalog.LocationOf(nil, "acme/a")
	if plain.Overlaps(catalog.LocationOf([]byte("{}"), "acme/b")) || !plain.Overlaps(catalog.LocationOf([]byte("{}"), "acme/a")) {
		t.Error("boards without settings lie where their names say")
	}
	if a, b := catalog.LocationOf([]byte(`{"x":1,"y":2}`), "a"), catalog.LocationOf([]byte(`{ "y":2, "x":1 }`), "b"); !a.Overlaps(b) {
		t.Errorf("%s and %s are the same settings", a, b)
	}
}

// TestMadePlacesNeverOverlap makes places of names that look like parts of other
// places.
func TestMadePlacesNeverOverlap(t *testing.T) {
	t.Parallel()
	schema := driver.Schema{Fields: []driver.Field{{Name: "namespace", Type: driver.String}, {Name: "claims", Type: driver.String}}}
	paths := driver.Schema{Fields: []driver.Field{{Name: "path", Type: driver.String}}}
	names := []string{"a", "b", "jobs", "boardd", "a.trash", "a.entities", "trash", "a-b", "a.b", "0", strings.Repeat("x", 63)}
	for _, s := range []driver.Schema{schema, paths} {
		seen := map[string]catalog.Location{}
		for _, owner := range names {
			for _, board := range names {
				settings, err := catalog.MakeSettings(s, nil, owner, board)
				if err != nil || len(s.Check(settings)) > 0 {
					t.Fatalf("%s: %v", settings, err)
				}
				here := catalog.LocationOf(settings, owner+"/"+board)
				for other, there := range seen {
					if here.Overlaps(there) {
						t.Errorf("%s/%s at %s overlaps with %s at %s", owner, board, here, other, there)
					}
				}
				seen[owner+"/"+board] = here
			}
		}
	}
	if settings, err := catalog.MakeSettings(driver.Schema{}, nil, "a", "b"); string(settings) != "{}" || err != nil {
		t.Errorf("a driver without such settings: %s, %v", settings, err)
	}
}

// TestMadePlacesLieBelowTheRoot makes the place of one board on backends with and
// without a root, as two deployments do that share a ZooKeeper.
func TestMadePlacesLieBelowTheRoot(t *testing.T) {
	t.Parallel()
	paths := driver.Schema{Fields: []driver.Field{{Name: "path", Type: driver.String}}}
	for backend, want := range map[string]string{
		"":                       `{"path":"/boardd/acme/a/Jobs"}`,
		`{"servers":["x:1"]}`:    `{"path":"/boardd/acme/a/Jobs"}`,
		`{"root":"/staging"}`:    `{"path":"/staging/acme/a/Jobs"}`,
		`{"root":"/apps/board"}`: `{"path":"/apps/board/acme/a/Jobs"}`,
	} {
		if got, err := catalog.MakeSettings(paths, []byte(backend), "acme", "a"); string(got) != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", backend, got, err, want)
		}
	}
}

func use(board string) catalog.Use {
	return catalog.Use{Tenant: "acme", Board: board, Settings: map[string]string{"lease": "30s"}}
}

func TestOnePlaceBelongsToOneBoard(t *testing.T) {
	t.Parallel()
	docs := store(t)
	ctx := t.Context()
	places := catalog.NewPlaces(docs, "zk")
	occupy := func(l catalog.Location, u catalog.Use) error { return places.Occupy(ctx, l, u, nil) }
	if err := occupy(at("path", "/a/jobs"), use("a")); err != nil {
		t.Fatal(err)
	}
	if err := occupy(at("path", "/a/jobs/"), use("a")); err != nil {
		t.Errorf("the same board again: %v", err)
	}
	wantKind(t, "another board at the place", occupy(at("path", "/a/jobs"), use("b")), job.Precondition)
	wantKind(t, "another board below the place", occupy(at("path", "/a/jobs/x"), use("b")), job.Precondition)
	if err := places.Vacate(ctx, at("path", "/a/jobs"), "acme", "b"); err != nil {
		t.Errorf("freeing another's place: %v", err)
	}
	wantKind(t, "after that", occupy(at("path", "/a/jobs"), use("b")), job.Precondition)
	if err := places.Vacate(ctx, at("path", "/a/jobs"), "acme", "a"); err != nil {
		t.Error(err)
	}
	if err := occupy(at("path", "/a/jobs"), use("b")); err != nil {
		t.Errorf("a place that was freed: %v", err)
	}
}

func TestRaceForOverlappingPlaces(t *testing.T) {
	t.Parallel()
	for range 20 {
		docs := store(t)
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				err := catalog.NewPlaces(docs, "zk").Occupy(t.Context(), at("path", "/same/jobs"+strings.Repeat("/x", i)), use(fmt.Sprint("b", i)), nil)
				if err == nil {
					won.Add(1)
				} else if job.KindOf(err) != job.Precondition {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() > 1 {
			t.Fatalf("%d boards have places that overlap", won.Load())
		}
	}
}

// TestTwoBoardsOfOneHostAtOnePlace: a host that serves a board and tries another one at
// the same place serves the first one only, and goes on to when it gives the other up.
func TestTwoBoardsOfOneHostAtOnePlace(t *testing.T) {
	t.Parallel()
	docs := store(t)
	place := at("namespace", "octavia")
	here := func(board, lease string) catalog.Use {
		u := use(board)
		u.Location, u.Settings = place.String(), map[string]string{"lease": lease}
		return u
	}
	has, wants := here("has", "30s"), here("wants", "60s")
	a := catalog.NewPresence(docs, catalog.Host{ID: "a"}, quiet())
	b := catalog.NewPresence(docs, catalog.Host{ID: "b"}, quiet())
	check := func(when string, first, second bool) {
		t.Helper()
		servers, err := catalog.Servers(t.Context(), docs, []catalog.Use{has, wants})
		if err != nil || slices.Contains(servers[0], "a") != first || slices.Contains(servers[1], "a") != second {
			t.Errorf("%s: %v, %v; want %v and %v", when, servers, err, first, second)
		}
	}
	serve := func(p *catalog.Presence, u catalog.Use) map[string]map[string]string {
		t.Helper()
		others, err := p.Serve(t.Context(), place, u)
		if err != nil {
			t.Fatal(err)
		}
		return others
	}
	leave := func(u catalog.Use) {
		t.Helper()
		if err := a.Leave(t.Context(), place, u); err != nil {
			t.Fatal(err)
		}
	}
	serve(a, wants)
	check("only another board is tried", false, true)
	leave(wants)
	serve(a, has)
	serve(a, wants)
	check("another board is tried", true, true)
	if others := serve(b, has); others["a"]["lease"] != "30s" {
		t.Errorf("the others serve the board as %v", others)
	}
	leave(wants)
	check("it is given up", true, false)
	if others := serve(b, wants); len(others) != 0 {
		t.Errorf("another board's settings count: %v", others)
	}
	leave(has)
	check("both are", false, false)
}

// TestHostsAgreeOnSettings: a host that would serve a board otherwise than
// another one does is refused, with both values, until the other has gone.
func TestHostsAgreeOnSettings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		ctx := t.Context()
		place := at("namespace", "octavia")
		present := func(id string) *catalog.Presence { return catalog.NewPresence(docs, catalog.Host{ID: id}, quiet()) }
		serve := func(p *catalog.Presence, lease string) error {
			u := use("octavia")
			u.Settings = map[string]string{"fencing": "owner", "lease": lease}
			others, err := p.Serve(ctx, place, u)
			if err != nil {
				return err
			}
			return catalog.NewPlaces(docs, "zk").Occupy(ctx, place, u, others)
		}
		a, b := present("host-a"), present("host-b")
		if err := serve(a, "30s"); err != nil {
			t.Fatal(err)
		}
		if err := serve(a, "45s"); err != nil {
			t.Errorf("the only host changes its own settings: %v", err)
		}
		err := serve(b, "60s")
		wantKind(t, "other settings", err, job.Precondition)
		if want := "lease is 60s here and 45s there"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "host-a") {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := b.Leave(ctx, place, use("octavia")); err != nil {
			t.Fatal(err)
		}
		if err := serve(present("host-c"), "45s"); err != nil {
			t.Errorf("the same settings: %v", err)
		}
		time.Sleep(time.Minute) // nobody renews: all are gone
		if err := serve(b, "60s"); err != nil {
			t.Errorf("after the others have gone: %v", err)
		}
	})
}
