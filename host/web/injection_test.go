package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/job"
)

// TestInjection has nothing that posters, workers, policy authors and admins write
// run as a script, on any page. What carries all 500 payloads at once, such as lists,
// is opened with each of them. Of the pages that carry one payload each, the browser
// parses all, and they must have the elements and attributes of a harmless job's
// page and no others; it opens a sample of them, to see that nothing runs.
func TestInjection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	payloads := injections()
	harmlessIDs := s.post(t, []string{"plain", "plainer"}) // one is held, one was given back
	ids := s.infest(t, payloads)
	tab := chromium(t)
	run(tab, t, "signing in", signIn(s.server.URL, operatorSecret))
	look := func(path string) {
		t.Helper()
		run(tab, t, path, chromedp.Navigate(s.server.URL+path), chromedp.WaitReady(chromedp.CSS("footer")))
		harmless(tab, t, path)
	}
	next := "/ui/boards/jobs"
	for next != "" {
		look(next)
		next = value[string](tab, t, `document.querySelector("a[rel=next]")?.getAttribute("href") ?? ""`)
	}
	for _, path := range []string{"/ui/boards/jobs/workers", "/ui/boards/jobs/policies", "/ui/policies", "/ui/tokens", "/ui/audit?all", "/ui/boards/jobs?tab=trashed"} {
		look(path)
	}
	for i := 0; i < len(ids); i += 25 {
		path := "/ui/boards/jobs/jobs/" + ids[i].String()
		look(path)
		look(path + "/details")
		look(path + "/book")
		look(path + "?labels=" + url.QueryEscape(payloads[i]))
		look("/ui/boards/jobs?filter=" + url.QueryEscape(payloads[i]))
		look("/ui/signin?to=" + url.QueryEscape(payloads[i]))
		look("/ui/tokens?tenant=" + url.QueryEscape(payloads[i]))
	}
	allPages(tab, t, payloads, ids, harmlessIDs)
	// What a form sends comes back in the page that refuses it, or asks about it.
	for i := 3; i < len(payloads); i += 53 {
		for _, form := range []map[string]string{
			{"action": "/ui/tokens/create", "name": payloads[i], "role": "viewer", "days": "1"},
			{"action": "/ui/tokens/create", "name": "x", "role": payloads[i], "boards": payloads[i], "days": "1"},
			{"action": "/ui/tokens/revoke", "token": payloads[i], "tenant": payloads[i]},
			{"action": hooksPath, "name": payloads[i], "url": payloads[i], "deliveries": payloads[i], "oldestWaiting": payloads[i], "networks": payloads[i], "event": payloads[i]},
			{"action": "/ui/policies/delete", "policy": payloads[i]},
			{"action": "/ui/boards/jobs/policies/promote", "policy": payloads[i], "on_error": payloads[i]},
			{"action": "/ui/boards/jobs/policies/promote", "policy": "wild", "params": payloads[i]},
			{"action": "/ui/boards/jobs/policies/promote", "policy": "wild", "params": noted(t, payloads[i])},
			{"action": "/ui/boards/jobs/do", "reason": payloads[i], "uuid": ids[i].String(), "back": payloads[i]},
		} {
			sent, err := json.Marshal(form)
			if err != nil {
				t.Fatal(err)
			}
			value[bool](tab, t, fmt.Sprintf(submitScript, sent))
			run(tab, t, form["action"], shows("the API"))
			harmless(tab, t, form["action"]+" with "+payloads[i])
			run(tab, t, "going on", chromedp.Navigate(s.server.URL+"/ui/boards/jobs/post"), chromedp.WaitReady(chromedp.CSS("footer")))
		}
	}
}

// submitScript sends a form from the page that is open, with what its forms carry,
// and leaves a page that says nothing until the answer is there.
const submitScript = `(parts => {
	const form = document.createElement("form"), add = (name, value) => { const i = document.createElement("input"); i.name = name; i.value = value; form.append(i); };
	add("form", document.querySelector("input[name=form]").value);
	for (const [name, value] of Object.entries(parts)) if (name !== "action") add(name, value);
	form.method = "post"; form.setAttribute("action", parts.action);
	document.body.replaceChildren(form);
	HTMLFormElement.prototype.submit.call(form);
	return true;
})(%s)`

// harmless has no script of a stranger have run, and no element of his stand in
// the page. A dialog that opens would hold the page up for longer than the test
// waits.
func harmless(tab context.Context, t *testing.T, where string) {
	t.Helper()
	bad := value[int](tab, t, `document.querySelectorAll("main script, main iframe, main img, main object, main embed, main [onerror], main [onload], main [onclick], main [style], main a[href^=javascript], main base, main link, main meta").length`)
	if ran := value[bool](tab, t, "window.ran === true"); ran || bad > 0 {
		t.Errorf("%s: a script ran (%v), there are %d elements of a stranger", where, ran, bad)
	}
}

// opened is a page that a script gets and has the browser parse.
type opened struct {
	Path string            `json:"path"`
	Form map[string]string `json:"form,omitempty"` // to be posted, with what the visit's forms carry
	Want string            `json:"want"`           // a text or a field's value on it
}

// parseScript gets pages, has the browser's own parser read them, and returns what
// it finds: each element by its name and the names of its attributes, with the path
// of a page that has it; links that leave the server; and what is missing.
const parseScript = `(async pages => {
	const found = {}, form = document.querySelector("input[name=form]").value;
	for (const {path, form: parts, want} of pages) {
		const answer = await fetch(path, parts ? {method: "POST", body: new URLSearchParams({form, ...parts})} : {});
		const page = new DOMParser().parseFromString(await answer.text(), "text/html");
		const note = what => { found[what] ??= path; };
		if (answer.status !== 200) note("status " + answer.status);
		if (!page.body.textContent.includes(want) && ![...page.querySelectorAll("input")].some(i => i.value === want)) note("no " + want);
		for (const e of page.querySelectorAll("*")) {
			note(e.localName + [...e.attributes].map(a => " " + a.name).sort().join(""));
			for (const name of ["href", "src", "action", "formaction"]) {
				const to = e.getAttribute(name);
				if (to !== null && !/^(\/(?!\/)|[?#])/.test(to)) note(name + " leads to " + to);
			}
		}
	}
	return JSON.stringify(found);
})(%s)`

// parsed returns what parseScript finds.
func parsed(tab context.Context, t *testing.T, pages []opened) map[string]string {
	t.Helper()
	all := map[string]string{}
	for chunk := range slices.Chunk(pages, 50) {
		sent, err := json.Marshal(chunk)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		if err := json.Unmarshal([]byte(value[string](tab, t, fmt.Sprintf(parseScript, sent), chromedp.EvalAwaitPromise)), &found); err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, found)
	}
	return all
}

// allPages has the pages of the jobs that carry payloads, of their details, and of
// a policy's parameters look like those that carry none.
func allPages(tab context.Context, t *testing.T, payloads []string, ids, plain []job.ID) {
	t.Helper()
	pages := func(ids []job.ID, texts []string) (list []opened) {
		for i, id := range ids {
			path := "/ui/boards/jobs/jobs/" + id.String()
			parameters := noted(t, texts[i])
			list = append(list, opened{Path: path, Want: texts[i]}, opened{Path: path + "/details", Want: texts[i]}, opened{Path: path + "/book", Want: texts[i]}, opened{
				Path: "/ui/boards/jobs/policies/promote", Want: parameters, Form: map[string]string{"policy": "wild", "params": parameters},
			})
		}
		return list
	}
	want := parsed(tab, t, pages(plain, []string{"plain", "plainer"}))
	if len(want) < 30 {
		t.Errorf("harmless pages have only %v", want)
	}
	for what, where := range parsed(tab, t, pages(ids, payloads)) {
		if _, ok := want[what]; !ok {
			t.Errorf("%s has %q, which no harmless page has", where, what)
		}
	}
}

// noted is parameters of the template with a text among them.
func noted(t *testing.T, text string) string {
	t.Helper()
	parameters, err := json.Marshal(map[string]string{"note": text})
	if err != nil {
		t.Fatal(err)
	}
	return string(parameters)
}

// infest writes payloads into everything that posters, workers and policy authors
// write, and returns a job for each.
func (s *site) infest(t *testing.T, payloads []string) []job.ID {
	t.Helper()
	ids := s.post(t, payloads)
	half := len(payloads) / 2 // as many reasons as a policy may have
	s.push(t, "wild", payloads[:half]...)
	s.push(t, "wilder", payloads[half:]...)
	parameters, err := json.Marshal(map[string]any{"gold": 1, "note": payloads[0], "notes": payloads})
	if err != nil {
		t.Fatal(err)
	}
	s.decide(t, "wild", string(parameters), "wilder")
	s.names(t, payloads)
	return ids
}

// names has every payload refused as a name: nothing but letters, digits and a few
// signs comes onto a page as one.
func (s *site) names(t *testing.T, payloads []string) {
	t.Helper()
	ctx := t.Context()
	login, err := s.host.Login(ctx, operatorSecret)
	if err != nil {
		t.Fatal(err)
	}
	session := admin.Of(s.host, login)
	for _, p := range payloads {
		for what, call := range map[string]func() error{
			"policy": func() error { _, err := session.PutPolicy(ctx, "", p, nil); return err },
			"tenant": func() error { _, err := session.CreateTenant(ctx, p, config.Limits{}); return err },
			"token": func() error {
				_, _, err := session.CreateToken(ctx, admin.NewToken{Name: p, Roles: []string{"viewer"}})
				return err
			},
			"board": func() error {
				_, err := session.CreateBoard(ctx, "", config.Board{Name: p, Backend: "main"})
				return err
			},
		} {
			if err := call(); job.KindOf(err) != job.Invalid {
				t.Errorf("a %s may be called %q: %v", what, p, err)
			}
		}
	}
}

// book writes a logbook of a flow with a text wherever a page shows one, and returns its
// uuid.
func (s *site) book(t *testing.T, jobs *board.Board, text string) string {
	t.Helper()
	failure := map[string]any{"exc_type_names": []string{text}, "exception_str": text}
	atom := map[string]any{"type": text, "atom": map[string]any{"name": text, "state": text, "updated_at": text, "failure": failure}}
	content, err := json.Marshal(map[string]any{"flow_details": []any{map[string]any{"name": text, "state": text, "atom_details": []any{atom}}}})
	if err != nil {
		t.Fatal(err)
	}
	uuid := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	if _, err := jobs.PutBook(t.Context(), board.Book{UUID: uuid, Name: text, Content: content}, nil); err != nil {
		t.Fatal(err)
	}
	return uuid
}

// post posts a job for each payload, with it in every field, and has a worker write
// it as well; each second job is given back.
func (s *site) post(t *testing.T, payloads []string) []job.ID {
	t.Helper()
	jobs := s.board(t, adminSecret, "jobs")
	var postings []job.Posting
	for i, p := range payloads {
		details, err := json.Marshal(map[string]string{p: p})
		if err != nil {
			t.Fatal(err)
		}
		postings = append(postings, job.Posting{
			Name: p, Details: details, Labels: []job.Label{{Key: fmt.Sprintf("k%d", i), Value: p}}, Book: job.Book{UUID: s.book(t, jobs, p), Name: p},
			Operations: []job.NewOperation{{Name: p}},
		})
	}
	results, err := jobs.Post(t.Context(), postings)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]job.ID, len(results))
	for i := range results {
		if results[i].Err != nil {
			t.Fatalf("%q: %v", payloads[i], results[i].Err)
		}
		ids[i] = results[i].Job.ID
		s.work(t, jobs, ids[i], payloads[i], i%2 == 0)
	}
	return ids
}

// work has a worker of a wild name write wild things.
func (s *site) work(t *testing.T, jobs *board.Board, id job.ID, p string, giveBack bool) {
	t.Helper()
	claims, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: p, IDs: []job.ID{id}})
	if err != nil || len(claims.Claims) != 1 {
		t.Fatalf("%q: %v", p, err)
	}
	ref := board.Ref{ID: id, Token: jobs.FormatToken(id, claims.Claims[0].Token)}
	if _, err := jobs.AppendLog(t.Context(), board.LogRequest{Ref: ref, Entries: []job.LogEntry{{Type: "out", Message: p}}}); err != nil {
		t.Fatal(err)
	}
	about, err := json.Marshal(map[string]string{"labels": p})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.RegisterEntity(t.Context(), board.Entity{Kind: "conductor", Name: p, Metadata: about}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if giveBack {
		if _, err := jobs.Abandon(t.Context(), []board.Ref{ref}, board.AbandonOptions{Reason: p}); err != nil {
			t.Fatal(err)
		}
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
