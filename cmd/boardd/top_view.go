package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/nearest"
)

// topColumn is a column of boardd top: its name, and how boards are in order by it. Of numbers
// the largest comes first.
type topColumn struct {
	name string
	less func(a, b *topRow) int
}

func largest[T cmp.Ordered](of func(*topRow) T) func(a, b *topRow) int {
	return func(a, b *topRow) int { return cmp.Compare(of(b), of(a)) }
}

// rate is a column's rate; one that is not known is below all others.
func rate(of func(*topRates) float64) func(*topRow) float64 {
	return func(r *topRow) float64 {
		if r.Rates == nil {
			return -1
		}
		return of(r.Rates)
	}
}

var topOrders = []topColumn{
	{"board", func(a, b *topRow) int { return cmp.Compare(a.Board, b.Board) }},
	{"ready", largest(func(r *topRow) int64 { return r.Ready })},
	{"delayed", largest(func(r *topRow) int64 { return r.Delayed })},
	{"claimed", largest(func(r *topRow) int64 { return r.Claimed })},
	{"trashed", largest(func(r *topRow) int64 { return r.Trashed })},
	{"oldest", largest(func(r *topRow) float64 { return r.Oldest })},
	{"posted/s", largest(rate(func(r *topRates) float64 { return r.Posted }))},
	{"claimed/s", largest(rate(func(r *topRates) float64 { return r.Claimed }))},
	{"ended/s", largest(rate(func(r *topRates) float64 { return r.Ended }))},
	{"failed/s", largest(rate(func(r *topRates) float64 { return r.Failed }))},
	{"workers", largest(func(r *topRow) int { return r.Workers })},
	{"state", func(a, b *topRow) int { return cmp.Compare(a.State, b.State) }},
}

func topNames() (names []string) {
	for _, c := range topOrders {
		names = append(names, c.name)
	}
	return names
}

func topColumns() string { return strings.Join(topNames(), ", ") }

// topOrder is a column to sort by. It is a flag.
type topOrder int

func (o *topOrder) String() string { return topOrders[*o].name }
func (o *topOrder) Type() string   { return "column" }
func (o *topOrder) Set(s string) error {
	i := slices.Index(topNames(), strings.ToLower(s))
	if i < 0 {
		return fmt.Errorf("want one of %s%s", topColumns(), nearest.Hint(s, topNames()))
	}
	*o = topOrder(i)
	return nil
}

// topView is which boards are shown, and how.
type topView struct {
	order  topOrder
	turned bool   // the order is turned around
	filter string // what a board's name has
	typing bool   // the filter is being typed
}

// arrange returns the boards that are shown, in order.
func (v *topView) arrange(rows []topRow) []topRow {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r topRow) bool { return !strings.Contains(r.Board, v.filter) })
	slices.SortFunc(rows, func(a, b topRow) int {
		order := topOrders[v.order].less(&a, &b)
		if v.turned {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.Board, b.Board))
	})
	return rows
}

// key does what a key says, and reports whether that is the end.
func (v *topView) key(k byte) (end bool) {
	const interrupt, escape, backspace, erase = 3, 27, 8, 127
	switch {
	case k == interrupt:
		return true
	case v.typing:
		switch {
		case k == '\r' || k == '\n':
			v.typing = false
		case k == escape:
			v.typing, v.filter = false, ""
		case k == backspace || k == erase:
			v.filter = v.filter[:max(0, len(v.filter)-1)]
		case k > ' ' && k < erase && len(v.filter) < 63: // as names are written
			v.filter += string(rune(k))
		}
	case k == 'q':
		return true
	case k == 's':
		v.order = (v.order + 1) % topOrder(len(topOrders))
	case k == 'r':
		v.turned = !v.turned
	case k == '/':
		v.typing = true
	}
	return false
}

// line says how the boards are shown.
func (v *topView) line(shown, all int, at time.Time) string {
	text := fmt.Sprintf("boardd top  %s  %d of %d boards  by %s", at.UTC().Format("15:04:05"), shown, all, topOrders[v.order].name)
	if v.turned {
		text += ", turned around"
	}
	switch {
	case v.typing:
		text += "  /" + v.filter + "_"
	case v.filter != "":
		text += "  /" + v.filter
	}
	return text + "  [s]ort [r]everse [/] filter [q]uit"
}

// topTable is the boards in columns.
func topTable(rows []topRow) *table {
	t := &table{}
	head := make([]any, len(topOrders))
	for i, c := range topOrders {
		head[i] = strings.ToUpper(c.name)
	}
	t.row(head...)
	for i := range rows {
		r := &rows[i]
		cells := []any{r.Board, "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", r.State}
		if r.counts {
			copy(cells[1:], []any{r.Ready, r.Delayed, r.Claimed, r.Trashed, age(r)})
			cells[10] = r.Workers
		}
		if r.Rates != nil {
			copy(cells[6:], []any{perSecond(r.Rates.Posted), perSecond(r.Rates.Claimed), perSecond(r.Rates.Ended), perSecond(r.Rates.Failed)})
		}
		t.row(cells...)
	}
	return t
}

// age is for how long the oldest job waits.
func age(r *topRow) string {
	if r.Ready == 0 {
		return ""
	}
	return (time.Duration(r.Oldest) * time.Second).String()
}

func perSecond(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
