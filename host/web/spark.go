package web

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// The size of a sparkline in the units of its drawing.
const (
	sparkWide = 120
	sparkHigh = 28
)

// spark draws values, a point a minute with the last at the right, as a line from
// zero up to the largest. It is a picture with words for who cannot see it.
func spark(what string, values []int64) template.HTML {
	if len(values) < 2 {
		return template.HTML(`<span class="faint">no graph yet</span>`)
	}
	top := max(1, slices.Max(values))
	var line strings.Builder
	for i, v := range values {
		x := sparkWide - float64(len(values)-1-i)*sparkWide/(sampleKept-1)
		y := sparkHigh - 1 - float64(v)*(sparkHigh-2)/float64(top)
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
	}
	now, most, minutes := values[len(values)-1], slices.Max(values), len(values)-1
	label := fmt.Sprintf("%s over the last %d minutes: now %d, at most %d", what, minutes, now, most)
	from := fmt.Sprintf("%d min ago", minutes)
	if len(values) < sampleKept {
		from += ", when this server began to count"
	}
	return template.HTML(fmt.Sprintf( //nolint:gosec // numbers and words of ours
		`<p class="reading"><strong>%d</strong> now <span class="faint">at most %d</span></p>`+
			`<svg class="spark" role="img" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-label="%s"><title>%s</title><polyline points="%s"/></svg>`+
			`<p class="range faint"><span>%s</span><span>now</span></p>`,
		now, most, sparkWide, sparkHigh, template.HTMLEscapeString(label), template.HTMLEscapeString(label), strings.TrimSpace(line.String()), from))
}
