package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/chart"
)

// The size of a chart in the units of its drawing, which is stretched to what room there is.
const (
	chartWide = 1000
	chartHigh = 200
)

// chartPoll is how often a page with charts looks for news, in seconds: there is a point a
// minute.
const chartPoll = 20

// chartTimes is how many times stand below a chart.
const chartTimes = 5

// chartLine is one line of a chart.
type chartLine struct {
	Name  string
	Class string // of how it is drawn
	Path  string
	Now   string // the last number that is known; "": none is
	Most  string
}

// chartTick is a line of the scale.
type chartTick struct {
	Label string
	Y     float64
}

// chartRow is what is known of one step: a row of the table.
type chartRow struct {
	Step  int
	At    time.Time
	Cells []string
	So    bool // it has not ended
}

// chartView is one chart.
type chartView struct {
	ID, Title, About string
	Lines            []chartLine
	Ticks            []chartTick // the highest first
	Times            []time.Time
	Steps            int
	Rows             []chartRow // the latest first
	Format           string     // of times: of page.js
	Label            string     // what it shows, in words
}

// chartsView is the charts of a board.
type chartsView struct {
	page
	Board  string
	Ranges []tab
	Charts []chartView
	Known  int // steps of which anything is known
	Step   string
	Behind string // why what other servers counted is not shown
}

// chartPlan is what a chart shows.
type chartPlan struct {
	id, title, about string
	unit             chart.Unit
	lines            []chartMeasure
}

type chartMeasure struct {
	name, class string // class: of how it is drawn
	measure     chart.Measure
}

// chartPlans are the charts of a board. %s is the length of a step.
var chartPlans = []chartPlan{
	{"stand", "Jobs", "how many there were, at most in %s", chart.Jobs, []chartMeasure{{"Waiting", "line0", chart.Waiting}, {"Claimed", "line1", chart.Claimed}, {"Delayed", "line3", chart.Delayed}}},
	{"flow", "What happened", "jobs in %s; failed: lost, given back or set aside", chart.Jobs, []chartMeasure{{"Posted", "line0", chart.Posted}, {"Consumed", "line1", chart.Consumed}, {"Failed", "line2", chart.Failed}}},
	{"oldest", "Oldest waiting", "for how long it had waited, at most in %s", chart.Seconds, []chartMeasure{{"Oldest", "line0", chart.Oldest}}},
}

// chartSpan returns the span that a range names, else the shortest.
func chartSpan(name string) chart.Span {
	all := chart.Spans()
	return all[max(0, slices.IndexFunc(all, func(s chart.Span) bool { return s.Name == name }))]
}

// rangeNames are what people call the spans, and their steps.
var rangeNames = map[string]struct{ name, step string }{
	"1h": {"1 hour", "a minute"}, "24h": {"24 hours", "15 minutes"}, "7d": {"7 days", "an hour"},
}

func (u *UI) chartsPage(w http.ResponseWriter, r *http.Request, v *visit) {
	name := r.PathValue("board")
	b, err := v.session.Board(r.Context(), name, "CountJobs")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	span := chartSpan(r.URL.Query().Get("range"))
	view := chartsView{page: u.boardsPage(r, v, "Charts of "+name, name), Board: name, Step: rangeNames[span.Name].step}
	view.Poll, view.Chart = chartPoll, true
	for _, s := range chart.Spans() {
		link := "/ui/boards/" + url.PathEscape(name) + "/charts?range=" + s.Name
		view.Ranges = append(view.Ranges, tab{Name: rangeNames[s.Name].name, Link: link, Active: s == span})
	}
	window, behind, err := samplesOf(r.Context(), b, span)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view.Behind = behind
	if view.Known = window.Count(); view.Known > 0 {
		for i := range chartPlans {
			view.Charts = append(view.Charts, chartPlans[i].draw(&window, view.Step))
		}
	}
	u.show(w, r, http.StatusOK, "charts", view)
}

// samplesOf returns how a board went. While its store cannot be asked, that is what this
// server knows.
func samplesOf(ctx context.Context, b *board.Board, span chart.Span) (w chart.Window, behind string, err error) {
	ring, err := b.Samples(ctx, true)
	if err != nil {
		behind = plain(err)
		if ring, err = b.Samples(ctx, false); err != nil {
			return w, "", err
		}
	}
	return ring.Window(span, time.Now()), behind, nil
}

// draw makes a chart of a window.
func (p *chartPlan) draw(w *chart.Window, step string) chartView {
	c := chartView{
		ID: p.id, Title: p.title, About: fmt.Sprintf(p.about, step), Steps: w.Span.Steps, Format: "minute",
	}
	if w.Span.Step*time.Duration(w.Span.Steps) > 24*time.Hour {
		c.Format = "date"
	}
	values := make([][]int64, len(p.lines))
	top := int64(1)
	for i, l := range p.lines {
		values[i] = w.Values(l.measure)
		top = max(top, slices.Max(values[i]))
	}
	ticks := chart.Scale(top, p.unit)
	top = ticks[len(ticks)-1].Value
	for _, t := range slices.Backward(ticks) {
		c.Ticks = append(c.Ticks, chartTick{Label: t.Label, Y: chartHigh - float64(t.Value)*chartHigh/float64(top)})
	}
	for i, l := range p.lines {
		c.Lines = append(c.Lines, p.line(l.name, l.class, values[i], top))
	}
	for i := range chartTimes {
		c.Times = append(c.Times, w.At(i*(w.Span.Steps-1)/(chartTimes-1)))
	}
	for step, s := range slices.Backward(w.Samples) {
		if s == nil {
			continue
		}
		row := chartRow{Step: step, At: w.At(step), So: w.Partial && step == w.Span.Steps-1}
		for i := range p.lines {
			row.Cells = append(row.Cells, p.write(values[i][step]))
		}
		c.Rows = append(c.Rows, row)
	}
	c.Label = c.words(rangeNames[w.Span.Name].name)
	return c
}

// line draws one line.
func (p *chartPlan) line(name, class string, values []int64, top int64) chartLine {
	l := chartLine{Name: name, Class: class, Path: chart.Path(values, top, chartWide, chartHigh), Most: p.write(slices.Max(values))}
	for _, v := range slices.Backward(values) {
		if v != chart.Missing {
			l.Now = p.write(v)
			break
		}
	}
	return l
}

// write is a number as it is read.
func (p *chartPlan) write(v int64) string {
	if p.unit == chart.Seconds {
		if v == 0 {
			return "none waited"
		}
		return span(time.Duration(v) * time.Second)
	}
	return strconv.FormatInt(v, 10)
}

// words say what a chart shows.
func (c *chartView) words(of string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s over the last %s", c.Title, of)
	for i := range c.Lines {
		l := &c.Lines[i]
		fmt.Fprintf(&text, "; %s: last %s, at most %s", l.Name, l.Now, l.Most)
	}
	return text.String()
}
