package policies_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/build"
	"github.com/boardd/boardd/sdk/policy/policytest"
)

// usual are the policies with parameters as people set them, and what a job, or
// a key, may cost as a module, in units of fuel.
var usual = []struct {
	name string
	set  map[string]any
	fuel int64
}{
	{"aging", map[string]any{"step": "5m"}, 345},
	{"deadline", map[string]any{"slack": "2h"}, 570},
	{"fair-share", map[string]any{"weights": map[string]any{"key-1": 3, "key-2": "0.5", "gold": 0}}, 1800},
	{"labels", map[string]any{"keys": []string{"gpu", "zone", "x"}}, 6500},
	{"limit", map[string]any{"max": 3, "limits": map[string]any{"key-1": 0}}, 1750},
	{"rate", map[string]any{"max": 3, "limits": map[string]any{"key-1": 0}}, 1750},
	{"retry-first", nil, 290},
	{"windows", map[string]any{"windows": map[string]any{"gold": "mon-fri 08:00-18:00", "a": "22:00-06:00; sun 10:00-11:30"}, "zone": "Europe/Berlin"}, 1970},
}

func start(tb testing.TB, name string, set map[string]any) policy.Ranker {
	tb.Helper()
	p, err := policies.New(name, set)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// modules builds a policy's module. The test reads the sources itself, so that
// they belong to its inputs.
func moduleOf(tb testing.TB, name string) []byte {
	tb.Helper()
	folder := strings.ReplaceAll(name, "-", "")
	for _, pattern := range []string{folder + "/*", folder + "/module/*.go", "../sdk/policy/abi/*.go", "../sdk/policy/guest/*.go"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			_, _ = os.ReadFile(f)
		}
	}
	b, err := build.Folder(tb.Context(), filepath.Join(folder, "module"), os.Environ())
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(tb, missing.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Every policy behaves as a board relies on.
func TestConformance(t *testing.T) {
	t.Parallel()
	var names []string
	for _, u := range usual {
		names = append(names, u.name)
		t.Run(u.name, func(t *testing.T) { policytest.Run(t, start(t, u.name, u.set)) })
	}
	if !slices.Equal(names, policies.Names()) {
		t.Errorf("tested are %v, and there are %v", names, policies.Names())
	}
}

// As modules they give the same answers, and cost what their budget allows.
func TestModules(t *testing.T) {
	t.Parallel()
	// Compiling them takes longer than running them once.
	e, err := wasm.New(t.Context(), wasm.Config{Instances: 1, Interpreter: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	for _, u := range usual {
		t.Run(u.name, func(t *testing.T) {
			m, err := e.Load(t.Context(), moduleOf(t, u.name))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			p, err := m.Bind(t.Context(), u.set)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			policytest.Same(t, start(t, u.name, u.set), p)
			if each := costs(t, p); each > u.fuel || each < u.fuel*2/3 {
				t.Errorf("%d a record: the budget is %d; set it to what it costs and some room", each, u.fuel)
			} else {
				t.Logf("%d a record", each)
			}
		})
	}
}

// costs is the fuel for one record of a usual batch: the dearest call counts.
func costs(t *testing.T, p *wasm.Policy) (most int64) {
	t.Helper()
	batch := policytest.Batch(p.Manifest(), 256, 7)
	ask := map[bool]func() error{}
	m := p.Manifest()
	if m.Eligibility {
		ask[true] = func() error { return p.Eligible(t.Context(), batch, make([]policy.Verdict, 256)) }
	}
	if m.Ordering && m.Counts == "" {
		ask[false] = func() error { return p.Score(t.Context(), batch, make([]int64, 256)) }
	}
	if m.Counts != "" {
		keys := &policy.Keys{}
		for i := range 256 {
			keys.Keys = append(keys.Keys, policy.Key{Key: fmt.Sprintf("key-%d", i), Running: int64(i % 7), Waiting: 5, Served: 50})
		}
		ask[true] = func() error { return p.RankKeys(t.Context(), keys, make([]policy.Rank, 256)) }
	}
	for _, call := range ask {
		if err := call(); err != nil {
			t.Fatal(err)
		}
		most = max(most, p.Used()/256)
	}
	return most
}

func labels(pairs ...string) (l []job.Label) {
	for i := 0; i < len(pairs); i += 2 {
		l = append(l, job.Label{Key: pairs[i], Value: pairs[i+1]})
	}
	return l
}

func TestLabels(t *testing.T) {
	t.Parallel()
	some := start(t, "labels", map[string]any{"keys": []string{"gpu", "zone"}})
	all := start(t, "labels", nil)
	for _, test := range []struct {
		worker, job []job.Label
		want        policy.Decision
		score       int64
	}{
		{nil, nil, policy.Allow, 0},
		{nil, labels("requires.gpu", "a100"), policy.Deny, 0},
		{labels("gpu", "a100"), labels("requires.gpu", "a100"), policy.Allow, 0},
		{labels("gpu", "h100"), labels("requires.gpu", "a100"), policy.Deny, 0},
		{labels("gpu", "h100"), labels("requires.gpu", "a100|h100"), policy.Allow, 0},
		{labels("gpu", "h100"), labels("requires.gpu", "*"), policy.Allow, 0},
		{labels("gpu", ""), labels("requires.gpu", ""), policy.Allow, 0},
		{nil, labels("requires.gpu", ""), policy.Deny, 0},
		{labels("gpu", "h100"), labels("requires.gpu", "h100", "requires.zone", "eu"), policy.Deny, 0},
		{labels("zone", "eu"), labels("prefers.gpu", "*", "prefers.zone", "us|eu"), policy.Allow, 1},
		{labels("gpu", "x", "zone", "eu"), labels("prefers.gpu", "*", "prefers.zone", "us|eu"), policy.Allow, 2},
	} {
		for which, p := range map[string]policy.Ranker{"some": some, "all": all} {
			if decision, score := judged(t, p, test.worker, test.job); decision != test.want || score != test.score {
				t.Errorf("worker %v, job %v, of %s keys: %v and %d, want %v and %d", test.worker, test.job, which, decision, score, test.want, test.score)
			}
		}
	}
	other := labels("prefers.other", "*", "requires.other", "is no key")
	if decision, score := judged(t, some, nil, other); decision != policy.Allow || score != 0 {
		t.Errorf("a label that is no key: %v and %d", decision, score)
	}
	if decision, score := judged(t, all, nil, other); decision != policy.Deny || score != 0 {
		t.Errorf("a label that any worker lacks: %v and %d", decision, score)
	}
	if decision, score := judged(t, all, labels("other", "is no key"), other); decision != policy.Allow || score != 1 {
		t.Errorf("a label that the worker has: %v and %d", decision, score)
	}
	for _, p := range []policy.Ranker{some, all} {
		explains(t, p)
	}
}

// judged asks a policy about one job.
func judged(t *testing.T, p policy.Ranker, worker, of []job.Label) (policy.Decision, int64) {
	t.Helper()
	batch := &policy.Batch{Worker: worker, Jobs: []policy.Job{{Labels: of}}}
	verdict, score := make([]policy.Verdict, 1), make([]int64, 1)
	if err := errors.Join(p.Eligible(t.Context(), batch, verdict), p.Score(t.Context(), batch, score)); err != nil {
		t.Fatal(err)
	}
	return verdict[0].Decision, score[0]
}

// explains looks at what the policy labels says of a job.
func explains(t *testing.T, p policy.Ranker) {
	t.Helper()
	text, err := p.(policy.Explainer).Explain(t.Context(), &policy.Batch{Worker: labels("gpu", "h100"), Jobs: []policy.Job{{Labels: labels("requires.gpu", "a100")}}})
	if want := "the job requires gpu=a100, and the worker has gpu=h100"; err != nil || text != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
}

// order returns the names of jobs by a policy's scores, ties as they stand.
func order(t *testing.T, p policy.Policy, jobs []policy.Job) (names []string) {
	t.Helper()
	scores := make([]int64, len(jobs))
	if err := p.Score(t.Context(), &policy.Batch{Jobs: jobs}, scores); err != nil {
		t.Fatal(err)
	}
	at := make([]int, len(jobs))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return -cmpInt(scores[a], scores[b]) })
	for _, i := range at {
		names = append(names, jobs[i].Name)
	}
	return names
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) // a Saturday

func TestOrders(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	for _, test := range []struct {
		name string
		set  map[string]any
		jobs []policy.Job
		want string
	}{
		{"aging", map[string]any{"step": "10m"}, []policy.Job{
			{Name: "low-old", Priority: job.Low, CreatedAt: at(-21 * time.Minute)},
			{Name: "normal", Priority: job.Normal, CreatedAt: at(-10 * time.Minute)},
			{Name: "high-new", Priority: job.High, CreatedAt: at(0)},
			{Name: "high-newer", Priority: job.High, CreatedAt: at(time.Microsecond)},
			{Name: "low-new", Priority: job.Low, CreatedAt: at(0)},
		}, "low-old normal high-new high-newer low-new"},
		{"deadline", map[string]any{"slack": "1h"}, []policy.Job{
			{Name: "none", CreatedAt: noon},
			{Name: "soon", CreatedAt: noon, Facts: []policy.Fact{at(30 * time.Minute)}},
			{Name: "late", CreatedAt: noon, Facts: []policy.Fact{at(-time.Hour)}},
			{Name: "far", CreatedAt: noon, Facts: []policy.Fact{at(2 * time.Hour)}},
			{Name: "number", CreatedAt: at(2 * time.Hour), Facts: []policy.Fact{int64(7)}},
		}, "late soon none far number"},
		{"retry-first", nil, []policy.Job{{Name: "new"}, {Name: "tried", Attempt: 1}, {Name: "often", Attempt: 3}}, "tried often new"},
		{"retry-first", map[string]any{"last": true}, []policy.Job{{Name: "tried", Attempt: 1}, {Name: "new"}}, "new tried"},
	} {
		if got := strings.Join(order(t, start(t, test.name, test.set), test.jobs), " "); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func rank(t *testing.T, p policy.Ranker, keys ...policy.Key) []policy.Rank {
	t.Helper()
	ranks := make([]policy.Rank, len(keys))
	if err := p.RankKeys(t.Context(), &policy.Keys{Keys: keys}, ranks); err != nil {
		t.Fatal(err)
	}
	return ranks
}

// Whoever asks for the best key again and again gives each its share.
func TestFairShare(t *testing.T) {
	t.Parallel()
	p := start(t, "fair-share", map[string]any{"weights": map[string]any{"a": 3, "b": 1, "spare": 0, "half": "0.5"}})
	for _, running := range []bool{true, false} { // jobs that take for ever, and jobs that take no time
		keys := []policy.Key{{Key: "a"}, {Key: "b"}, {Key: "other"}, {Key: "half"}, {Key: "spare"}}
		got := map[string]int64{}
		for range 1100 {
			best := 0
			for i, r := range rank(t, p, keys...) {
				if r.Score > rank(t, p, keys[best])[0].Score {
					best = i
				}
			}
			got[keys[best].Key]++
			keys[best].Served++
			if running {
				keys[best].Running++
			}
		}
		if diff := cmp.Diff(map[string]int64{"a": 600, "b": 200, "other": 200, "half": 100}, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	p := start(t, "limit", map[string]any{"max": 2, "limits": map[string]any{"none": 0, "many": 100}})
	for _, test := range []struct {
		key     string
		running int64
		full    bool
	}{
		{"x", 0, false}, {"x", 1, false}, {"x", 2, true}, {"x", 3, true}, {"none", 0, true}, {"many", 99, false}, {"many", 100, true}, {"", 1 << 40, false},
	} {
		if r := rank(t, p, policy.Key{Key: test.key, Running: test.running}); r[0].Full != test.full {
			t.Errorf("%q with %d running: %v", test.key, test.running, r[0].Full)
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	p := start(t, "rate", map[string]any{"by": "name", "max": 2, "per": "1h", "limits": map[string]any{"none": 0, "many": 100}})
	if m := p.Manifest(); m.Counts != "name" || m.Period != time.Hour {
		t.Errorf("it counts %q in each %v, want names in each hour", m.Counts, m.Period)
	}
	for _, test := range []struct {
		key     string
		claimed int64
		full    bool
	}{
		{"x", 1, false}, {"x", 2, true}, {"none", 0, true}, {"many", 99, false}, {"many", 100, true}, {"", 1 << 40, false},
	} {
		if r := rank(t, p, policy.Key{Key: test.key, Running: test.claimed}); r[0].Full != test.full {
			t.Errorf("%q with %d claimed: %v", test.key, test.claimed, r[0].Full)
		}
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	set := map[string]any{"zone": "Europe/Berlin", "windows": map[string]any{
		"office": "mon-fri 08:00-18:00", "night": "22:00-06:00", "weekend": "sat,sun 00:00-24:00", "wrap": "sat-mon 12:00-13:00",
	}}
	p := start(t, "windows", set)
	set["always"] = "night"
	bound := start(t, "windows", set)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		testneed.Skip(t, "no time zones are installed: "+err.Error())
	}
	at := func(day, hour, minute int) time.Time {
		return time.Date(2026, 11, day, hour, minute, 0, 0, berlin).UTC()
	} // the 21st is a Saturday
	for _, test := range []struct {
		policy policy.Policy
		window string
		now    time.Time
		want   policy.Verdict
	}{
		{p, "", at(21, 12, 0), policy.Verdict{Decision: policy.Allow}},
		{p, "office", at(20, 17, 59), policy.Verdict{Decision: policy.Allow, Until: at(20, 18, 0)}},
		{p, "office", at(20, 18, 0), policy.Verdict{Decision: policy.Defer, Until: at(23, 8, 0)}},
		{p, "office", at(21, 12, 0), policy.Verdict{Decision: policy.Defer, Until: at(23, 8, 0)}},
		{p, "night", at(21, 23, 30), policy.Verdict{Decision: policy.Allow, Until: at(22, 6, 0)}},
		{p, "night", at(22, 23, 30), policy.Verdict{Decision: policy.Allow, Until: at(23, 6, 0)}}, // Sunday into Monday
		{p, "night", at(23, 5, 59), policy.Verdict{Decision: policy.Allow, Until: at(23, 6, 0)}},
		{p, "night", at(23, 6, 0), policy.Verdict{Decision: policy.Defer, Until: at(23, 22, 0)}},
		{p, "weekend", at(22, 12, 0), policy.Verdict{Decision: policy.Allow, Until: at(23, 0, 0)}},
		{p, "wrap", at(23, 12, 30), policy.Verdict{Decision: policy.Allow, Until: at(23, 13, 0)}},
		{p, "wrap", at(24, 12, 30), policy.Verdict{Decision: policy.Defer, Until: at(28, 12, 0)}},
		{p, "nobody", at(21, 12, 0), policy.Verdict{Decision: policy.Deny, Reason: 1}},
		{bound, "", at(21, 12, 0), policy.Verdict{Decision: policy.Defer, Until: at(21, 22, 0)}},
		{p, "office", time.Date(2026, 7, 6, 6, 30, 0, 0, time.UTC), policy.Verdict{Decision: policy.Allow, Until: time.Date(2026, 7, 6, 16, 0, 0, 0, time.UTC)}}, // in summer
	} {
		batch := &policy.Batch{Now: test.now.Add(17 * time.Second), Jobs: []policy.Job{{}}}
		if test.window != "" {
			batch.Jobs[0].Labels = labels("window", test.window)
		}
		got := make([]policy.Verdict, 1)
		if err := test.policy.Eligible(t.Context(), batch, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got[0]); diff != "" {
			t.Errorf("%s at %s: %s", test.window, test.now.In(berlin), diff)
		}
	}
}

func TestWrongParameters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		set  map[string]any
		want string
	}{
		{"fair-share", map[string]any{"weights": map[string]any{"a": "-1"}}, "weights: a is -1: want a number from 0"},
		{"fair-share", map[string]any{"weights": map[string]any{"a": "0.0001"}}, "at most three digits"},
		{"fair-share", map[string]any{"by": "team"}, `want "label:KEY"`},
		{"limit", map[string]any{"max": -1}, "max is -1: want 0 or more"},
		{"limit", map[string]any{"limits": map[string]any{"a": "1.5"}}, "limits: a is 1.5: want a whole number"},
		{"rate", map[string]any{"max": -1}, "max is -1: want 0 or more"},
		{"rate", map[string]any{"limits": map[string]any{"a": "1.5"}}, "limits: a is 1.5: want a whole number"},
		{"rate", map[string]any{"per": "0s"}, "parameter per: 0s: want whole seconds, from 1s to 744h0m0s"},
		{"rate", map[string]any{"per": "1.5s"}, "period: 1.5s: want whole seconds, from 1s to 744h0m0s"},
		{"rate", map[string]any{"per": "744h1s"}, "period: 744h0m1s: want whole seconds"},
		{"aging", map[string]any{"step": "-1s"}, "want a duration from 0s"},
		{"aging", map[string]any{"steps": "1s"}, `it has no parameter "steps" (did you mean "step"?); there are step`},
		{"deadline", map[string]any{"path": "deadline"}, "want a JSON pointer"},
		{"windows", map[string]any{"windows": map[string]any{"a": "8-18"}}, "windows: a: 8-18: want hours such as 08:00-18:00"},
		{"windows", map[string]any{"windows": map[string]any{"a": "monday 08:00-18:00"}}, "monday: want days"},
		{"windows", map[string]any{"windows": map[string]any{"a": "24:01-25:00"}}, "want hours"},
		{"windows", map[string]any{"windows": map[string]any{"a": "08:00-09:00"}, "always": "b"}, "no window is called b"},
		{"windows", map[string]any{"windows": map[string]any{"a": "08:00-09:00"}, "zone": "Local"}, "different on each machine"},
		{"fairshare", nil, `did you mean "fair-share"?`},
		{"zzz", nil, "boardd brings aging, deadline, fair-share"},
	} {
		if _, err := policies.New(test.name, test.set); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %v: got %v, want %s", test.name, test.set, err, test.want)
		}
	}
}
