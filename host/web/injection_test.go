package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// TestInjection has nothing that posters, workers, policy authors and admins write
// run as a script, on any page.
func TestInjection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	payloads := injections()
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
		look(path + "?labels=" + url.QueryEscape(payloads[i]))
		look("/ui/boards/jobs?filter=" + url.QueryEscape(payloads[i]))
		look("/ui/signin?to=" + url.QueryEscape(payloads[i]))
		look("/ui/tokens?tenant=" + url.QueryEscape(payloads[i]))
	}
	// What a form sends comes back in the page that refuses it, or asks about it.
	for i := 3; i < len(payloads); i += 53 {
		for _, form := range []map[string]string{
			{"action": "/ui/tokens/create", "name": payloads[i], "role": "viewer", "days": "1"},
			{"action": "/ui/tokens/create", "name": "x", "role": payloads[i], "boards": payloads[i], "days": "1"},
			{"action": "/ui/tokens/revoke", "token": payloads[i], "tenant": payloads[i]},
			{"action": "/ui/policies/delete", "policy": payloads[i]},
			{"action": "/ui/boards/jobs/policies/promote", "policy": payloads[i], "on_error": payloads[i]},
			{"action": "/ui/boards/jobs/policies/promote", "policy": "wild", "params": payloads[i]},
			{"action": "/ui/boards/jobs/do", "reason": payloads[i], "uuid": ids[i].String(), "back": payloads[i]},
		} {
			sent, err := json.Marshal(form)
			if err != nil {
				t.Fatal(err)
			}
			value[bool](tab, t, fmt.Sprintf(submitScript, sent))
			run(tab, t, form["action"], shows("the API"))
			harmless(tab, t, form["action"]+" with "+payloads[i])
			run(tab, t, "going on", chromedp.Navigate(s.server.URL+"/ui/boards/jobs/workers"), chromedp.WaitReady(chromedp.CSS("footer")))
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

// infest writes payloads into everything that posters, workers and policy authors
// write, and returns a job for each.
func (s *site) infest(t *testing.T, payloads []string) []job.ID {
	t.Helper()
	jobs := s.board(t, adminSecret, "jobs")
	var postings []job.Posting
	for i, p := range payloads {
		details, err := json.Marshal(map[string]string{p: p})
		if err != nil {
			t.Fatal(err)
		}
		postings = append(postings, job.Posting{
			Name: p, Details: details, Labels: []job.Label{{Key: fmt.Sprintf("k%d", i), Value: p}}, Book: job.Book{Name: p},
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
	half := len(payloads) / 2 // as many reasons as a policy may have
	s.push(t, "wild", payloads[:half]...)
	s.push(t, "wilder", payloads[half:]...)
	session := s.decide(t, "wild", `{"gold":1}`, "wilder")
	for _, p := range payloads { // names are refused: nothing but letters comes onto a page as one
		if _, err := session.PutPolicy(t.Context(), "", p, nil); job.KindOf(err) != job.Invalid {
			t.Errorf("a policy may be called %q: %v", p, err)
		}
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
