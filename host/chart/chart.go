// Package chart keeps how numbers of a board went over the last hour, day and week in
// little room, and draws them. It knows no board and no store: rings of samples can be
// merged, so that several may count and one may show what all of them counted.
package chart

import (
	"cmp"
	"slices"
	"time"
)

// Measure is what a number of a sample says.
type Measure int

// The measures. Levels are how things stood: of several samples of an interval the largest
// counts. Flows are what happened: they are added.
const (
	Waiting Measure = iota // jobs that could be claimed
	Delayed                // jobs that wait for a time or for others
	Claimed
	Oldest // seconds that the oldest waiting job has waited
	Posted // the first flow
	Consumed
	Failed
	measures
)

// Flows is how many measures are flows: Posted and those after it.
const Flows = int(measures - Posted)

// Sample has a number for each measure.
type Sample [measures]int64

// maxValue is more than any number of a board; larger ones are cut to it.
const maxValue = 1 << 50

// add takes another sample of the same interval in.
func (s *Sample) add(o *Sample) {
	for m := range s {
		v := min(max(o[m], 0), maxValue)
		if Measure(m) >= Posted {
			s[m] = min(s[m]+v, maxValue)
		} else {
			s[m] = max(s[m], v)
		}
	}
}

// Span is a time that a ring goes back, in so many steps.
type Span struct {
	Name  string
	Step  time.Duration
	Steps int
}

// spans are those of every ring. Each is counted by itself.
var spans = [...]Span{{"1h", time.Minute, 60}, {"24h", 15 * time.Minute, 96}, {"7d", time.Hour, 168}}

// Spans returns the spans that a ring has, the shortest first.
func Spans() []Span { return spans[:] }

// slot is the number of the step that a time is in.
func (s Span) slot(at time.Time) int64 { return at.Unix() / int64(s.Step/time.Second) }

// begin is when a slot begins.
func (s Span) begin(slot int64) time.Time {
	return time.Unix(slot*int64(s.Step/time.Second), 0).UTC()
}

// point is what was counted in one slot.
type point struct {
	slot   int64
	sample Sample
}

// Receipt says that a ring has what a writer sent under a number, so that what it sends
// again after it heard no answer does not count twice.
type Receipt struct {
	Writer uint64
	Number uint64
	At     int64 // minutes since 1970
}

// maxReceipts is how many writers are remembered; those that wrote longest ago go first.
const maxReceipts = 32

// Ring is samples at several steps. The zero value is empty.
type Ring struct {
	points   [len(spans)][]point // by slot, of which there are at most Span.Steps
	receipts []Receipt
}

// Empty reports whether nothing was counted.
func (r *Ring) Empty() bool {
	for i := range r.points {
		if len(r.points[i]) > 0 {
			return false
		}
	}
	return true
}

// Add counts a sample.
func (r *Ring) Add(at time.Time, s *Sample) {
	for i, span := range spans {
		r.put(i, span.slot(at), s)
	}
	r.cut(at)
}

// AddIdle counts that all was zero in each minute of a time.
func (r *Ring) AddIdle(from, to time.Time) {
	r.AddStill(from, to, func(time.Time) Sample { return Sample{} })
}

// AddStill counts how things stood in a time in which nothing happened. at says so of a moment:
// it is asked for the last one of each step.
func (r *Ring) AddStill(from, to time.Time, at func(time.Time) Sample) {
	for i, span := range spans {
		last := span.slot(to)
		for slot := max(span.slot(from), last-int64(span.Steps)+1); slot <= last; slot++ {
			s := at(earlier(span.begin(slot+1), to))
			r.put(i, slot, &s)
		}
	}
	r.cut(to)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// put adds a sample to a slot of the i-th span. A clock that shows a time before 1970 counts
// nothing.
func (r *Ring) put(i int, slot int64, s *Sample) {
	if slot < 1 {
		return
	}
	at, found := slices.BinarySearchFunc(r.points[i], slot, func(p point, slot int64) int { return cmp.Compare(p.slot, slot) })
	if !found {
		r.points[i] = slices.Insert(r.points[i], at, point{slot: slot})
	}
	r.points[i][at].sample.add(s)
}

// Merge adds what another ring counted, and forgets what is older than the spans at a time,
// or later than it.
func (r *Ring) Merge(o *Ring, now time.Time) {
	for i := range o.points {
		for j := range o.points[i] {
			p := &o.points[i][j]
			r.put(i, p.slot, &p.sample)
		}
	}
	r.cut(now)
}

// cut forgets what is older than the spans. A clock that was wrong may have left what is yet
// to come: that goes as well.
func (r *Ring) cut(now time.Time) {
	for i, span := range spans {
		last := span.slot(now)
		r.points[i] = slices.DeleteFunc(r.points[i], func(p point) bool {
			return p.slot <= last-int64(span.Steps) || p.slot > last
		})
	}
}

// Sign notes that the ring has what a writer sent.
func (r *Ring) Sign(s Receipt) {
	r.receipts = slices.DeleteFunc(r.receipts, func(old Receipt) bool { return old.Writer == s.Writer })
	r.receipts = append(r.receipts, s)
	if len(r.receipts) > maxReceipts {
		slices.SortStableFunc(r.receipts, func(a, b Receipt) int { return cmp.Compare(a.At, b.At) })
		r.receipts = slices.Delete(r.receipts, 0, len(r.receipts)-maxReceipts)
	}
}

// Signed reports whether the ring has what a writer sent under a number.
func (r *Ring) Signed(writer, number uint64) bool {
	return slices.ContainsFunc(r.receipts, func(s Receipt) bool { return s.Writer == writer && s.Number == number })
}

// Window is what a ring has of one of its spans.
type Window struct {
	Span    Span
	First   time.Time // when the first step begins
	Samples []*Sample // one for each step; nil: nothing was counted then
	Partial bool      // the last step has not ended
}

// Window returns the steps of a span that end with the present one, or with the one before
// if nothing is known of the present one yet.
func (r *Ring) Window(span Span, now time.Time) Window {
	last := span.slot(now)
	i := slices.Index(spans[:], span)
	if i < 0 {
		return Window{Span: span, First: span.begin(last)}
	}
	points := r.points[i]
	w := Window{Span: span, Samples: make([]*Sample, span.Steps), Partial: span.Step > time.Minute}
	if !slices.ContainsFunc(points, func(p point) bool { return p.slot == last }) {
		last--
		w.Partial = false
	}
	first := last - int64(span.Steps) + 1
	w.First = span.begin(first)
	for j := range points {
		if at := points[j].slot - first; at >= 0 && at < int64(span.Steps) {
			w.Samples[at] = &points[j].sample
		}
	}
	return w
}

// At returns when a step begins.
func (w *Window) At(step int) time.Time { return w.First.Add(time.Duration(step) * w.Span.Step) }

// Count returns of how many steps something is known.
func (w *Window) Count() (n int) {
	for _, s := range w.Samples {
		if s != nil {
			n++
		}
	}
	return n
}

// Missing stands for a number that is not known.
const Missing = -1

// Values returns the numbers of one measure, or Missing.
func (w *Window) Values(m Measure) []int64 {
	list := make([]int64, len(w.Samples))
	for i, s := range w.Samples {
		if list[i] = Missing; s != nil {
			list[i] = s[m]
		}
	}
	return list
}
