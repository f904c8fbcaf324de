package web

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/boardd/boardd/host/chart"
)

// The size of a sparkline in the units of its drawing.
const (
	sparkWide = 120
	sparkHigh = 28
)

// spark draws values, a point a minute with the last at the right, as a line from
// zero up to the largest. It is a picture with words for who cannot see it.
func spark(what string, values []int64) template.HTML {
	known, now := 0, int64(0)
	for _, v := range values {
		if v != chart.Missing {
			known, now = known+1, v
		}
	}
	if known < 2 {
		return template.HTML(`<span class="faint">no graph yet</span>`)
	}
	most, when := slices.Max(values), "now"
	if values[len(values)-1] == chart.Missing {
		when = "last"
	}
	label := template.HTMLEscapeString(fmt.Sprintf("%s over the last %d minutes: %s %d, at most %d", what, len(values), when, now, most))
	return template.HTML(fmt.Sprintf( //nolint:gosec // numbers and words of ours
		`<p class="reading"><strong>%d</strong> %s <span class="faint">at most %d</span></p>`+
			`<svg class="spark" role="img" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-label="%s"><title>%s</title><path d="%s"/></svg>`+
			`<p class="range faint"><span>%d min ago</span><span>now</span></p>`,
		now, when, most, sparkWide, sparkHigh, label, label, chart.Path(values, max(most, 1), sparkWide, sparkHigh), len(values)))
}
