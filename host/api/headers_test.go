package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// errorIn returns the Error that an error of Connect brings, in an answer or at the end of a
// stream; nil: none.
func errorIn(t testing.TB, body string) *boarddv1.Error {
	t.Helper()
	type failure struct {
		Details []struct {
			Type  string `json:"type"`
			Value string `json:"value"`
		} `json:"details"`
	}
	var answer struct {
		failure

		Error failure `json:"error"`
	}
	text := []byte(body)
	if at := bytes.IndexByte(text, '{'); at >= 0 {
		text = text[at:]
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%.300q: %v", body, err)
	}
	details := append(answer.Details, answer.Error.Details...)
	if len(details) == 0 {
		return nil
	}
	data, err := base64.RawStdEncoding.DecodeString(details[0].Value)
	e := &boarddv1.Error{}
	if err != nil || details[0].Type != "boardd.v1.Error" || proto.Unmarshal(data, e) != nil {
		t.Fatalf("%.300q: %+v, %v", body, details, err)
	}
	return e
}

// TestErrorOfEachRefusal: what Connect would refuse by itself brings an Error, too.
func TestErrorOfEachRefusal(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.ready(t)
	const stream = "application/connect+json"
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		code               boarddv1.Code_Enum
		text               string
	}{
		{"POST", "Nope", "{}", nil, 404, boarddv1.Code_UNSUPPORTED, `there is no call "Nope"`},
		{"PUT", "CountJobs", "{}", nil, 405, boarddv1.Code_UNSUPPORTED, `CountJobs wants POST, got PUT`},
		{"POST", "CountJobs", "{}", []string{"Content-Type", "text/xml"}, 415, boarddv1.Code_INVALID, `does not take the content type "text/xml"`},
		{"POST", "CountJobs", strings.Repeat(" ", 8<<20+1), nil, 400, boarddv1.Code_INVALID, `the request has more than 8388608 bytes`},
		{"POST", "CountJobs", "{", nil, 400, boarddv1.Code_INVALID, `the JSON ends`},
		{"POST", "CountJobs", "{}", []string{"Connect-Timeout-Ms", "soon"}, 400, boarddv1.Code_INVALID, `Connect-Timeout-Ms: want milliseconds, 1 to 10 digits, got "soon"`},
		{"POST", "CountJobs", "{}", []string{"Connect-Timeout-Ms", "12345678901"}, 400, boarddv1.Code_INVALID, `Connect-Timeout-Ms: want milliseconds, 1 to 10 digits`},
		{"POST", "CountJobs", `{"board":"default"}`, []string{"Connect-Timeout-Ms", "1234567890", "Connect-Protocol-Version", "1"}, 200, 0, `"unclaimed"`},
		{"POST", "CountJobs", "{}", []string{"Connect-Protocol-Version", "9"}, 400, boarddv1.Code_INVALID, `Connect-Protocol-Version: want "1" or none, got "9"`},
		{"POST", "CountJobs", "{}", []string{"Content-Encoding", "br"}, 501, boarddv1.Code_UNSUPPORTED, `Content-Encoding: want gzip or identity, got "br"`},
		{"GET", "CountJobs?encoding=json", "", nil, 400, boarddv1.Code_INVALID, `message: CountJobs by GET wants its request in the address`},
		{"GET", "CountJobs?encoding=json&message=%7B%7D&connect=v2", "", nil, 400, boarddv1.Code_INVALID, `connect: want v1 or none, got "v2"`},
		{"GET", "CountJobs?encoding=json&message=%7B%7D&compression=br", "", nil, 400, boarddv1.Code_UNSUPPORTED, `compression: want gzip or identity, got "br"`},
		{"GET", "CountJobs?encoding=json&message=%7B%7D", "{}", nil, 400, boarddv1.Code_INVALID, `want no body`},
		{"POST", "WatchBoard", "\x00\x00\x00\x00\x02{}", []string{"Content-Type", stream, "Connect-Content-Encoding", "br"}, 200, boarddv1.Code_UNSUPPORTED, `Connect-Content-Encoding: want gzip or identity, got "br"`},
		{"POST", "WatchBoard", "\x00\x00\x00\x00\x02{}", []string{"Content-Type", stream, "Connect-Timeout-Ms", "-1"}, 200, boarddv1.Code_INVALID, `Connect-Timeout-Ms: want`},
		{"POST", "WatchBoard", "\x00\x01\x80\x00\x00{}", []string{"Content-Type", stream}, 200, boarddv1.Code_QUOTA_EXCEEDED, `message is larger than`},
		{"POST", "WatchBoard", "\x01\x00\x00\x00\x02{}", []string{"Content-Type", stream}, 200, boarddv1.Code_INTERNAL, `sent compressed message without compression support`},
		{"POST", "WatchBoard", "\x02\x00\x00\x00\x02{}", []string{"Content-Type", stream}, 200, boarddv1.Code_UNSUPPORTED, `unary request has zero messages`},
	} {
		name := c.method + " " + c.path + " " + strings.Join(c.headers, " ")
		r := s.do(t, c.method, rpc+c.path, rootSecret, c.body, c.headers...)
		if r.status != c.status {
			t.Errorf("%s: %d %.300s, want %d", name, r.status, r.body, c.status)
			continue
		}
		if c.code == 0 {
			if !strings.Contains(r.body, c.text) {
				t.Errorf("%s: %.300s", name, r.body)
			}
			continue
		}
		e := errorIn(t, r.body)
		if e.GetCode() != c.code || !strings.Contains(e.GetMessage(), c.text) || e.GetRetryable() {
			t.Errorf("%s: %v of %.300s", name, e, r.body)
		}
	}
	// What docs/api.md says of the one that has none.
	r := s.do(t, http.MethodPost, rpc+"CountJobs", rootSecret, "{}", "Content-Encoding", "gzip")
	if code, message := r.failure(); code != "invalid_argument" || message == "" || errorIn(t, r.body) != nil {
		t.Errorf("a body that is no gzip: %s", r.body)
	}
}
