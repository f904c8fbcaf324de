package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/job"
)

// axeScript has axe-core judge the page that is open.
const axeScript = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(
	r => JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 3).join(" | "))))`

// TestLooks loads every page in each width and scheme: nothing is wider than the
// screen, and axe-core finds nothing to object to, on narrow light and wide dark
// pages. With BOARDD_LOOKS set to a folder it judges the other two as well, and
// puts pictures of all there.
func TestLooks(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(testserver.Root(t), ".tools", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		testneed.Skip(t, "axe-core is not installed: "+err.Error())
	}
	s := newSite(t)
	one := s.furnish(t)
	tab := chromium(t)
	run(tab, t, "the sign-in page", chromedp.Navigate(s.server.URL+"/ui/signin"))
	check := func(name string, width int64, scheme string) {
		t.Helper()
		if value[bool](tab, t, "document.documentElement.scrollWidth > window.innerWidth") {
			t.Errorf("%s, %d pixels, %s: it is wider than the screen", name, width, scheme)
		}
		if os.Getenv("BOARDD_LOOKS") != "" || (width < 1000) == (scheme == "light") {
			run(tab, t, name, chromedp.Evaluate[chromedp.Void](string(axe)))
			if findings := value[string](tab, t, axeScript, chromedp.EvalAwaitPromise); findings != "[]" {
				t.Errorf("%s, %d pixels, %s: axe-core finds %s", name, width, scheme, findings)
			}
		}
		if dir := os.Getenv("BOARDD_LOOKS"); dir != "" {
			picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := func(width int64, scheme string) step {
		return chromedp.Steps(chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			if _, err := cdp.Call(ctx, target, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
				return err
			}
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
	}
	paths := paths(one)
	for _, scheme := range []string{"light", "dark"} {
		widths := []int64{320, 1440}
		if os.Getenv("BOARDD_LOOKS") != "" {
			widths[0] = 390 // a phone of today
		}
		for _, width := range widths {
			run(tab, t, "signing out", size(width, scheme), chromedp.Navigate(s.server.URL+"/ui/signin"), shows("Token"))
			check("signin", width, scheme)
			run(tab, t, "signing in", signIn(s.server.URL, operatorSecret))
			for name, path := range paths {
				run(tab, t, name, chromedp.Navigate(s.server.URL+path), chromedp.WaitReady(chromedp.CSS("footer")))
				check(name, width, scheme)
			}
			run(tab, t, "asking", chromedp.Navigate(s.server.URL+"/ui/boards/jobs?tab=unclaimed"), click(`input[name=uuid]`), click(`button[value=trash]`), shows("Set these jobs aside"))
			check("asking", width, scheme)
			run(tab, t, "setting aside", keys(`input[name=reason]`, "not now\r"), shows("Done for 1 job"))
			check("done", width, scheme)
			run(tab, t, "making a token", chromedp.Navigate(s.server.URL+"/ui/tokens"), keys(`input[name=name]`, fmt.Sprintf("ci-%s-%d", scheme, width)),
				click(`input[value=worker]`), click(`form[action$="/create"] button.main`), shows("shown this once"))
			check("made", width, scheme)
			run(tab, t, "posting nonsense", chromedp.Navigate(s.server.URL+"/ui/boards/jobs/post"), keys(`input[name=name]`, "x"), keys(`input[name=timeout]`, "soon\r"), shows("want a time such as"))
			check("post-wrong", width, scheme)
			run(tab, t, "making a schedule", chromedp.Navigate(s.server.URL+"/ui/boards/jobs/schedules"), click("details.make summary"), click("details summary"))
			check("schedules-open", width, scheme)
			run(tab, t, "making a wrong webhook", chromedp.Navigate(s.server.URL+hooksPath), click("details.make summary"), keys(`input[name=name]`, fmt.Sprintf("w-%s-%d", scheme, width)),
				chromedp.Evaluate[chromedp.Void](`document.querySelector("select[name=deliveries]").value = "hooks"`),
				keys(`input[name=url]`, "http://10.0.0.1/\r"), shows("http is only for addresses in networks"))
			check("webhook-wrong", width, scheme)
			run(tab, t, "asking for a new secret", chromedp.Navigate(s.server.URL+hooksPath+"/paused"), click("details.make summary"), click("input[name=newSecret]"), click("details.make button.main"), shows("shown this once"))
			check("webhook-made", width, scheme)
		}
	}
}

// clippedScript lists the controls, of those that can be seen, of which a part is
// beyond the page's edge or cut off by what they stand in, and those whose own text
// does not fit. A field is no such control: its text moves along in it.
const clippedScript = `JSON.stringify([...document.querySelectorAll("a, button, input, select, textarea, summary")].filter(e => e.checkVisibility()).flatMap(e => {
	const found = [], name = e.outerHTML.slice(0, 120);
	for (const box of e.getClientRects()) {
		const left = box.left + scrollX, right = box.right + scrollX;
		if (left < -0.5 || right > document.documentElement.clientWidth + 0.5) found.push("beyond the edge: " + name);
		for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
			const around = p.getBoundingClientRect(), style = getComputedStyle(p);
			if (style.overflowX === "hidden" || style.overflowX === "clip") if (box.left < around.left - 0.5 || box.right > around.right + 0.5) found.push("cut off: " + name);
			if (style.overflowY === "hidden" || style.overflowY === "clip") if (box.top < around.top - 0.5 || box.bottom > around.bottom + 0.5) found.push("cut off: " + name);
		}
	}
	if (e.matches("button, summary") && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)) found.push("does not fit: " + name);
	return found;
}))`

// TestZoom looks at every page at 200 %: what a browser does to a window then is to
// give the page half of its pixels, each twice as large. Nothing is wider than the
// window, and no control is cut off, in a window of 1280 pixels and in one of 640.
func TestZoom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one := s.furnish(t)
	tab := chromium(t)
	run(tab, t, "signing in", signIn(s.server.URL, operatorSecret), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	for _, window := range []int64{1280, 640} {
		run(tab, t, "zooming", chromedp.EmulateViewport(window/2, 450, chromedp.EmulateScale(2)))
		for name, path := range paths(one) {
			run(tab, t, name, chromedp.Navigate(s.server.URL+path), chromedp.WaitReady(chromedp.CSS("footer")))
			if width := value[int64](tab, t, "innerWidth * devicePixelRatio"); width != window || value[float64](tab, t, "devicePixelRatio") != 2 {
				t.Fatalf("%s: the window has %d pixels, want %d, twice as large", name, width, window)
			}
			if value[bool](tab, t, "document.documentElement.scrollWidth > innerWidth") {
				t.Errorf("%s at 200 %% in %d pixels: it has to be scrolled sideways", name, window)
			}
			if shown := value[bool](tab, t, `document.querySelector(".skip").focus(), document.querySelector(".skip").getBoundingClientRect().left >= 0`); !shown {
				t.Errorf("%s at 200 %% in %d pixels: the link over the menu is not shown to who reaches it with the keyboard", name, window)
			}
			if clipped := value[string](tab, t, clippedScript); clipped != "[]" {
				t.Errorf("%s at 200 %% in %d pixels: %s", name, window, clipped)
			}
		}
	}
}

// paths are those of every page that can be opened by one.
func paths(one job.ID) map[string]string {
	return map[string]string{
		"overview": "/", "board": "/ui/boards/jobs", "claimed": "/ui/boards/jobs?tab=claimed", "trashed": "/ui/boards/jobs?tab=trashed", "empty": "/ui/boards/secret?tab=trashed", "wrong": "/ui/boards/absent",
		"job": "/ui/boards/jobs/jobs/" + one.String(), "details": "/ui/boards/jobs/jobs/" + one.String() + "/details", "book": "/ui/boards/jobs/jobs/" + one.String() + "/book", "workers": "/ui/boards/jobs/workers",
		"board-policies": "/ui/boards/jobs/policies", "no-policies": "/ui/boards/secret/policies", "policies": "/ui/policies", "tokens": "/ui/tokens",
		"tenants": "/ui/tenants", "backends": "/ui/backends", "audit": "/ui/audit?all",
		"post": "/ui/boards/jobs/post", "schedules": "/ui/boards/jobs/schedules", "search": "/ui/search?q=resize", "nothing-found": "/ui/search?q=nothing-like-it",
		"batches": "/ui/boards/jobs/batches", "no-batches": "/ui/boards/secret/batches", "no-schedules": "/ui/boards/secret/schedules", "webhooks": hooksPath, "webhook": hooksPath + "/a-rather-long-name-of-a-webhook-that-is-told-of-all-jobs", "no-webhooks": "/ui/boards/secret/webhooks",
		"charts": "/ui/boards/jobs/charts", "charts-day": "/ui/boards/jobs/charts?range=24h", "charts-week": "/ui/boards/jobs/charts?range=7d", "no-charts": "/ui/boards/secret/charts",
	}
}

// furnish puts something onto every page, and returns a job with a past.
func (s *site) furnish(t *testing.T) job.ID {
	t.Helper()
	jobs := s.board(t, adminSecret, "jobs")
	if _, err := jobs.PutBook(t.Context(), board.Book{UUID: "plan", Name: "plan", Content: []byte(flowBook)}, nil); err != nil {
		t.Fatal(err)
	}
	var one job.ID
	now := time.Now()
	for n := range 100 {
		jobs.Sample(now.Add(time.Duration(n-101) * time.Hour))
	}
	for n := range 60 {
		if n < 20 || n > 25 { // in between nobody counted
			jobs.Sample(now.Add(time.Duration(n-60) * time.Minute))
		}
		one = post(t, jobs, job.Posting{
			Name: fmt.Sprintf("resize-image-%d", n), Labels: []job.Label{{Key: "customer", Value: strings.Repeat("blue", 1+n%20)}},
			Details: []byte(`{"path":"/a.png","sizes":[1,2,3]}`), Operations: []job.NewOperation{{Name: "fetch"}, {Name: "resize"}},
			Book: job.Book{UUID: "plan", Name: "plan"},
		})
	}
	w := &worker{t: t, board: jobs, id: one}
	for range 2 {
		if err := w.claim(); err != nil {
			t.Fatal(err)
		}
		if errs, err := jobs.Abandon(t.Context(), []board.Ref{w.ref}, board.AbandonOptions{Reason: "the disk of this worker was full"}); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
	}
	if err := w.claim(); err != nil {
		t.Fatal(err)
	}
	if err := w.log("resizing /a.png to 1 by 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "worker-with-quite-a-long-name.example.org-4711", Max: 7}); err != nil {
		t.Fatal(err)
	}
	for _, schedule := range []board.Schedule{
		{Name: "nightly-report", Cron: "0 3 * * *", Timezone: "Europe/Berlin", Overlap: board.OverlapSkip, Job: job.Posting{Name: "report", Labels: []job.Label{{Key: "customer", Value: "acme"}}}},
		{Name: "a-rather-long-name-of-a-schedule-that-does-not-fit-into-one-line-of-a-phone", Every: time.Hour, Paused: true, Job: job.Posting{Name: "ping"}},
	} {
		if _, err := jobs.PutSchedule(t.Context(), schedule, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.batches(t, jobs)
	s.tell(t)
	s.push(t, "gpus", "the job needs another GPU than this worker has")
	s.push(t, "gpus-next", "the job needs a GPU", "the worker has none")
	s.decide(t, "gpus", `{"gold":700}`, "gpus-next")
	return one
}

// batches makes one that goes on, with a name as long as it may be, and one that is done.
func (s *site) batches(t *testing.T, jobs *board.Board) {
	t.Helper()
	long := strings.Repeat("night", job.MaxBatchName/5)
	for range 2 {
		post(t, jobs, job.Posting{Name: "part", Batch: long})
	}
	set := post(t, jobs, job.Posting{Name: "part", Batch: long})
	if errs, err := jobs.Trash(t.Context(), nil, []job.ID{set}, "not now"); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	if _, err := jobs.PutBatch(t.Context(), long, &job.Posting{Name: "album"}, 7); err != nil {
		t.Fatal(err)
	}
	over := post(t, jobs, job.Posting{Name: "part", Batch: "over"})
	if _, err := jobs.Cancel(t.Context(), []job.ID{over}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.CloseBatch(t.Context(), "over"); err != nil {
		t.Fatal(err)
	}
}

// TestEveryPageIsLookedAt: each page that web.go serves is among those that are opened.
func TestEveryPageIsLookedAt(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("web.go")
	if err != nil {
		t.Fatal(err)
	}
	pages, seen := http.NewServeMux(), map[string]bool{}
	for _, m := range regexp.MustCompile(`\bu\.get\("([^"]+)"`).FindAllSubmatch(source, -1) {
		pages.HandleFunc("GET "+string(m[1]), func(_ http.ResponseWriter, r *http.Request) { seen[r.Pattern] = true })
		seen["GET "+string(m[1])] = strings.HasSuffix(string(m[1]), "/live") // a stream, which no window shows
	}
	if len(seen) < 19 { // without the stream of news
		t.Fatalf("web.go serves %d pages, as it seems", len(seen))
	}
	for _, path := range paths(job.ID{}) {
		pages.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	for pattern, opened := range seen {
		if !opened {
			t.Errorf("no test looks at %s: paths has no line for it", pattern)
		}
	}
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
