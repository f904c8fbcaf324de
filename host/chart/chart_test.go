package chart_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/chart"
)

var (
	start           = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hour, day, week = chart.Spans()[0], chart.Spans()[1], chart.Spans()[2]
)

// TestRing has each span count by itself: levels as the largest, flows added, and what is
// older than a span forgotten.
func TestRing(t *testing.T) {
	t.Parallel()
	r := &chart.Ring{}
	if w := r.Window(hour, start); !r.Empty() || w.Count() != 0 || len(w.Samples) != hour.Steps {
		t.Errorf("an empty ring has %d samples of %d", w.Count(), len(w.Samples))
	}
	const minutes = 10 * 24 * 60
	for n := range minutes {
		r.Add(start.Add(time.Duration(n)*time.Minute), &chart.Sample{chart.Waiting: int64(n), chart.Posted: 2})
	}
	end := start.Add((minutes - 1) * time.Minute)
	for _, span := range chart.Spans() {
		w := r.Window(span, end)
		if w.Count() != span.Steps || !w.At(span.Steps-1).Equal(end.Truncate(span.Step)) {
			t.Errorf("%s: %d samples up to %v, want %d", span.Name, w.Count(), w.At(span.Steps-1), span.Steps)
		}
		each := 2 * int64(span.Step/time.Minute)
		posted := w.Values(chart.Posted)
		if slices.Min(posted) != each || slices.Max(posted) != each {
			t.Errorf("%s: posted %v, want %d each", span.Name, posted, each)
		}
		if top := slices.Max(w.Values(chart.Waiting)); top != minutes-1 {
			t.Errorf("%s: at most %d waited, want %d", span.Name, top, minutes-1)
		}
	}
	if w := r.Window(hour, end.Add(2*time.Hour)); w.Count() != 0 {
		t.Errorf("two hours later the last hour has %d samples", w.Count())
	}
	if w := r.Window(day, end.Add(2*time.Hour)); w.Count() != day.Steps-7 || w.Partial {
		t.Errorf("two hours later the last day has %d samples, want %d", w.Count(), day.Steps-7)
	}
	r.Add(end.Add(-30*24*time.Hour), &chart.Sample{chart.Waiting: 1}) // a clock that was put back
	if w := r.Window(week, end.Add(-30*24*time.Hour)); w.Count() != 1 {
		t.Errorf("a clock that was put back leaves %d samples of later times and its own", w.Count()-1)
	}
}

// TestMerge has two who counted shown as one, in whichever order.
func TestMerge(t *testing.T) {
	t.Parallel()
	a, b := &chart.Ring{}, &chart.Ring{}
	for n := range 90 {
		at := start.Add(time.Duration(n) * time.Minute)
		a.Add(at, &chart.Sample{chart.Claimed: int64(n), chart.Consumed: 3})
		if n%2 == 0 {
			b.Add(at, &chart.Sample{chart.Claimed: 40, chart.Consumed: 1})
		}
	}
	end := start.Add(89 * time.Minute)
	one, other := &chart.Ring{}, &chart.Ring{}
	one.Merge(a, end)
	one.Merge(b, end)
	other.Merge(b, end)
	other.Merge(a, end)
	if !bytes.Equal(one.Encode(), other.Encode()) {
		t.Error("what is merged depends on the order")
	}
	w := one.Window(hour, end)
	if consumed := w.Values(chart.Consumed); consumed[59] != 3 || consumed[58] != 4 {
		t.Errorf("consumed in the last minutes: %v, want 4 and 3", consumed[58:])
	}
	if claimed := w.Values(chart.Claimed); claimed[0] != 40 || claimed[59] != 89 {
		t.Errorf("claimed first %d and last %d, want 40 and 89", claimed[0], claimed[59])
	}
	one.Merge(&chart.Ring{}, start.Add(-time.Hour))
	if !one.Empty() {
		t.Error("what is yet to come stays")
	}
}

// TestIdle has a time without anything count as zero, and no more of it kept than fits.
func TestIdle(t *testing.T) {
	t.Parallel()
	r := &chart.Ring{}
	r.Add(start, &chart.Sample{chart.Posted: 5})
	r.AddIdle(start.Add(time.Minute), start.Add(20*time.Minute))
	if posted := valuesOf(r, hour, start.Add(20*time.Minute), chart.Posted); posted[38] != chart.Missing || posted[39] != 5 || slices.Max(posted[40:]) != 0 || slices.Min(posted[40:]) != 0 {
		t.Errorf("posted %v", posted)
	}
	r.AddIdle(time.Unix(0, 0), start.Add(1000*24*time.Hour))
	if got := len(r.Encode()); got > chart.MaxRing {
		t.Errorf("%d bytes", got)
	}
	for _, span := range chart.Spans() {
		if w := r.Window(span, start.Add(1000*24*time.Hour)); w.Count() != span.Steps {
			t.Errorf("%s: %d samples", span.Name, w.Count())
		}
	}
	early := &chart.Ring{}
	early.Add(time.Unix(-1e9, 0), &chart.Sample{chart.Posted: 5})
	if !early.Empty() {
		t.Error("a time before 1970 is counted")
	}
}

func valuesOf(r *chart.Ring, span chart.Span, now time.Time, m chart.Measure) []int64 {
	w := r.Window(span, now)
	return w.Values(m)
}

// TestPartial has a step that has not ended be known as one.
func TestPartial(t *testing.T) {
	t.Parallel()
	r := &chart.Ring{}
	r.Add(start.Add(time.Minute), &chart.Sample{})
	for _, tt := range []struct {
		span  chart.Span
		after time.Duration
		want  bool
	}{{hour, time.Minute, false}, {day, time.Minute, true}, {day, 16 * time.Minute, false}, {week, 59 * time.Minute, true}, {week, time.Hour, false}} {
		if w := r.Window(tt.span, start.Add(tt.after)); w.Partial != tt.want {
			t.Errorf("%s after %v: partial %v", tt.span.Name, tt.after, w.Partial)
		}
	}
	if w := r.Window(chart.Span{Step: time.Second, Steps: 5}, start); w.Count() != 0 {
		t.Error("there is something of a span that no ring has")
	}
}

// TestReceipts has the latest number of each writer remembered, and of too many writers those
// that wrote last.
func TestReceipts(t *testing.T) {
	t.Parallel()
	r := &chart.Ring{}
	for n := range uint64(50) {
		r.Sign(chart.Receipt{Writer: 7, Number: n, At: 1000})
		r.Sign(chart.Receipt{Writer: 100 + n, Number: 1, At: int64(n)})
	}
	r, err := chart.Decode(r.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		writer, number uint64
		want           bool
	}{{7, 49, true}, {7, 48, false}, {149, 1, true}, {119, 1, true}, {118, 1, false}, {8, 0, false}} {
		if got := r.Signed(tt.writer, tt.number); got != tt.want {
			t.Errorf("writer %d, number %d: %v", tt.writer, tt.number, got)
		}
	}
}

// full is the largest ring there can be.
func full() *chart.Ring {
	r := &chart.Ring{}
	var most chart.Sample
	for m := range most {
		most[m] = 1 << 62
	}
	for n := range 8 * 24 * 60 {
		r.Add(start.Add(time.Duration(n)*time.Minute), &most)
	}
	for n := range uint64(100) {
		r.Sign(chart.Receipt{Writer: 1<<64 - 1 - n, Number: 1<<64 - 1, At: 1 << 30})
	}
	return r
}

// TestEncode has every ring come back as it was, and what is no ring refused.
func TestEncode(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	some := &chart.Ring{}
	for n := range 3000 {
		if random.IntN(3) > 0 {
			some.Add(start.Add(time.Duration(n)*time.Minute), &chart.Sample{chart.Waiting: random.Int64N(1000), chart.Oldest: random.Int64N(2), chart.Failed: random.Int64N(1 << 40)})
		}
	}
	for name, r := range map[string]*chart.Ring{"empty": {}, "full": full(), "some": some} {
		data := r.Encode()
		if len(data) > chart.MaxRing {
			t.Errorf("%s: %d bytes, want at most %d", name, len(data), chart.MaxRing)
		}
		again, err := chart.Decode(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(again.Encode(), data) {
			t.Errorf("%s comes back otherwise", name)
		}
		for cut := range data {
			if _, err := chart.Decode(data[:cut]); err == nil {
				t.Errorf("%s: the first %d of %d bytes are a ring", name, cut, len(data))
				break
			}
		}
		if _, err := chart.Decode(append(slices.Clone(data), 0)); err == nil {
			t.Errorf("%s: with a byte more it is a ring", name)
		}
	}
	for name, data := range map[string][]byte{
		"another version":   {2, 0, 0, 0, 0},
		"too many points":   {1, 61},
		"a slot twice":      {1, 2, 5, 0, 0, 0, 0, 0, 0},
		"an unknown number": {1, 1, 5, 128, 1, 0, 0, 0},
		"too large":         make([]byte, chart.MaxRing+1),
	} {
		if _, err := chart.Decode(data); err == nil {
			t.Errorf("%s: it is a ring", name)
		}
	}
}

// FuzzDecode has any bytes refused, or be a ring that comes back as it is.
func FuzzDecode(f *testing.F) {
	f.Add((&chart.Ring{}).Encode())
	f.Add(full().Encode())
	f.Add([]byte{1, 1, 5, 3, 1, 2, 0, 0, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := chart.Decode(data)
		if err != nil {
			return
		}
		if again, err := chart.Decode(r.Encode()); err != nil || !bytes.Equal(again.Encode(), r.Encode()) {
			t.Errorf("%x comes back as %x, %v", data, r.Encode(), err)
		}
		for _, span := range chart.Spans() {
			w := r.Window(span, start)
			chart.Path(w.Values(chart.Waiting), 7, 100, 50)
		}
	})
}

// TestScale has scales begin at zero, reach the largest number, and have round steps.
func TestScale(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		top  int64
		unit chart.Unit
		want string
	}{
		{0, chart.Jobs, "0, 1"},
		{1, chart.Jobs, "0, 1"},
		{5, chart.Jobs, "0, 1, 2, 3, 4, 5"},
		{6, chart.Jobs, "0, 2, 4, 6"},
		{11, chart.Jobs, "0, 5, 10, 15"},
		{999, chart.Jobs, "0, 200, 400, 600, 800, 1000"},
		{47_000, chart.Jobs, "0, 10 k, 20 k, 30 k, 40 k, 50 k"},
		{6_100_000, chart.Jobs, "0, 2 M, 4 M, 6 M, 8 M"},
		{0, chart.Seconds, "0 s, 1 s"},
		{50, chart.Seconds, "0 s, 10 s, 20 s, 30 s, 40 s, 50 s"},
		{400, chart.Seconds, "0 s, 2 min, 4 min, 6 min, 8 min"},
		{86_400, chart.Seconds, "0 s, 6 h, 12 h, 18 h, 1 d"},
		{9 * 86_400, chart.Seconds, "0 s, 2 d, 4 d, 6 d, 8 d, 10 d"},
	} {
		var labels []string
		for _, tick := range chart.Scale(tt.top, tt.unit) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, ", "); got != tt.want {
			t.Errorf("up to %d: %s, want %s", tt.top, got, tt.want)
		}
	}
	for _, unit := range []chart.Unit{chart.Jobs, chart.Seconds} {
		for top := int64(1); top < 1<<51; top += 1 + top/7 {
			ticks := chart.Scale(top, unit)
			last := ticks[len(ticks)-1].Value
			if len(ticks) < 2 || len(ticks) > 6 || last < min(top, 1<<50) || ticks[0].Value != 0 {
				t.Fatalf("up to %d: %v", top, ticks)
			}
			seen := map[string]bool{}
			for _, tick := range ticks {
				seen[tick.Label] = true
			}
			if len(seen) != len(ticks) && top < 1<<40 {
				t.Fatalf("up to %d two ticks have one label: %v", top, ticks)
			}
		}
	}
}

// TestShort has numbers be short and true.
func TestShort(t *testing.T) {
	t.Parallel()
	for v, want := range map[int64]string{0: "0", 9999: "9999", 10_000: "10 k", 12_340: "12.34 k", 1_500_000: "1.5 M", 2e9: "2 G", 3e12: "3 T"} {
		if got := chart.Short(v, chart.Jobs); got != want {
			t.Errorf("%d is %q, want %q", v, got, want)
		}
	}
	for v, want := range map[int64]string{59: "59 s", 60: "1 min", 90: "1.5 min", 3599: "60 min", 5400: "1.5 h", 86_400: "1 d", 10*86_400 + 43_200: "10.5 d"} {
		if got := chart.Short(v, chart.Seconds); got != want {
			t.Errorf("%d seconds are %q, want %q", v, got, want)
		}
	}
}

// TestPath has a line broken where nothing is known, and a number alone be a dot.
func TestPath(t *testing.T) {
	t.Parallel()
	const none = chart.Missing
	for _, tt := range []struct {
		values []int64
		want   string
	}{
		{nil, ""},
		{[]int64{none, none}, ""},
		{[]int64{0, 5, 10}, "M0.0 50.0L50.0 25.0L100.0 0.0"},
		{[]int64{10, none, 5}, "M0.0 0.0h0M100.0 25.0h0"},
		{[]int64{0, 0, none, 1, 1}, "M0.0 50.0L25.0 50.0M75.0 45.0L100.0 45.0"},
		{[]int64{99}, "M0.0 0.0h0"},
	} {
		if got := chart.Path(tt.values, 10, 100, 50); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.values, got, tt.want)
		}
	}
	if got := chart.Path([]int64{3}, 0, 100, 50); strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Error(got)
	}
}
