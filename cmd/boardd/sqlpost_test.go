package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// sqlPost is a boardd on a PostgreSQL, to which a test posts by SQL.
type sqlPost struct {
	*putBack
	sql func(text string) string
}

func startSQLPost(t *testing.T, more string) *sqlPost {
	t.Helper()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	b := &sqlPost{putBack: &putBack{T: t, program: withDriver(t, "postgres")}}
	b.sql = func(text string) string { return strings.TrimSpace(p.SQL("postgres", text)) }
	b.start("postgres", fmt.Sprintf("url = %q", p.URL("postgres")), more)
	b.board()
	return b
}

// shownJob is a job as the command line shows it.
type shownJob struct {
	UUID, Name, State, Priority, Timeout string
	Details                              map[string]any
	Labels                               map[string]string
	MaxAttempts                          int
	NotBefore                            string
}

// claimed claims a job, by waiting for one, and consumes it.
func (b *sqlPost) claimed() shownJob {
	b.Helper()
	var answer struct {
		Claims []struct {
			UUID, Token string
			Job         shownJob
		}
	}
	b.run(&answer, "job", "claim", "--owner", "w", "--wait", "30s")
	if len(answer.Claims) != 1 {
		b.Fatalf("%d claims were given: want 1\n%s", len(answer.Claims), b.server.Log())
	}
	c := answer.Claims[0]
	b.run(nil, "job", "consume", c.UUID, "--owner", "w", "--claim-token", c.Token)
	return c.Job
}

// TestPostBySQL posts jobs in transactions of psql, and works on them.
func TestPostBySQL(t *testing.T) {
	t.Parallel()
	b := startSQLPost(t, "")
	id := b.sql(`SELECT boardd.post(board => 'default/default', name => 'resize', details => '{"path": "/a.png"}', priority => 'HIGH',
		labels => '{"team": "images"}', max_attempts => 7, timeout => '90 s')`)
	got := b.claimed()
	if got.UUID != id || got.Name != "resize" || got.Details["path"] != "/a.png" || got.Priority != "HIGH" || got.Labels["team"] != "images" ||
		got.MaxAttempts != 7 || got.Timeout != "90s" {
		t.Errorf("what was posted arrives as %+v", got)
	}
	b.sql(`BEGIN; SELECT boardd.post('default', 'never'); ROLLBACK; BEGIN; SELECT boardd.post('default', 'kept'); COMMIT`)
	if got := b.claimed(); got.Name != "kept" {
		t.Errorf("after a rollback and a commit %q is claimed: want the job of the commit", got.Name)
	}
	if left := b.sql(`SELECT count(*) FROM boardd.inbox`); left != "0" {
		t.Errorf("%s postings are left in the inbox: want none", left)
	}
}

// TestRefusedBySQL: what can never be posted is kept with its reason, and is in nobody's way.
func TestRefusedBySQL(t *testing.T) {
	t.Parallel()
	b := startSQLPost(t, "")
	id := b.sql(`SELECT boardd.post('default', 'first', unique_key => 'k')`)
	b.sql(`SELECT boardd.post('default', 'first', unique_key => 'k', uuid => '` + id + `')`)                     // the same once more
	b.sql(`SELECT boardd.post('default', 'another', uuid => '` + id + `')`)                                      // not the same
	b.sql(`SELECT boardd.post('default', 'kept', unique_key => 'k')`)                                            // the first stands for it
	b.sql(`SELECT boardd.post('default', 'rejected', unique_key => 'k', on_conflict => 'REJECT')`)               //
	b.sql(`SELECT boardd.post('default', 'late', after => ARRAY['7ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid])`) // nobody knows that one
	b.sql(`SELECT boardd.post('default', 'last')`)
	for _, want := range []string{"first", "last"} {
		if got := b.claimed(); got.Name != want {
			t.Errorf("%q is claimed: want %q", got.Name, want)
		}
	}
	testserver.Eventually(t, "nothing waits", func() bool { return b.sql(`SELECT count(*) FROM boardd.inbox WHERE refused IS NULL`) == "0" })
	refused := b.sql(`SELECT posting ->> 'name', refused FROM boardd.left_postings`)
	want := []string{"another|", "rejected|unique.key \"k\" is that of job " + id, "late|after[0].uuid: there is no job"}
	lines := strings.Split(refused, "\n")
	if len(lines) != len(want) {
		t.Fatalf("refused are:\n%s\nwant %d", refused, len(want))
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) || strings.HasSuffix(lines[i], "|") {
			t.Errorf("refused is %q: want %q and the reason", lines[i], want[i])
		}
	}
}

// TestLimitBySQL: what is above a limit of the board waits, and is posted when there is room.
func TestLimitBySQL(t *testing.T) {
	t.Parallel()
	b := startSQLPost(t, "}\n limits {\n open_jobs = 2\n")
	b.sql(`SELECT boardd.post('default', 'job', details => jsonb_build_object('n', n)) FROM generate_series(1, 5) n`)
	// What waits for one that waits itself is not refused, though nobody knows that one yet.
	b.sql(`WITH first AS (SELECT boardd.post('default', 'job', details => '{"n": 6}') AS id) SELECT boardd.post('default', 'last', after => ARRAY[id]) FROM first`)
	testserver.Eventually(t, "five wait", func() bool { return b.sql(`SELECT count(*) FROM boardd.left_postings WHERE refused IS NULL`) == "5" })
	for n := 1; n <= 6; n++ {
		if got := b.claimed(); got.Details["n"] != float64(n) {
			t.Errorf("claim %d is of job %v", n, got.Details["n"])
		}
	}
	if got := b.claimed(); got.Name != "last" {
		t.Errorf("the last one is %q", got.Name)
	}
	if left := b.sql(`SELECT count(*) FROM boardd.inbox`); left != "0" {
		t.Errorf("%s postings are left in the inbox: want none", left)
	}
}
