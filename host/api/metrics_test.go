package api_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/webhook"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	c := settings() // which keeps no catalog
	c.MetricsListen = "127.0.0.1:0"
	s := serveWith(t, c, quiet())
	post(t, s, "a", "b")
	held := claim(t, s, `{"board":"default","owner":"w"}`)[0]
	s.must(t, workerSecret, "ConsumeJobs", `{"board":"default","claims":[`+held.ref()+`]}`, nil)
	s.call(t, rootSecret, "CountJobs", `{"board":"nowhere"}`)
	s.call(t, "", "CountJobs", `{"board":"default"}`)
	for _, late := range []string{
		`boardd_board_ready{board="secrets",tenant="acme"} 1`,         // nobody has used this board yet
		`boardd_backend_used_bytes{backend="store",driver="memory"} `, // asked once a second
	} {
		waitFor(t, func() bool {
			return strings.Contains(s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body, late)
		})
	}
	for name, text := range map[string]string{
		"with a token":      s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body,
		"on metrics_listen": (&server{url: "http://" + s.api.MetricsAddr().String(), client: s.client}).do(t, http.MethodGet, "/metrics", "", "").body,
	} {
		for _, want := range []string{
			`boardd_build_info{go="go`, `version="1.2.3"} 1`,
			`boardd_jobs{board="default",state="ready",tenant="default"} 1`,
			`boardd_jobs{board="default",state="ready",tenant="acme"} 0`,
			`boardd_job_events_total{board="default",event="posted",tenant="default"} 2`,
			`boardd_job_events_total{board="default",event="claimed",tenant="default"} 1`,
			`boardd_job_events_total{board="default",event="consumed",tenant="default"} 1`,
			`boardd_job_events_total{board="default",event="expired",tenant="default"} 0`,
			`boardd_oldest_ready_seconds{board="default",tenant="default"} `,
			`boardd_board_ready{board="secrets",tenant="acme"} 1`,
			`boardd_board_unacknowledged_loss{board="secrets",tenant="acme"} 0`,
			`boardd_call_seconds_count{call="PostJobs",code="ok"} 1`,
			`boardd_call_seconds_count{call="CountJobs",code="not_found"} 1`,
			`boardd_refused_requests_total{code="unauthenticated"} 1`,
			`boardd_driver_apply_seconds_count{backend="store",driver="memory"} `,
			`boardd_driver_restarts_total{backend="store",driver="memory"} 0`,
			`boardd_backend_answers{backend="store",driver="memory"} 1`,
			"\nboardd_ready 1\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no %s", name, want)
			}
		}
	}
	side := &server{url: "http://" + s.api.MetricsAddr().String(), client: s.client}
	if r := side.do(t, http.MethodPost, rpc+"WhoAmI", rootSecret, `{}`); r.status != http.StatusNotFound {
		t.Errorf("a call on metrics_listen: %d %s", r.status, r.body)
	}
	if text := side.do(t, http.MethodGet, "/metrics", "", "").body; strings.Contains(text, "boardd_backend_limit_bytes{") {
		t.Error("a store without a limit has one")
	}
	if text := side.do(t, http.MethodGet, "/metrics", "", "").body; strings.Contains(text, "boardd_catalog_age_seconds") {
		t.Error("a server without a catalog says how old it is")
	}
}

// TestMetricsOfWebhooks: what a board has to do with webhooks is shown, and of one that has
// nothing to do with them there is nothing; boards that have no metrics of their own are in
// a sum.
func TestMetricsOfWebhooks(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer away.Close()
	secrets, err := webhook.ParseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	hook := func(board, deliveries string) []webhook.Hook {
		return []webhook.Hook{{
			Board: board, Name: "tell", URL: away.URL, Secrets: secrets, Events: []webhook.Kind{webhook.Ended}, Deliveries: deliveries,
			Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		}}
	}
	for name, of := range map[string]string{"named": "other", "summed up": host.OtherBoards} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := settings()
			if name != "named" {
				c.MetricsBoards = 1 // it is another tenant's
			}
			c.Boards[0].Webhooks = hook("default", "other")
			c.Boards[3].Webhooks = hook("by-owner", "nowhere")
			s := serveWith(t, c, quiet())
			s.ready(t)
			read := func() string { return s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body }
			waitFor(t, func() bool {
				s.must(t, rootSecret, "PostJobs", `{"board":"default","jobs":[{"name":"a","uuid":"3d1b6dd0-30ab-4df3-8f32-a2d0b2ab0001"}]}`, nil)
				s.call(t, rootSecret, "CancelJobs", `{"board":"default","uuids":["3d1b6dd0-30ab-4df3-8f32-a2d0b2ab0001"]}`)
				return sumOf(t, read(), "boardd_webhook_deliveries_total", `outcome="failed",tenant="default"`) >= 1
			})
			waitFor(t, func() bool {
				text := read()
				return sumOf(t, text, "boardd_webhook_oldest_undelivered_seconds", `{board="`+of+`",tenant="default"}`) > 0 && sumOf(t, text, "boardd_webhook_untold_seconds", `tenant="default"`) > 0
			})
			text := read()
			if got := strings.Count(text, "\nboardd_webhook_oldest_undelivered_seconds{"); got != 1 {
				t.Errorf("%d boards have deliveries", got)
			}
			if strings.Contains(text, `boardd_webhook_deliveries_total{board="default"`) || strings.Contains(text, `boardd_webhook_untold_seconds{board="default",tenant="acme"`) {
				t.Errorf("a board has what is another one's:\n%s", text)
			}
		})
	}
}

// TestMetricsAreBounded: boards above a limit have none of their own but are in a sum, and
// what strangers send makes none.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	c := settings()
	const boards = 405 // four times those that are named
	for i := len(c.Boards); i < boards; i++ {
		c.Boards = append(c.Boards, boardOf("default", fmt.Sprintf("many-%d", i)))
	}
	s := serveWith(t, c, quiet())
	count := func() (series int, text string) {
		text = s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body
		return strings.Count(text, "\nboardd_board_ready{"), text
	}
	s.ready(t)
	for i := 10; i < boards; i++ { // named and not
		s.must(t, rootSecret, "PostJobs", fmt.Sprintf(`{"board":"many-%d","jobs":[{"name":"a"}]}`, i), nil)
	}
	for range 2 { // nothing is counted twice
		n, text := count()
		if n < 100 || n > 102 || !strings.Contains(text, fmt.Sprintf("\nboardd_boards %d\n", boards)) {
			t.Errorf("%d of %d boards have metrics", n, boards)
		}
		if got := sumOf(t, text, `boardd_job_events_total`, `event="posted",tenant="default"`); got != boards-10 {
			t.Errorf("%v jobs were posted by the metrics, want %d", got, boards-10)
		}
		if got := sumOf(t, text, `boardd_jobs`, `state="ready",tenant="default"`); got != boards-10 {
			t.Errorf("%v jobs are ready by the metrics, want %d", got, boards-10)
		}
		if len(text) > 700_000 {
			t.Errorf("the metrics of %d boards have %d bytes", boards, len(text))
		}
	}
	for i := range 50 {
		s.call(t, rootSecret, fmt.Sprintf("Call%d", i), `{}`)
		s.call(t, fmt.Sprintf("not-the-right-secret-%d", i), "WhoAmI", `{}`)
		s.call(t, rootSecret, "CountJobs", fmt.Sprintf(`{"board":"nowhere-%d"}`, i))
	}
	_, text := count()
	for _, word := range []string{"Call1", "nowhere-1"} {
		if strings.Contains(text, word) {
			t.Errorf("the metrics hold %s, which somebody made up", word)
		}
	}
}

// sumOf sums up the series of a metric with some labels.
func sumOf(t *testing.T, text, metric, labels string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, metric+"{") && strings.Contains(line, labels) {
			_, value, _ := strings.Cut(line, "} ")
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// BenchmarkMetrics reads the metrics of a server with 1,000 boards.
func BenchmarkMetrics(b *testing.B) {
	c := settings()
	for i := len(c.Boards); i < 1000; i++ {
		c.Boards = append(c.Boards, boardOf("acme", fmt.Sprintf("many-%d", i)))
	}
	s := serveWith(b, c, quiet())
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, s.url+"/metrics", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+metricsSecret)
	size := 0
	for b.Loop() {
		w := httptest.NewRecorder()
		s.api.Handler().ServeHTTP(w, r)
		size = w.Body.Len()
	}
	b.ReportMetric(float64(size), "B/answer")
}

// memory is a writer that may be read.
type memory struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (m *memory) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b.Write(p)
}

func (m *memory) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b.String()
}

// TestLogHoldsNoSecrets looks for everything in the log that must not be there.
func TestLogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	var log memory
	s := serveWith(t, settings(), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s.must(t, rootSecret, "PostJobs", `{"board":"default","jobs":[{"name":"a","details":{"password":"opensesame"}}]}`, nil)
	held := claim(t, s, `{"board":"default","owner":"w"}`)[0]
	s.must(t, workerSecret, "ConsumeJobs", `{"board":"default","claims":[`+held.ref()+`]}`, nil)
	s.call(t, "not-the-right-secret", "PostJobs", `{"board":"default"}`)
	s.call(t, viewerSecret, "PostJobs", `{"board":"default","jobs":[{"details":{"password":"opensesame"}}]}`)
	s.call(t, boundSecret, "PostJobs", `{"board":"default","jobs":[{"details":{"password":"opensesame"}}]}`)
	text := log.String()
	for _, secret := range []string{rootSecret, workerSecret, viewerSecret, "not-the-right-secret", "opensesame", held.Token} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q:\n%s", secret, text)
		}
	}
	for _, want := range []string{"call=PostJobs", "code=permission_denied", "token=viewer", "token=bound", "tenant=default", "board=default", "request="} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %s:\n%s", want, text)
		}
	}
}
