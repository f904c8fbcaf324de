package board

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// shadowed waits until a comparison was made, and returns what all of them found.
func shadowed(t *testing.T, b *Board) ShadowReport {
	t.Helper()
	for range 100 {
		synctest.Wait()
		if r := b.Shadow(); r.Pairs > 0 || r.Errors > 0 {
			return *r
		}
		time.Sleep(compareEvery)
		wantClaims(t, b, 0)
	}
	t.Fatal("no comparison was made")
	return ShadowReport{}
}

// wantClaims looks at the board as a worker whom no job suits.
func wantClaims(t *testing.T, b *Board, n int) {
	t.Helper()
	if c := claim(t, b, ClaimRequest{Names: []string{"none"}}); len(c) != n {
		t.Fatalf("got %d claims, want %d", len(c), n)
	}
}

// weighted is fair with more for one team.
func weighted(team string, weight int64) *ranker {
	return &ranker{rank: func(k policy.Key, _ time.Time) policy.Rank {
		share := k.Running<<20 + k.Served
		if k.Key == team {
			share /= weight
		}
		return policy.Rank{Score: -share}
	}}
}

func byName(p *ranker) *ranker {
	p.counts = "name"
	return p
}

func TestShadowOfRanking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		active policy.Policy // nil: the board's own order
		shadow policy.Policy
		jobs   string // each of the team of its letter
		claims int    // before
		want   ShadowReport
	}{
		"the same":      {fair(), fair(), "aaaaaaaabbbc", 3, ShadowReport{Pairs: 36, Judged: 9}},
		"other keys":    {fair(), byName(fair()), "aaaabbbc", 0, ShadowReport{Pairs: 28, Judged: 8}},
		"other weights": {fair(), weighted("b", 3), "aaaabbbb", 0, ShadowReport{Pairs: 28, Judged: 8, Swaps: 5}}, // abbbabaa
		"none before":   {nil, fair(), "aaaabbbb", 0, ShadowReport{Pairs: 28, Judged: 8, Swaps: 6}},
		// It gives two of each, and holds two of a and one of b back: in which order those would come nobody knows.
		"a limit":         {nil, atMost(2), "aaaabbb", 0, ShadowReport{Pairs: 18, Swaps: 4, Judged: 7, Denies: 3}},
		"a lower limit":   {atMost(3), atMost(2), "aaaabb", 2, ShadowReport{Pairs: 3, Swaps: 2, Judged: 3, Denies: 1}},
		"no limit":        {atMost(2), fair(), "aaaabb", 0, ShadowReport{Pairs: 14, Swaps: 1, Judged: 6, Allows: 2}},
		"scores of jobs":  {fair(), &byLabel{label: "n", sign: 1}, "aabb", 0, ShadowReport{Pairs: 6, Judged: 4, Swaps: 1}},
		"a line too long": {fair(), fair(), strings.Repeat("abc", 50), 0, ShadowReport{Pairs: 4950, Judged: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				rules := Rules{}
				if c.active != nil {
					rules.Ordering = &Rule{Policy: c.active}
				}
				b := start(t, openStore(t), Spec{Rules: rules})
				post(t, b, teams(c.jobs)...)
				if c.claims > 0 {
					claim(t, b, ClaimRequest{Max: c.claims})
				}
				rules.Shadow = &Rule{Policy: c.shadow}
				<-b.SetRules(rules)
				got := shadowed(t, b)
				if n := min(int(got.Swaps+got.Denies+got.Allows), 1); (len(got.Examples) > 0) != (n > 0) {
					t.Errorf("examples: %v", got.Examples)
				}
				if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(ShadowReport{}, "Policy", "Examples")); diff != "" {
					t.Error(diff, got.Examples)
				}
			})
		})
	}
}

// Claims that go on make no difference between two orders that are the same.
func TestShadowUnderLoad(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		rules := Rules{Ordering: &Rule{Policy: fair()}, Shadow: &Rule{Policy: fair()}}
		b := start(t, openStore(t), Spec{Rules: rules})
		postTeams(t, b, 3000, 20)
		for range 4 {
			go func() {
				for range 300 {
					r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", Max: 3})
					var refs []Ref
					for _, c := range r.Claims {
						refs = append(refs, refOf(b, c))
					}
					time.Sleep(compareEvery / 10)
					errs, err2 := b.Consume(t.Context(), refs)
					if err := errors.Join(append(errs, err, err2)...); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		time.Sleep(31 * compareEvery)
		synctest.Wait()
		if r := b.Shadow(); r.Judged < 20*MaxShadowLine || r.Pairs == 0 || r.Swaps+r.Denies+r.Allows+r.Errors > 0 {
			t.Fatalf("%+v", r)
		}
	})
}

// A shadow that fails is counted, and nobody else notices.
func TestShadowOfRankingFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := fair()
		p.fail.Store(true)
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: fair()}, Shadow: &Rule{Policy: p}}})
		post(t, b, teams("aabb")...)
		if r := shadowed(t, b); r.Errors != 1 || r.Pairs != 0 || r.Judged != 0 {
			t.Fatalf("%+v", r)
		}
		wantNames(t, b, 4, "abab")
		p.fail.Store(false)
		post(t, b, teams("cc")...)
		for range 10 {
			time.Sleep(BreakerLongest)
			wantClaims(t, b, 0)
		}
		synctest.Wait()
		time.Sleep(compareEvery)
		if r := b.Shadow(); r.Pairs == 0 || r.Swaps != 0 {
			t.Fatalf("it is well again: %+v", r)
		}
	})
}

// What decides is asked for the comparison, too, and does not suffer if that fails.
func TestShadowOfRankingThatFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		active := fair()
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: active}}})
		post(t, b, teams("aabb")...)
		<-b.SetRules(Rules{Ordering: &Rule{Policy: active}, Shadow: &Rule{Policy: &ranker{rank: func(k policy.Key, _ time.Time) policy.Rank {
			active.fail.Store(true) // the shadow is asked after it
			return policy.Rank{}
		}}}})
		shadowed(t, b)
		before := b.Metrics().PolicyErrors.Load()
		for range 5 {
			time.Sleep(2 * compareEvery)
			wantClaims(t, b, 0)
		}
		if n := b.Metrics().PolicyErrors.Load(); n != before || b.Shadow().Errors > 0 {
			t.Fatalf("the comparison failed %d times at the board's cost: %+v", n-before, b.Shadow())
		}
		active.fail.Store(false)
		wantNames(t, b, 4, "abab")
	})
}

// What was served counts also where only the shadow groups by it.
func TestShadowIsServed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var seen atomic.Int64
		p := &ranker{rank: func(k policy.Key, _ time.Time) policy.Rank {
			if k.Key == "a" && k.Running == 0 {
				seen.Store(k.Served)
			}
			return policy.Rank{Score: -k.Served}
		}}
		b := start(t, openStore(t), Spec{Rules: Rules{Shadow: &Rule{Policy: p}}})
		post(t, b, teams("aaaaaaaaabbb")...)
		consume(t, b, wantNames(t, b, 8, "aaaaaaaa")...)
		time.Sleep(2 * compareEvery)
		wantClaims(t, b, 0)
		time.Sleep(compareEvery)
		if n := seen.Load(); n != 8 {
			t.Fatalf("a was served %d times, want 8", n)
		}
		if r := b.Shadow(); r.Swaps == 0 {
			t.Fatalf("it wants b first by now: %+v", r)
		}
		time.Sleep(2 * time.Hour)
		wantClaims(t, b, 0)
		time.Sleep(compareEvery)
		if n := seen.Load(); n != 2 {
			t.Fatalf("after two half-lives a was served %d times, want 2", n)
		}
	})
}

// groupless knows of no keys: it says so.
type groupless struct{ policy.Policy }

func (groupless) Manifest() policy.Manifest {
	return policy.Manifest{Name: "groupless", Counts: "name"}
}

// Keys may be facts, and a policy that declares counts has to rank.
func TestShadowByFacts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := fair()
		p.counts, p.facts = "fact:who", []policy.FactSpec{{Name: "who", Path: "/team", Type: policy.StringFact}}
		b := start(t, openStore(t), Spec{})
		post(t, b, teams("aaabbb")...)
		<-b.SetRules(Rules{Shadow: &Rule{Policy: p}})
		if r := shadowed(t, b); r.Pairs != 15 || r.Swaps != 3 {
			t.Fatalf("%+v", r)
		}
		<-b.SetRules(Rules{Shadow: &Rule{Policy: groupless{}}})
		if r := shadowed(t, b); r.Errors == 0 {
			t.Fatalf("%+v", r)
		}
	})
}

// postTeams posts so many jobs of so many teams.
func postTeams(t testing.TB, b *Board, jobs, teams int) {
	t.Helper()
	for from := 0; from < jobs; from += MaxBatch {
		postings := make([]job.Posting, min(MaxBatch, jobs-from))
		for i := range postings {
			team := fmt.Sprint((from + i) % teams)
			postings[i] = job.Posting{Name: team, Labels: []job.Label{{Key: "team", Value: team}}}
		}
		post(t, b, postings...)
	}
}

// A large board is compared in bounded steps, and claims go on meanwhile.
func TestShadowOfLargeBoard(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const jobs, keys = 100_000, 1_000
		var most atomic.Int64
		under, goOn := make(chan struct{}), make(chan struct{})
		first := &ranker{rank: func(k policy.Key, _ time.Time) policy.Rank {
			return policy.Rank{Score: int64(strings.Count(k.Key, "7"))<<40 - k.Running}
		}}
		p := &halting{ranker: first, most: &most, under: under, goOn: goOn}
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: fair()}}})
		postTeams(t, b, jobs, keys)
		<-b.SetRules(Rules{Ordering: &Rule{Policy: fair()}, Shadow: &Rule{Policy: p}})
		for range 3 { // in the midst of asking
			<-under
			claim(t, b, ClaimRequest{Max: 10})
			goOn <- struct{}{}
		}
		close(goOn)
		go func() {
			for range under {
			}
		}()
		defer close(under)
		r := shadowed(t, b)
		if r.Pairs == 0 || r.Judged < MaxShadowLine || r.Swaps == 0 || r.Errors > 0 || most.Load() > policy.MaxBatch {
			t.Fatalf("asked about %d at once: %+v", most.Load(), r)
		}
		b.SetRules(Rules{})
		synctest.Wait()
	})
}

// halting tells each time that it is asked, waits, and keeps how much that was.
type halting struct {
	*ranker
	most  *atomic.Int64
	under chan<- struct{}
	goOn  <-chan struct{}
}

func (p *halting) RankKeys(ctx context.Context, keys *policy.Keys, ranks []policy.Rank) error {
	p.most.Store(max(p.most.Load(), int64(len(keys.Keys))))
	p.under <- struct{}{}
	<-p.goOn
	return p.ranker.RankKeys(ctx, keys, ranks)
}

// A comparison takes at most a hundredth of the time.
func TestShadowRests(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var worked atomic.Int64
		p := fair()
		p.rank = func(k policy.Key, _ time.Time) policy.Rank {
			time.Sleep(time.Millisecond)
			worked.Add(int64(time.Millisecond))
			return policy.Rank{Score: -k.Running}
		}
		b := start(t, openStore(t), Spec{Rules: Rules{Shadow: &Rule{Policy: p}}})
		post(t, b, teams("aaaaabbbbbccccc")...)
		began := time.Now()
		for time.Since(began) < time.Hour {
			wantClaims(t, b, 0)
			time.Sleep(compareEvery / 4)
		}
		share := float64(worked.Load()) / float64(time.Since(began))
		if r := b.Shadow(); r.Pairs < 100 || share > 1.0/(1+restPerWork) {
			t.Fatalf("it worked for %v of the time: %+v", share, r)
		}
	})
}

// A call that had to wait is not paid for with a rest of minutes.
func TestShadowRestsNotForLong(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const late = 2 * time.Second // as when a process has to begin on a busy machine
		var calls atomic.Int64
		p := fair()
		p.rank = func(k policy.Key, _ time.Time) policy.Rank {
			if calls.Add(1) == 1 {
				time.Sleep(late)
			}
			return policy.Rank{Score: -k.Running}
		}
		b := start(t, openStore(t), Spec{Rules: Rules{Shadow: &Rule{Policy: p}}})
		post(t, b, teams("ab")...)
		began := time.Now()
		r := shadowed(t, b)
		if took := time.Since(began); r.Pairs == 0 || r.Errors > 0 || took > late+2*maxRest {
			t.Fatalf("after %v: %+v", took, r)
		}
	})
}

func TestShadowKeepsTheFirst(t *testing.T) {
	t.Parallel()
	s := newSide(0, nil)
	st := s.stock("a")
	at := func(n int) *contender {
		x := &contender{}
		x.orders[0].Sequence, x.orders[0].CreatedAt = uint64(n), int64(n)
		return x
	}
	for i := range 3 * MaxShadowLine { // from the middle to both ends
		n := 3 * MaxShadowLine / 2
		if n += (i + 1) / 2; i%2 == 1 {
			n = 3*MaxShadowLine/2 - (i+1)/2
		}
		s.add(st, at(n))
	}
	if len(st.first) != MaxShadowLine || s.kept != MaxShadowLine || st.key.Waiting != 3*MaxShadowLine {
		t.Fatal(len(st.first), s.kept, st.key)
	}
	for i, x := range st.first {
		if x.orders[0].Sequence != uint64(i) {
			t.Fatalf("place %d has number %d", i, x.orders[0].Sequence)
		}
	}
	if oldest := st.oldest(); oldest.UnixMicro() != 0 {
		t.Fatal(oldest)
	}
	// What is kept is bounded, and the first of each key is.
	for i := range maxKept {
		s.add(s.stock(fmt.Sprint(i%500)), at(i))
	}
	if s.kept != maxKept {
		t.Fatal(s.kept)
	}
	last := s.stock("last")
	s.add(last, at(5))
	s.add(last, at(3))
	s.add(last, at(4))
	if s.kept != maxKept+1 || len(last.first) != 1 || last.first[0].orders[0].Sequence != 3 || last.older != 4 || last.key.Waiting != 3 {
		t.Fatal(s.kept, last)
	}
	for i := range MaxShadowKeys {
		s.stock(fmt.Sprint(i))
	}
	if s.stock("too many") != nil || s.stock("last") != last || len(s.stocks) != MaxShadowKeys {
		t.Fatal(len(s.stocks))
	}
}

// BenchmarkShadowLines is the work of one comparison, without its rests.
func BenchmarkShadowLines(b *testing.B) {
	for _, n := range []struct{ jobs, keys int }{{1_000, 10}, {100_000, 1_000}, {100_000, 100_000}} {
		b.Run(fmt.Sprintf("jobs=%d/keys=%d", n.jobs, n.keys), func(b *testing.B) {
			board := start(b, openStore(b), Spec{Rules: Rules{Ordering: &Rule{Policy: fair()}}})
			postTeams(b, board, n.jobs, n.keys)
			set := board.newRuleset(Rules{Ordering: &Rule{Policy: fair()}, Shadow: &Rule{Policy: weighted("7", 4)}})
			b.ReportAllocs()
			for b.Loop() {
				c := newComparison(board, set)
				c.piece = time.Now().Add(time.Hour) // so that it never was long enough
				active, shadow, ok := c.lines(b.Context())
				if !ok || len(active) != MaxShadowLine || len(shadow) != MaxShadowLine {
					b.Fatal(len(active), len(shadow), ok)
				}
				set.shadow.countLines(active, shadow)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n.jobs), "ns/job")
		})
	}
}
