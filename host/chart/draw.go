package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unit is what the numbers of a chart are.
type Unit int

// The units.
const (
	Jobs    Unit = iota
	Seconds      // of time
)

// Tick is a line of a chart's scale.
type Tick struct {
	Value int64
	Label string
}

// mostTicks is how many lines a scale has at most, zero not among them.
const mostTicks = 5

// timeSteps are the distances between the ticks of a scale of times, in seconds.
var timeSteps = []int64{1, 2, 5, 10, 15, 30, 60, 2 * 60, 5 * 60, 10 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400}

// Scale returns the ticks of a scale from zero to at least top, all equally far from one
// another, the lowest first. There are two at least.
func Scale(top int64, unit Unit) []Tick {
	top = min(max(top, 1), maxValue)
	step := niceStep(top, unit)
	var ticks []Tick
	for v := int64(0); ; v += step {
		ticks = append(ticks, Tick{Value: v, Label: Short(v, unit)})
		if v >= top {
			return ticks
		}
	}
}

// niceStep returns the smallest round distance of which mostTicks reach up to top.
func niceStep(top int64, unit Unit) int64 {
	least := (top + mostTicks - 1) / mostTicks
	if unit == Seconds {
		for _, step := range timeSteps {
			if step >= least {
				return step
			}
		}
		const day = 86400
		return day * niceStep((top+day-1)/day, Jobs)
	}
	for ten := int64(1); ; ten *= 10 {
		for _, n := range []int64{1, 2, 5} {
			if n*ten >= least {
				return n * ten
			}
		}
	}
}

// Short writes a number in little room, as on a scale.
func Short(v int64, unit Unit) string {
	if unit == Seconds {
		return shortTime(v)
	}
	for _, big := range []struct {
		of   int64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e4, " k"}} {
		if v >= big.of {
			of := big.of
			if of == 1e4 {
				of = 1e3
			}
			return strconv.FormatFloat(math.Round(float64(v)*100/float64(of))/100, 'f', -1, 64) + big.name
		}
	}
	return strconv.FormatInt(v, 10)
}

// shortTime writes seconds in their largest unit, with one digit after the point where that
// says more.
func shortTime(v int64) string {
	for _, unit := range []struct {
		of   int64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "min"}} {
		if v >= unit.of {
			return strconv.FormatFloat(math.Round(float64(v)*10/float64(unit.of))/10, 'f', -1, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(v, 10) + " s"
}

// Path returns the line through values as the attribute d of an SVG path: from the left edge
// to the right one, from zero at the bottom to top. Where values are Missing there is none.
func Path(values []int64, top int64, wide, high float64) string {
	var line strings.Builder
	drawn := false
	for i, v := range values {
		if v == Missing {
			drawn = false
			continue
		}
		x := float64(i) * wide / float64(max(len(values)-1, 1))
		y := high - float64(min(v, top))*high/float64(max(top, 1))
		switch {
		case drawn:
			fmt.Fprintf(&line, "L%.1f %.1f", x, y)
		case i+1 == len(values) || values[i+1] == Missing:
			fmt.Fprintf(&line, "M%.1f %.1fh0", x, y) // a dot, with round ends
		default:
			fmt.Fprintf(&line, "M%.1f %.1f", x, y)
		}
		drawn = true
	}
	return line.String()
}
