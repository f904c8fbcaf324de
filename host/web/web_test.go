package web_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/web"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

const (
	adminSecret  = "secret-of-the-administrator"
	viewerSecret = "secret-of-somebody-who-looks"
	otherSecret  = "secret-of-the-other-tenant"
	scraper      = "secret-of-who-reads-metrics"
)

// site is a host with its pages on a server.
type site struct {
	host   *host.Host
	ui     *web.UI
	server *httptest.Server
}

func token(tenantName, name, secret string, roles ...tenant.Role) tenant.Token {
	return tenant.Token{Name: name, Tenant: tenantName, Roles: roles, Digest: tenant.DigestOf(secret)}
}

func boardOf(tenantName, name string) config.Board {
	return config.Board{
		Name: name, Tenant: tenantName, Backend: "memory", Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
	}
}

func newSite(t testing.TB) *site { return newSiteOn(t, memdriver.Program()) }

func newSiteOn(t testing.TB, store driver.Program) *site {
	t.Helper()
	h, err := host.Open(t.Context(), host.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Drivers: map[string]driver.Program{"memory": store},
		Version: "1.2.3",
		Config: config.Config{
			DataDir: t.TempDir(),
			Tokens: []tenant.Token{
				token("acme", "admin", adminSecret, tenant.TenantAdmin), token("acme", "eyes", viewerSecret, tenant.Viewer),
				token("other", "admin", otherSecret, tenant.TenantAdmin), token("acme", "scraper", scraper, tenant.Metrics),
			},
			Backends: []config.Backend{{Name: "memory", Driver: "memory", Settings: []byte("{}")}},
			Boards:   []config.Board{boardOf("acme", "jobs"), boardOf("other", "theirs")},
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
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
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

func mustURL(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
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

// TestPages has every page show what stands on the board.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	first := post(t, jobs, job.Posting{Name: "first", Labels: []job.Label{{Key: "customer", Value: "blue"}}, Details: []byte(`{"a":{"b":[1,null]}}`)})
	second := post(t, jobs, job.Posting{Name: "second"})
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "worker-7", IDs: []job.ID{second}}); err != nil {
		t.Fatal(err)
	}
	b := s.signedIn(t, viewerSecret)
	b.wants("/", "<dt>Ready</dt><dd>1</dd>", "<dt>Claimed</dt><dd>1</dd>", "/ui/boards/jobs", "eyes of acme")
	b.wants("/ui/boards/jobs", "first", "second", "customer=blue", "worker-7", "open 2")
	b.wants("/ui/boards/jobs?tab=claimed", "second", "worker-7")
	b.wants("/ui/boards/jobs?tab=unclaimed&filter="+url.QueryEscape("labels.customer = blue"), "first")
	b.wants("/ui/boards/jobs?filter="+url.QueryEscape("nonsense = 1"), "nonsense", `role="alert"`)
	b.wants("/ui/boards/jobs/jobs/"+first.String(), "CLAIMABLE", "it is next", "posted")
	b.wants("/ui/boards/jobs/jobs/"+second.String(), "CLAIMED", "worker-7")
	b.wants("/ui/boards/jobs/jobs/"+first.String()+"?labels=region=eu", "CLAIMABLE")
	b.wants("/ui/boards/jobs/jobs/"+first.String()+"?labels=nonsense", "want KEY=VALUE")
	b.wants("/ui/boards/jobs/jobs/"+first.String()+"/details", "object of 1", "array of 2", "null")
	b.wants("/ui/boards/jobs/workers", "worker-7", second.String())
	for _, path := range []string{"/ui/boards/jobs", "/ui/boards/jobs/jobs/" + first.String()} {
		if _, text := b.get(path); strings.Contains(text, "array of") || strings.Contains(text, "Set aside") {
			t.Errorf("%s shows a viewer details, or what only others may do", path)
		}
	}
}

// TestOperations has a job's operations, what it waits for and its log shown, the
// end of a long one, and a job canceled.
func TestOperations(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	before := post(t, jobs, job.Posting{Name: "before"})
	id := post(t, jobs, job.Posting{Name: "steps", Operations: []job.NewOperation{{Name: "fetch-it"}, {Name: "store-it"}}})
	after := post(t, jobs, job.Posting{Name: "after", After: []job.Prerequisite{{ID: before}}})
	got, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "w", IDs: []job.ID{id}})
	if err != nil || len(got.Claims) != 1 {
		t.Fatal(err)
	}
	claim := board.Ref{ID: id, Token: jobs.FormatToken(id, got.Claims[0].Token)}
	if _, err := jobs.StartOperation(t.Context(), board.OperationRequest{Ref: claim, Status: job.OpRunning}); err != nil {
		t.Fatal(err)
	}
	for n := range 250 {
		entries := []job.LogEntry{{Type: "out", Message: fmt.Sprintf("line %d of <b>it</b>", n)}}
		if _, err := jobs.AppendLog(t.Context(), board.LogRequest{Ref: claim, Entries: entries}); err != nil {
			t.Fatal(err)
		}
	}
	b := s.signedIn(t, adminSecret)
	b.wants("/ui/boards/jobs/jobs/"+id.String(), "fetch-it", "running", "queued", "so far", "line 249 of &lt;b&gt;", "line 50 of", "Only the end is shown")
	if _, text := b.get("/ui/boards/jobs/jobs/" + id.String()); strings.Contains(text, "line 49 of") {
		t.Error("more than the end of the log is shown")
	}
	b.wants("/ui/boards/jobs/jobs/"+after.String(), "What it waits for", before.String(), "to end with success")
	form := url.Values{"action": {"cancel"}, "uuid": {id.String(), after.String()}, "confirmed": {"yes"}}
	if _, text := b.post("/ui/boards/jobs/do", form); !strings.Contains(text, "1 of 2 jobs were left as they are") || !strings.Contains(text, "is no longer waiting in the queue") {
		t.Errorf("canceling one that runs and one that waits:\n%s", text)
	}
	b.wants("/ui/boards/jobs/jobs/"+after.String(), "canceled")
}

// TestStrangers has pages refused to whoever did not sign in or may not see them.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := post(t, s.board(t, otherSecret, "theirs"), job.Posting{Name: "canary"}).String()
	stranger := s.visit(t)
	stranger.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, path := range []string{"/", "/ui/boards/jobs", "/ui/boards/jobs/live", "/ui/boards/jobs/workers", "/ui/backends", "/ui/boards/theirs/jobs/" + id} {
		if status, _ := stranger.get(path); status != http.StatusSeeOther {
			t.Errorf("%s answers a stranger with %d, want a redirect", path, status)
		}
		if status, _ := stranger.post(path, url.Values{}); status == http.StatusOK {
			t.Errorf("POST %s answers a stranger with 200", path)
		}
	}
	b := s.visit(t)
	for _, secret := range []string{"", "wrong-wrong-wrong-wrong", scraper, strings.Repeat("x", 5000)} {
		if status, text := b.post("/ui/signin", url.Values{"token": {secret}}); status != http.StatusForbidden || secret != "" && strings.Contains(text, secret) {
			t.Errorf("signing in with %.10q is answered with %d, want 403 and no echo", secret, status)
		}
	}
	b = s.signedIn(t, adminSecret)
	for _, path := range []string{"", "/workers", "/live", "/jobs/" + id, "/jobs/" + id + "/details"} {
		_, theirs := b.get("/ui/boards/theirs" + path)
		status, absent := b.get("/ui/boards/absent" + path)
		if status != http.StatusNotFound || strings.ReplaceAll(theirs, "theirs", "absent") != absent {
			t.Errorf("a board of another tenant%s differs from one that does not exist (%d):\n%s\n%s", path, status, theirs, absent)
		}
	}
	if status, _ := b.get("/ui/backends"); status != http.StatusNotFound {
		t.Errorf("the page of backends answers a tenant with %d", status)
	}
}

// TestChanges has what people may do done, after they were asked.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	id := post(t, jobs, job.Posting{Name: "one"})
	b := s.signedIn(t, adminSecret)
	state := func() job.State {
		results, err := jobs.Get(t.Context(), []job.ID{id}, board.GetOptions{})
		if err != nil || results[0].Err != nil {
			return job.Unknown
		}
		return results[0].Job.State
	}
	change := func(action string, before, after job.State) {
		t.Helper()
		form := url.Values{"action": {action}, "uuid": {id.String()}, "reason": {"because"}}
		if status, text := b.post("/ui/boards/jobs/do", form); status != http.StatusOK || !strings.Contains(text, "confirmed") || state() != before {
			t.Errorf("%s is not asked about first (%d), or the job is %v", action, status, state())
		}
		form.Set("confirmed", "yes")
		if status, text := b.post("/ui/boards/jobs/do", form); status != http.StatusOK || !strings.Contains(text, "Done for 1 job") || state() != after {
			t.Errorf("%s: %d, the job is %v, want %v:\n%s", action, status, state(), after, text)
		}
	}
	change("trash", job.Unclaimed, job.Trashed)
	change("restore", job.Trashed, job.Unclaimed)
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "w", IDs: []job.ID{id}}); err != nil {
		t.Fatal(err)
	}
	change("release", job.Claimed, job.Unclaimed)
	change("trash", job.Unclaimed, job.Trashed)
	change("purge", job.Trashed, job.Unknown)
	if status, text := b.post("/ui/boards/jobs/pause", url.Values{"reason": {"lunch"}}); status != http.StatusOK || !strings.Contains(text, "paused") || !jobs.Status().Paused {
		t.Errorf("pausing: %d:\n%s", status, text)
	}
	if status, _ := b.post("/ui/boards/jobs/resume", url.Values{}); status != http.StatusOK || jobs.Status().Paused {
		t.Errorf("resuming: %d", status)
	}
}

// TestRefusedChanges has nothing changed by those who may not, by forged forms
// and by reading.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	id := post(t, jobs, job.Posting{Name: "one"}).String()
	form := func(more ...string) url.Values {
		f := url.Values{"action": {"trash"}, "uuid": {id}, "confirmed": {"yes"}, "reason": {"x"}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	admin, viewer := s.signedIn(t, adminSecret), s.signedIn(t, viewerSecret)
	for name, test := range map[string]struct {
		by   *browser
		path string
		form url.Values
		want int
	}{
		"a viewer":            {viewer, "/ui/boards/jobs/do", form(), http.StatusForbidden},
		"a viewer who pauses": {viewer, "/ui/boards/jobs/pause", form(), http.StatusForbidden},
		"another's form":      {admin, "/ui/boards/jobs/do", form("form", viewer.form), http.StatusForbidden},
		"no form":             {admin, "/ui/boards/jobs/do", form("form", ""), http.StatusForbidden},
		"no action":           {admin, "/ui/boards/jobs/do", form("action", ""), http.StatusBadRequest},
		"another action":      {admin, "/ui/boards/jobs/do", form("action", "explode"), http.StatusBadRequest},
		"no job":              {admin, "/ui/boards/jobs/do", url.Values{"action": {"trash"}}, http.StatusBadRequest},
		"no uuid":             {admin, "/ui/boards/jobs/do", form("uuid", "nonsense"), http.StatusBadRequest},
		"too many":            {admin, "/ui/boards/jobs/do", url.Values{"action": {"trash"}, "uuid": make([]string, board.MaxBatch+1)}, http.StatusBadRequest},
		"too large":           {admin, "/ui/boards/jobs/do", form("reason", strings.Repeat("x", 300<<10)), http.StatusBadRequest},
		"no board":            {admin, "/ui/boards/absent/do", form(), http.StatusNotFound},
	} {
		if status, text := test.by.post(test.path, test.form); status != test.want {
			t.Errorf("%s: %d, want %d:\n%s", name, status, test.want, text)
		}
	}
	admin.get("/ui/boards/jobs/do?action=trash&confirmed=yes&uuid=" + id)
	counts, err := jobs.Count(t.Context())
	if err != nil || counts.Ready != 1 || jobs.Status().Paused {
		t.Errorf("afterwards %+v (%v), paused %v", counts, err, jobs.Status().Paused)
	}
	if status, _ := admin.post("/ui/signout", url.Values{}); status != http.StatusOK {
		t.Errorf("signing out: %d", status)
	}
	if _, text := admin.get("/"); !strings.Contains(text, "Sign in") {
		t.Error("who has signed out still sees pages")
	}
}

// TestSecretFilter keeps what is in details out of addresses.
func TestSecretFilter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	for range 60 {
		post(t, jobs, job.Posting{Name: "x", Details: []byte(`{"customer":"canary"}`)})
	}
	b := s.signedIn(t, viewerSecret)
	var last *url.URL
	b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		last = r.URL
		return nil
	}
	status, text := b.post("/ui/boards/jobs/search", url.Values{"tab": {"open"}, "filter": {`details.customer = "canary"`}})
	if status != http.StatusOK || last != nil || strings.Count(text, `name="uuid"`) > 0 || !strings.Contains(text, "Next page") {
		t.Errorf("a filter on details: %d, sent to %v:\n%s", status, last, text)
	}
	if strings.Contains(text, "filter=") {
		t.Error("a link of the page has the filter")
	}
	if _, _ = b.post("/ui/boards/jobs/search", url.Values{"tab": {"open"}, "filter": {`name = x`}}); last == nil || last.Query().Get("filter") != "name = x" {
		t.Errorf("a filter that may be seen is sent to %v", last)
	}
}

// TestLive has a page told of changes, and of its visit's end.
func TestLive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, viewerSecret)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/ui/boards/jobs/live", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	await := func(event string) {
		t.Helper()
		want, buffer := "event: "+event+"\n", ""
		part := make([]byte, 256)
		for !strings.Contains(buffer, want) {
			n, err := answer.Body.Read(part)
			if buffer += string(part[:n]); err != nil && !strings.Contains(buffer, want) {
				t.Fatalf("the stream ended with %v before %q: %q", err, event, buffer)
			}
		}
	}
	await("begun")
	post(t, jobs, job.Posting{Name: "new"})
	await("changed")
	other := &browser{t: t, site: s, client: b.client, form: b.form}
	other.post("/ui/signout", url.Values{})
	post(t, jobs, job.Posting{Name: "newer"})
	await("over")
}
