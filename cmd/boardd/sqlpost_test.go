package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/job"
)

// sqlPost is a boardd on a PostgreSQL, to which a test posts by SQL.
type sqlPost struct {
	*putBack
	url string // of the database
	sql func(text string) string
}

func startSQLPost(t *testing.T, more string) *sqlPost {
	t.Helper()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	b := &sqlPost{putBack: &putBack{T: t, program: withDriver(t, "postgres")}, url: p.URL("postgres")}
	b.sql = func(text string) string { return strings.TrimSpace(p.SQL("postgres", text)) }
	b.start("postgres", fmt.Sprintf("url = %q", p.URL("postgres")), more)
	b.board()
	return b
}

// shownJob is a job as the command line shows it.
type shownJob struct {
	UUID, Name, State, Priority, Timeout, Batch string

	Details     map[string]any
	Labels      map[string]string
	MaxAttempts int
	NotBefore   string
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
		labels => '{"team": "images"}', max_attempts => 7, timeout => '90 s', batch => 'night')`)
	got := b.claimed()
	if got.UUID != id || got.Name != "resize" || got.Details["path"] != "/a.png" || got.Priority != "HIGH" || got.Labels["team"] != "images" ||
		got.MaxAttempts != 7 || got.Timeout != "90s" || got.Batch != "night" {
		t.Errorf("what was posted arrives as %+v", got)
	}
	b.sql(`SELECT boardd.post_many('[{"board": "default", "name": "of the batch", "batch": "night"}]')`)
	if got := b.claimed(); got.Name != "of the batch" || got.Batch != "night" {
		t.Errorf("what was posted with others arrives as %+v", got)
	}
	var night struct {
		Batch struct{ Posted, Consumed string }
	}
	if b.run(&night, "batch", "get", "night"); night.Batch.Posted != "2" || night.Batch.Consumed != "2" {
		t.Errorf("the batch is %+v: want two posted and two consumed", night)
	}
	b.sql(`BEGIN; SELECT boardd.post('default', 'never'); ROLLBACK; BEGIN; SELECT boardd.post('default', 'kept'); COMMIT`)
	if got := b.claimed(); got.Name != "kept" {
		t.Errorf("after a rollback and a commit %q is claimed: want the job of the commit", got.Name)
	}
	const large = job.MaxDetails - len(`{"a": ""}`) // as large as can be: more than one page has
	b.sql(fmt.Sprintf(`SELECT boardd.post('default', 'large', jsonb_build_object('a', repeat('x', %d))) FROM generate_series(1, 3)`, large))
	for range 3 {
		if got := b.claimed(); got.Name != "large" || len(fmt.Sprint(got.Details["a"])) != large {
			t.Errorf("what arrives is %q with %d bytes: want %d", got.Name, len(fmt.Sprint(got.Details["a"])), large)
		}
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

// TestKilledBetween kills boardd again and again while it takes in what is posted: each job
// is there once.
func TestKilledBetween(t *testing.T) {
	t.Parallel()
	b := startSQLPost(t, "")
	ids := map[string]bool{}
	for range 3 {
		for id := range strings.FieldsSeq(b.sql(`SELECT boardd.post('default', 'job') FROM generate_series(1, 500)`)) {
			ids[id] = true
		}
		left := b.sql(`SELECT count(*) FROM boardd.inbox`)
		testserver.Eventually(t, "some are taken in", func() bool { return left == "0" || b.sql(`SELECT count(*) FROM boardd.inbox`) != left })
		b.server.Kill()
		b.server.Restart()
	}
	testserver.Eventually(t, "nothing waits", func() bool { return b.sql(`SELECT count(*) FROM boardd.inbox`) == "0" })
	jobs := strings.Fields(b.sql(`SELECT job FROM boardd.jobs`))
	for _, id := range jobs {
		if !ids[id] {
			t.Errorf("job %s is there, and was not posted", id)
		}
	}
	if len(jobs) != len(ids) {
		t.Errorf("%d jobs are there, and %d were posted", len(jobs), len(ids))
	}
}

// examplePrograms are those of examples/sql-post, by what they are written with. Each is
// called with the database's URL and the number of an order.
func (b *sqlPost) examplePrograms() map[string]func(url, order string) *exec.Cmd {
	folder := filepath.Join(testserver.Root(b), "examples", "sql-post")
	file := func(name string) string { // read here, for the cache of test results
		path := filepath.Join(b.TempDir(), name)
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		return path
	}
	goProgram := testserver.Build(b, "./examples/sql-post")
	psql, python, node := file("order.sql"), file("order.py"), file("order.js")
	return map[string]func(url, order string) *exec.Cmd{
		"psql": func(url, order string) *exec.Cmd {
			return exec.CommandContext(b.Context(), "psql", url, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-v", "id="+order, "-f", psql)
		},
		"Go": func(url, order string) *exec.Cmd { return exec.CommandContext(b.Context(), goProgram, url, order) },
		"psycopg": func(url, order string) *exec.Cmd {
			return exec.CommandContext(b.Context(), "/usr/bin/python3", python, url, order)
		},
		"pg": func(url, order string) *exec.Cmd {
			c := exec.CommandContext(b.Context(), "node", node, url, order)
			c.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(testserver.Root(b), ".tools", "pg", "node_modules"))
			return c
		},
	}
}

// TestPostExamples runs the programs of examples/sql-post as the role of its README: each
// posts its job with its order, and no job where the order is refused.
func TestPostExamples(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "psql")
	testneed.Program(t, "node")
	if exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import psycopg").Run() != nil {
		testneed.Skip(t, "/usr/bin/python3 has no psycopg (Debian: python3-psycopg)")
	}
	if _, err := os.Stat(filepath.Join(testserver.Root(t), ".tools", "pg", "node_modules", "pg")); err != nil {
		testneed.Skip(t, "Node's pg is not in .tools/pg (scripts/setup.sh installs it)")
	}
	b := startSQLPost(t, "")
	readme, err := os.ReadFile(filepath.Join(testserver.Root(t), "examples", "sql-post", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```sql\n")
	tables, _, _ := strings.Cut(rest, "```")
	b.sql(tables)
	url := strings.Replace(b.url, "postgres@", "shop@", 1)
	order := 0
	for name, program := range b.examplePrograms() {
		order++
		out, err := program(url, fmt.Sprint(order)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		if got := b.claimed(); got.UUID != strings.TrimSpace(string(out)) || got.Details["order"] != float64(order) || got.Priority != "HIGH" {
			t.Errorf("%s says that it posted %s, and %+v is claimed", name, out, got)
		}
		if out, err := program(url, fmt.Sprint(order)).CombinedOutput(); err == nil || !strings.Contains(string(out), "orders_pkey") {
			t.Errorf("%s, with an order that is there: %v, want it refused\n%s", name, err, out)
		}
	}
	if left := b.sql(`SELECT count(*) FROM boardd.inbox`); left != "0" {
		t.Errorf("%s jobs wait of orders that were refused", left)
	}
}

// TestPostgresPage does what docs/postgres.md says from nothing to a job, one block after the
// other.
func TestPostgresPage(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ = bytes.Cut(page, []byte("## Setting it up\n"))
	page, _, _ = bytes.Cut(page, []byte("\nThe driver makes its tables"))
	blocks := regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	var languages []string
	for _, b := range blocks {
		languages = append(languages, b[1])
	}
	if want := []string{"txt", "hcl", "shell", "shell"}; !slices.Equal(languages, want) {
		t.Fatalf("the section has blocks of %v: want %v", languages, want)
	}
	url := strings.Replace(p.URL("boardd"), "postgres@", "boardd:change-me@", 1)
	here := strings.NewReplacer("postgres://boardd:change-me@localhost/boardd", url, `"boardd-data"`, strconv.Quote(t.TempDir()))
	for statement := range strings.Lines(blocks[0][2]) {
		p.SQL("postgres", statement)
	}
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, []byte(here.Replace(blocks[1][2])), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(blocks[2][2]); got != "boardd serve --config boards.hcl" {
		t.Fatalf("the page starts the server with %q", got)
	}
	program := withDriver(t, "postgres")
	s := testserver.New(t, program, "", "--config", config)
	s.Restart()
	shell := exec.CommandContext(t.Context(), testneed.Program(t, "bash"), "-euo", "pipefail", "-c", here.Replace(blocks[3][2]))
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "BOARDD_ADDR="+s.Addr)
	out, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Hello, Ada!") || !strings.Contains(string(out), "Hello, Grace!") {
		t.Errorf("the commands: %v\n%s\n%s", err, out, s.Log())
	}
}
