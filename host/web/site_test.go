package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/web"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/build"
)

const (
	adminSecret  = "secret-of-the-administrator"
	viewerSecret = "secret-of-somebody-who-looks"
	otherSecret  = "secret-of-the-other-tenant"
	scraper      = "secret-of-who-reads-metrics"

	authorSecret   = "secret-of-who-writes-policies"
	operatorSecret = "secret-of-who-runs-the-server"
)

// site is a host with its pages on a server.
type site struct {
	host   *host.Host
	ui     *web.UI
	server *httptest.Server
	stop   func() // keeping the pages up to date, and waits for the end of that
}

func token(tenantName, name, secret string, roles ...tenant.Role) tenant.Token {
	return tenant.Token{Name: name, Tenant: tenantName, Roles: roles, Digest: tenant.DigestOf(secret)}
}

func boardOf(tenantName, name string) config.Board {
	return config.Board{
		Name: name, Tenant: tenantName, Backend: "main", Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
	}
}

func newSite(t testing.TB) *site { return newSiteOn(t, "memory", memdriver.Program(), "{}", nil) }

// newSiteOn opens a host on one store: for tenant acme the boards "jobs" and
// "secret", of which the latter hides details and keeps what has ended, and for tenant other "theirs".
// place, if it is not nil, gives the settings of a board by its name.
func newSiteOn(t testing.TB, name string, store driver.Program, settings string, place func(board string) string) *site {
	t.Helper()
	boards := []config.Board{boardOf("acme", "jobs"), boardOf("acme", "secret"), boardOf("other", "theirs")}
	boards[1].HideDetails, boards[1].History = true, time.Hour
	for i := range boards {
		if place != nil {
			boards[i].Settings = []byte(place(boards[i].Name))
		}
	}
	h, err := host.Open(t.Context(), host.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Drivers: map[string]driver.Program{name: store},
		Version: "1.2.3",
		Config: config.Config{
			DataDir: t.TempDir(),
			Tokens: []tenant.Token{
				token("acme", "admin", adminSecret, tenant.TenantAdmin), token("acme", "eyes", viewerSecret, tenant.Viewer),
				token("other", "admin", otherSecret, tenant.TenantAdmin), token("acme", "scraper", scraper, tenant.Metrics),
				token("acme", "author", authorSecret, tenant.PolicyAuthor), token("acme", "operator", operatorSecret, tenant.Operator),
			},
			Tenants:  []string{tenant.Default, "acme", "other"},
			Limits:   map[string]config.Limits{"acme": {OpenJobs: 1000}},
			Backends: []config.Backend{{Name: "main", Driver: name, Settings: []byte(settings)}},
			Boards:   boards,
			Catalog:  "main",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ui := web.New(h, web.Config{Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- ui.Run(ctx) }()
	s := &site{host: h, ui: ui, server: httptest.NewServer(ui)}
	s.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		s.stop()
		s.server.Close()
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// board returns a board to prepare things on, as its administrator.
func (s *site) board(t testing.TB, secret, name string) *board.Board {
	t.Helper()
	session, err := s.host.Login(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	b, err := session.Board(t.Context(), name, "PurgeJobs")
	if err == nil {
		err = b.Ready(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func post(t testing.TB, b *board.Board, p job.Posting) job.ID {
	t.Helper()
	results, err := b.Post(t.Context(), []job.Posting{p})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
	return results[0].Job.ID
}

// browser is somebody with a browser, without JavaScript.
type browser struct {
	t      testing.TB
	site   *site
	client *http.Client
	form   string // what the last page's forms carried
}

func (s *site) visit(t testing.TB) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, site: s, client: &http.Client{Jar: jar}}
}

func (s *site) signedIn(t testing.TB, secret string) *browser {
	t.Helper()
	b := s.visit(t)
	if status, text := b.post("/ui/signin", url.Values{"token": {secret}}); status != http.StatusOK || !strings.Contains(text, "Sign out") {
		t.Fatalf("signing in is answered with %d:\n%s", status, text)
	}
	return b
}

var formToken = regexp.MustCompile(`name="form" value="([^"]+)"`)

func (b *browser) do(method, path string, form url.Values) (int, string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.site.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if m := formToken.FindSubmatch(text); m != nil {
		b.form = string(m[1])
	}
	return answer.StatusCode, string(text)
}

func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	return b.do(http.MethodGet, path, nil)
}

// post sends a form with what every form of this visit carries.
func (b *browser) post(path string, form url.Values) (int, string) {
	b.t.Helper()
	if b.form != "" && !form.Has("form") {
		form.Set("form", b.form)
	}
	return b.do(http.MethodPost, path, form)
}

func (b *browser) wants(path string, words ...string) {
	b.t.Helper()
	status, text := b.get(path)
	if status != http.StatusOK {
		b.t.Errorf("%s: %d, want 200:\n%s", path, status, text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			b.t.Errorf("%s does not say %q:\n%s", path, word, text)
		}
	}
}

// template returns the policy template in C, with other reasons than its own, and
// parameters of text that it does not heed.
func template(t testing.TB, reasons ...string) []byte {
	t.Helper()
	from, dir := filepath.Join("..", "..", "policies", "templates", "c"), t.TempDir()
	for _, name := range []string{"gpu.c", build.ManifestFile} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == build.ManifestFile {
			var manifest map[string]any
			if err := json.Unmarshal(text, &manifest); err != nil {
				t.Fatal(err)
			}
			manifest["reasons"] = reasons
			manifest["parameters"] = append(manifest["parameters"].([]any),
				map[string]any{"name": "note", "type": "string", "default": ""}, map[string]any{"name": "notes", "type": "list", "default": []string{}})
			if text, err = json.Marshal(manifest); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := build.Folder(t.Context(), dir, os.Environ())
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(t, missing.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// push gives the server a policy of tenant acme, as its author.
func (s *site) push(t testing.TB, name string, reasons ...string) {
	t.Helper()
	login, err := s.host.Login(t.Context(), authorSecret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Of(s.host, login).PutPolicy(t.Context(), "", name, template(t, reasons...)); err != nil {
		t.Fatal(err)
	}
}

// decide has the board "jobs" ask one policy, with parameters, and another one in
// its shadow. It returns the session of their author.
func (s *site) decide(t testing.TB, active, params, shadow string) *admin.Session {
	t.Helper()
	login, err := s.host.Login(t.Context(), authorSecret)
	if err != nil {
		t.Fatal(err)
	}
	session := admin.Of(s.host, login)
	if _, err = session.Promote(t.Context(), admin.Promotion{Board: "jobs", Name: active, Params: []byte(params)}); err == nil {
		_, err = session.Shadow(t.Context(), admin.Promotion{Board: "jobs", Name: shadow}, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return session
}
