package api_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/host/config"
)

// receiver takes spans by OTLP over HTTP.
type receiver struct {
	url string

	mu       sync.Mutex
	spans    []*otlp.Span
	resource map[string]string
	headers  http.Header
	bytes    strings.Builder
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{resource: map[string]string{}}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

// ServeHTTP takes what a server sends.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	sent := &collector.ExportTraceServiceRequest{}
	if err != nil || q.URL.Path != "/v1/traces" || proto.Unmarshal(body, sent) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = q.Header
	r.bytes.Write(body)
	for _, of := range sent.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			r.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// tree returns the spans of one trace as a text: each below its parent, by time.
func (r *receiver) tree(trace string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out strings.Builder
	var below func(parent []byte, depth int)
	below = func(parent []byte, depth int) {
		var children []*otlp.Span
		for _, s := range r.spans {
			if fmt.Sprintf("%x", s.GetTraceId()) == trace && string(s.GetParentSpanId()) == string(parent) {
				children = append(children, s)
			}
		}
		slices.SortFunc(children, func(a, b *otlp.Span) int {
			return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
		})
		for _, s := range children {
			fmt.Fprintf(&out, "%s%s%s\n", strings.Repeat("  ", depth), s.GetName(), attributesOf(s))
			below(s.GetSpanId(), depth+1)
		}
	}
	below([]byte{0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}, 0)
	return out.String()
}

func attributesOf(s *otlp.Span) string {
	var list []string
	for _, a := range s.GetAttributes() {
		if key := strings.TrimPrefix(a.GetKey(), "boardd."); key != "request" {
			list = append(list, fmt.Sprint(key, "=", a.GetValue().GetStringValue(), a.GetValue().GetIntValue()))
		}
	}
	if code := s.GetStatus().GetMessage(); code != "" {
		list = append(list, "error="+code)
	}
	return " [" + strings.Join(list, " ") + "]"
}

// traced is a server whose board default asks a policy, and whose spans go to r.
func traced(t testing.TB, r *receiver, logger *slog.Logger) *server {
	t.Helper()
	c := hosted(t)
	c.Tracing = &config.Tracing{Endpoint: r.url + "/v1/traces", Headers: map[string]string{"x-key": "the-receivers-own-secret"}}
	c.Boards[0].Eligibility = []config.Rule{{Policy: "labels", Params: []byte(`{"keys":["k"]}`)}}
	return serveWith(t, c, logger)
}

// parent is what a caller sends of its trace: the span of the call is below it.
func parent(trace string, sampled bool) string {
	flags := "00"
	if sampled {
		flags = "01"
	}
	return "00-" + trace + "-00f067aa0ba902b7-" + flags
}

// TestTraces: a caller's trace goes on through the call, the board, the policy and
// the driver, and holds nothing of a job.
func TestTraces(t *testing.T) {
	t.Parallel()
	var log memory
	r := newReceiver(t)
	s := traced(t, r, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	trace := func(n int) string { return fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e%04d", n) }
	send := func(n int, secret, call, body string) reply {
		return s.do(t, http.MethodPost, rpc+call, secret, body, "Traceparent", parent(trace(n), true), "X-Request-Id", fmt.Sprintf("of-the-caller.%d", n))
	}
	send(1, posterSecret, "PostJobs", `{"board":"default","jobs":[{"name":"secret-name","details":{"password":"opensesame"}}]}`)
	send(2, workerSecret, "ClaimJobs", `{"board":"default","owner":"secret-owner"}`)
	send(3, viewerSecret, "PurgeJobs", `{"board":"default"}`)
	send(4, acmeSecret, "CountJobs", `{"board":"nowhere"}`)
	send(5, "not-the-right-secret", "CountJobs", `{"board":"default"}`)
	s.do(t, http.MethodPost, rpc+"WhoAmI", workerSecret, `{}`, "Traceparent", parent(trace(6), false))
	s.do(t, http.MethodPost, rpc+"WhoAmI", workerSecret, `{}`, "Traceparent", "00-nonsense")
	s.must(t, workerSecret, "WhoAmI", `{}`, nil)
	s.stop()
	if err := s.closeHost(); err != nil { // sends what is left
		t.Fatal(err)
	}
	for n, want := range map[int]string{
		1: `boardd.v1.BoardService/PostJobs []
  board PostJobs [board=default0 tenant=default0]
    driver apply [backend=store0 driver=memory0 key=default/default0 items=1 failed=0]
`,
		2: `boardd.v1.BoardService/ClaimJobs []
  board ClaimJobs [board=default0 tenant=default0]
    policy eligible [policy=labels0 items=1]
    driver apply [backend=store0 driver=memory0 key=default/default0 items=1 failed=0]
`,
		3: `boardd.v1.BoardService/PurgeJobs [error=permission_denied]
`,
		4: `boardd.v1.BoardService/CountJobs [error=not_found]
  board CountJobs [board=nowhere0 tenant=acme0 error=not_found]
`,
		5: "", 6: "",
	} {
		if got := r.tree(trace(n)); got != want {
			t.Errorf("trace %d:\n%swant\n%s", n, got, want)
		}
	}
	if len(r.spans) != 10 || r.resource["service.name"] != "boardd" || r.resource["service.version"] != "1.2.3" || r.headers.Get("X-Key") != "the-receivers-own-secret" {
		t.Errorf("%d spans of %v with %v", len(r.spans), r.resource, r.headers)
	}
	for _, secret := range []string{"secret-name", "opensesame", "secret-owner", workerSecret, "not-the-right-secret"} {
		if strings.Contains(r.bytes.String(), secret) {
			t.Errorf("the spans hold %s", secret)
		}
	}
	if text := log.String(); !strings.Contains(text, "trace="+trace(2)) || strings.Contains(text, "the-receivers-own-secret") {
		t.Errorf("the log: %s", text)
	}
	if !strings.Contains(r.bytes.String(), "of-the-caller.2") {
		t.Error("the spans do not say the request's name")
	}
}
