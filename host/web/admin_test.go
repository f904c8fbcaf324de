package web_test

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	hostadmin "github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/job"
)

// sends posts a form and wants an answer.
func (b *browser) sends(path string, form url.Values, status int, words ...string) string {
	b.t.Helper()
	got, text := b.post(path, maps.Clone(form)) // which adds what belongs to the visit
	if got != status {
		b.t.Errorf("%s %v: %d, want %d:\n%s", path, form, got, status, text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			b.t.Errorf("%s %v does not say %q:\n%s", path, form, word, text)
		}
	}
	return text
}

// refused wants a page that somebody may not see.
func (b *browser) refused(paths ...string) {
	b.t.Helper()
	for _, path := range paths {
		if status, text := b.get(path); status != http.StatusForbidden || strings.Contains(text, "<table") {
			b.t.Errorf("%s: %d, want 403:\n%s", path, status, text)
		}
	}
}

var shownSecret = regexp.MustCompile(`id="secret">([^<]+)<`)

// TestTokens makes a token, signs in with it, and revokes it.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	admin := s.signedIn(t, adminSecret)
	text := admin.sends("/ui/tokens/create", url.Values{"name": {"ci"}, "role": {"viewer", "poster"}, "boards": {"jobs"}, "days": {"30"}}, http.StatusOK, "shown this once", "poster", ">admin of acme<")
	found := shownSecret.FindStringSubmatch(text)
	if found == nil {
		t.Fatal("no secret is shown")
	}
	admin.wants("/ui/tokens", "ci", "in 29 d 23 h", "by the configuration")
	if _, text := admin.get("/ui/tokens"); strings.Contains(text, found[1]) {
		t.Error("the secret is shown again")
	}
	ci := s.signedIn(t, found[1])
	ci.wants("/", "/ui/boards/jobs")
	if _, text := ci.get("/"); strings.Contains(text, "/ui/boards/secret") || strings.Contains(text, "/ui/tokens") {
		t.Errorf("a token of one board sees others, or pages of admins:\n%s", text)
	}
	ci.refused("/ui/tokens", "/ui/tenants", "/ui/audit", "/ui/policies", "/ui/boards/jobs/policies", "/ui/backends")

	admin.sends("/ui/tokens/revoke", url.Values{"token": {"ci"}}, http.StatusOK, "Revoke this token?")
	ci.wants("/", "ci of acme")
	admin.sends("/ui/tokens/revoke", url.Values{"token": {"ci"}, "confirmed": {"yes"}}, http.StatusOK, "Make a token")
	if _, text := ci.get("/"); !strings.Contains(text, "The token is exchanged") {
		t.Errorf("a visit outlives its token:\n%s", text)
	}
	admin.wants("/ui/audit", "CreateToken", "RevokeToken", "ci", "admin")
	if _, text := s.signedIn(t, otherSecret).get("/ui/audit"); strings.Contains(text, "CreateToken") {
		t.Error("another tenant's admin reads of it")
	}
}

// TestTokensThatAreRefused has nobody make what he may not, and nothing of another
// tenant touched.
func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	admin, viewer, operator := s.signedIn(t, adminSecret), s.signedIn(t, viewerSecret), s.signedIn(t, operatorSecret)
	token := func(more ...string) url.Values {
		form := url.Values{"name": {"x"}, "role": {"viewer"}, "days": {"1"}}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return form
	}
	for _, test := range []struct {
		by   *browser
		form url.Values
		want int
	}{
		{viewer, token(), http.StatusForbidden},
		{admin, token("role", "operator"), http.StatusForbidden},
		{admin, token("role", "king"), http.StatusBadRequest},
		{admin, token("name", "no/such name"), http.StatusBadRequest},
		{admin, token("name", "eyes"), http.StatusConflict},
		{admin, token("days", "-1"), http.StatusBadRequest},
		{admin, token("days", "3651"), http.StatusBadRequest},
		{admin, token("days", "soon"), http.StatusBadRequest},
		{admin, token("tenant", "other"), http.StatusNotFound},
		{admin, token("tenant", "absent"), http.StatusNotFound},
		{operator, token("tenant", "other", "days", "3650"), http.StatusOK},
		{operator, token("tenant", "absent"), http.StatusNotFound},
	} {
		test.by.sends("/ui/tokens/create", test.form, test.want)
	}
	admin.sends("/ui/tokens/revoke", url.Values{"token": {"x"}, "tenant": {"other"}, "confirmed": {"yes"}}, http.StatusNotFound)
	admin.sends("/ui/tokens/revoke", url.Values{"token": {"eyes"}, "confirmed": {"yes"}}, http.StatusConflict)
	admin.sends("/ui/tokens/revoke", url.Values{"confirmed": {"yes"}}, http.StatusBadRequest)
	viewer.sends("/ui/tokens/revoke", url.Values{"token": {"eyes"}, "confirmed": {"yes"}}, http.StatusForbidden)
	admin.sends("/ui/tokens/revoke", url.Values{"token": {"admin"}}, http.StatusOK, "signs you out")
	operator.wants("/ui/tokens?tenant=other", "of other", "admin")
}

// TestPolicyPages has an author put a policy to work, look at it and take it back.
func TestPolicyPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	id := post(t, jobs, job.Posting{Name: "x", Labels: []job.Label{{Key: "gpu", Value: "a100"}}})
	author, viewer := s.signedIn(t, authorSecret), s.signedIn(t, viewerSecret)
	author.wants("/ui/policies", "boardd policy push")
	author.wants("/ui/boards/jobs/policies", "No policy", "boardd policy push")
	viewer.refused("/ui/policies", "/ui/boards/jobs/policies")
	s.push(t, "gpus", "the job needs another GPU")
	author.wants("/ui/policies", "gpus", "acme/author", "no board", "Delete")
	const to = "/ui/boards/jobs/policies/"
	gpus := url.Values{"policy": {"gpus"}, "params": {`{"gold": 7}`}, "confirmed": {"yes"}}
	with := func(name, value string) url.Values {
		form := maps.Clone(gpus)
		form.Set(name, value)
		return form
	}
	viewer.sends(to+"promote", gpus, http.StatusForbidden)
	author.sends(to+"promote", with("confirmed", ""), http.StatusOK, "from now on?", `value="{&#34;gold&#34;: 7}"`)
	author.sends(to+"promote", with("params", "[1]"), http.StatusBadRequest, "want a JSON object")
	author.sends(to+"promote", with("params", `{"silver":"much"}`), http.StatusBadRequest, "silver")
	author.sends(to+"promote", with("on_error", "explode"), http.StatusBadRequest, "want one of")
	author.sends(to+"promote", with("policy", ""), http.StatusBadRequest, "no policy was chosen")
	author.sends(to+"promote", with("policy", "absent"), http.StatusNotFound)
	author.sends(to+"explode", gpus, http.StatusNotFound)
	author.sends("/ui/boards/theirs/policies/promote", gpus, http.StatusNotFound)
	author.sends(to+"rollback", gpus, http.StatusNotFound)

	author.sends(to+"shadow", gpus, http.StatusOK, "In the shadow", "gpus")
	author.sends(to+"promote", gpus, http.StatusOK, "templates/gpu 1.0.0", "{&#34;gold&#34;:7}", "the job needs another GPU")
	author.wants("/ui/policies", `href="/ui/boards/jobs/policies"`)
	viewer.wants("/ui/boards/jobs/jobs/"+id.String(), "NOT_ELIGIBLE", "the job needs another GPU")
	author.wants("/ui/boards/jobs/policies", `title="used by its last call"`)
	author.sends("/ui/policies/delete", url.Values{"policy": {"gpus"}, "confirmed": {"yes"}}, http.StatusConflict, "roll it back first")
	author.sends(to+"rollback", gpus, http.StatusOK, "No policy")
	author.sends("/ui/policies/delete", url.Values{"policy": {"gpus"}}, http.StatusOK, "Delete this policy")
	author.sends("/ui/policies/delete", url.Values{"policy": {"gpus"}, "confirmed": {"yes"}}, http.StatusOK, "boardd policy push")
	s.signedIn(t, adminSecret).wants("/ui/audit", "PromotePolicy", "RollbackPolicy", "DeletePolicy", "permission_denied")
}

// TestAuditPages goes back through more records than one page has.
func TestAuditPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	admin := s.signedIn(t, adminSecret)
	for n := range 205 {
		name := "pause"
		if n%2 == 1 {
			name = "resume"
		}
		admin.sends("/ui/boards/jobs/"+name, url.Values{}, http.StatusOK)
	}
	seen := map[string]bool{}
	boss := s.signedIn(t, operatorSecret)
	pages, path := 0, "/ui/audit?all"
	older := regexp.MustCompile(`href="(/ui/audit\?[^"]*before=[^"]+)"`)
	for path != "" {
		pages++
		_, text := boss.get(path)
		for _, row := range regexp.MustCompile(`data-label="Record">(\d+)<`).FindAllStringSubmatch(text, -1) {
			if seen[row[1]] {
				t.Errorf("record %s is shown twice", row[1])
			}
			seen[row[1]] = true
		}
		path = ""
		if link := older.FindStringSubmatch(text); link != nil {
			path = html.UnescapeString(link[1])
		}
	}
	if len(seen) != 205 || pages != 3 {
		t.Errorf("%d records on %d pages, want 205 on 3", len(seen), pages)
	}
	_, text := boss.get("/ui/audit?all")
	if first, last := strings.Index(text, ">205<"), strings.Index(text, ">106<"); first < 0 || last < first {
		t.Errorf("the first page does not go from the newest record back (%d, %d)", first, last)
	}
	for own, path := 0, "/ui/audit"; path != ""; { // a tenant's admin sees the same, without the numbers of the log
		_, text := admin.get(path)
		own += strings.Count(text, `data-label="Call"`)
		path = ""
		if link := older.FindStringSubmatch(text); link != nil {
			path = html.UnescapeString(link[1])
		} else if own != 205 {
			t.Errorf("the admin sees %d records, want 205", own)
		}
		if regexp.MustCompile(`data-label="Record">\d`).MatchString(text) {
			t.Error("the admin sees numbers that tell of other tenants' records")
		}
	}
	admin.wants("/ui/audit?about=RESUME", "ResumeBoard")
	if _, text := admin.get("/ui/audit?about=RESUME"); strings.Contains(text, "PauseBoard") {
		t.Error("a filter shows what it does not fit")
	}
	admin.refused("/ui/audit?all")
	s.signedIn(t, operatorSecret).wants("/ui/audit?all", "acme / jobs")
	s.signedIn(t, otherSecret).wants("/ui/audit", "Nothing was changed or refused yet")
}

// TestTenantsPage shows limits with what is used of them: to an admin those of his
// tenant, to an operator all.
func TestTenantsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	for n := range 3 {
		post(t, jobs, job.Posting{Name: fmt.Sprint(n)})
	}
	admin, operator := s.signedIn(t, adminSecret), s.signedIn(t, operatorSecret)
	testserver.Eventually(t, "what is used is counted anew", func() bool {
		_, text := admin.get("/ui/tenants")
		return strings.Contains(text, "open_jobs: 3 of 1000")
	})
	admin.wants("/ui/tenants", "Limits and use")
	if _, text := admin.get("/ui/tenants"); strings.Contains(text, "other") {
		t.Error("an admin sees another tenant")
	}
	operator.wants("/ui/tenants", "open_jobs: 3 of 1000", `aria-label="other"`)
	operator.wants("/ui/backends", "main", "answers", "batches")
	admin.wants("/ui/backends", "There is no backend on which you may have boards")
}

// TestTenantsAndTokensInPages follows the links from page to page.
func TestTenantsAndTokensInPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	login, err := s.host.Login(t.Context(), operatorSecret)
	if err != nil {
		t.Fatal(err)
	}
	session := hostadmin.Of(s.host, login)
	for i := range 210 {
		name := fmt.Sprintf("made%03d", i)
		if _, err := session.CreateTenant(t.Context(), name, config.Limits{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := session.CreateToken(t.Context(), hostadmin.NewToken{Tenant: "other", Name: name, Roles: []string{"viewer"}}); err != nil {
			t.Fatal(err)
		}
	}
	operator := s.signedIn(t, operatorSecret)
	link := regexp.MustCompile(`<a rel="next" href="([^"]+)"`)
	for path, entry := range map[string]string{"/ui/tenants": `data-key="(made\d+)"`, "/ui/tokens?tenant=other": `aria-label="Revoke (made\d+)"`} {
		var got []string
		pages := 0
		for next := path; next != ""; pages++ {
			status, text := operator.get(next)
			if status != http.StatusOK {
				t.Fatalf("%s: %d %s", next, status, text)
			}
			for _, found := range regexp.MustCompile(entry).FindAllStringSubmatch(text, -1) {
				got = append(got, found[1])
			}
			next = ""
			if found := link.FindStringSubmatch(text); found != nil {
				next = html.UnescapeString(found[1])
			}
		}
		if pages != 2 || len(got) != 210 || !slices.IsSorted(got) || len(slices.Compact(got)) != 210 {
			t.Errorf("%s: %d pages with %d entries", path, pages, len(got))
		}
	}
	operator.wants("/ui/tokens?tenant=other&after=~", "There is none after this place")
}
