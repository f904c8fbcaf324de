package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/boardd/boardd/sdk/job"
)

// TestCharts has a board's charts say what was counted, in each range, to those who may see
// the board.
func TestCharts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	eyes := s.signedIn(t, viewerSecret)
	eyes.wants("/ui/boards/jobs/charts", "Nothing was counted in this time", `href="/ui/boards/jobs/charts?range=7d"`)
	now := time.Now().UTC()
	post(t, jobs, job.Posting{Name: "early"})
	jobs.Sample(now.Add(-26 * time.Hour))
	for range 3 {
		post(t, jobs, job.Posting{Name: "late"})
	}
	jobs.Sample(now.Add(-2 * time.Minute))
	eyes.wants("/ui/boards/jobs", `href="/ui/boards/jobs/charts"`)
	eyes.wants("/ui/boards/jobs/charts", `aria-label="Jobs over the last 1 hour; Waiting: last 4, at most 4; Claimed: last 0, at most 0`,
		"at most 3; Consumed:", `<table class="numbers">`, now.Add(-2*time.Minute).Format("15:04")+`</time></th><td>4</td>`, "how many there were, at most in a minute")
	eyes.wants("/ui/boards/jobs/charts?range=24h", "over the last 24 hours", "jobs in 15 minutes", "at most 3; Consumed:")
	eyes.wants("/ui/boards/jobs/charts?range=7d", "over the last 7 days", "jobs in an hour", now.Add(-26*time.Hour).Truncate(time.Hour).Format("01-02 15:04"))
	eyes.wants("/ui/boards/jobs/charts?range=%22%3E", "over the last 1 hour")
	eyes.wants("/", "jobs") // a graph needs two points
	if status, _ := eyes.get("/ui/boards/theirs/charts"); status != http.StatusNotFound {
		t.Errorf("the charts of another tenant's board: %d", status)
	}
	if status, text := s.visit(t).get("/ui/boards/jobs/charts"); status != http.StatusOK || len(text) == 0 {
		t.Errorf("without signing in: %d", status)
	} else if want := "Token"; !strings.Contains(text, want) {
		t.Errorf("without signing in the page does not ask for a %s", want)
	}
}

// TestChartsAreRead has a browser tell the values of a chart where the mouse points and where
// the keys lead, choose a range, and take in news while a value is read.
func TestChartsAreRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := s.board(t, adminSecret, "jobs")
	now := time.Now()
	for n := range 50 {
		post(t, jobs, job.Posting{Name: "counted"})
		jobs.Sample(now.Add(time.Duration(n-50) * time.Minute))
	}
	tab := chromium(t)
	run(tab, t, "signing in", chromedp.EmulateViewport(1440, 900), signIn(s.server.URL, viewerSecret), chromedp.Navigate(s.server.URL+"/ui/boards/jobs"),
		click(`nav.sections a[href$="/charts"]`), shows("Oldest waiting as a table"))
	const readout = `document.querySelector('figure[data-key=stand] [data-readout]').textContent`
	// What is read has to be what the table has of that step.
	reads := func(what string, step int) {
		t.Helper()
		got, cell := value[string](tab, t, readout), value[string](tab, t, fmt.Sprintf(`document.querySelector('figure[data-key=stand] tr[data-step="%d"] td')?.textContent ?? ""`, step))
		want := "Waiting " + cell
		if cell == "" {
			want = "Nothing was counted then"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: it says %q, want %q", what, got, want)
		}
	}
	if got := value[string](tab, t, readout); !strings.Contains(got, "Waiting 50") {
		t.Errorf("at first it says %q, want the last value, 50", got)
	}
	box := value[[]float64](tab, t, `(() => { const b = document.querySelector('figure[data-key=stand] .plot svg').getBoundingClientRect(); return [b.left, b.top + b.height / 2, b.width]; })()`)
	point := func(share float64) {
		t.Helper()
		run(tab, t, "pointing", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: box[0] + share*box[2], Y: box[1]})
			return err
		}))
	}
	point(0.999) // at 1 it is beside the chart
	reads("at the right edge", 59)
	point(39.0 / 59)
	reads("20 minutes before", 39)
	if got := value[string](tab, t, readout); !strings.Contains(got, "Waiting 3") && !strings.Contains(got, "Waiting 2") {
		t.Errorf("20 minutes before it says %q, want about 30", got)
	}
	if d := value[string](tab, t, `document.querySelector('figure[data-key=stand] .cursor').getAttribute("d")`); d == "" {
		t.Error("no line marks what is read")
	}
	point(0)
	reads("at the left edge", 0)
	run(tab, t, "focusing", chromedp.Focus(chromedp.CSS(`figure[data-key=stand] .plot`)))
	for _, key := range []string{kb.End, kb.ArrowLeft, kb.ArrowLeft} {
		run(tab, t, "a key", chromedp.KeyEvent(key))
	}
	reads("with the keys", 57)
	run(tab, t, "a day", click(`a[href$="range=24h"]`), shows("jobs in 15 minutes"))
	run(tab, t, "the table", click(`figure[data-key=flow] summary`), shows("What happened as a table"))
	if rows := value[int](tab, t, `document.querySelectorAll('figure[data-key=flow] tbody tr').length`); rows < 4 || rows > 5 {
		t.Errorf("50 minutes are %d rows of 15 minutes", rows)
	}
	if sum := value[int](tab, t, `[...document.querySelectorAll('figure[data-key=flow] tbody tr td:nth-child(2)')].reduce((sum, cell) => sum + Number(cell.textContent), 0)`); sum != 50 {
		t.Errorf("the table tells of %d posted jobs, want 50", sum)
	}
}
