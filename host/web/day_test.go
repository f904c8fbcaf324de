package web_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// TestDay is a person's day with the program as it is shipped, on two stores whose
// drivers are processes of their own: sign in, see who works there, find a job that
// is stuck, see why, release it, see another worker take it and watch its log to
// the end; set a job aside and restore it; put a policy to work, see what it does
// and roll it back; pause, and sign out.
func TestDay(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		begin(t, program, `driver = "embedded"`, "").day()
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		store := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
		plugins := filepath.Dir(testserver.Build(t, "./plugins/redis"))
		begin(t, program, fmt.Sprintf("driver = \"redis\"\n  config = { address = %q }", store.Addr), `config = { namespace = "jobs" }`, "--plugin-dir", plugins).day()
	})
}

const dayConfig = `
tenant "acme" {
  token "admin" {
    roles  = ["tenant-admin"]
    secret = %q
  }
}
backend "main" {
  %s
}
board "jobs" {
  tenant  = "acme"
  backend = "main"
  %s
}
`

// started is a server with one board, and a browser before it.
type started struct {
	t       *testing.T
	tab     context.Context
	program string
	server  *testserver.Server
	client  *client.Client
	jobs    *client.Board
}

func begin(t *testing.T, program, backend, board string, args ...string) *started {
	t.Helper()
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, dayConfig, adminSecret, backend, board), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &started{t: t, tab: chromium(t), program: program}
	s.server = testserver.Start(t, program, "", append(args, "--config", config)...)
	if pids := s.server.Drivers(); len(pids) == 0 {
		t.Error("no driver has a process of its own")
	}
	var err error
	if s.client, err = client.New(client.Config{Addr: s.server.Addr, Token: adminSecret}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	s.jobs = s.client.Board("jobs")
	return s
}

// run has the person do something in the browser.
func (s *started) run(what string, steps ...step) {
	s.t.Helper()
	run(s.tab, s.t, what, steps...)
}

func (s *started) goTo(path string) step { return chromedp.Navigate(s.server.Addr + path) }

func (s *started) post(j *client.NewJob) string {
	s.t.Helper()
	posted, err := s.jobs.Post(s.t.Context(), j)
	if err != nil {
		s.t.Fatal(err)
	}
	return posted[0].GetUuid()
}

func (s *started) day() {
	t := s.t
	t.Helper()
	w := &hand{t: t, board: s.jobs, job: s.post(&client.NewJob{Name: "stuck", Operations: []*client.NewOperation{{Name: "only-step"}}})}
	if err := w.claim("gone-worker"); err != nil {
		t.Fatal(err)
	}
	s.run("signing in", signIn(s.server.Addr, adminSecret))
	s.seeWorkers()
	s.run("finding the job", s.goTo("/"), click(`.card a[href="/ui/boards/jobs"]`), shows("gone-worker"), click(`td a.mono`), shows("What happened"))
	s.run("seeing why", shows("claimed"), shows("claimed by gone-worker"))
	s.run("releasing it", click(`button[value=release]`), shows("Break the claims"),
		keys(`input[name=reason]`, "its worker is gone"), click(`button.main`), shows("Done for 1 job"),
		click(`main a[href^="/ui/boards/jobs/jobs/"]`), shows("CLAIMABLE"), shows("its worker is gone"))
	s.run("seeing another worker take it", meanwhile(w.take), shows("new-worker"))
	s.run("watching its log", meanwhile(func() error { return w.log("half of it is done") }), shows("half of it is done"),
		meanwhile(func() error { return w.log("all of it is done") }), shows("all of it is done"))
	s.run("seeing it end", meanwhile(w.finish), shows("success"))
	s.run("seeing new jobs come", s.goTo("/ui/boards/jobs"), shows("Pause updates"), meanwhile(func() error {
		s.post(&client.NewJob{Name: "fresh-job", Labels: map[string]string{"gpu": "a100"}})
		return nil
	}), shows("fresh-job"))
	s.run("setting it aside", s.goTo("/ui/boards/jobs?tab=unclaimed"), click(`input[name=uuid]`),
		click(`button[value=trash]`), shows("Set these jobs aside"), keys(`input[name=reason]`, "later"), click(`button.main`), shows("Done for 1 job"))
	s.run("restoring it", s.goTo("/ui/boards/jobs?tab=trashed"), click(`input[data-all]`),
		click(`button[value=restore]`), shows("back onto the board"), click(`button.main`), shows("Done for 1 job"))
	s.policies()
	s.run("pausing", s.goTo("/ui/boards/jobs"), click("details summary"),
		click(`form[action$="/pause"] button`), shows("grants none"))
	s.run("reading who did what", click(`header a[href="/ui/audit"]`), shows("PromotePolicy"), shows("RollbackPolicy"), shows("PauseBoard"))
	s.run("signing out", click(`header form button`), shows("The token is exchanged"))
}

// seeWorkers has a worker come, be seen with its labels, and go.
func (s *started) seeWorkers() {
	s.t.Helper()
	listed := func() bool {
		entities, err := s.jobs.Entities(s.t.Context())
		return err == nil && len(entities) == 1
	}
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	c := exec.CommandContext(ctx, s.program, "worker", "run", "--owner", "willing-worker", "--name", "nothing-of-today", "--worker-label", "gpu=a100", "--", "true")
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = patience
	c.Env = append(os.Environ(), "BOARDD_ADDR="+s.server.Addr, "BOARDD_TOKEN="+adminSecret, "BOARDD_BOARD=jobs")
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	testserver.Eventually(s.t, "the worker shows itself", listed)
	s.run("seeing who works there", s.goTo("/ui/boards/jobs/workers"), shows("willing-worker"), shows("gpu=a100"), shows("nothing-of-today"), shows("gone-worker"))
	stop()
	_ = c.Wait() // it says that its context has ended
	testserver.Eventually(s.t, "a worker that has ended is shown no more", func() bool { return !listed() })
}

// policies puts a policy to work on a board with one job, and takes it back.
func (s *started) policies() {
	s.t.Helper()
	if _, err := s.client.Admin().PutPolicy(s.t.Context(), &boarddv1.PutPolicyRequest{Name: "gpus", Module: template(s.t, "the job needs another GPU")}); err != nil {
		s.t.Fatal(err)
	}
	s.run("finding the policy", click(`header a[href="/ui/policies"]`), shows("gpus"), click(`main a[href="/ui/boards/jobs/policies"]`), shows("No policy"))
	s.run("running it in the shadow", click(`button[formaction$="/shadow"]`), shows("In the shadow"), shows("denies what is allowed"))
	s.run("promoting it", click(`form[action$="/promote"] button.main`), shows("from now on?"), click(`button.main`), shows("Roll back…"), shows("runs"))
	s.run("seeing what it does", s.goTo("/ui/boards/jobs"), click(`td a.mono`), shows("NOT_ELIGIBLE"), shows("needs another GPU"),
		keys(`input[name=labels]`, "gpu=a100\r"), shows("CLAIMABLE"))
	s.run("rolling it back", s.goTo("/ui/boards/jobs/policies"), click(`button[aria-label="Roll back gpus"]`),
		shows("the version before"), click(`button.main`), shows("No policy"))
	s.run("seeing that it does nothing any more", s.goTo("/ui/boards/jobs"), click(`td a.mono`), shows("CLAIMABLE"))
}

// hand is a worker that does one job with one operation, step by step.
type hand struct {
	t     *testing.T
	board *client.Board
	job   string
	held  *client.Claim
}

func (h *hand) claim(owner string) error {
	claims, err := h.board.Claim(h.t.Context(), client.ClaimOptions{Owner: owner, UUIDs: []string{h.job}})
	if err == nil && len(claims) != 1 {
		err = fmt.Errorf("%d claims, want 1", len(claims))
	}
	if err != nil {
		return err
	}
	h.held = claims[0]
	return nil
}

// take claims the job and begins its operation.
func (h *hand) take() error {
	if err := h.claim("new-worker"); err != nil {
		return err
	}
	_, err := h.board.StartOperation(h.t.Context(), h.held, 0, boarddv1.OperationStatus_RUNNING)
	return err
}

func (h *hand) log(text string) error {
	_, err := h.board.AppendLog(h.t.Context(), h.held, 0, &client.NewLogEntry{Type: "out", Message: text})
	return err
}

func (h *hand) finish() error {
	_, err := h.board.FinishOperation(h.t.Context(), h.held, 0, boarddv1.OperationStatus_SUCCESS, nil)
	return err
}

// TestKeyboard signs in, opens a board and writes a filter without a mouse; the
// last term of the filter is completed with the labels in sight.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	post(t, s.board(t, adminSecret, "jobs"), job.Posting{Name: "by-keyboard", Labels: []job.Label{{Key: "gpu", Value: "a100"}}})
	post(t, s.board(t, adminSecret, "jobs"), job.Posting{Name: "another"})
	tab := chromium(t)
	run(tab, t, "signing in", signIn(s.server.URL, viewerSecret))
	tabTo(tab, t, `document.activeElement.getAttribute("href") === "/ui/boards/jobs"`)
	run(tab, t, "opening the board", chromedp.KeyEvent("\r"), shows("by-keyboard"))
	tabTo(tab, t, `document.activeElement.name === "filter"`)
	run(tab, t, "writing", keys(`input[name=filter]`, "name = by-keyboard AND lab"))
	const want = "name = by-keyboard AND labels.gpu = a100"
	if proposed := value[string](tab, t, `[...document.querySelector("#words").options].map(o => o.value).join("\n")`); !strings.Contains(proposed, want) {
		t.Errorf("the filter is not completed with %q; there are:\n%s", want, proposed)
	}
	run(tab, t, "filtering", keys(`input[name=filter]`, "els.gpu = a100\r"), shows("Show all"), shows("by-keyboard"))
	if text := value[string](tab, t, `document.querySelector("[data-part=list]").innerText`); strings.Contains(text, "another") {
		t.Errorf("the filter lets others through:\n%s", text)
	}
}

// TestAwake: a page that fetches itself says whether anybody has done something since, and shows
// where one signs in as soon as its visit is over.
func TestAwake(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tab := chromium(t)
	run(tab, t, "signing in", signIn(s.server.URL, viewerSecret))
	fetches := func(after string) bool { // with that it does so by itself, as if its updates had been paused
		t.Helper()
		return value[bool](tab, t, fmt.Sprintf(`new Promise((done) => {
			const ask = window.fetch;
			window.fetch = (where, how) => { window.fetch = ask; done("Boardd-By-Itself" in how.headers); return ask(where, how); };
			%s;
			document.querySelector("#updates").click();
			document.querySelector("#updates").click();
		})`, after), chromedp.EvalAwaitPromise)
	}
	if !fetches("") {
		t.Error("what nobody asked for counts as somebody's doing")
	}
	if fetches(`document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Shift", bubbles: true }))`) {
		t.Error("what somebody did does not count")
	}
	if !fetches("") {
		t.Error("what somebody did counts twice")
	}
	value[bool](tab, t, `fetch("/ui/signout", { method: "POST",
		body: new URLSearchParams({ form: document.querySelector("input[name=form]").value }) }).then(() => true)`, chromedp.EvalAwaitPromise)
	run(tab, t, "looking after signing out elsewhere", shows("The token is exchanged"))
}

// tabTo goes through the page with the keyboard until something holds.
func tabTo(tab context.Context, t *testing.T, so string) {
	t.Helper()
	for range 30 {
		run(tab, t, "tabbing", chromedp.KeyEvent("\t"))
		if value[bool](tab, t, so) {
			return
		}
	}
	t.Fatalf("thirty tabs do not reach %s", so)
}

// TestCrossOrigin has a page of another site change nothing.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	server := testserver.Start(t, program, "")
	tab := chromium(t)
	run(tab, t, "signing in", signIn(server.Addr, "dev"))
	for _, path := range []string{
		"/ui/signin", "/ui/signout", "/ui/boards/default/do", "/ui/boards/default/pause", "/ui/boards/default/resume", "/ui/boards/default/loss", "/ui/boards/default/search", "/ui/look",
		"/ui/boards/default/post", "/ui/boards/default/schedules", "/ui/boards/default/schedules/pause", "/ui/boards/default/schedules/delete",
		"/ui/boards/default/policies/promote", "/ui/policies/delete", "/ui/tokens/create", "/ui/tokens/revoke",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.Addr+path, strings.NewReader("form=x"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", "https://evil.example")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s answers a page of another site with %d, want 403", path, answer.StatusCode)
		}
	}
	elsewhere := strings.Replace(server.Addr, "127.0.0.1", "localhost", 1)
	other := filepath.Join(t.TempDir(), "evil.html")
	form := fmt.Sprintf(`<form method=post action="%s/ui/boards/default/pause"><input name=form value=x></form><script>document.forms[0].submit()</script>`, server.Addr)
	if err := os.WriteFile(other, []byte(form), 0o600); err != nil {
		t.Fatal(err)
	}
	run(tab, t, "sending a form from elsewhere", chromedp.Navigate("file://"+other), chromedp.Sleep(time.Second))
	run(tab, t, "looking", chromedp.Navigate(server.Addr+"/ui/boards/default"), shows("Jobs"))
	if text := said(tab); !strings.Contains(text, "serving") || strings.Contains(text, "grants none") {
		t.Errorf("a page of another site has paused the board, or signed the visitor out:\n%s", text)
	}
	run(tab, t, "the same server by another name is another site", chromedp.Navigate(elsewhere+"/ui/boards/default"), shows("The token is exchanged"))
}
