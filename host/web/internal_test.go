package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/chart"
)

// TestVisits has visits end when they are idle, old, or too many.
func TestVisits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newVisits(func() time.Time { return now })
	v := s.begin(nil)
	for range 2 * totalTime / idleTime {
		if now = now.Add(idleTime - 1); s.use(v.id) == nil {
			break
		}
	}
	if age := now.Sub(v.begun); age < totalTime || age >= totalTime+idleTime {
		t.Errorf("a visit in use ended after %v, want %v", age, totalTime)
	}
	v = s.begin(nil)
	if now = now.Add(idleTime); s.use(v.id) != nil || s.stands(v) {
		t.Errorf("an idle visit goes on after %v", idleTime)
	}
	s = newVisits(func() time.Time { return now })
	first := s.begin(nil)
	for range maxVisits - 1 {
		now = now.Add(time.Millisecond)
		s.begin(nil)
	}
	if !s.stands(first) || len(s.byID) != maxVisits {
		t.Errorf("at the limit there are %d visits and the first stands: %v", len(s.byID), s.stands(first))
	}
	now = now.Add(time.Millisecond)
	s.begin(nil)
	if len(s.byID) != maxVisits || s.stands(first) {
		t.Errorf("over the limit there are %d visits and the idlest stands: %v", len(s.byID), s.stands(first))
	}
}

// TestPagesByThemselves: what an open page asks for by itself is answered, and does not keep its
// visit from its end.
func TestPagesByThemselves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pattern, path, header string
		uses                  bool
	}{
		"a person":            {"GET /ui/boards/{board}", "/ui/boards/jobs", "", true},
		"a page that fetches": {"GET /ui/boards/{board}", "/ui/boards/jobs", byItself, false},
		"a page that listens": {"GET " + streamPath, "/ui/boards/jobs/live", "", false},
	} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		s := newVisits(func() time.Time { return now })
		v := s.begin(nil)
		var got *visit
		mux := http.NewServeMux()
		mux.HandleFunc(test.pattern, func(_ http.ResponseWriter, r *http.Request) { got = s.of(r) })
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, http.NoBody)
		r.AddCookie(&http.Cookie{Name: cookieName(r), Value: v.id})
		if test.header != "" {
			r.Header.Set(test.header, "1")
		}
		now = now.Add(idleTime - 1)
		if mux.ServeHTTP(httptest.NewRecorder(), r); got != v {
			t.Errorf("%s: the visit is not known", name)
		}
		if now = now.Add(1); s.stands(v) != test.uses {
			t.Errorf("%s: the visit stands %s after it began: %v, want %v", name, idleTime, s.stands(v), test.uses)
		}
	}
}

// TestHere has links to the sign-in page lead nowhere else.
func TestHere(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"":                              "/",
		"/":                             "/",
		"/ui/boards/a?tab=open&x=%20y":  "/ui/boards/a?tab=open&x=%20y",
		"https://evil.example/ui/":      "/",
		"//evil.example/ui/":            "/",
		`/\evil.example/ui/`:            "/",
		`/ui/\evil.example`:             "/",
		"javascript:alert(1)//ui/":      "/",
		"/boardd.v1.BoardService/x":     "/",
		"/ui/boards/a\r\nSet-Cookie: x": "/",
	} {
		if got := here(to); got != want {
			t.Errorf("here(%q) is %q, want %q", to, got, want)
		}
	}
}

// TestTree has details of every shape, and what is too large for a page cut.
func TestTree(t *testing.T) {
	t.Parallel()
	if root := tree([]byte(`{"a":[1,2.50,"x",true,null,{}],"a b":1e400}`)); root.Count != 2 || root.Children[0].Count != 6 ||
		root.Children[0].Children[1].Value != "2.50" || root.Children[1].Name != "a b" || root.Children[1].Value != "1e400" {
		t.Errorf("the tree is %+v", root)
	}
	count := func(root *node) (n int, cut bool) {
		var walk func(*node)
		walk = func(x *node) {
			n, cut = n+1, cut || x.Cut
			for _, c := range x.Children {
				walk(c)
			}
		}
		walk(root)
		return n, cut
	}
	for name, test := range map[string]struct {
		text string
		cut  bool
	}{
		"as many as fit":  {"[" + strings.TrimSuffix(strings.Repeat("1,", maxTreeNodes-1), ",") + "]", false},
		"one too many":    {"[" + strings.TrimSuffix(strings.Repeat("1,", maxTreeNodes), ",") + "]", true},
		"as deep as fits": {strings.Repeat("[", maxTreeDepth+1) + strings.Repeat("]", maxTreeDepth+1), false},
		"too deep":        {strings.Repeat("[", maxTreeDepth+2) + strings.Repeat("]", maxTreeDepth+2), true},
		"long text":       {`"` + strings.Repeat("x", maxTreeText) + `"`, false},
		"too long text":   {`"` + strings.Repeat("x", maxTreeText+1) + `"`, true},
		"broken":          {`{"a":`, true},
	} {
		if n, cut := count(tree([]byte(test.text))); n > maxTreeNodes || cut != test.cut {
			t.Errorf("%s: %d nodes, cut %v, want at most %d, cut %v", name, n, cut, maxTreeNodes, test.cut)
		}
	}
}

// FuzzTree has any bytes shown without a crash, and never more than a page takes.
func FuzzTree(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}]}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if root := tree(text); root == nil || json.Valid(text) && root.Sort == "" && root.Value == "" {
			t.Errorf("%q has the tree %+v", text, root)
		}
	})
}

// TestSpark has a line where something is known, and words for it.
func TestSpark(t *testing.T) {
	t.Parallel()
	picture := string(spark("Waiting <jobs>", []int64{chart.Missing, 3, 64, chart.Missing, 7, 7}))
	for _, want := range []string{"now 7, at most 64", "<strong>7</strong>", "6 min ago"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture does not say %q: %s", want, picture)
		}
	}
	if strings.Count(picture, "M") != 2 || strings.Contains(picture, "<jobs>") {
		t.Errorf("the picture is %s", picture)
	}
	if old := string(spark("x", []int64{3, 4, chart.Missing})); !strings.Contains(old, "<strong>4</strong> last") {
		t.Errorf("what was known last is shown as if it were so now: %s", old)
	}
	for _, values := range [][]int64{nil, {chart.Missing, chart.Missing}, {5, chart.Missing}} {
		if got := string(spark("x", values)); !strings.Contains(got, "no graph yet") {
			t.Errorf("%v: %s", values, got)
		}
	}
}

// TestFacts has what a worker says of itself shown in words, and nothing else
// taken apart.
func TestFacts(t *testing.T) {
	t.Parallel()
	got := facts([]byte(`{"labels":{"gpu":"a100","b":"c"},"names":["x","y"],"concurrency":4,"host":"<vm>","deep":{"a":[1]}}`))
	want := []fact{{"labels", "b=c, gpu=a100"}, {"names", "x, y"}, {"concurrency", "4"}, {"host", "<vm>"}, {"deep", `{"a":[1]}`}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, other := range []string{"", "null", "[1]", `"text"`, "{", `{"a":`, `{"a" 1}`} {
		if got := facts([]byte(other)); len(got) > 0 {
			t.Errorf("%s: %v", other, got)
		}
	}
	if got := facts([]byte("{" + strings.TrimSuffix(strings.Repeat(`"a":1,`, maxFacts+1), ",") + "}")); len(got) != maxFacts {
		t.Errorf("%d of too many are shown", len(got))
	}
}

// TestUsageSaysOneThing: the bar is red where the number is.
func TestUsageSaysOneThing(t *testing.T) {
	t.Parallel()
	for limit := int64(1); limit < 200; limit++ {
		for now := range limit + 1 {
			if u := (usage{Now: now, Limit: limit}); u.Near() != (float64(now) > u.High()) || u.Low() > u.High() {
				t.Errorf("%d of %d: near %v, and the bar is red above %v", now, limit, u.Near(), u.High())
			}
		}
	}
}

// TestSaid has what workers say of themselves cut between two characters.
func TestSaid(t *testing.T) {
	t.Parallel()
	whole, long := strings.Repeat("x", maxSaid), strings.Repeat("x", maxSaid-1)+"é"
	for text, want := range map[string]string{"": "", "{}": "", whole: whole, long: whole[1:] + "…"} {
		if got := said([]byte(text)); got != want {
			t.Errorf("%d bytes are shown as %d: %q", len(text), len(got), got)
		}
	}
}

// TestShortDurations has times written as people do.
func TestShortDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1 ms", 450 * time.Millisecond: "450 ms", time.Second: "1 s", 1440 * time.Millisecond: "1.4 s", 99 * time.Second: "99 s", 100 * time.Second: "1.7 min",
		99 * time.Minute: "99 min", 100 * time.Minute: "1.7 h", 71 * time.Hour: "71 h", 72 * time.Hour: "3 d", 40 * 24 * time.Hour: "40 d", 9960 * time.Millisecond: "10 s",
	} {
		if got := about(d); got != want {
			t.Errorf("about(%v) is %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{5 * time.Minute: "5m", time.Hour: "1h", 90 * time.Second: "1m30s", 70 * time.Minute: "1h10m", 10 * time.Second: "10s", time.Hour + time.Second: "1h0m1s", 600 * time.Hour: "600h"} {
		if got := brief(d); got != want {
			t.Errorf("brief(%v) is %q, want %q", d, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "less than 1 s", time.Second: "1 s", time.Minute - 1: "59 s", time.Minute: "1 min 0 s",
		time.Hour - 1: "59 min 59 s", time.Hour: "1 h 0 min", 24*time.Hour - 1: "23 h 59 min", 24 * time.Hour: "1 d 0 h",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) is %q, want %q", d, got, want)
		}
	}
	now := time.Now()
	if got := since(now, now.Add(time.Minute)); got != "in 1 min 0 s" || since(now, time.Time{}) != "" {
		t.Errorf("a minute from now is %q", got)
	}
	if got := strings.Join([]string{size(1023), size(1024), size(1 << 20)}, ", "); got != "1023 bytes, 1.0 KiB, 1.0 MiB" {
		t.Error(got)
	}
}
