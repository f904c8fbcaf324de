package native_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/guest"
	"github.com/boardd/boardd/sdk/policy/native"
)

const manifest = `{
  "name": "probe", "version": "1", "abi": 1, "kinds": ["eligibility", "ordering", "explain"], "tick": "10s",
  "labels": ["tier", "gpu.*"], "workerLabels": ["zone"], "counts": "label:tier",
  "facts": [
    {"name": "i", "path": "/i", "type": "int"}, {"name": "f", "path": "/f", "type": "float"}, {"name": "b", "path": "/b", "type": "bool"},
    {"name": "s", "path": "/s", "type": "string"}, {"name": "t", "path": "/t", "type": "time"}, {"name": "none", "path": "/n", "type": "int"}
  ],
  "parameters": [
    {"name": "n", "type": "int", "default": 7}, {"name": "x", "type": "float", "default": 1.5}, {"name": "on", "type": "bool", "default": true},
    {"name": "text", "type": "string", "default": "abc"}, {"name": "slack", "type": "duration", "default": "90s"},
    {"name": "when", "type": "time", "default": "2030-01-31T09:00:00Z"}, {"name": "names", "type": "list", "default": ["a", "", "bcd"]},
    {"name": "weights", "type": "map", "default": {"b": 2, "a": "1"}}, {"name": "zone", "type": "zone", "default": "Europe/Berlin"},
    {"name": "unset", "type": "int"}
  ],
  "reasons": ["first", "second"]
}`

// dump writes down all that a guest can see of a job.
func dump(b guest.Batch, j guest.Job) string {
	var s strings.Builder
	zone, _ := b.Worker("zone")
	secret, shown := b.Worker("secret")
	fmt.Fprintf(&s, "now %d worker %q %q %v\n", b.Now(), zone, secret, shown)
	id := j.ID()
	fmt.Fprintf(&s, "job %x %d %d %d %d %d %d %d %q\n", id[:2], j.Sequence(), j.Created(), j.NotBefore(), j.Priority(), j.OperationPriority(), j.Attempt(), j.MaxAttempts(), j.Name())
	j.EachLabel(func(k, v string) bool { fmt.Fprintf(&s, "%s=%s ", k, v); return true })
	i, _ := j.Fact(0).Int()
	f, _ := j.Fact(1).Float()
	yes, _ := j.Fact(2).Bool()
	text, _ := j.Fact(3).Text()
	when, _ := j.Fact(4).Time()
	_, none := j.Fact(5).Int()
	fmt.Fprintf(&s, "\nfacts %d %g %v %q %d %v %v\n", i, f, yes, text, when, none, j.Fact(6).Present())
	return s.String()
}

func dumpParameters(b guest.Batch) string {
	var s strings.Builder
	n, _ := b.Parameter(0).Int()
	x, _ := b.Parameter(1).Float()
	on, _ := b.Parameter(2).Bool()
	text, _ := b.Parameter(3).Text()
	slack, _ := b.Parameter(4).Duration()
	when, _ := b.Parameter(5).Time()
	fmt.Fprintf(&s, "%d %g %v %s %d %d", n, x, on, text, slack, when)
	for i := range b.Parameter(6).Len() {
		fmt.Fprintf(&s, " %q", b.Parameter(6).Item(i))
	}
	b.Parameter(7).Each(func(k, v string) bool { fmt.Fprintf(&s, " %s=%s", k, v); return true })
	winter, _ := b.Parameter(8).Offset(time.Date(2030, 1, 15, 0, 0, 0, 0, time.UTC).UnixNano())
	summer, _ := b.Parameter(8).Offset(time.Date(2030, 7, 15, 0, 0, 0, 0, time.UTC).UnixNano())
	fmt.Fprintf(&s, " %d %d %v", winter, summer, b.Parameter(9).Present())
	return s.String()
}

func probe(configured *string) *guest.Policy {
	return &guest.Policy{
		Configure: func(b guest.Batch) error {
			if on, _ := b.Parameter(2).Bool(); !on {
				return errors.New("it has to be on")
			}
			*configured = dumpParameters(b)
			return nil
		},
		Eligible: func(_ guest.Batch, j guest.Job) guest.Verdict {
			switch j.Name() {
			case "panic":
				panic("as asked")
			case "nonsense":
				return guest.Verdict{Decision: 9}
			case "no-reason":
				return guest.Verdict{Reason: 2}
			}
			return guest.Verdict{Decision: guest.Decision(j.Attempt()), Reason: 1, Until: j.NotBefore()}
		},
		Score: func(_ guest.Batch, j guest.Job) int64 { return int64(j.Sequence()) },
		RankKey: func(_ guest.Batch, k guest.Key) guest.Rank {
			return guest.Rank{Score: -k.Running(), Full: k.Running() > 2}
		},
		Explain: func(b guest.Batch, j guest.Job) string { return dump(b, j) },
	}
}

func start(t testing.TB, set map[string]any) (policy.Explainer, string) {
	t.Helper()
	var configured string
	p, err := native.New([]byte(manifest), set, probe(&configured))
	if err != nil {
		t.Fatal(err)
	}
	return p, configured
}

var when = time.Date(2026, 11, 21, 12, 0, 17, 5, time.UTC)

func TestSeen(t *testing.T) {
	t.Parallel()
	p, configured := start(t, nil)
	if want := `7 1.5 true abc 90000000000 1896080400000000000 "a" "" "bcd" a=1 b=2 3600 7200 false`; configured != want {
		t.Errorf("parameters\n got %s\nwant %s", configured, want)
	}
	got, err := p.Explain(t.Context(), &policy.Batch{
		Now:    when,
		Worker: []job.Label{{Key: "secret", Value: "x"}, {Key: "zone", Value: "eu"}},
		Jobs: []policy.Job{{
			ID: job.ID{0xab, 0xcd}, Name: "render", Priority: job.High, OperationPriority: -3, Sequence: 41, Attempt: 2, MaxAttempts: 5,
			CreatedAt: when, NotBefore: time.Unix(5, 0),
			Labels: []job.Label{{Key: "gpu.kind", Value: "a100"}, {Key: "secret", Value: "y"}, {Key: "tier", Value: ""}},
			Facts:  []policy.Fact{int64(-4), 2.5, true, "text", time.Unix(0, 9), "of another type"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("now %d worker \"eu\" \"\" false\njob abcd 41 %d 5000000000 -1 -3 2 5 \"render\"\ngpu.kind=a100 tier= \nfacts -4 2.5 true \"text\" 9 false false\n",
		when.Truncate(time.Second).UnixNano(), when.UnixNano())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A label is found by its whole key, of whatever length.
func TestFind(t *testing.T) {
	t.Parallel()
	whole := "0123456789abcdef"
	var keys []string
	for n := range len(whole) + 1 {
		for i := range n {
			keys = append(keys, whole[:i]+"x"+whole[i+1:n])
		}
		keys = append(keys, whole[:n])
	}
	j := policy.Job{}
	for _, k := range keys {
		j.Labels = append(j.Labels, job.Label{Key: k, Value: "is " + k})
	}
	const labels = `{"name": "find", "version": "1", "abi": 1, "kinds": ["ordering"], "labels": ["*"]}`
	p, err := native.New([]byte(labels), nil, &guest.Policy{Score: func(_ guest.Batch, j guest.Job) (missed int64) {
		for _, k := range keys {
			if v, ok := j.Label(k); !ok || v != "is "+k {
				missed++
			}
			if _, ok := j.Label(k + "y"); ok {
				missed++
			}
		}
		return missed
	}})
	if err != nil {
		t.Fatal(err)
	}
	score := []int64{-1}
	if err := p.Score(t.Context(), &policy.Batch{Jobs: []policy.Job{j}}, score); err != nil || score[0] != 0 {
		t.Errorf("%d wrong, %v", score[0], err)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	p, _ := start(t, nil)
	jobs := []policy.Job{{Attempt: 0}, {Attempt: 1}, {Attempt: 2, NotBefore: when}}
	got := make([]policy.Verdict, 3)
	if err := p.Eligible(t.Context(), &policy.Batch{Jobs: jobs}, got); err != nil {
		t.Fatal(err)
	}
	want := []policy.Verdict{{Reason: 1}, {Decision: policy.Allow}, {Decision: policy.Defer, Reason: 1, Until: when}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{
		"panic":     "the policy failed: panic: as asked",
		"nonsense":  "job 1 of the batch: a decision of 9: want 0 (deny), 1 (allow) or 2 (defer)",
		"no-reason": "job 1 of the batch: reason 2: the manifest has 2",
	} {
		err := p.Eligible(t.Context(), &policy.Batch{Jobs: []policy.Job{{}, {Name: name}}}, got)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestRanks(t *testing.T) {
	t.Parallel()
	p, _ := start(t, nil)
	got := make([]policy.Rank, 2)
	keys := &policy.Keys{Keys: []policy.Key{{Key: "a", Running: 2}, {Key: "b", Running: 3}}}
	if err := p.(policy.Ranker).RankKeys(t.Context(), keys, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]policy.Rank{{Score: -2}, {Score: -3, Full: true}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	var s string
	_, err := native.New([]byte(manifest), map[string]any{"on": false}, probe(&s))
	if err == nil || !strings.Contains(err.Error(), "the policy probe refused its parameters: it has to be on") {
		t.Errorf("got %v", err)
	}
}

// Jobs whose labels fill several blocks are judged in several.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	p, _ := start(t, nil)
	batch := &policy.Batch{}
	for i := range 3000 {
		j := policy.Job{Sequence: uint64(i)}
		for k := range 4 {
			j.Labels = append(j.Labels, job.Label{Key: fmt.Sprintf("gpu.%d", k), Value: strings.Repeat("v", job.MaxLabelValue)})
		}
		batch.Jobs = append(batch.Jobs, j)
	}
	scores := make([]int64, len(batch.Jobs))
	if err := p.Score(t.Context(), batch, scores); err != nil {
		t.Fatal(err)
	}
	for i, s := range scores {
		if s != int64(i) {
			t.Fatalf("job %d has the score %d", i, s)
		}
	}
	one := policy.Job{Labels: []job.Label{{Key: "tier", Value: strings.Repeat("v", 0x10000)}}}
	if err := p.Score(t.Context(), &policy.Batch{Jobs: []policy.Job{one}}, scores); !errors.Is(err, job.Invalid) {
		t.Errorf("a label of 64 KiB: %v", err)
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	p, _ := start(t, nil)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			jobs := []policy.Job{{Sequence: uint64(g)}, {Sequence: uint64(g + 100)}}
			for range 200 {
				scores := make([]int64, 2)
				if err := p.Score(context.Background(), &policy.Batch{Jobs: jobs}, scores); err != nil || scores[0] != int64(g) || scores[1] != int64(g+100) {
					t.Errorf("%v, %v", scores, err)
				}
			}
		})
	}
	group.Wait()
}

// A guest's side of a block reads inside of it, whatever stands there.
func FuzzBlock(f *testing.F) {
	p := probe(new(string))
	for call := abi.Eligible; call <= abi.Explain; call++ {
		f.Add(uint32(call), sample(f, call))
	}
	f.Fuzz(func(t *testing.T, call uint32, mem []byte) {
		_ = guest.Handle(p, mem, abi.Call(call))
		b, err := guest.Open(mem)
		if err != nil {
			return
		}
		defer func() { _ = recover() }() // a bound that was checked is an answer
		_ = dumpParameters(b)
		for i := range min(b.Len(), 3) {
			_ = dump(b, b.Job(i))
		}
	})
}

func sample(tb testing.TB, call abi.Call) []byte {
	tb.Helper()
	p := &guest.Policy{}
	var seen []byte
	keep := func(b guest.Batch) { seen = append([]byte(nil), b.Memory()...) }
	p.Eligible = func(b guest.Batch, _ guest.Job) (v guest.Verdict) { keep(b); return v }
	p.Score = func(b guest.Batch, _ guest.Job) int64 { keep(b); return 0 }
	p.RankKey = func(b guest.Batch, _ guest.Key) (r guest.Rank) { keep(b); return r }
	p.Explain = func(b guest.Batch, _ guest.Job) string { keep(b); return "" }
	p.Configure = func(b guest.Batch) error { keep(b); return nil }
	rule, err := native.New([]byte(manifest), nil, p)
	if err != nil {
		tb.Fatal(err)
	}
	batch := &policy.Batch{Now: when, Worker: []job.Label{{Key: "zone", Value: "eu"}}, Jobs: []policy.Job{{
		Name: "n", Labels: []job.Label{{Key: "tier", Value: "1"}}, Facts: []policy.Fact{int64(1), 2.0, true, "s", when},
	}}}
	switch call {
	case abi.Eligible:
		err = rule.Eligible(tb.Context(), batch, make([]policy.Verdict, 1))
	case abi.Score:
		err = rule.Score(tb.Context(), batch, make([]int64, 1))
	case abi.RankKeys:
		err = rule.RankKeys(tb.Context(), &policy.Keys{Keys: []policy.Key{{Key: "k"}}}, make([]policy.Rank, 1))
	case abi.Explain:
		_, err = rule.Explain(tb.Context(), batch)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return seen
}
