package web_test

import (
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/config"
)

// receiver is somebody whom a webhook tells, with what he answers.
type receiver struct {
	*httptest.Server

	status atomic.Int32
	answer atomic.Value
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.says(http.StatusOK, "thanks")
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(r.status.Load()))
		_, _ = w.Write([]byte(r.answer.Load().(string)))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) says(status int32, answer string) {
	r.status.Store(status)
	r.answer.Store(answer)
}

// addBoard makes a board of tenant acme that has nothing.
func (s *site) addBoard(t testing.TB, name string) {
	t.Helper()
	login, err := s.host.Login(t.Context(), operatorSecret)
	if err != nil {
		t.Fatal(err)
	}
	b := boardOf("acme", name)
	if _, err := admin.Of(s.host, login).CreateBoard(t.Context(), "", config.Board{
		Name: name, Tenant: "acme", Backend: "main", Lease: b.Lease, MaxLease: b.MaxLease, IdempotencyWindow: b.IdempotencyWindow,
	}); err != nil {
		t.Fatal(err)
	}
	s.board(t, adminSecret, name)
}

// hookValues is a form of a webhook, with what differs from one that may be made.
func hookValues(name string, more ...string) url.Values {
	f := url.Values{"name": {name}, "url": {"https://hooks.example.com/"}, "deliveries": {"hooks"}, "event": {"ENDED", "TRASHED"}}
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return f
}

const hooksPath = "/ui/boards/jobs/webhooks"

var (
	hookSecret  = regexp.MustCompile(`whsec_[A-Za-z0-9+/]{43}=`)
	hookVersion = regexp.MustCompile(`name="version" value="(\d+)"`)
)

// tell makes webhooks of the board "jobs": one that was tried, one that waits.
func (s *site) tell(t *testing.T) {
	t.Helper()
	s.addBoard(t, "hooks")
	r := newReceiver(t)
	r.says(http.StatusBadGateway, "<html>\n<h1>502 Bad Gateway</h1>\n"+strings.Repeat("no-spaces-here-at-all", 20))
	b := s.signedIn(t, operatorSecret)
	b.get("/")
	const long = "a-rather-long-name-of-a-webhook-that-is-told-of-all-jobs"
	b.sends(hooksPath, hookValues(long, "url", r.URL+"/"+strings.Repeat("path-of-a-long-address/", 8), "networks", "127.0.0.0/8"), http.StatusOK, "shown this once")
	b.sends(hooksPath+"/"+long+"/test", url.Values{}, http.StatusOK, "502")
	b.sends(hooksPath, hookValues("paused", "oldestWaiting", "10m"), http.StatusOK, "shown this once")
	b.sends(hooksPath+"/paused/pause", url.Values{}, http.StatusOK, ">paused<")
}

// TestWebhooksPage makes a webhook, tries it, lets it wait and go on, changes it and its secret,
// and deletes it, all without a script. Its secrets are shown once.
func TestWebhooksPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addBoard(t, "hooks")
	r := newReceiver(t)
	b := s.signedIn(t, operatorSecret)
	b.wants("/ui/boards/jobs", hooksPath)
	b.wants(hooksPath, "has no webhooks", "Make a webhook", `<option>hooks</option>`, "Networks of the server")
	made := b.sends(hooksPath, hookValues("tell", "url", r.URL+"/?key=a&b", "networks", "127.0.0.0/8\n", "oldestWaiting", "10m", "timeout", "5s"), http.StatusOK, "shown this once")
	secret := hookSecret.FindString(html.UnescapeString(made))
	if secret == "" {
		t.Fatalf("no secret is shown:\n%s", made)
	}
	b.wants(hooksPath, ">tell</a>", "key=a&amp;b", "job.ended", "job.trashed", "waits for 10m", ">new<", "127.0.0.0/8", "nothing yet")
	b.wants(hooksPath+"/tell", "webhook.trial", `value="10m"`, `value="5s"`, `value="ENDED" checked`, `value="EXHAUSTED">`, "127.0.0.0/8")
	for _, path := range []string{hooksPath, hooksPath + "/tell", "/ui/audit?all"} {
		if _, text := b.get(path); strings.Contains(text, "whsec_") && hookSecret.MatchString(html.UnescapeString(text)) {
			t.Errorf("%s shows a secret:\n%s", path, text)
		}
	}
	b.sends(hooksPath, hookValues("tell"), http.StatusConflict, `id="name-wrong"`, "there is a webhook of this name")

	r.says(http.StatusOK, "<script>thanks</script>")
	b.sends(hooksPath+"/tell/test", url.Values{}, http.StatusOK, ">delivered<", "<dd>200</dd>", "&lt;script&gt;thanks&lt;/script&gt;", ">well<")
	r.says(http.StatusTeapot, "")
	b.sends(hooksPath+"/tell/test", url.Values{}, http.StatusOK, ">not delivered<", "<dd>418</dd>", ">empty<", ">failing<", "Failing since", "given up")
	until(t, "it is counted in the trash", func() bool { _, text := b.get(hooksPath); return strings.Contains(text, ">1</a> in the trash") })

	b.sends(hooksPath+"/tell/pause", url.Values{}, http.StatusOK, ">paused<", "nothing is sent until it is resumed")
	b.sends(hooksPath+"/tell/test", url.Values{}, http.StatusConflict, "is paused")
	b.wants(hooksPath, ">paused<", "Resume tell")
	if _, text := b.get(hooksPath); strings.Contains(text, "Test tell") {
		t.Error("what is paused can be tried")
	}
	b.sends(hooksPath+"/tell/resume", url.Values{}, http.StatusOK, ">Pause<")

	_, text := b.get(hooksPath + "/tell")
	version := hookVersion.FindStringSubmatch(text)[1]
	change := hookValues("", "version", version, "url", "https://hooks.example.com/new", "event", "EXHAUSTED")
	b.sends(hooksPath+"/tell", change, http.StatusOK, "hooks.example.com/new", "job.exhausted", `value="EXHAUSTED" checked`, `value="ENDED">`)
	b.sends(hooksPath+"/tell", change, http.StatusConflict, "somebody has changed it since", "<details class=\"panel make\" open>")
	_, text = b.get(hooksPath + "/tell")
	change.Set("version", hookVersion.FindStringSubmatch(text)[1])
	change.Set("newSecret", "on")
	made = b.sends(hooksPath+"/tell", change, http.StatusOK, "shown this once", "goes on to sign beside it")
	if next := hookSecret.FindString(html.UnescapeString(made)); next == "" || next == secret {
		t.Errorf("the new secret is %q", next)
	}
	b.sends(hooksPath+"/tell/explode", url.Values{}, http.StatusNotFound)
	b.sends(hooksPath+"/none/pause", url.Values{}, http.StatusNotFound, "has no webhook")
	b.sends(hooksPath+"/tell/delete", url.Values{}, http.StatusOK, "Delete this webhook?")
	b.sends(hooksPath+"/tell/delete", url.Values{"confirmed": {"yes"}}, http.StatusOK, "has no webhooks")
	b.wants("/ui/audit?all", "PutWebhook", "TestWebhook", "PauseWebhook", "ResumeWebhook", "DeleteWebhook")
}

// TestWrongWebhooks has what is wrong with a form said at its field, what was written kept, and
// no secret sent back.
func TestWrongWebhooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addBoard(t, "hooks")
	b := s.signedIn(t, operatorSecret)
	for _, test := range []struct{ field, text, words string }{
		{"name", "Tell", ""},
		{"url", "http://hooks.example.com/", "http is only for addresses in networks"},
		{"url", "https://10.0.0.1/", "not an address of the internet"},
		{"url", "", "it is missing"},
		{"deliveries", "nowhere", "there is no board"},
		{"deliveries", "jobs", "it is the board itself"},
		{"oldestWaiting", "soon", "want a time such as"},
		{"oldestWaiting", "1s", "want 10s"},
		{"timeout", "1h", "want 1s to 1m"},
		{"networks", "10.0.0.1/8", "is not a network"},
		{"secrets", "geheim-geheim", "want whsec_"},
		{"events", "ENDING", "want some of"},
	} {
		form := hookValues("tell", test.field, test.text)
		if test.field == "events" {
			form = hookValues("tell", "event", test.text)
		}
		text := b.sends(hooksPath, form, statusOfWrong(test.words), `id="`+test.field+`-wrong"`, test.words, "<details class=\"panel make\" open>")
		if strings.Count(text, `-wrong" role="alert"`) != 1 || !strings.Contains(text, `aria-describedby="`+test.field+`-wrong"`) {
			t.Errorf("%s: not one field is wrong:\n%s", test.field, text)
		}
		if test.field != "url" && !strings.Contains(text, `value="https://hooks.example.com/"`) || strings.Contains(text, "geheim") {
			t.Errorf("%s: what was written is gone, or a secret came back:\n%s", test.field, text)
		}
	}
	form := hookValues("tell")
	form.Del("event")
	b.sends(hooksPath, form, http.StatusBadRequest, `id="events-wrong"`, "nothing would be told")
	b.wants(hooksPath, "has no webhooks")
}

// statusOfWrong is the status of the page that says what is wrong.
func statusOfWrong(words string) int {
	if words == "there is no board" {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// TestWebhooksOfOthers has nothing done or seen by those who may not, nor by forms that were
// not made for the visit. An admin of a tenant does not see what an address answers that only an
// operator could give, and cannot change it; nor does he see it once another webhook has its name.
func TestWebhooksOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addBoard(t, "hooks")
	r := newReceiver(t)
	r.says(http.StatusOK, "from-within")
	operator, boss, viewer, stranger := s.signedIn(t, operatorSecret), s.signedIn(t, adminSecret), s.signedIn(t, viewerSecret), s.signedIn(t, otherSecret)
	operator.get("/")
	inner := hookValues("inner", "url", r.URL, "networks", "127.0.0.0/8")
	operator.sends(hooksPath, inner, http.StatusOK, "shown this once")
	operator.sends(hooksPath+"/inner/test", url.Values{}, http.StatusOK, "from-within")
	boss.sends(hooksPath, hookValues("outer"), http.StatusOK, "shown this once")
	boss.wants(hooksPath, "outer", "inner")
	if _, text := boss.get(hooksPath + "/inner"); strings.Contains(text, "from-within") || strings.Contains(text, "Change this webhook") || !strings.Contains(text, "only an operator can change it") || !strings.Contains(text, "<dd>200</dd>") {
		t.Errorf("an admin sees what is an operator's:\n%s", text)
	}
	boss.sends(hooksPath, hookValues("more", "networks", "127.0.0.0/8"), http.StatusForbidden, `only an operator lets a webhook reach`)
	boss.sends(hooksPath+"/inner/test", url.Values{}, http.StatusOK, ">delivered<")
	boss.sends(hooksPath, hookValues("inner", "version", "1"), http.StatusForbidden, "only an operator changes a webhook that has some")
	boss.sends(hooksPath+"/inner/delete", url.Values{"confirmed": {"yes"}}, http.StatusOK)
	boss.sends(hooksPath, hookValues("inner"), http.StatusOK, "shown this once")
	if _, text := boss.get(hooksPath + "/inner"); strings.Contains(text, "from-within") || !strings.Contains(text, "<dd>200</dd>") {
		t.Errorf("an admin sees what an operator's webhook of the same name was answered:\n%s", text)
	}
	operator.wants(hooksPath+"/inner", "from-within")
	viewer.refused(hooksPath, hooksPath+"/outer")
	if _, text := viewer.get("/ui/boards/jobs"); strings.Contains(text, hooksPath) {
		t.Error("a viewer is led to the webhooks")
	}
	if status, _ := stranger.get(hooksPath); status != http.StatusNotFound {
		t.Errorf("another tenant is answered with %d", status)
	}
	for path, form := range map[string]url.Values{
		hooksPath: hookValues("mine"), hooksPath + "/outer": hookValues("outer", "version", "1"), hooksPath + "/outer/pause": {}, hooksPath + "/outer/resume": {},
		hooksPath + "/outer/test": {}, hooksPath + "/outer/delete": {"confirmed": {"yes"}},
	} {
		viewer.get("/")
		viewer.sends(path, form, http.StatusForbidden)
		stranger.get("/")
		stranger.sends(path, form, http.StatusNotFound)
		for _, forged := range []string{"", viewer.form} {
			withForm := url.Values{"form": {forged}}
			maps.Copy(withForm, form)
			boss.get("/")
			boss.sends(path, withForm, http.StatusForbidden, "not made for this visit")
		}
		boss.get(path + "?" + form.Encode())
	}
	if _, text := boss.get(hooksPath); !strings.Contains(text, "outer") || strings.Contains(text, "mine") || strings.Contains(text, ">paused<") {
		t.Errorf("somebody changed something:\n%s", text)
	}
}

// TestWebhooksLive has a browser reach the page by a key, and be told of what comes of a test
// and of what somebody else does, without being loaded anew.
func TestWebhooksLive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addBoard(t, "hooks")
	r := newReceiver(t)
	boss := s.signedIn(t, operatorSecret)
	boss.sends(hooksPath, hookValues("tell", "url", r.URL, "networks", "127.0.0.0/8"), http.StatusOK, "shown this once")
	tab := chromium(t)
	run(tab, t, "signing in", signIn(s.server.URL, operatorSecret))
	run(tab, t, "looking at the board", chromedp.Navigate(s.server.URL+"/ui/boards/jobs"), shows("Jobs"))
	digit := value[string](tab, t, `String([...document.querySelectorAll("nav.sections a")].findIndex(a => a.textContent === "Webhooks") + 1)`)
	run(tab, t, "pressing "+digit, chromedp.KeyEvent(digit), shows("Webhooks of jobs"), shows("Told of"))
	run(tab, t, "testing", click(`form[action$="/tell/test"] button`), shows("delivered"), shows("thanks"))
	value[bool](tab, t, "window.same = true")
	run(tab, t, "seeing it pause", meanwhile(func() error {
		boss.sends(hooksPath+"/tell/pause", url.Values{}, http.StatusOK, ">paused<")
		return nil
	}), shows("nothing is sent until it is resumed"))
	if !value[bool](tab, t, "window.same === true") {
		t.Error("the page was loaded anew")
	}
	run(tab, t, "resuming", click(`form[action$="/resume"] button`), chromedp.WaitVisible(chromedp.CSS(`form[action$="/pause"] button`)))
	run(tab, t, "making a new secret", click("details.make summary"), click("input[name=newSecret]"), click("details.make button.main"), shows("shown this once"), shows("whsec_"))
	run(tab, t, "going back", click("main a.button"), shows("Send a test request"))
}
