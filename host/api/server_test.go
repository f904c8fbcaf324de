package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// The secrets of the tokens of a test server.
const (
	rootSecret    = "root-secret-of-the-test"
	posterSecret  = "poster-secret-of-the-test"
	workerSecret  = "worker-secret-of-the-test"
	viewerSecret  = "viewer-secret-of-the-test"
	metricsSecret = "metrics-secret-of-the-test"
	boundSecret   = "bound-secret-of-the-test"
	acmeSecret    = "acme-secret-of-the-test"
)

func token(tenantName, name, secret string, roles ...tenant.Role) tenant.Token {
	return tenant.Token{Name: name, Tenant: tenantName, Roles: roles, Digest: tenant.DigestOf(secret)}
}

func boardOf(tenantName, name string) config.Board {
	return config.Board{
		Name: name, Tenant: tenantName, Backend: "store", Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
	}
}

// settings is the configuration of a test server: two tenants on one store.
func settings() config.Config {
	bound := token("default", "bound", boundSecret, tenant.TenantAdmin)
	bound.Boards = []string{"other"}
	observed := boardOf("default", "observed")
	observed.Observe = true
	byOwner := boardOf("default", "by-owner")
	byOwner.FenceByOwner = true
	return config.Config{
		Listen: "127.0.0.1:0",
		Tokens: []tenant.Token{
			token("default", "root", rootSecret, tenant.TenantAdmin),
			token("default", "poster", posterSecret, tenant.Poster),
			token("default", "worker", workerSecret, tenant.Worker),
			token("default", "viewer", viewerSecret, tenant.Viewer),
			token("default", "metrics", metricsSecret, tenant.Metrics),
			token("acme", "acme", acmeSecret, tenant.TenantAdmin),
			bound,
		},
		Tenants:  []string{"default", "acme"},
		Backends: []config.Backend{{Name: "store", Driver: "memory", Settings: []byte("{}")}},
		Boards: []config.Board{
			boardOf("default", "default"), boardOf("default", "other"), observed, byOwner,
			boardOf("acme", "default"), boardOf("acme", "secrets"),
		},
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// server is a running server.
type server struct {
	url    string
	client *http.Client
	api    *api.Server
	stop   func() // and waits until it has stopped

	closeHost func() error // after stop
}

func serve(t testing.TB) *server { return serveWith(t, settings(), quiet()) }

func serveWith(t testing.TB, c config.Config, logger *slog.Logger) *server {
	t.Helper()
	return serveOn(t, c, logger, memdriver.Program())
}

// ready waits until the server's start is over.
func (s *server) ready(t *testing.T) {
	t.Helper()
	waitFor(t, func() bool { return s.do(t, http.MethodGet, "/readyz", "", "").status == http.StatusOK })
}

// serveOn is serveWith on another driver "memory".
func serveOn(t testing.TB, c config.Config, logger *slog.Logger, memory driver.Program) *server {
	t.Helper()
	return serveFrom(t, host.Config{Config: c, Version: "1.2.3", Logger: logger, Drivers: map[string]driver.Program{"memory": memory}})
}

// serveFrom is serveWith of a host that may do more.
func serveFrom(t testing.TB, c host.Config) *server {
	t.Helper()
	h, err := host.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := api.NewServer(h, api.Config{Logger: c.Logger})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	transport := &http.Transport{}
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	closeHost := sync.OnceValue(h.Close)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		if err := closeHost(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &server{url: "http://" + s.Addr().String(), client: &http.Client{Transport: transport}, api: s, stop: stop, closeHost: closeHost}
}

// reply is the answer to one request.
type reply struct {
	status int
	header http.Header
	body   string
}

// code and message are those of a Connect error.
func (r reply) failure() (code, message string) {
	var e struct{ Code, Message string }
	_ = json.Unmarshal([]byte(r.body), &e)
	return e.Code, e.Message
}

// do makes a request like curl.
func (s *server) do(t testing.TB, method, path, secret, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(text)}
}

// call makes a call in JSON.
func (s *server) call(t testing.TB, secret, call, body string) reply {
	t.Helper()
	return s.do(t, http.MethodPost, "/boardd.v1.BoardService/"+call, secret, body)
}

// must makes a call that succeeds and reads its answer into value.
func (s *server) must(t testing.TB, secret, call, body string, value any) string {
	t.Helper()
	r := s.call(t, secret, call, body)
	if r.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", call, body, r.status, r.body)
	}
	if value != nil {
		reflect.ValueOf(value).Elem().SetZero()
		if err := json.Unmarshal([]byte(r.body), value); err != nil {
			t.Fatalf("%s: %v in %s", call, err, r.body)
		}
	}
	return r.body
}
