package store

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestPlansOfASmallSpace: sessions keep the plans that they made while a space was small, and
// nobody has gathered statistics since. With 100,000 documents in it no statement for one of
// them, for a page of them or for a change reads more than it gives.
func TestPlansOfASmallSpace(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{
		"never-vacuumed": "",
		"emptied":        "VACUUM", // so the tables are known to be empty
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true, Config: []string{
				"autovacuum=off", "session_preload_libraries=auto_explain", "auto_explain.log_nested_statements=on",
				"auto_explain.log_analyze=on", "auto_explain.log_buffers=on", "auto_explain.log_timing=off",
			}})
			s, _ := counted(t, p.Addr)
			if begin != "" {
				p.SQL("postgres", begin)
			}
			k := watching(t, s, watched)
			for range 20 {
				documentLives(t, s, k)
			}
			fill(t, p, watched, 100_000)
			testserver.Eventually(t, "all documents are known", func() bool {
				k.mu.Lock()
				defer k.mu.Unlock()
				return len(k.data) == 100_000
			})
			p.SQL("postgres", "ALTER SYSTEM SET auto_explain.log_min_duration = 0")
			p.SQL("postgres", "SELECT pg_reload_conf()")
			begun := len(p.Log())
			testserver.Eventually(t, "plans are logged", func() bool {
				documentLives(t, s, k)
				return strings.Contains(p.Log()[begun:], "Query Text: ")
			})
			for range 30 { // enough that the oldest changes are looked for
				documentLives(t, s, k)
			}
			var seen strings.Builder
			for text, read := range pagesRead(p.Log()[begun:]) {
				seen.WriteString(text)
				if strings.HasPrefix(text, "SELECT \"boardd\".forget_document_changes") {
					continue // as it is planned first, it reads PostgreSQL's own tables; what is in it comes by itself
				}
				if most := 2*livesOf + 40; read[2] > most {
					t.Errorf("a statement reads %v pages: want at most %d: %s", read, most, lastPlan(p.Log(), text))
				}
			}
			for _, want := range []string{"INSERT INTO", "UPDATE", "DELETE", "ORDER BY name LIMIT", "unnest", "FROM changed", "SELECT oldest", "SELECT max(number)", "SELECT ctid"} {
				if !strings.Contains(seen.String(), want) {
					t.Errorf("no statement with %s was seen", want)
				}
			}
		})
	}
}

// documentLives has documents put, read, listed, watched, changed and deleted.
func documentLives(t *testing.T, s *store, k *known) {
	t.Helper()
	docs := s.Documents()
	for i := range 3 {
		name := "lives" + strconv.Itoa(i)
		v := putTo(t, s, watched, name, "x", 0)
		v = putTo(t, s, watched, name, "y", v)
		testserver.Eventually(t, "the change is known", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.data[name] == "y"
		})
		_, err := docs.Get(t.Context(), watched, name)
		_, listed := docs.List(t.Context(), watched, "05", livesOf)
		if err := errors.Join(err, listed, docs.Delete(t.Context(), watched, name, v)); err != nil {
			t.Fatal(err)
		}
		if _, err := docs.Put(t.Context(), watched, driver.Document{Name: name}, v); err == nil {
			t.Error("a document that is gone was put at its version")
		}
	}
}
