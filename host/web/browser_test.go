package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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
	"github.com/boardd/boardd/sdk/sleep"
)

// patience bounds one step of a browser: it is for a machine that is busy with
// other things.
const patience = 60 * time.Second

// step is one thing that a person does with a browser, or waits for.
type step = chromedp.Action[chromedp.Void]

// chromium starts a browser for the test and returns a tab of it.
func chromium(t *testing.T) context.Context {
	t.Helper()
	program := testneed.Program(t, "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(patience))
	browser, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	tab, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	if err := chromedp.Do(tab); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	return tab
}

func run(tab context.Context, t *testing.T, what string, steps ...step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatalf("%s: %v; the page says:\n%s", what, err, said(tab))
	}
}

// said is what a page says, as far as it can be had.
func said(tab context.Context) string {
	ctx, cancel := context.WithTimeout(tab, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// value evaluates an expression in the page.
func value[T any](tab context.Context, t *testing.T, expression string, options ...chromedp.EvaluateOption) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		t.Fatalf("%.80s: %v; the page says:\n%s", expression, err, said(tab))
	}
	return v
}

// shows waits until the page says something, also if another page has to come
// first.
func shows(text string) step {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		quoted, err := json.Marshal(text)
		if err != nil {
			return err
		}
		look := chromedp.Evaluate[bool](fmt.Sprintf("!!document.body && document.body.innerText.includes(%s)", quoted))
		for {
			if there, err := look(ctx, target); err == nil && there {
				return nil
			}
			if err := sleep.For(ctx, 50*time.Millisecond); err != nil {
				return fmt.Errorf("the page does not say %q: %w", text, err)
			}
		}
	})
}

// meanwhile does something that is none of the browser's business.
func meanwhile(do func() error) step {
	return chromedp.Func(func(context.Context, *chromedp.Target) error { return do() })
}

func click(selector string) step { return chromedp.Click(chromedp.CSS(selector)) }

func keys(selector, text string) step { return chromedp.SendKeys(chromedp.CSS(selector), text) }

func signIn(address, secret string) step {
	return chromedp.Steps(chromedp.Navigate(address+"/"), chromedp.WaitVisible(chromedp.CSS("input[name=token]")),
		keys("input[name=token]", secret+"\r"), shows("Sign out"))
}

// TestDay is a person's day: sign in, find a job that is stuck, see why, release
// it, see the page follow, set a job aside and restore it, pause and resume.
func TestDay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tab := chromium(t)
	jobs := s.board(t, adminSecret, "jobs")
	stuck := post(t, jobs, job.Posting{Name: "stuck"})
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "gone-worker", IDs: []job.ID{stuck}}); err != nil {
		t.Fatal(err)
	}
	run(tab, t, "signing in", signIn(s.server.URL, adminSecret))
	run(tab, t, "finding the job", click(`.card a`), shows("gone-worker"), click(`td a.mono`), shows("Why is it waiting?"))
	run(tab, t, "seeing why", shows("CLAIMED"), shows("claimed by gone-worker"))
	run(tab, t, "releasing it", click(`button[value=release]`), shows("Break the claims"),
		keys(`input[name=reason]`, "its worker is gone"), click(`button.main`), shows("Done for 1 job"),
		click(`main a[href^="/ui/boards/jobs/jobs/"]`), shows("CLAIMABLE"), shows("its worker is gone"))
	run(tab, t, "seeing another worker take it", chromedp.Sleep(2*time.Second), meanwhile(func() error {
		_, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "new-worker", IDs: []job.ID{stuck}})
		return err
	}), shows("new-worker"))
	run(tab, t, "seeing new jobs come", chromedp.Navigate(s.server.URL+"/ui/boards/jobs"), shows("Pause updates"), chromedp.Sleep(2*time.Second), meanwhile(func() error {
		post(t, jobs, job.Posting{Name: "fresh-job"})
		return nil
	}), shows("fresh-job"))
	run(tab, t, "setting it aside", chromedp.Navigate(s.server.URL+"/ui/boards/jobs?tab=unclaimed"), click(`input[name=uuid]`),
		click(`button[value=trash]`), shows("Set these jobs aside"), keys(`input[name=reason]`, "later"), click(`button.main`), shows("Done for 1 job"))
	run(tab, t, "restoring it", chromedp.Navigate(s.server.URL+"/ui/boards/jobs?tab=trashed"), click(`input[data-all]`),
		click(`button[value=restore]`), shows("back onto the board"), click(`button.main`), shows("Done for 1 job"))
	run(tab, t, "pausing", chromedp.Navigate(s.server.URL+"/ui/boards/jobs"), click("details summary"),
		click(`form[action$="/pause"] button`), shows("grants none"))
	run(tab, t, "signing out", click(`header form button`), shows("The token is exchanged"))
}

// TestKeyboard signs in and opens a board without a mouse.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	post(t, s.board(t, adminSecret, "jobs"), job.Posting{Name: "by-keyboard"})
	tab := chromium(t)
	run(tab, t, "signing in", signIn(s.server.URL, viewerSecret))
	for range 20 {
		run(tab, t, "tabbing", chromedp.KeyEvent("\t"))
		if value[string](tab, t, `document.activeElement.getAttribute("href") || ""`) == "/ui/boards/jobs" {
			run(tab, t, "opening the board", chromedp.KeyEvent("\r"), shows("by-keyboard"))
			return
		}
	}
	t.Error("twenty tabs do not reach the board")
}

// TestInjection has what posters and workers write never run as a script.
func TestInjection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	payloads := injections()
	var postings []job.Posting
	for i, p := range payloads {
		details, err := json.Marshal(map[string]string{p: p})
		if err != nil {
			t.Fatal(err)
		}
		postings = append(postings, job.Posting{
			Name: p, Details: details, Labels: []job.Label{{Key: fmt.Sprintf("k%d", i), Value: p}}, Book: job.Book{Name: p},
		})
	}
	results, err := jobs.Post(t.Context(), postings)
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		if results[i].Err != nil {
			t.Fatalf("%q: %v", payloads[i], results[i].Err)
		}
		claims, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: payloads[i], IDs: []job.ID{results[i].Job.ID}})
		if err != nil || len(claims.Claims) != 1 {
			t.Fatalf("%q: %v", payloads[i], err)
		}
		if i%2 == 0 {
			ref := board.Ref{ID: results[i].Job.ID, Token: jobs.FormatToken(results[i].Job.ID, claims.Claims[0].Token)}
			if _, err := jobs.Abandon(t.Context(), []board.Ref{ref}, board.AbandonOptions{Reason: payloads[i]}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tab := chromium(t)
	run(tab, t, "signing in", signIn(s.server.URL, adminSecret))
	look := func(path string) {
		t.Helper()
		// A dialog that opens would hold the page up for longer than the test waits.
		run(tab, t, path, chromedp.Navigate(s.server.URL+path), chromedp.WaitReady(chromedp.CSS("footer")))
		bad := value[int](tab, t, `document.querySelectorAll("main script, main iframe, main img, main object, main embed, main [onerror], main [onload], main [onclick], main [style], main a[href^=javascript], main base, main link, main meta").length`)
		if ran := value[bool](tab, t, "window.ran === true"); ran || bad > 0 {
			t.Errorf("%s: a script ran (%v), there are %d elements of a stranger", path, ran, bad)
		}
	}
	next := "/ui/boards/jobs"
	for next != "" {
		look(next)
		next = value[string](tab, t, `document.querySelector("a[rel=next]")?.getAttribute("href") ?? ""`)
	}
	look("/ui/boards/jobs/workers")
	for i := 0; i < len(results); i += 25 {
		path := "/ui/boards/jobs/jobs/" + results[i].Job.ID.String()
		look(path)
		look(path + "/details")
		look(path + "?labels=" + url.QueryEscape(payloads[i]))
		look("/ui/boards/jobs?filter=" + url.QueryEscape(payloads[i]))
		look("/ui/signin?to=" + url.QueryEscape(payloads[i]))
	}
}

// injections are 500 ways to get a script into a page.
func injections() []string {
	scripts := []string{`window.ran=true`, `alert(1)`, `parent.ran=true`, `top['ran']=true`, `eval('window.ran=true')`}
	shapes := []string{
		`<script>%s</script>`, `<ScRiPt>%s</sCrIpT>`, `"><script>%s</script>`, `'><script>%s</script>`, `</title><script>%s</script>`,
		`</textarea><script>%s</script>`, `<img src=x onerror="%s">`, `<img src=x onerror=%s>`, `"><img src=x onerror=%s>`, `' onerror='%s' x='`,
		`" onmouseover="%s" x="`, `" autofocus onfocus="%s" x="`, `<svg onload="%s">`, `<svg/onload=%s>`, `<svg><script>%s</script></svg>`,
		`<body onload="%s">`, `<iframe srcdoc="<script>%s</script>">`, `<iframe src="javascript:%s">`, `javascript:%s`, `JaVaScRiPt:%s`,
		`data:text/html,<script>%s</script>`, `<a href="javascript:%s">x</a>`, `<form action="javascript:%s"><button>x</button></form>`, `<object data="javascript:%s">`, `<embed src="javascript:%s">`,
		`<math><mtext></p><script>%s</script>`, `<details open ontoggle="%s">`, `<video><source onerror="%s">`, `<audio src=x onerror="%s">`, `<input autofocus onfocus="%s">`,
		`<select autofocus onfocus="%s">`, `<marquee onstart="%s">`, `<meta http-equiv="refresh" content="0;url=javascript:%s">`, `<link rel=stylesheet href="javascript:%s">`, `<base href="javascript:%s//">`,
		`<style>@import "javascript:%s";</style>`, `<div style="background:url(javascript:%s)">`, `{{%s}}`, `${%s}`, `<%%=%s%%>`,
		"`-%s-`", `';%s;//`, `";%s;//`, `\";%s;//`, `</script><script>%s</script>`,
		`<!--><script>%s</script>-->`, `<![CDATA[<script>%s</script>]]>`, `&lt;script&gt;%s&lt;/script&gt;`, `&#60;script&#62;%s&#60;/script&#62;`, `%%3Cscript%%3E%s%%3C/script%%3E`,
		`\u003cscript\u003e%s\u003c/script\u003e`, `<scr<script>ipt>%s</scr</script>ipt>`, `<script src="data:,%s"></script>`, `<template><script>%s</script></template>`, `<noscript><p title="</noscript><script>%s</script>">`,
		`<x onclick="%s">x</x>`, `<button formaction="javascript:%s">x</button>`, `<table background="javascript:%s">`, `<svg><animate onbegin="%s" attributeName=x dur=1s>`, `<svg><use href="data:image/svg+xml,<svg onload='%s'/>">`,
		`+ADw-script+AD4-%s+ADw-/script+AD4-`, `<isindex action="javascript:%s">`, `<xss style="x:expression(%s)">`, `<img """><script>%s</script>">`, `<<script>%s//<</script>`,
		`<script>/*</script><script>*/%s</script>`, `<img src=x:x onerror=%s//`, `<body/onload=%s//`, `<frameset onload="%s">`, `<applet code="javascript:%s">`,
		`<portal src="javascript:%s">`, `<slot onslotchange="%s">`, `<dialog open oncancel="%s">`, `<object type="text/html" data="data:text/html,<script>%s</script>">`, `<plaintext><script>%s</script>`,
		`<xmp><script>%s</script></xmp>`, `<listing><script>%s</script>`, `<keygen autofocus onfocus="%s">`, `<menuitem onclick="%s">`, `<track onerror="%s">`,
		`<picture><img src=x onerror="%s"></picture>`, `<image src=x onerror="%s">`, `<input type=image src=x onerror="%s">`, `<b/onpointerover="%s">x`, `<style onload="%s"></style>`,
		`<link rel=import href="data:text/html,%s">`, `<svg><a href="javascript:%s"><text>x</text></a></svg>`, `<svg><set onbegin="%s">`, `<svg><foreignObject><script>%s</script></foreignObject></svg>`, `<math href="javascript:%s">x</math>`,
		`"/><x a="%s`, `x" data-live="javascript:%s`, `x" data-part="list" onx="%s`, `#<script>%s</script>`, `?q=<script>%s</script>`,
		`//evil.example/%s`, `<a target=_blank href="//evil.example/%s">x</a>`, `<form><input name=form><script>%s</script>`, `<p id=main><script>%s</script>`, `<a id=updates href="javascript:%s">x</a>`,
	}
	var list []string
	for _, shape := range shapes {
		for _, script := range scripts {
			list = append(list, fmt.Sprintf(shape, script))
		}
	}
	return list
}

// TestCrossOrigin has a page of another site change nothing.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	server := testserver.Start(t, program, "")
	tab := chromium(t)
	run(tab, t, "signing in", signIn(server.Addr, "dev"))
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

// TestLooks loads every page in each size and scheme, has axe-core find nothing
// to object to, and nothing wider than the screen. With BOARDD_SCREENSHOTS set to
// a folder it puts pictures there.
func TestLooks(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(testserver.Root(t), ".tools", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		testneed.Skip(t, "axe-core is not installed: "+err.Error())
	}
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	var one job.ID
	for n := range 60 {
		one = post(t, jobs, job.Posting{Name: fmt.Sprintf("resize-image-%d", n), Labels: []job.Label{{Key: "customer", Value: strings.Repeat("blue", 1+n%20)}}, Details: []byte(`{"path":"/a.png","sizes":[1,2,3]}`)})
	}
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "worker-with-quite-a-long-name.example.org-4711", Max: 7}); err != nil {
		t.Fatal(err)
	}
	tab := chromium(t)
	run(tab, t, "the sign-in page", chromedp.Navigate(s.server.URL+"/ui/signin"))
	check := func(name string, width int64, scheme string) {
		t.Helper()
		run(tab, t, name, chromedp.Evaluate[chromedp.Void](string(axe)))
		wide := value[bool](tab, t, "document.documentElement.scrollWidth > window.innerWidth")
		findings := value[string](tab, t, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 3).join(" | "))))`, chromedp.EvalAwaitPromise)
		if findings != "[]" || wide {
			t.Errorf("%s, %d pixels, %s: axe-core finds %s; wider than the screen: %v", name, width, scheme, findings, wide)
		}
		if dir := os.Getenv("BOARDD_SCREENSHOTS"); dir != "" {
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
	paths := map[string]string{
		"overview": "/", "board": "/ui/boards/jobs", "claimed": "/ui/boards/jobs?tab=claimed", "empty": "/ui/boards/jobs?tab=trashed", "wrong": "/ui/boards/absent",
		"job": "/ui/boards/jobs/jobs/" + one.String(), "details": "/ui/boards/jobs/jobs/" + one.String() + "/details", "workers": "/ui/boards/jobs/workers",
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{320, 1440} {
			run(tab, t, "signing out", size(width, scheme), chromedp.Navigate(s.server.URL+"/ui/signin"), shows("Token"))
			check("signin", width, scheme)
			run(tab, t, "signing in", signIn(s.server.URL, adminSecret))
			for name, path := range paths {
				run(tab, t, name, chromedp.Navigate(s.server.URL+path), chromedp.WaitReady(chromedp.CSS("footer")))
				check(name, width, scheme)
			}
		}
	}
}
