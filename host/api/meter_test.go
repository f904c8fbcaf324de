package api_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/host/config"
)

// gauge takes metrics by OTLP over HTTP, unless it is told to refuse them.
type gauge struct {
	url string

	mu       sync.Mutex
	refuse   bool
	sent     int
	resource map[string]string
	headers  http.Header
	metrics  map[string]*metrics.Metric // by name, as they were sent last
}

func newGauge(t *testing.T) *gauge {
	t.Helper()
	g := &gauge{resource: map[string]string{}}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	g.url = s.URL
	return g
}

// ServeHTTP takes what a server sends.
func (g *gauge) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	sent := &collector.ExportMetricsServiceRequest{}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse || err != nil || q.URL.Path != "/v1/metrics" || proto.Unmarshal(body, sent) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	g.sent++
	g.headers, g.metrics = q.Header, map[string]*metrics.Metric{}
	for _, of := range sent.GetResourceMetrics() {
		for _, a := range of.GetResource().GetAttributes() {
			g.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				g.metrics[m.GetName()] = m
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (g *gauge) set(refuse bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = refuse
}

func (g *gauge) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}

// names of all metrics that Prometheus gets, as OpenTelemetry has them.
func (s *server) names(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(s.do(t, http.MethodGet, "/metrics", operatorSecret, "").body, -1) {
		names[m[1]] = true
	}
	return names
}

// TestMetricsAreSent: a receiver of OpenTelemetry gets what Prometheus would, with the
// same names, and the log says when it does not.
func TestMetricsAreSent(t *testing.T) {
	t.Parallel()
	var log memory
	g := newGauge(t)
	c := hosted(t)
	c.Metrics = &config.Metrics{Endpoint: g.url + "/v1/metrics", Headers: map[string]string{"x-key": "the-receivers-own-secret"}, Every: 20 * time.Millisecond}
	g.set(true)
	s := serveWith(t, c, slog.New(slog.NewTextHandler(&log, nil)))
	waitFor(t, func() bool { return strings.Contains(log.String(), "metrics could not be sent") })
	g.set(false)
	waitFor(t, func() bool { return strings.Contains(log.String(), "metrics are sent again") })
	s.must(t, posterSecret, "PostJobs", `{"board":"default","jobs":[{"name":"a"},{"name":"b"}]}`, nil)
	asked := s.names(t)
	before := g.times()
	s.stop() // which sends once more
	if g.times() == before {
		t.Error("a server that ends does not send what there was last")
	}
	for name := range asked {
		if g.metrics[name] == nil {
			t.Errorf("the receiver does not have %s", name)
		}
	}
	ready := map[string]string{}
	for _, p := range g.metrics["boardd_jobs"].GetGauge().GetDataPoints() {
		labels := map[string]string{}
		for _, a := range p.GetAttributes() {
			labels[a.GetKey()] = a.GetValue().GetStringValue()
		}
		ready[labels["tenant"]+"/"+labels["board"]+"/"+labels["state"]] = fmt.Sprint(p.GetAsDouble())
	}
	if ready["default/default/ready"] != "2" {
		t.Errorf("boardd_jobs are %v", ready)
	}
	posts := 0
	for _, p := range g.metrics["boardd_call_seconds"].GetHistogram().GetDataPoints() {
		for _, a := range p.GetAttributes() {
			if strings.HasSuffix(a.GetValue().GetStringValue(), "PostJobs") && p.GetCount() == 1 && len(p.GetBucketCounts()) == len(p.GetExplicitBounds())+1 {
				posts++
			}
		}
	}
	if posts != 1 {
		t.Errorf("%d series of one post in boardd_call_seconds", posts)
	}
	if !g.metrics["boardd_job_events_total"].GetSum().GetIsMonotonic() {
		t.Error("boardd_job_events_total is no counter")
	}
	if g.resource["service.name"] != "boardd" || g.resource["service.version"] != "1.2.3" || g.resource["service.instance.id"] == "" || g.headers.Get("X-Key") != "the-receivers-own-secret" {
		t.Errorf("of %v, with %v", g.resource, g.headers)
	}
	if text := log.String(); strings.Contains(text, "the-receivers-own-secret") {
		t.Errorf("the log: %s", text)
	}
}
