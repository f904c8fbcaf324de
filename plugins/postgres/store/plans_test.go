package store

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestPlansOfASmallBoard: a session keeps the plans that it made while the board was small, and
// nobody has gathered statistics since. Behind 20,000 jobs no statement reads more than what
// the jobs of its batch take.
func TestPlansOfASmallBoard(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{
		"never-vacuumed": "",
		"emptied":        "VACUUM", // so the tables are known to be empty
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true, Config: []string{
				"autovacuum=off", "session_preload_libraries=auto_explain",
				"auto_explain.log_analyze=on", "auto_explain.log_buffers=on", "auto_explain.log_timing=off",
			}})
			d, err := openWith(t.Context(), map[string]any{"url": p.URL("postgres"), "max_connections": 3})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			spec := driver.BoardSpec{Name: "b", Window: time.Second, MaxTombstones: 1000, MaxFinals: 500}
			if _, err := d.OpenBoard(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			if begin != "" {
				p.SQL("postgres", begin)
			}
			for range 20 {
				lives(t, d)
			}
			for range 160 {
				done(t, d, postsOf(128))
			}
			p.SQL("postgres", "ALTER SYSTEM SET auto_explain.log_min_duration = 0")
			p.SQL("postgres", "SELECT pg_reload_conf()")
			begun := len(p.Log())
			testserver.Eventually(t, "plans are logged", func() bool {
				lives(t, d)
				return strings.Contains(p.Log()[begun:], "Query Text: ")
			})
			for range 10 {
				lives(t, d)
			}
			var seen strings.Builder
			for text, read := range pagesRead(p.Log()[begun:]) {
				seen.WriteString(text)
				if most := 40 * livesOf; read[2] > most {
					t.Errorf("a statement reads %v pages for %d jobs: want at most %d: %s", read, livesOf, most, lastPlan(p.Log(), text))
				}
			}
			for _, want := range []string{"UPDATE", "DELETE", ".stamps", ".parts", ".keys", ".limits", ".changes"} {
				if !strings.Contains(seen.String(), want) {
					t.Errorf("no statement with %s was seen", want)
				}
			}
		})
	}
}

// TestRoomIsUsedAgain: what a vacuum has freed of the tables is enough for what comes after it,
// so that nothing of the past is left behind. The vacuums are the test's own, each after as much
// work.
func TestRoomIsUsedAgain(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true, Config: []string{"autovacuum=off"}})
	d, err := opened(t, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	spec := driver.BoardSpec{Name: "b", Window: time.Hour, MaxTombstones: 500, MaxFinals: 100, Settings: []byte(`{"events":64}`)}
	if _, err := d.OpenBoard(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	sizes := func() map[string]int {
		for range 20 {
			lives(t, d)
		}
		p.SQL("postgres", "VACUUM (TRUNCATE false)")
		found := map[string]int{}
		for line := range strings.Lines(p.SQL("postgres", `SELECT relname, pg_total_relation_size(oid) / 8192 FROM pg_class WHERE relkind = 'r' AND relnamespace = 'boardd'::regnamespace`)) {
			name, pages, _ := strings.Cut(strings.TrimSpace(line), "|")
			found[name], _ = strconv.Atoi(pages) // it is a number
		}
		return found
	}
	for range 4 {
		sizes()
	}
	before := sizes()
	for range 6 {
		sizes()
	}
	for name, pages := range sizes() {
		if most := before[name] + before[name]/4 + 8; pages > most {
			t.Errorf("%s has %d pages, and had %d: want at most %d", name, pages, before[name], most)
		}
	}
	if before["jobs"] == 0 || before["stamps"] == 0 {
		t.Errorf("what was measured: %v", before)
	}
}

// livesOf is how many jobs lives has.
const livesOf = 32

// lives has jobs posted with keys, limits and attached records, changed, claimed, and ended in
// every way.
func lives(t *testing.T, d driver.Driver) {
	t.Helper()
	posts := postsOf(livesOf)
	spec := driver.ClaimSpec{Owner: "w", Lease: time.Minute, Count: len(posts), Remember: true, Parts: driver.Details | driver.Attached}
	var updates []driver.Op
	for i := range posts {
		id := posts[i].Job
		posts[i].Keys = []driver.Key{{Name: id.String(), Open: true}}
		posts[i].Limits = []driver.Limit{{Key: fmt.Sprintf("\x01%d", i), Max: 1 << 40}}
		posts[i].Attach = []driver.Attachment{{Name: "a", Data: []byte("1")}, {Name: "b", Data: []byte("2")}}
		updates = append(updates, driver.Op{Kind: driver.Update, Job: id, Request: [16]byte(id), Attach: []driver.Attachment{{Name: "a", Delete: true}}, Event: job.OperationEvent})
		spec.Candidates = append(spec.Candidates, driver.Candidate{Job: id, Nonce: [16]byte(id)})
	}
	done(t, d, posts)
	done(t, d, updates)
	claim := driver.Op{Kind: driver.Claim, Request: [16]byte(posts[0].Job), Claim: &spec}
	var ends, purges []driver.Op
	for i, c := range done(t, d, []driver.Op{claim})[0].Claims {
		op := driver.Op{Kind: driver.Remove, Job: c.Job, Request: [16]byte(c.Job), Precondition: driver.HeldByToken, Token: c.Token, Event: job.ConsumedEvent}
		switch i % 3 {
		case 0:
			op.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: []byte("x"), KeepPosting: true}
		case 1:
			op.Kind, op.Event = driver.Trash, job.TrashedEvent
			purges = append(purges, driver.Op{Kind: driver.Purge, Job: c.Job, Request: [16]byte(c.Job), Event: job.PurgedEvent})
		}
		ends = append(ends, op)
	}
	if len(ends) != livesOf {
		t.Fatalf("%d of %d jobs were claimed", len(ends), livesOf)
	}
	done(t, d, ends)
	done(t, d, purges)
}

// done carries out ops that nothing refuses.
func done(t *testing.T, d driver.Driver, ops []driver.Op) []driver.Result {
	t.Helper()
	results := d.Apply(t.Context(), "b", ops)
	for _, r := range results {
		if r.Kind != job.NoKind {
			t.Fatalf("%v: %s", r.Kind, r.Message)
		}
	}
	return results
}
