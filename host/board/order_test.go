package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// byLabel orders jobs by the number in a label.
type byLabel struct {
	label    string
	sign     int64
	manifest policy.Manifest
	fail     atomic.Bool
	asked    atomic.Int64
}

func (p *byLabel) Manifest() policy.Manifest {
	m := p.manifest
	m.Name, m.Version, m.Ordering = "by-"+p.label, "1", true
	m.Labels = []string{p.label}
	return m
}

func (p *byLabel) Eligible(context.Context, *policy.Batch, []policy.Verdict) error { return nil }

func (p *byLabel) Score(_ context.Context, batch *policy.Batch, scores []int64) error {
	p.asked.Add(int64(len(batch.Jobs)))
	if p.fail.Load() {
		return errors.New("broken")
	}
	for i := range batch.Jobs {
		text, _ := filter.Label(batch.Jobs[i].Labels, p.label)
		n, _ := strconv.ParseInt(text, 10, 64)
		scores[i] = n * p.sign
		if len(batch.Jobs[i].Facts) > 0 {
			n, _ := batch.Jobs[i].Facts[0].(int64)
			scores[i] = n
		}
		if !batch.Now.IsZero() {
			scores[i] *= 1 - 2*(batch.Now.Unix()/10%2)
		}
	}
	return nil
}

func labelled(values ...int) []job.Posting {
	list := make([]job.Posting, len(values))
	for i, v := range values {
		list[i] = job.Posting{Name: strconv.Itoa(v), Labels: []job.Label{{Key: "n", Value: strconv.Itoa(v)}}, Details: fmt.Appendf(nil, `{"a":{"n":%d}}`, -v)}
	}
	return list
}

// line returns the names of the open jobs in claim order.
func line(t *testing.T, b *Board) string {
	t.Helper()
	page, err := b.List(t.Context(), ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, j := range page.Jobs {
		names = append(names, j.Name)
	}
	return strings.Join(names, " ")
}

func wantLine(t *testing.T, b *Board, want string) {
	t.Helper()
	if got := line(t, b); got != want {
		t.Fatalf("the jobs are in the order %s, want %s", got, want)
	}
}

func TestOrderByPolicy(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		up := &byLabel{label: "n", sign: 1}
		d := openStore(t)
		b := start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: up}}})
		post(t, b, labelled(1, 5, 3, 5)...)
		wantLine(t, b, "5 5 3 1")
		c := claimOne(t, b, ClaimRequest{})
		if c.Job.Name != "5" {
			t.Fatal(c.Job.Name)
		}
		asked := up.asked.Load()
		if asked != 4 {
			t.Fatalf("4 jobs were scored %d times", asked)
		}
		if _, err := b.Abandon(t.Context(), []Ref{refOf(b, c)}, AbandonOptions{}); err != nil {
			t.Fatal(err)
		}
		wantLine(t, b, "5 5 3 1") // where it was
		// Nothing of it is stored: another host orders by itself.
		other := start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: &byLabel{label: "n", sign: -1}}}})
		wantLine(t, other, "1 3 5 5")
		x, err := b.Explain(t.Context(), c.ID, "w", nil)
		if err != nil || x.Score == nil || *x.Score != 5 || x.Position != 0 {
			t.Fatalf("%+v %v", x, err)
		}
	})
}

func TestOrderIsSwapped(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		var values []int
		for i := range 3000 {
			values = append(values, i*7%3000)
		}
		for part := range slices.Chunk(values, 1000) {
			post(t, b, labelled(part...)...)
		}
		<-b.SetRules(Rules{Ordering: &Rule{Policy: &byLabel{label: "n", sign: 1}}})
		if c := claimOne(t, b, ClaimRequest{}); c.Job.Name != "2999" {
			t.Fatal(c.Job.Name)
		}
		<-b.SetRules(Rules{Ordering: &Rule{Policy: &byLabel{label: "n", sign: -1}}})
		if c := claimOne(t, b, ClaimRequest{}); c.Job.Name != "0" {
			t.Fatal(c.Job.Name)
		}
		<-b.SetRules(Rules{})
		if c := claimOne(t, b, ClaimRequest{}); c.Job.Name != "7" {
			t.Fatalf("%s, want the oldest one", c.Job.Name)
		}
	})
}

func TestListingEndsWithItsOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := &byLabel{label: "n", sign: 1}
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: p, ID: "1"}}})
		post(t, b, labelled(1, 2, 3)...)
		page, err := b.List(t.Context(), ListRequest{PageSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		next := ListRequest{PageSize: 1, PageToken: page.Next}
		if page, err = b.List(t.Context(), next); err != nil || page.Jobs[0].Name != "2" {
			t.Fatalf("%+v %v", page, err)
		}
		<-b.SetRules(Rules{Ordering: &Rule{Policy: p, ID: "2"}})
		if _, err = b.List(t.Context(), next); job.KindOf(err) != job.Aborted {
			t.Fatal(err)
		}
	})
}

func TestOrderByFacts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := &byLabel{label: "n", sign: 1}
		p.manifest.Facts = []policy.FactSpec{{Name: "n", Path: "/a/n", Type: policy.IntFact}}
		d := openStore(t)
		b := start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: p}}})
		post(t, b, labelled(1, 5, 3)...)
		wantLine(t, b, "1 3 5")
		wantLine(t, start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: p}}}), "1 3 5") // read when it was loaded
		late := start(t, d, Spec{})
		wantLine(t, late, "1 5 3")
		<-late.SetRules(Rules{Ordering: &Rule{Policy: p}}) // read when the policy came
		wantLine(t, late, "1 3 5")
	})
}

func TestOrderByTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := &byLabel{label: "n", sign: 1}
		p.manifest.ByTime, p.manifest.Tick = true, 10*time.Second
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: p}}})
		post(t, b, labelled(1, 5, 3)...)
		wantLine(t, b, "5 3 1")
		synctest.Wait()
		first := p.asked.Load() // a job that comes by its post and by the watch at the same time is asked about twice
		if first < 3 || first > 6 {
			t.Fatalf("3 jobs were scored %d times as they came", first)
		}
		time.Sleep(10 * time.Minute)
		if n := p.asked.Load(); n != first {
			t.Fatalf("3 jobs were scored %d times, though nobody looked", n)
		}
		time.Sleep(10 * time.Second)
		line(t, b) // somebody looks
		time.Sleep(time.Second)
		wantLine(t, b, "1 3 5")
		if n := p.asked.Load(); n != first+3 {
			t.Fatalf("3 jobs were scored %d times in two ticks", n)
		}
	})
}

func TestOrderingFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lenient bool
		before  bool
		want    string
	}{
		"known jobs stay where they are":       {false, false, "5 1 9"},
		"the version before scores what comes": {false, true, "9 5 1"},
		"the board's own order":                {true, true, "5 1 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				bad := &byLabel{label: "n", sign: 1}
				rules := Rules{Ordering: &Rule{Policy: bad, Lenient: c.lenient}}
				if c.before {
					rules.Before = &Rule{Policy: &byLabel{label: "n", sign: 1}}
				}
				b := start(t, openStore(t), Spec{Rules: rules})
				post(t, b, labelled(5)...)
				post(t, b, labelled(1)...)
				bad.fail.Store(true)
				post(t, b, labelled(9)...)
				wantLine(t, b, c.want)
				for range 5 {
					post(t, b, labelled(0)...)
				}
				// A job may come by its post and by the watch at the same time: it is asked about twice then.
				if n := bad.asked.Load(); n < 2+BreakerFaults || n > 2+2*BreakerFaults {
					t.Fatalf("the policy was asked about %d jobs after it failed", n-2)
				}
				if b.Metrics().PolicyErrors.Load() < 6 {
					t.Fatal(b.Metrics().PolicyErrors.Load())
				}
				bad.fail.Store(false)
				time.Sleep(10 * BreakerRest)
				wantLine(t, b, "9 5 1 0 0 0 0 0")
			})
		})
	}
}

// TestRulesUnderLoad swaps policies while workers claim: none may come away empty
// while there are jobs, and each job is had once.
func TestRulesUnderLoad(t *testing.T) {
	t.Parallel()
	b := start(t, openStore(t), Spec{})
	const jobs, workers = 2000, 4
	for range jobs / 500 {
		post(t, b, labelled(slices.Repeat([]int{1, 2, 3, 4, 5}, 100)...)...)
	}
	stop := make(chan struct{})
	var swapping, working sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			rules := Rules{Ordering: &Rule{Policy: &byLabel{label: "n", sign: int64(i%3 - 1)}}}
			if i%2 == 0 {
				rules.Eligibility = []Rule{{Policy: everything{}}}
			}
			<-b.SetRules(rules)
		}
	})
	var mu sync.Mutex
	seen := map[job.ID]bool{}
	for range workers {
		working.Go(func() {
			for range jobs / workers / 5 {
				r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", Max: 5})
				if err != nil || len(r.Claims) != 5 {
					t.Errorf("%d claims: %v", len(r.Claims), err)
					return
				}
				mu.Lock()
				for _, c := range r.Claims {
					if seen[c.ID] {
						t.Errorf("%s was claimed twice", c.ID)
					}
					seen[c.ID] = true
				}
				mu.Unlock()
			}
		})
	}
	working.Wait()
	close(stop)
	swapping.Wait()
}

// everything allows all jobs, and says so to each worker by itself.
type everything struct{}

func (everything) Manifest() policy.Manifest {
	return policy.Manifest{Name: "everything", Eligibility: true}
}

func (everything) Eligible(_ context.Context, _ *policy.Batch, verdicts []policy.Verdict) error {
	for i := range verdicts {
		verdicts[i].Decision = policy.Allow
	}
	return nil
}

func (everything) Score(context.Context, *policy.Batch, []int64) error { return nil }

func TestShadow(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		z := &zones{}
		b := start(t, openStore(t), Spec{})
		if b.Shadow() != nil {
			t.Fatal("there is no shadow")
		}
		post(t, b, labelled(1, 2, 3)...)
		<-b.SetRules(Rules{Shadow: &Rule{Policy: z}})
		if c := claim(t, b, ClaimRequest{Max: 2}); len(c) != 2 {
			t.Fatalf("a shadow decided: %d claims", len(c))
		}
		if r := b.Shadow(); r.Judged != 3 || r.Denies != 3 || r.Allows != 0 || len(r.Examples) != 3 {
			t.Fatalf("%+v", r)
		}
		post(t, b, labelled(5, 4)...)
		<-b.SetRules(Rules{Ordering: &Rule{Policy: &byLabel{label: "n", sign: 1}}, Shadow: &Rule{Policy: &byLabel{label: "n", sign: -1}}})
		wantLine(t, b, "5 4 3 2 1")
		if r := b.Shadow(); r.Pairs != 4 || r.Swaps != 4 || r.Policy != "by-n 1" {
			t.Fatalf("%+v", r)
		}
		z.setFail(true)
		<-b.SetRules(Rules{Shadow: &Rule{Policy: z}})
		if c := claim(t, b, ClaimRequest{Max: 5}); len(c) != 3 {
			t.Fatalf("a shadow that fails decided: %d claims", len(c))
		}
		if r := b.Shadow(); r.Errors == 0 {
			t.Fatalf("%+v", r)
		}
	})
}
