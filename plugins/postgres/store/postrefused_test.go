package store

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// code is the SQLSTATE of an error.
func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// TestPostArguments tries each argument at the edge of what it may be.
func TestPostArguments(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	conn := p.connect("postgres")
	text := func(n int) string { return strings.Repeat("x", n) }
	objects := func(n int, format string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return strings.Join(list, ",")
	}
	const id = "7ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for _, tc := range []struct{ job, want string }{
		{`{"name":"x"}`, ""},
		{`[]`, "want a JSON object"},
		{`{"name":"x","nmae":"y"}`, "there is no field nmae: want some of board, "},
		{`{"name":""}`, "name: want a text of 1 to 256 bytes"},
		{`{"name":7}`, "name: want a text"},
		{`{"name":null}`, "name: want a text"},
		{`{"name":"` + text(job.MaxName) + `"}`, ""},
		{`{"name":"` + text(job.MaxName+1) + `"}`, "name: want a text"},
		{`{"name":"x","details":{}}`, ""},
		{`{"name":"x","details":[]}`, "details: want a JSON object"},
		{`{"name":"x","details":{"a":"` + text(job.MaxDetails-len(`{"a": ""}`)) + `"}}`, ""},
		{`{"name":"x","details":{"a":"` + text(job.MaxDetails-len(`{"a": ""}`)+1) + `"}}`, "details: 4194305 bytes are too many: want at most 4194304"},
		{`{"name":"x","priority":"VERY_LOW"}`, ""},
		{`{"name":"x","priority":"low"}`, "priority: want VERY_HIGH"},
		{`{"name":"x","labels":{"` + text(job.MaxLabelKey) + `":"` + text(job.MaxLabelValue) + `"}}`, ""},
		{`{"name":"x","labels":{"` + text(job.MaxLabelKey+1) + `":""}}`, "labels: a key: want a text of 1 to 128 bytes"},
		{`{"name":"x","labels":{"k":"` + text(job.MaxLabelValue+1) + `"}}`, "labels: k: want a text of 0 to 128 bytes"},
		{`{"name":"x","labels":{"":"v"}}`, "labels: a key: "},
		{`{"name":"x","labels":{"k":1}}`, "labels: k: "},
		{`{"name":"x","labels":"k"}`, "labels: want a JSON object"},
		{`{"name":"x","labels":{` + objects(job.MaxLabels, `"k%d":"v"`) + `}}`, ""},
		{`{"name":"x","labels":{` + objects(job.MaxLabels+1, `"k%d":"v"`) + `}}`, "labels: want at most 64"},
		{`{"name":"x","uuid":"` + id + `"}`, ""},
		{`{"name":"x","uuid":"7ba7"}`, "uuid: want a uuid"},
		{`{"name":"x","uuid":"00000000-0000-0000-0000-000000000000"}`, "uuid: want one that is not all zeros"},
		{`{"name":"x","maxAttempts":2147483647}`, ""},
		{`{"name":"x","maxAttempts":2147483648}`, "maxAttempts: want 0"},
		{`{"name":"x","maxAttempts":1.5}`, "maxAttempts: want 0"},
		{`{"name":"x","maxAttempts":"1"}`, "maxAttempts: want 0"},
		{`{"name":"x","notBefore":"2030-01-31T12:00:00Z"}`, ""},
		{`{"name":"x","notBefore":"9999-01-31T12:00:00Z"}`, "notBefore: want a time at most 36525 days ahead"},
		{`{"name":"x","notBefore":"2030-01-31T12:00:00.123456789-11:30"}`, ""},
		{`{"name":"x","notBefore":"infinity"}`, "notBefore: want a time such as"},
		{`{"name":"x","notBefore":"2030-01-31"}`, "notBefore: want a time such as"},
		{`{"name":"x","notBefore":"2030-02-31T12:00:00Z"}`, "notBefore: want a time such as"},
		{`{"name":"x","notBefore":1900000000}`, "notBefore: want a time such as"},
		{`{"name":"x","notBefore":"soon"}`, "notBefore: want a time such as"},
		{`{"name":"x","batch":"` + text(job.MaxBatchName) + `"}`, ""},
		{`{"name":"x","batch":"` + text(job.MaxBatchName+1) + `"}`, "batch: want a text of 1 to 255 bytes"},
		{`{"name":"x","batch":7}`, "batch: want a text of 1 to 255 bytes"},
		{`{"name":"x","batch":null}`, ""},
		{`{"name":"x","timeout":"1s"}`, ""},
		{`{"name":"x","timeout":"0.5s"}`, `timeout: want seconds such as "30s", from 1s to 31536000s`},
		{`{"name":"x","timeout":"31536000s"}`, ""},
		{`{"name":"x","timeout":"31536000.1s"}`, "timeout: want seconds"},
		{`{"name":"x","timeout":"1m"}`, "timeout: want seconds"},
		{`{"name":"x","timeout":30}`, "timeout: want seconds"},
		{`{"name":"x","unique":{"key":"` + text(job.MaxUniqueKey) + `","window":"1s","onConflict":"REPLACE"}}`, ""},
		{`{"name":"x","unique":{"key":"` + text(job.MaxUniqueKey+1) + `"}}`, "unique.key: want a text of 1 to 255 bytes"},
		{`{"name":"x","unique":{"window":"1s"}}`, "unique.key: want a text"},
		{`{"name":"x","unique":{"key":"k","window":"0s"}}`, "unique.window: want seconds"},
		{`{"name":"x","unique":{"key":"k","onConflict":"IGNORE"}}`, "unique.onConflict: want KEEP"},
		{`{"name":"x","unique":{"key":"k","onconflict":"KEEP"}}`, "unique: there is no field onconflict"},
		{`{"name":"x","book":{"uuid":"u","name":"` + text(job.MaxBookName) + `"}}`, ""},
		{`{"name":"x","book":{"name":"` + text(job.MaxBookName+1) + `"}}`, "book.name: want a text"},
		{`{"name":"x","after":[{"uuid":"` + id + `","statuses":["ERROR"]}]}`, ""},
		{`{"name":"x","after":[{"uuid":"` + id + `","statuses":["SUCCESS","ERROR","CANCELED"]}]}`, ""},
		{`{"name":"x","after":[{"uuid":"` + id + `","statuses":["DONE"]}]}`, "after: statuses: want some of SUCCESS"},
		{`{"name":"x","after":[{"uuid":"` + id + `","statuses":["ERROR","ERROR","ERROR","ERROR"]}]}`, "after: statuses: want"},
		{`{"name":"x","after":[{"uuid":"` + id + `","statuses":"ERROR"}]}`, "after: statuses: want"},
		{`{"name":"x","after":["` + id + `"]}`, "after: want a JSON object"},
		{`{"name":"x","after":[{"uuid":"x"}]}`, "after: want the uuid of a job"},
		{`{"name":"x","after":[` + objects(job.MaxAfter, `{"uuid":"7ba7b810-9dad-11d1-80b4-%012d"}`) + `]}`, ""},
		{`{"name":"x","after":[` + objects(job.MaxAfter+1, `{"uuid":"7ba7b810-9dad-11d1-80b4-%012d"}`) + `]}`, "after: want an array of at most 64"},
		{`{"name":"x","operations":[` + objects(job.MaxOperations, `{"name":"o%d","input":1,"priority":2}`) + `]}`, ""},
		{`{"name":"x","operations":[` + objects(job.MaxOperations+1, `{"name":"o%d"}`) + `]}`, "operations: want an array of at most 256"},
		{`{"name":"x","operations":[{"name":""}]}`, "operations: name: want a text"},
		{`{"name":"x","operations":[{"name":"o","input":"` + text(job.MaxOperationInput-2) + `","priority":-20}]}`, ""},
		{`{"name":"x","operations":[{"name":"o","input":"` + text(job.MaxOperationInput-1) + `"}]}`, "operations: input: want at most 65536 bytes"},
		{`{"name":"x","operations":[` + objects(8, `{"name":"%d","input":"`+text(job.MaxOperationInputs/8-3)+`"}`) + `]}`, ""},
		{`{"name":"x","operations":[` + objects(8, `{"name":"%d","input":"`+text(job.MaxOperationInputs/8-3)+`"}`) + `,{"name":"o"}]}`, "operations: 524289 bytes of names and inputs"},
		{`{"name":"x","operations":[{"name":"o","priority":19}]}`, ""},
		{`{"name":"x","operations":[{"name":"o","priority":20}]}`, "operations: priority: want -20 to 19"},
		{`{"name":"x","operations":[{"name":"o","priority":1.5}]}`, "operations: priority: want -20 to 19"},
	} {
		in := `[{"board":"acme/media","name":"a"},` + strings.Replace(tc.job, `{`, `{"board":"acme/media",`, 1) + `]`
		var n int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM boardd.post_many($1)`, in).Scan(&n)
		short := tc.job[:min(len(tc.job), 80)]
		switch {
		case tc.want == "" && (err != nil || n != 2):
			t.Errorf("%s: %d posted, %v; want it posted", short, n, err)
		case tc.want != "" && (code(err) != "22023" || !strings.Contains(err.Error(), "jobs[1]."+tc.want)):
			t.Errorf("%s: got %v, want SQLSTATE 22023 that says jobs[1].%s", short, err, tc.want)
		}
	}
	for _, in := range []string{`{}`, `null`, `[` + objects(10001, `{"name":"%d"}`) + `]`} {
		if _, err := conn.Exec(t.Context(), `SELECT boardd.post_many($1)`, in); code(err) != "22023" || !strings.Contains(err.Error(), "jobs: want an array of at most 10000") {
			t.Errorf("post_many of %.20s: %v", in, err)
		}
	}
	odd := p.connect("postgres") // what a caller sets changes nothing
	p.exec(odd, `SET standard_conforming_strings = off; SET transform_null_equals = on; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'iso_8601'; SET TimeZone = 'Asia/Tokyo'`)
	p.exec(odd, `SELECT boardd.post('acme/media', 'x', not_before => now() + interval '1 day', timeout => '90.5 s', unique_key => 'k', unique_window => '1 month')`)
	p.exec(odd, `SELECT boardd.post_many('[{"board":"acme/media","name":"x","notBefore":"2030-01-31T12:00:00.5Z","timeout":"1.5s"}]')`)
	p.exec(conn, `SELECT count(*) FROM boardd.post_many($1)`, `[`+objects(10000, `{"board":"acme/media","name":"%d"}`)+`]`)
	for _, call := range []string{`board => 'acme/none', name => 'x'`, `board => 'none', name => 'x'`} {
		if _, err := conn.Exec(t.Context(), `SELECT boardd.post(`+call+`)`); code(err) != "42704" || !strings.Contains(err.Error(), "there is no board") {
			t.Errorf("post(%s): %v, want SQLSTATE 42704", call, err)
		}
	}
	for _, call := range []string{
		`name => 'x', unique_window => '1 s'`, `name => NULL`, `name => 'x', timeout => '-1 s'`, `name => 'x', not_before => 'infinity'`,
		`name => 'x', timeout => '0.1 s'`, `name => 'x', max_attempts => -1`, `name => 'x', on_conflict => 'KEEP'`, `name => 'x', after => ARRAY[NULL::uuid]`,
		`name => 'x', batch => ''`,
	} {
		if _, err := conn.Exec(t.Context(), `SELECT boardd.post('acme/media', `+call+`)`); code(err) != "22023" {
			t.Errorf("post(%s): %v, want SQLSTATE 22023", call, err)
		}
	}
}

// TestPostRights: a role posts where a row of posters lets it, or a role that it has; it
// sees and changes nothing else of boardd's.
func TestPostRights(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	if _, err := p.driver.OpenBoard(t.Context(), driver.BoardSpec{Name: "acme/secret"}); err != nil {
		t.Fatal(err)
	}
	p.server.SQL("postgres", `CREATE ROLE app LOGIN; CREATE ROLE writers; CREATE ROLE web LOGIN IN ROLE writers; CREATE ROLE proxy LOGIN NOINHERIT IN ROLE app;
		CREATE ROLE everything LOGIN; GRANT USAGE ON SCHEMA boardd TO app, writers, proxy, everything;
		INSERT INTO boardd.posters VALUES ('app', 'acme/media'), ('writers', 'acme/media'), ('everything', '*'), ('nobody at all', '*')`)
	allowed := func(role, before, board string, want bool) {
		t.Helper()
		conn := p.connect(role)
		if before != "" {
			p.exec(conn, before)
		}
		_, err := conn.Exec(t.Context(), `SELECT boardd.post($1, 'x')`, board)
		if want && err != nil || !want && code(err) != "42501" {
			t.Errorf("%s posts on %s after %q: %v; allowed: %v", role, board, before, err, want)
		}
	}
	allowed("app", "", postBoard, true)
	allowed("app", "", "acme/secret", false)
	allowed("app", "", "acme/none", false) // who may not post is not told which boards there are
	allowed("web", "", postBoard, true)
	allowed("web", "", "acme/secret", false)
	allowed("proxy", "", postBoard, false)
	allowed("proxy", "SET ROLE app", postBoard, true)
	allowed("everything", "", "acme/secret", true)
	allowed("postgres", "SET ROLE app", "acme/secret", false)
	conn := p.connect("app")
	for _, text := range []string{
		`SELECT * FROM boardd.inbox`, `SELECT * FROM boardd.left_postings`, `SELECT * FROM boardd.posters`, `INSERT INTO boardd.posters VALUES ('app', '*')`,
		`SELECT boardd.leave_posting('{"board":"acme/media","name":"x"}', '')`, `SELECT boardd.posting_problem('{}')`, `SELECT nextval('boardd.inbox_numbers')`,
	} {
		if _, err := conn.Exec(t.Context(), text); code(err) != "42501" {
			t.Errorf("%s: %v, want SQLSTATE 42501", text, err)
		}
	}
	p.exec(conn, `CREATE TEMP TABLE own (board bytea, space bytea, name bytea)`)
	for _, text := range []string{
		`CREATE TRIGGER own AFTER INSERT ON own REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION boardd.note_document_changes()`,
		`CREATE TRIGGER own AFTER TRUNCATE ON own FOR EACH STATEMENT EXECUTE FUNCTION boardd.note_documents_emptied()`,
	} {
		if _, err := conn.Exec(t.Context(), text); code(err) != "42501" {
			t.Errorf("%s: %v, want SQLSTATE 42501", text, err)
		}
	}
	admin := p.connect("postgres")
	if _, err := admin.Exec(t.Context(), `INSERT INTO boardd.posters VALUES ('app', 'media')`); code(err) != "23514" {
		t.Errorf("a poster on a board without its tenant: %v, want SQLSTATE 23514", err)
	}
	// What the caller puts in the way is not used.
	p.exec(conn, `CREATE FUNCTION pg_temp.pg_has_role(name, name, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'`)
	p.exec(conn, `CREATE TEMP TABLE pg_roles AS SELECT 'app'::name AS rolname, 10::oid AS oid`)
	p.exec(conn, `SET search_path = pg_temp, pg_catalog`)
	if _, err := conn.Exec(t.Context(), `SELECT boardd.post('acme/secret', 'x')`); code(err) != "42501" {
		t.Errorf("with a function of its own the caller may post: %v", err)
	}
}

// TestPostTakesAll holds the arguments of post against those of post_many, which the API names.
func TestPostTakesAll(t *testing.T) {
	t.Parallel()
	p := startPoster(t)
	_, err := p.connect("postgres").Exec(t.Context(), `SELECT boardd.post_many('[{"board":"acme/media","name":"x","none":1}]')`)
	_, fields, _ := strings.Cut(fmt.Sprint(err), "want some of ")
	fields, _, _ = strings.Cut(fields, " (")
	takes := " " + strings.Join(strings.Fields(p.server.SQL("postgres", `SELECT unnest(proargnames) FROM pg_proc WHERE oid = 'boardd.post'::regproc`)), " ") + " "
	capital := regexp.MustCompile("[A-Z]")
	for field := range strings.SplitSeq(fields, ", ") {
		name := capital.ReplaceAllStringFunc(field, func(c string) string { return "_" + strings.ToLower(c) })
		if name == "unique" {
			name = "unique_key"
		}
		if !strings.Contains(takes, " "+name+" ") {
			t.Errorf("post takes no %s, only%s", name, takes)
		}
	}
}

// TestPostBeforeUpgrade: what calls the functions of before goes on after an upgrade: a session
// with a prepared statement, a function, and a view, which would have kept it from being dropped.
func TestPostBeforeUpgrade(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	_ = tablesOf(t, p, 7)
	p.SQL("postgres", `CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA boardd TO app; INSERT INTO boardd.boards (name) VALUES ('acme/media');
		INSERT INTO boardd.posters VALUES ('app', 'acme/media');
		CREATE FUNCTION public.own() RETURNS uuid LANGUAGE plpgsql AS 'BEGIN RETURN boardd.post(''acme/media'', ''own'', NULL, ''HIGH''); END';
		CREATE VIEW public.posting AS SELECT boardd.post(board => 'acme/media', name => 'view') AS id; GRANT SELECT ON public.posting TO app`)
	conn, err := pgx.Connect(t.Context(), strings.Replace(p.URL("postgres"), "postgres@", "app@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	post := func() {
		t.Helper()
		for _, text := range []string{`EXECUTE before ('prepared')`, `SELECT public.own()`, `SELECT id FROM public.posting`} {
			if _, err := conn.Exec(t.Context(), text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	if _, err := conn.Exec(t.Context(), `PREPARE before (text) AS SELECT boardd.post('acme/media', $1, labels => '{"a": "b"}')`); err != nil {
		t.Fatal(err)
	}
	post()
	if _, err := migrate(t.Context(), driver.Config{Settings: []byte(`{"url":"` + p.URL("postgres") + `"}`)}, false); err != nil {
		t.Fatal(err)
	}
	post()
	if got := p.SQL("postgres", `SELECT posting ->> 'name', count(*) FROM boardd.inbox GROUP BY 1 ORDER BY 1`); got != "own|2\nprepared|2\nview|2\n" {
		t.Errorf("posted are %q: want each twice", got)
	}
}

// tablesOf makes the tables of a version, and leaves a store of it that is not followed.
func tablesOf(t *testing.T, p *testserver.Postgres, n int) *store {
	t.Helper()
	s, in, err := connect(t.Context(), driver.Config{Settings: []byte(`{"url":"` + p.URL("postgres") + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	s.version = n
	if err := s.prepare(t.Context(), in.migrate); err != nil {
		t.Fatal(err)
	}
	return s
}
