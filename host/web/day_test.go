package web_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/job"
)

// TestDay is a person's day on two stores: sign in, find a job that is stuck, see
// why, release it, see another worker take it and watch its log to the end; set a
// job aside and restore it; put a policy to work, see what it does and roll it
// back; pause, and sign out.
func TestDay(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		day(t, newSiteOn(t, "embedded", embedded.Program(), "{}", nil))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
		day(t, newSiteOn(t, "redis", store.Program(), fmt.Sprintf(`{"address":%q}`, server.Addr), func(board string) string {
			return fmt.Sprintf(`{"namespace":%q}`, board)
		}))
	})
}

func day(t *testing.T, s *site) {
	t.Helper()
	tab := chromium(t)
	jobs := s.board(t, adminSecret, "jobs")
	stuck := post(t, jobs, job.Posting{Name: "stuck", Operations: []job.NewOperation{{Name: "only-step"}}})
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "gone-worker", IDs: []job.ID{stuck}}); err != nil {
		t.Fatal(err)
	}
	run(tab, t, "signing in", signIn(s.server.URL, adminSecret))
	run(tab, t, "finding the job", click(`.card a[href="/ui/boards/jobs"]`), shows("gone-worker"), click(`td a.mono`), shows("Why is it waiting?"))
	run(tab, t, "seeing why", shows("CLAIMED"), shows("claimed by gone-worker"))
	run(tab, t, "releasing it", click(`button[value=release]`), shows("Break the claims"),
		keys(`input[name=reason]`, "its worker is gone"), click(`button.main`), shows("Done for 1 job"),
		click(`main a[href^="/ui/boards/jobs/jobs/"]`), shows("CLAIMABLE"), shows("its worker is gone"))
	w := &worker{t: t, board: jobs, id: stuck}
	run(tab, t, "seeing another worker take it", meanwhile(w.claim), shows("new-worker"))
	run(tab, t, "watching its log", meanwhile(func() error { return w.log("half of it is done") }), shows("half of it is done"),
		meanwhile(func() error { return w.log("all of it is done") }), shows("all of it is done"))
	run(tab, t, "seeing it end", meanwhile(w.finish), shows("success"))
	run(tab, t, "seeing new jobs come", chromedp.Navigate(s.server.URL+"/ui/boards/jobs"), shows("Pause updates"), meanwhile(func() error {
		post(t, jobs, job.Posting{Name: "fresh-job", Labels: []job.Label{{Key: "gpu", Value: "a100"}}})
		return nil
	}), shows("fresh-job"))
	run(tab, t, "setting it aside", chromedp.Navigate(s.server.URL+"/ui/boards/jobs?tab=unclaimed"), click(`input[name=uuid]`),
		click(`button[value=trash]`), shows("Set these jobs aside"), keys(`input[name=reason]`, "later"), click(`button.main`), shows("Done for 1 job"))
	run(tab, t, "restoring it", chromedp.Navigate(s.server.URL+"/ui/boards/jobs?tab=trashed"), click(`input[data-all]`),
		click(`button[value=restore]`), shows("back onto the board"), click(`button.main`), shows("Done for 1 job"))
	dayOfPolicies(tab, t, s)
	run(tab, t, "pausing", chromedp.Navigate(s.server.URL+"/ui/boards/jobs"), click("details summary"),
		click(`form[action$="/pause"] button`), shows("grants none"))
	run(tab, t, "reading who did what", click(`header a[href="/ui/audit"]`), shows("PromotePolicy"), shows("RollbackPolicy"), shows("PauseBoard"))
	run(tab, t, "signing out", click(`header form button`), shows("The token is exchanged"))
}

// dayOfPolicies puts a policy to work on a board with one job, and takes it back.
func dayOfPolicies(tab context.Context, t *testing.T, s *site) {
	t.Helper()
	s.push(t, "gpus", "the job needs another GPU")
	run(tab, t, "finding the policy", click(`header a[href="/ui/policies"]`), shows("gpus"), click(`main a[href="/ui/boards/jobs/policies"]`), shows("No policy"))
	run(tab, t, "running it in the shadow", click(`button[formaction$="/shadow"]`), shows("In the shadow"), shows("denies what is allowed"))
	run(tab, t, "promoting it", click(`form[action$="/promote"] button.main`), shows("from now on?"), click(`button.main`), shows("Roll back…"), shows("runs"))
	run(tab, t, "seeing what it does", chromedp.Navigate(s.server.URL+"/ui/boards/jobs"), click(`td a.mono`), shows("NOT_ELIGIBLE"), shows("needs another GPU"),
		keys(`input[name=labels]`, "gpu=a100\r"), shows("CLAIMABLE"))
	run(tab, t, "rolling it back", chromedp.Navigate(s.server.URL+"/ui/boards/jobs/policies"), click(`button[aria-label="Roll back gpus"]`),
		shows("the version before"), click(`button.main`), shows("No policy"))
	run(tab, t, "seeing that it does nothing any more", chromedp.Navigate(s.server.URL+"/ui/boards/jobs"), click(`td a.mono`), shows("CLAIMABLE"))
}

// worker does one job with one operation.
type worker struct {
	t     *testing.T
	board *board.Board
	id    job.ID
	ref   board.Ref
}

func (w *worker) claim() error {
	got, err := w.board.Claim(w.t.Context(), board.ClaimRequest{Owner: "new-worker", IDs: []job.ID{w.id}})
	if err != nil || len(got.Claims) != 1 {
		return fmt.Errorf("%d claims: %w", len(got.Claims), err)
	}
	w.ref = board.Ref{ID: w.id, Token: w.board.FormatToken(w.id, got.Claims[0].Token)}
	_, err = w.board.StartOperation(w.t.Context(), board.OperationRequest{Ref: w.ref, Status: job.OpRunning})
	return err
}

func (w *worker) log(text string) error {
	_, err := w.board.AppendLog(w.t.Context(), board.LogRequest{Ref: w.ref, Entries: []job.LogEntry{{Type: "out", Message: text}}})
	return err
}

func (w *worker) finish() error {
	_, err := w.board.FinishOperation(w.t.Context(), board.OperationRequest{Ref: w.ref, Status: job.OpSuccess})
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
	if text := said(tab); strings.Contains(text, "another") {
		t.Errorf("the filter lets others through:\n%s", text)
	}
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
		"/ui/signin", "/ui/signout", "/ui/boards/default/do", "/ui/boards/default/pause", "/ui/boards/default/resume", "/ui/boards/default/search",
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
