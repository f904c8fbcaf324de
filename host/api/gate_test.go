package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

const rpc = "/boardd.v1.BoardService/"

func TestTokens(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, c := range []struct {
		name, secret, call, body string
		status                   int
		message                  string
	}{
		{"none", "", "CountJobs", `{"board":"default"}`, 401, "this call needs a token: send the header Authorization: Bearer SECRET"},
		{"none, and a body that is none", "", "CountJobs", `{`, 401, "this call needs a token"},
		{"an unknown one", "something-else-altogether", "CountJobs", `{"board":"default"}`, 401, "the token is not known to this server"},
		{"a huge one", strings.Repeat("x", 20_000), "CountJobs", `{"board":"default"}`, 401, "the token is not known to this server"},
		{"a viewer who posts", viewerSecret, "PostJobs", `{"board":"default"}`, 403, `token "viewer" has the roles [viewer]; PostJobs needs one of [poster, tenant-admin, operator]`},
		{"a poster who claims", posterSecret, "ClaimJobs", `{"board":"default","owner":"w"}`, 403, `token "poster" has the roles [poster]; ClaimJobs needs one of`},
		{"a worker who purges", workerSecret, "PurgeJobs", `{"board":"default"}`, 403, `token "worker" has the roles [worker]; PurgeJobs needs one of`},
		{"metrics who reads", metricsSecret, "CountJobs", `{"board":"default"}`, 403, `token "metrics" has the roles [metrics]; CountJobs needs one of`},
		{"one bound to another board", boundSecret, "CountJobs", `{"board":"default"}`, 403, `token "bound" is bound to the boards [other], and "default" is none of them`},
		{"one bound to another board, which does not exist", boundSecret, "CountJobs", `{"board":"nowhere"}`, 403, `token "bound" is bound to the boards [other], and "nowhere" is none of them`},
	} {
		r := s.call(t, c.secret, c.call, c.body)
		if _, message := r.failure(); r.status != c.status || !strings.HasPrefix(message, c.message) {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
	}
	if r := s.do(t, http.MethodPost, rpc+"WhoAmI", "", `{}`, "Authorization", "Basic cm9vdDpyb290"); r.status != 401 || r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("with a password: %d %v", r.status, r.header)
	}
}

// TestTenantsAreKeptApart asks for what another tenant has and for what nobody
// has, and finds no difference.
func TestTenantsAreKeptApart(t *testing.T) {
	t.Parallel()
	s := serve(t)
	post(t, s, "a", "b")
	methods := boarddv1.File_boardd_v1_boardd_proto.Services().ByName("BoardService").Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		if m.Input().Fields().ByName("board") == nil || m.IsStreamingServer() {
			continue
		}
		call := string(m.Name())
		foreign, absent := s.call(t, acmeSecret, call, `{"board":"observed"}`), s.call(t, acmeSecret, call, `{"board":"observex"}`)
		// The texts differ in the name that was asked for and in nothing else.
		strip := func(r reply) string {
			var e struct{ Code, Message string }
			if err := json.Unmarshal([]byte(r.body), &e); err != nil {
				t.Fatalf("%s: %s", call, r.body)
			}
			return e.Code + strings.NewReplacer("observed", "X", "observex", "X").Replace(e.Message)
		}
		if foreign.status != absent.status || strip(foreign) != strip(absent) || len(foreign.body) != len(absent.body) {
			t.Errorf("%s: another tenant's board answers %d %s, none answers %d %s", call, foreign.status, foreign.body, absent.status, absent.body)
		}
		if foreign.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", call, foreign.status, foreign.body)
		}
	}
	var counts struct{ Unclaimed string }
	s.must(t, acmeSecret, "CountJobs", `{"board":"default"}`, &counts)
	if counts.Unclaimed != "0" {
		t.Errorf("acme's board of the same name has %s jobs", counts.Unclaimed)
	}
	var list struct{ Boards []struct{ Name string } }
	s.must(t, acmeSecret, "ListBoards", `{}`, &list)
	if len(list.Boards) != 2 {
		t.Errorf("acme sees %+v", list)
	}
	// A job's uuid and token of one tenant are nothing to another.
	held := claim(t, s, `{"board":"default","owner":"w"}`)[0]
	var results wireResults
	s.must(t, acmeSecret, "ConsumeJobs", `{"board":"default","claims":[`+held.ref()+`]}`, &results)
	if e := results.Results[0].Error; e == nil || e.Code != "NOT_FOUND" {
		t.Errorf("consumed by another tenant: %+v", results)
	}
	s.must(t, acmeSecret, "GetJobs", `{"board":"default","uuids":["`+held.UUID+`"]}`, &results)
	if e := results.Results[0].Error; e == nil || e.Code != "NOT_FOUND" {
		t.Errorf("read by another tenant: %+v", results)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.ready(t)
	for _, c := range []struct {
		method, path, secret string
		status               int
		text                 string
	}{
		{"GET", "/healthz", "", 200, "ok\n"},
		{"GET", "/readyz", "", 200, "ready\n"},
		{"HEAD", "/healthz", "", 200, ""},
		{"GET", "/boardd.proto", "", 200, "service BoardService {"},
		{"GET", "/", "", 200, "boardd 1.2.3"},
		{"POST", "/healthz", "", 405, `"message":"/healthz can only be read: want GET, got POST"`},
		{"GET", "/metrics", "", 401, `this call needs a token`},
		{"GET", "/metrics", viewerSecret, 403, `needs one of [metrics, operator]`},
		{"GET", "/metrics", metricsSecret, 200, `boardd_build_info{`},
		{"GET", "/jobs", "", 404, `there is nothing at /jobs; the calls are at /boardd.v1.BoardService/, their description at /boardd.proto`},
		{"GET", "/healthz/../../etc/passwd", "", 404, `"code":"not_found"`},
		{"POST", rpc + "PostJob", rootSecret, 404, `there is no call \"PostJob\" (did you mean \"PostJobs\"?)`},
		{"POST", rpc, rootSecret, 404, `there is no call \"\"`},
		{"GET", rpc + "PostJobs", rootSecret, 405, `PostJobs wants POST, got GET`},
		{"DELETE", rpc + "CountJobs", rootSecret, 405, `CountJobs wants POST, got DELETE`},
		{"GET", rpc + `CountJobs?connect=v1&encoding=json&message=%7B%22board%22%3A%22default%22%7D`, rootSecret, 200, `"unclaimed":"0"`},
		{"GET", rpc + `CountJobs?encoding=json&base64=1&message=eyJib2FyZCI6ImRlZmF1bHQifQ`, rootSecret, 200, `"unclaimed":"0"`},
		{"GET", rpc + `CountJobs?encoding=json&base64=1&message=eyJib2FyZCI6ImRlZmF1bHQifQ==`, rootSecret, 200, `"unclaimed":"0"`},
		{"GET", rpc + `CountJobs?message=%7B%7D`, rootSecret, 400, `CountJobs by GET wants encoding=json or encoding=proto in its address, got \"\"`},
		{"GET", rpc + `CountJobs?encoding=json&base64=1&message=%7B%7D`, rootSecret, 400, `message: with base64=1 want base64`},
		{"POST", rpc + "WatchBoard", rootSecret, 415, `as a stream it wants application/connect+json; ListEvents gives the same with application/json`},
	} {
		r := s.do(t, c.method, c.path, c.secret, "")
		if r.status != c.status || !strings.Contains(r.body, c.text) {
			t.Errorf("%s %s: %d %.300s\nwant %d %s", c.method, c.path, r.status, r.body, c.status, c.text)
		}
		if r.header.Get("X-Request-Id") == "" || r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: headers %v", c.method, c.path, r.header)
		}
	}
	for _, contentType := range []string{"", "application/x-www-form-urlencoded", "text/plain", "application/jsonp", "application/json; charset=latin1"} {
		r := s.do(t, http.MethodPost, rpc+"CountJobs", rootSecret, `{"board":"default"}`, "Content-Type", contentType)
		if _, message := r.failure(); r.status != 415 || !strings.Contains(message, `send the header "Content-Type: application/json"`) {
			t.Errorf("content type %q: %d %s", contentType, r.status, r.body)
		}
	}
	for _, contentType := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8"} {
		r := s.do(t, http.MethodPost, rpc+"CountJobs", rootSecret, `{"bord":"default"}`, "Content-Type", contentType)
		if _, message := r.failure(); r.status != 400 || message != `bord: there is no such field (did you mean "board"?)` {
			t.Errorf("content type %q: %d %s", contentType, r.status, r.body)
		}
	}
}

func TestHostNamesAndOrigins(t *testing.T) {
	t.Parallel()
	c := settings()
	c.Hostnames = []string{"Boards.example.org"}
	s := serveWith(t, c, quiet())
	for name, status := range map[string]int{
		"localhost": 200, "localhost:7422": 200, "LOCALHOST": 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "[::1]:80": 200, "x.localhost": 200,
		"boards.example.org": 200, "boards.example.org:443": 200, "boards.example.org.": 200,
		"evil.example.org": 421, "169.254.169.254": 421, "10.0.0.1": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
	} {
		r := s.do(t, http.MethodGet, "/healthz", "", "", "Host", name)
		if r.status != status {
			t.Errorf("Host %s: %d %s, want %d", name, r.status, r.body, status)
		}
	}
	r := s.do(t, http.MethodPost, rpc+"WhoAmI", rootSecret, `{}`, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
	if _, message := r.failure(); r.status != 403 || message != "this request comes from a page of another site, which is not allowed" {
		t.Errorf("from another site: %d %s", r.status, r.body)
	}
	if r := s.do(t, http.MethodOptions, rpc+"WhoAmI", "", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); r.status < 400 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("asked beforehand: %d %v", r.status, r.header)
	}
	if r := s.do(t, http.MethodPost, rpc+"WhoAmI", rootSecret, `{}`, "Origin", s.url, "Sec-Fetch-Site", "same-origin"); r.status != 200 {
		t.Errorf("from its own page: %d %s", r.status, r.body)
	}
}

func zip(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSizes(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const tooLarge = "the request has more than 8388608 bytes after decompression, which is the most: send fewer jobs in one call"
	body := func(n int) string { return `{"board":"default"` + strings.Repeat(" ", n-19) + `}` }
	for _, c := range []struct {
		name    string
		body    string
		headers []string
		status  int
		message string
	}{
		{"as large as allowed", body(8 << 20), nil, 200, ""},
		{"one more", body(8<<20 + 1), nil, 400, tooLarge},
		{"zipped", zip(t, []byte(body(8<<20))), []string{"Content-Encoding", "gzip"}, 200, ""},
		{"a little bomb", zip(t, []byte(body(9<<20))), []string{"Content-Encoding", "gzip"}, 400, tooLarge},
		{"a bomb", zip(t, bytes.Repeat([]byte{' '}, 48<<20)), []string{"Content-Encoding", "gzip"}, 400, tooLarge},
		{"not zipped at all", body(100), []string{"Content-Encoding", "gzip"}, 400, "gzip"},
		{"zipped in an unknown way", body(100), []string{"Content-Encoding", "br"}, 501, `the header Content-Encoding: want gzip or identity, got "br"`},
	} {
		r := s.do(t, http.MethodPost, rpc+"CountJobs", rootSecret, c.body, c.headers...)
		if _, message := r.failure(); r.status != c.status || !strings.Contains(message, c.message) {
			t.Errorf("%s: %d %.300s\nwant %d %s", c.name, r.status, r.body, c.status, c.message)
		}
	}
	if r := s.do(t, http.MethodGet, "/healthz", "", "", "X-Large", strings.Repeat("x", 64<<10)); r.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("with huge headers: %d", r.status)
	}
}
