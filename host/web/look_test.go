package web_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/sdk/job"
)

// TestLook keeps what somebody chose, takes nothing but the choices, and is sent by this
// site's own forms only.
func TestLook(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.board(t, adminSecret, "jobs")
	b := s.signedIn(t, viewerSecret)
	b.wants("/", `<html lang="en" data-zone="browser">`)
	b.sends("/ui/look", url.Values{"theme": {"dark"}, "back": {"/ui/boards/jobs"}}, http.StatusOK, `data-theme="dark" data-zone="browser"`, "Board jobs")
	b.sends("/ui/look", url.Values{"zone": {"utc"}}, http.StatusOK, `data-theme="dark" data-zone="utc"`)
	b.sends("/ui/look", url.Values{"theme": {`"><script>`}, "keys": {"off"}}, http.StatusOK, `data-theme="dark" data-zone="utc" data-keys="off"`)
	b.sends("/ui/look", url.Values{"theme": {"light"}, "form": {"forged"}}, http.StatusForbidden, `data-theme="dark"`)
	b.post("/ui/signout", url.Values{})
	b.wants("/ui/signin", `data-theme="dark"`)
	for _, cookie := range []string{"", "dark", "..", `"><script>.utc.off`, "a.b.c.d"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/ui/signin", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Cookie", "boardd-look="+cookie)
		answer, err := http.DefaultClient.Do(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(err, answer)
		}
		_ = answer.Body.Close()
	}
}

// TestThemeZoneAndKeys has a browser show what was chosen, and do what keys say.
func TestThemeZoneAndKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	for _, name := range []string{"first-row", "second-row"} {
		post(t, jobs, job.Posting{Name: name})
	}
	tab := chromium(t)
	run(tab, t, "another zone", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
		return err
	}), signIn(s.server.URL, adminSecret), chromedp.Navigate(s.server.URL+"/ui/boards/jobs"), shows("second-row"))
	const back, title = `getComputedStyle(document.body).backgroundColor`, `document.querySelector("main td time").title`
	light, tokyo := value[string](tab, t, back), value[string](tab, t, title)
	run(tab, t, "choosing the dark theme", click(`button[name=theme][value=dark]`), chromedp.WaitReady(chromedp.CSS(`html[data-theme=dark]`)), shows("second-row"))
	if dark := value[string](tab, t, back); dark == light {
		t.Errorf("the page is %s in both themes", dark)
	}
	run(tab, t, "choosing UTC", click(`button[name=zone][value=utc]`), chromedp.WaitReady(chromedp.CSS(`html[data-zone=utc]`)), shows("second-row"))
	utc := value[string](tab, t, title)
	const form = "2006-01-02 15:04:05"
	if len(tokyo) < len(form) || len(utc) < len(form) {
		t.Fatalf("the times are %q and %q", tokyo, utc)
	}
	a, err := time.Parse(form, tokyo[:len(form)])
	b, err2 := time.Parse(form, utc[:len(form)])
	if err != nil || err2 != nil || a.Sub(b) != 9*time.Hour {
		t.Errorf("%q in Tokyo is %q in UTC", tokyo, utc)
	}
	active := func(what, so string) {
		t.Helper()
		if !value[bool](tab, t, so) {
			t.Errorf("%s: %s does not hold; focused is %s", what, so, value[string](tab, t, "document.activeElement.outerHTML.slice(0, 200)"))
		}
	}
	key := func(text string) { run(tab, t, "pressing "+text, chromedp.KeyEvent(text)) }
	key("?")
	active("?", `document.querySelector("dialog#keys").open`)
	run(tab, t, "closing", click("dialog#keys button"))
	key("j")
	active("j", `document.activeElement.closest("tr").innerText.includes("first-row")`)
	key("j")
	active("j again", `document.activeElement.closest("tr").innerText.includes("second-row")`)
	key("x")
	active("x", `document.querySelectorAll("input[name=uuid]:checked").length === 1`)
	key("k")
	active("k", `document.activeElement.closest("tr").innerText.includes("first-row")`)
	key("/")
	active("/", `document.activeElement.id === "search"`)
	value[string](tab, t, `document.querySelector("#search").value = ""`) // a key that the test presses comes as a letter all the same
	key("b?")
	active("writing", `document.querySelector("#search").value === "b?" && !document.querySelector("dialog#keys").open`)
	run(tab, t, "searching", keys("#search", "\b\bsecond\r"), shows("1 found"))
	run(tab, t, "switching off", click(`button[name=keys][value=off]`), chromedp.WaitReady(chromedp.CSS(`html[data-keys=off]`)), shows("1 found"))
	key("?")
	active("switched off", `!document.querySelector("dialog#keys").open`)
}
