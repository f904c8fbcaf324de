package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// TestBesideBefore has the driver of an earlier commit work on one database with that of this
// commit, which upgrades the tables meanwhile where it has others: each is told what the other does
// to documents.
func TestBesideBefore(t *testing.T) {
	t.Parallel()
	for _, commit := range testserver.Earlier(t) {
		t.Run(commit, func(t *testing.T) {
			t.Parallel()
			besideBefore(t, filepath.Join(testserver.BuildBefore(t, commit, "./plugins/postgres"), "postgres"))
		})
	}
}

func besideBefore(t *testing.T, program string) {
	t.Helper()
	server := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	server.SQL("postgres", `CREATE ROLE boardd LOGIN; CREATE SCHEMA boardd AUTHORIZATION boardd`)
	settings, err := json.Marshal(map[string]string{"url": strings.Replace(server.URL("postgres"), "postgres@", "boardd@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plugin.Start(t.Context(), plugin.Command{Path: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	before, err := p.Open(t.Context(), driver.Config{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	space := driver.Space{Name: "both"}
	seenBefore := followed(t, before, space)
	was := put(t, before, space, "of-before", 0)
	server.SQL("postgres", `ALTER SCHEMA boardd OWNER TO postgres; GRANT USAGE ON SCHEMA boardd TO boardd; REASSIGN OWNED BY boardd TO postgres;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA boardd TO boardd; GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA boardd TO boardd`)
	now := start(t, server) // as the superuser, it upgrades the tables; the other has no right on what is new
	seenNow := followed(t, now, space)
	for range 3 {
		is := put(t, now, space, "of-now", 0)
		was = put(t, before, space, "of-before", was)
		for _, seen := range []func() map[string]uint64{seenBefore, seenNow} {
			testserver.Eventually(t, "each has what both wrote", func() bool { return seen()["of-before"] == was && seen()["of-now"] == is })
		}
		for _, err := range []error{now.Documents().Delete(t.Context(), space, "of-before", was), before.Documents().Delete(t.Context(), space, "of-now", is)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, seen := range []func() map[string]uint64{seenBefore, seenNow} {
			testserver.Eventually(t, "each has what both deleted", func() bool { return len(seen()) == 0 })
		}
		was = 0
	}
}

func put(t *testing.T, d driver.Driver, space driver.Space, name string, ifVersion uint64) uint64 {
	t.Helper()
	v, err := d.Documents().Put(t.Context(), space, driver.Document{Name: name, Data: []byte("x")}, ifVersion)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// followed watches a space, and returns what says the versions of the documents in it.
func followed(t *testing.T, d driver.Driver, space driver.Space) (seen func() map[string]uint64) {
	t.Helper()
	var mu sync.Mutex
	there := map[string]uint64{}
	go func() {
		for c, err := range d.Documents().Watch(t.Context(), space) {
			if err != nil {
				if job.KindOf(err) != job.Interrupted {
					t.Errorf("the watch ended: %v", err)
				}
				return
			}
			mu.Lock()
			if c.Deleted {
				delete(there, c.Document.Name)
			} else if !c.Synced {
				there[c.Document.Name] = c.Document.Version
			}
			mu.Unlock()
		}
	}()
	return func() map[string]uint64 {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(there)
	}
}
