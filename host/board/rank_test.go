package board

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/board/filter"
	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// ranker orders by counts.
type ranker struct {
	counts string
	period time.Duration
	facts  []policy.FactSpec
	tick   time.Duration
	rank   func(k policy.Key, now time.Time) policy.Rank
	fail   atomic.Bool
	asked  atomic.Int64
}

func (p *ranker) Manifest() policy.Manifest {
	counts := p.counts
	if counts == "" {
		counts = "label:team"
	}
	return policy.Manifest{Name: "ranker", Version: "1", Counts: counts, Period: p.period, Facts: p.facts, ByTime: p.tick > 0, Tick: p.tick}
}

func (p *ranker) Eligible(context.Context, *policy.Batch, []policy.Verdict) error { return nil }

func (p *ranker) Score(context.Context, *policy.Batch, []int64) error {
	return errors.New("it has no scores")
}

func (p *ranker) RankKeys(_ context.Context, keys *policy.Keys, ranks []policy.Rank) error {
	p.asked.Add(1)
	if p.fail.Load() {
		return errors.New("broken")
	}
	if len(keys.Keys) > policy.MaxBatch || len(keys.Keys) != len(ranks) {
		return errors.New("too much at once")
	}
	for i, k := range keys.Keys {
		ranks[i] = p.rank(k, keys.Now)
	}
	return nil
}

// fair has who has the least running first, then who was served least.
func fair() *ranker {
	return &ranker{rank: func(k policy.Key, _ time.Time) policy.Rank {
		return policy.Rank{Score: -(k.Running<<20 + k.Served)}
	}}
}

// atMost has so many of a key run.
func atMost(n int64) *ranker {
	return &ranker{rank: func(k policy.Key, _ time.Time) policy.Rank {
		return policy.Rank{Full: k.Key != "" && k.Running >= n, Most: n * int64(len(k.Key))}
	}}
}

// teams are postings of teams, each named for its team.
func teams(names string) []job.Posting {
	var list []job.Posting
	for name := range strings.SplitSeq(names, "") {
		list = append(list, job.Posting{
			Name: name, Labels: []job.Label{{Key: "team", Value: name}}, Details: fmt.Appendf(nil, `{"team":%q}`, name),
		})
	}
	return list
}

// names claims up to n jobs and returns their names in order.
func names(t *testing.T, b *Board, n int) (string, []Ref) {
	t.Helper()
	var all strings.Builder
	var refs []Ref
	for _, c := range claim(t, b, ClaimRequest{Max: n}) {
		all.WriteString(c.Job.Name)
		refs = append(refs, refOf(b, c))
	}
	return all.String(), refs
}

func wantNames(t *testing.T, b *Board, n int, want string) []Ref {
	t.Helper()
	got, refs := names(t, b, n)
	if got != want {
		t.Fatalf("claimed %q, want %q", got, want)
	}
	return refs
}

func consume(t *testing.T, b *Board, refs ...Ref) {
	t.Helper()
	errs, err := b.Consume(t.Context(), refs)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
}

func TestKeysShare(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: fair()}}})
		post(t, b, teams("aaaaaaaabbbc")...)
		wantLine(t, b, "a a a a a a a a b b b c") // a listing is in the order that jobs have within their keys
		first := wantNames(t, b, 7, "abcabab")
		wantNames(t, b, 1, "a") // of those that are left a is the only one
		consume(t, b, first[0], first[3], first[5])
		post(t, b, teams("bc")...)
		// a: 1 running; b: 3; c: 1, but served least of those with one
		refs := wantNames(t, b, 3, "caa")
		if _, err := b.Abandon(t.Context(), refs[1:2], AbandonOptions{}); err != nil {
			t.Fatal(err)
		}
		wantNames(t, b, 1, "a")
		if c, err := b.Count(t.Context()); err != nil || c.Ready != 3 {
			t.Fatal(c, err)
		}
	})
}

// What was served fades, and a policy by time sees it.
func TestServedFades(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]int64{}
		p := &ranker{rank: func(k policy.Key, _ time.Time) policy.Rank {
			mu.Lock()
			defer mu.Unlock()
			seen[k.Key] = k.Served - k.Running // rungs above what runs count alike
			return policy.Rank{Score: -k.Served}
		}}
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: p}}})
		post(t, b, teams("aaaaaaaaaaaab")...)
		consume(t, b, wantNames(t, b, 9, "abaaaaaaa")...)
		time.Sleep(2 * time.Hour)
		wantNames(t, b, 0, "a") // somebody looks, so that it is worth the while
		synctest.Wait()
		mu.Lock()
		got := seen["a"]
		mu.Unlock()
		if got != 2 { // eight, after two half-lives
			t.Fatalf("a was served %d times before, want 2", got)
		}
	})
}

func TestLimitOfKeys(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: atMost(2)}}})
		jobs := post(t, b, append(teams("aaaabb"), job.Posting{Name: "-"}, job.Posting{Name: "-"}, job.Posting{Name: "-"})...)
		refs := wantNames(t, b, 100, "aabb---")
		wantNames(t, b, 1, "")
		// A chosen one is not let through either, and both say why.
		r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{jobs[2].ID, jobs[3].ID}})
		if err != nil || len(r.Failures) != 2 || job.KindOf(r.Failures[0].Err) != job.NotEligible || !strings.Contains(r.Failures[0].Err.Error(), `no more jobs of the key "a"`) {
			t.Fatalf("%+v %v", r, err)
		}
		x, err := b.Explain(t.Context(), jobs[3].ID, "w", nil)
		if err != nil || x.Verdict != "NOT_ELIGIBLE" || x.Position != 1 || x.Policy != "ranker 1" || !strings.Contains(x.Reason, `2 of the key "a" are running, of at most 2`) {
			t.Fatalf("%+v %v", x, err)
		}
		// Who waits is given the next one when one of them ends.
		began := time.Now()
		time.AfterFunc(time.Second, func() { _, _ = b.Consume(context.Background(), refs[:1]) })
		if c := claimOne(t, b, ClaimRequest{Wait: time.Minute}); c.Job.Name != "a" || time.Since(began) != time.Second {
			t.Fatal(c.Job.Name, time.Since(began))
		}
		consume(t, b, refs[1])
		// Two chosen ones, and room for one.
		r, err = b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{jobs[2].ID, jobs[3].ID}})
		if err != nil || len(r.Claims)+len(r.Failures) != 2 || len(r.Claims) != 1 {
			t.Fatalf("%+v %v", r, err)
		}
		// A lease that runs out makes room, too.
		if c := claimOne(t, b, ClaimRequest{Wait: time.Minute, Names: []string{"b"}}); c.Job.Name != "b" || c.Attempt != 2 {
			t.Fatal(c.Job.Name, c.Attempt)
		}
	})
}

// Those who wait for a key that is full are served one after the other, each as
// soon as there is room.
func TestWaitersOfAFullKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: atMost(2)}}})
		post(t, b, teams("aaaaaaaaaa")...)
		began := time.Now()
		var group sync.WaitGroup
		var running, most atomic.Int64
		for range 10 {
			group.Go(func() {
				c := claimOne(t, b, ClaimRequest{Wait: time.Minute})
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				running.Add(-1)
				consume(t, b, refOf(b, c))
			})
		}
		group.Wait()
		if took := time.Since(began); took != 5*time.Second || most.Load() != 2 {
			t.Fatalf("it took %v, %d at a time", took, most.Load())
		}
	})
}

// Facts are keys as labels are.
func TestKeysOfFacts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := fair()
		p.counts, p.facts = "fact:team", []policy.FactSpec{{Name: "team", Path: "/team", Type: policy.StringFact}}
		d := openStore(t)
		b := start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: p}}})
		post(t, b, teams("aaab")...)
		wantNames(t, b, 2, "ab")
		synctest.Wait()
		// Another host counts what it loads.
		q := fair()
		q.counts, q.facts = p.counts, p.facts
		other := start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: q}}})
		post(t, other, teams("c")...)
		wantNames(t, other, 2, "ca")
	})
}

func TestFactText(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	for want, fact := range map[string]policy.Fact{"": nil, "x": "x", "-7": int64(-7), "0.5": 0.5, "true": true, "2030-01-02T02:04:05.000000006Z": at} {
		if got := ranking.FactText(fact); got != want {
			t.Errorf("%v is the key %q, want %q", fact, got, want)
		}
	}
	if ranking.FactText(struct{}{}) != "" {
		t.Error("a key of nothing")
	}
}

// The policy changes while jobs run: what it says counts from then on, those that
// run included.
func TestRankingIsSwapped(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		post(t, b, teams("aaaaaabb")...)
		wantNames(t, b, 3, "aaa")
		b.SetRules(Rules{Ordering: &Rule{Policy: atMost(3)}}) // nobody waits for it
		wantNames(t, b, 3, "bb")
		b.SetRules(Rules{Ordering: &Rule{Policy: atMost(4)}})
		wantNames(t, b, 3, "a")
		byName := atMost(1)
		byName.counts = "name"
		b.SetRules(Rules{Ordering: &Rule{Policy: byName}})
		wantNames(t, b, 1, "")
		post(t, b, teams("cc")...)
		wantNames(t, b, 3, "c")
		b.SetRules(Rules{})
		wantNames(t, b, 9, "aac")
	})
}

// A policy that fails leaves keys where they are, or the board's own order.
func TestRankingFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lenient bool
		before  *ranker
		want    string
	}{
		"last":    {false, nil, "bbaaa"},
		"builtin": {true, nil, "aaabb"},
		"before":  {false, fair(), "ababa"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				p := &ranker{rank: func(k policy.Key, _ time.Time) policy.Rank {
					return policy.Rank{Score: map[string]int64{"a": 1, "b": 2}[k.Key]}
				}}
				rules := Rules{Ordering: &Rule{Policy: p, Lenient: c.lenient}}
				if c.before != nil {
					rules.Before = &Rule{Policy: c.before}
				}
				b := start(t, openStore(t), Spec{Rules: rules})
				post(t, b, teams("aaabb")...)
				synctest.Wait()
				refs := wantNames(t, b, 1, "b")
				p.fail.Store(true)
				if _, err := b.Abandon(t.Context(), refs, AbandonOptions{}); err != nil {
					t.Fatal(err)
				}
				id := post(t, b, teams("c")...)[0].ID // what was not ranked yet is
				if _, err := b.Explain(t.Context(), id, "w", nil); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				got, refs := names(t, b, 6)
				if got = strings.ReplaceAll(got, "c", ""); got != c.want {
					t.Fatalf("claimed %q, want %q", got, c.want)
				}
				p.fail.Store(false)
				time.Sleep(BreakerLongest)
				if _, err := b.Abandon(t.Context(), refs, AbandonOptions{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got, _ := names(t, b, 2); got != "bb" {
					t.Fatalf("claimed %q when the policy was well again", got)
				}
			})
		})
	}
}

// TestRankerHangs: while a policy gives no answer, a claim waits as long as its caller
// does, posts and the claims of other boards don't wait, and those who stay get what the
// policy said before. A board that is closed calls the policy off.
func TestRankerHangs(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := &hangingRanker{ranker: fair()}
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: p}}})
		post(t, b, teams("aab")...)
		synctest.Wait()
		wantNames(t, b, 1, "a")
		p.hangs.Store(true)
		began := time.Now()
		post(t, b, teams("c")...)
		if took := time.Since(began); took != 0 {
			t.Errorf("posting took %v", took)
		}
		waiting := make(chan []job.Claim, 1)
		go func() {
			response, err := b.Claim(t.Context(), ClaimRequest{Owner: "who stays", Max: 3})
			if err != nil {
				t.Error(err)
			}
			waiting <- response.Claims
		}()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			response, err := b.Claim(ctx, ClaimRequest{Owner: "who goes"})
			cancel()
			if len(response.Claims) != 0 || err == nil {
				t.Errorf("claimed %v, %v", response.Claims, err)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("three callers with a second each waited %v", took)
		}
		if claims := <-waiting; len(claims) != 3 || time.Since(began) != rankTime {
			t.Errorf("who stayed has %d after %v", len(claims), time.Since(began))
		}
		if n := p.calls.Load(); n != 1 {
			t.Errorf("the policy was asked %d times", n)
		}
	})
	bubble(t, func(t *testing.T) {
		p := &hangingRanker{ranker: fair()}
		p.hangs.Store(true)
		b := New(openStore(t), Spec{Name: "closed", Rules: Rules{Ordering: &Rule{Policy: p}}, Logger: slog.New(slog.DiscardHandler)})
		open, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(open) }()
		post(t, b, teams("a")...)
		began := time.Now()
		go end()
		_, _ = b.Claim(t.Context(), ClaimRequest{Owner: "w"})
		if err := <-ended; err != nil || time.Since(began) != 0 {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
		synctest.Wait()
		if n, called := p.calls.Load(), p.calledOff.Load(); n != called || time.Since(began) != 0 {
			t.Errorf("the policy was asked %d times and called off %d times, after %v", n, called, time.Since(began))
		}
	})
}

// hangingRanker gives no answer, as a module that goes round in circles.
type hangingRanker struct {
	*ranker

	hangs            atomic.Bool
	calls, calledOff atomic.Int64
}

func (r *hangingRanker) RankKeys(ctx context.Context, keys *policy.Keys, ranks []policy.Rank) error {
	if !r.hangs.Load() {
		return r.ranker.RankKeys(ctx, keys, ranks)
	}
	r.calls.Add(1)
	<-ctx.Done()
	r.calledOff.Add(1)
	return ctx.Err()
}

// uncounting is a driver whose store does not count.
type uncounting struct{ driver.Driver }

func (d uncounting) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := d.Driver.OpenBoard(ctx, spec)
	status.Capabilities.Limits, status.Capabilities.Rates = false, false
	return status, err
}

// Hosts that share a board hold to a limit together: exactly where the store
// counts. Elsewhere each may go above it by what it claims before it hears of the
// others.
func TestLimitOnHosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		store func(d driver.Driver) driver.Driver
		over  int64
	}{
		"counted":   {func(d driver.Driver) driver.Driver { return d }, 0},
		"uncounted": {func(d driver.Driver) driver.Driver { return uncounting{d} }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limitOnHosts(t, c.store(openStore(t)), c.over)
		})
	}
}

func limitOnHosts(t *testing.T, d driver.Driver, over int64) {
	t.Helper()
	const hosts, limit, jobs = 3, 2, 600
	var boards []*Board
	for range hosts {
		boards = append(boards, start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: atMost(limit)}}}))
	}
	post(t, boards[0], teams(strings.Repeat("abc", jobs/3))...)
	var running [3]atomic.Int64
	var done atomic.Int64
	var group sync.WaitGroup
	for w := range 4 * hosts {
		b := boards[w%hosts]
		group.Go(func() {
			for done.Load() < jobs {
				r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", Wait: 100 * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range r.Claims {
					key := c.Job.Name[0] - 'a'
					if n := running[key].Add(1); n > limit+over*hosts {
						t.Errorf("%d of %s run", n, c.Job.Name)
					}
					running[key].Add(-1) // before the store knows
					errs, err := b.Consume(t.Context(), []Ref{refOf(b, c)})
					if err != nil || errs[0] != nil {
						t.Error(err, errs)
						return
					}
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
	if n := done.Load(); n != jobs {
		t.Errorf("%d jobs were done, want %d", n, jobs)
	}
	if over > 0 {
		return
	}
	counts, err := d.Count(t.Context(), "test")
	if err != nil || len(counts.Limits) > 0 {
		t.Errorf("the store still counts %v, %v", counts.Limits, err)
	}
}

// Hosts hold to a limit together also where jobs are chosen, of a key of which nobody has claimed
// before, and before one host hears of the other's claim.
func TestLimitOfChosenJobsOnHosts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var held atomic.Bool
		let := make(chan struct{})
		d := &spy{Driver: openStore(t), t: t, watch: func(_ context.Context, _ driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				for changes, err := range next {
					if held.Load() {
						<-let
					}
					if !yield(changes, err) {
						return
					}
				}
			}
		}}
		spec := Spec{Rules: Rules{Ordering: &Rule{Policy: atMost(1)}}}
		hosts := []*Board{start(t, d, spec), start(t, d, spec)}
		jobs := post(t, hosts[0], teams("aa")...)
		synctest.Wait()
		held.Store(true)
		running := 0
		for i, b := range hosts {
			r, err := b.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: []job.ID{jobs[i].ID}})
			if err != nil {
				t.Fatal(err)
			}
			running += len(r.Claims)
		}
		close(let)
		if running != 1 {
			t.Errorf("%d jobs of a key run, want 1", running)
		}
	})
}

// Whoever claims on one host is counted on the others at once.
func TestShareOnHosts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		a, b := start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: fair()}}}), start(t, d, Spec{Rules: Rules{Ordering: &Rule{Policy: fair()}}})
		post(t, a, teams("aaaaabbbb")...)
		wantNames(t, a, 1, "a")
		synctest.Wait()
		wantNames(t, b, 1, "b")
		synctest.Wait()
		wantNames(t, a, 2, "ab")
		synctest.Wait()
		wantNames(t, b, 3, "aba")
	})
}

// byZone puts a worker's own zone first.
type byZone struct {
	policy.Policy
	fail atomic.Bool
}

func (p *byZone) Manifest() policy.Manifest {
	return policy.Manifest{Name: "by-zone", Version: "1", Ordering: true, ByWorker: true, WorkerLabels: []string{"zone"}, Labels: []string{"zone"}}
}

func (p *byZone) Score(_ context.Context, batch *policy.Batch, scores []int64) error {
	if p.fail.Load() {
		return errors.New("broken")
	}
	mine, _ := filter.Label(batch.Worker, "zone")
	for i, j := range batch.Jobs {
		if zone, _ := filter.Label(j.Labels, "zone"); zone == mine {
			scores[i] = 1
		}
	}
	return nil
}

func zoned(zones string) []job.Posting {
	var list []job.Posting
	for z := range strings.SplitSeq(zones, "") {
		list = append(list, job.Posting{Name: z, Labels: []job.Label{{Key: "team", Value: z}, {Key: "zone", Value: z}}})
	}
	return list
}

// Each worker has its own order; a listing has that of nobody.
func TestOrderByWorker(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		p := &byZone{}
		b := start(t, openStore(t), Spec{Rules: Rules{Ordering: &Rule{Policy: p}}})
		jobs := post(t, b, zoned("nsnsns")...)
		wantLine(t, b, "n s n s n s")
		worker := func(zone string) []job.Label {
			return []job.Label{{Key: "unread", Value: "1"}, {Key: "zone", Value: zone}}
		}
		one := func(zone, want string) {
			t.Helper()
			if c := claimOne(t, b, ClaimRequest{WorkerLabels: worker(zone)}); c.Job.Name != want {
				t.Fatalf("a worker in %q claimed %q, want %q", zone, c.Job.Name, want)
			}
		}
		one("s", "s")
		one("n", "n")
		one("else", "n")
		x, err := b.Explain(t.Context(), jobs[5].ID, "w", worker("s"))
		if err != nil || x.Score == nil || *x.Score != 1 || x.Position != 1 {
			t.Fatalf("%+v %v", x, err)
		}
		x, err = b.Explain(t.Context(), jobs[5].ID, "w", worker("n"))
		if err != nil || x.Score == nil || *x.Score != 0 || x.Position != 2 {
			t.Fatalf("%+v %v", x, err)
		}
		// New jobs find their places in each order.
		post(t, b, zoned("x")...)
		one("x", "x")
		one("s", "s")
		// While the policy fails new jobs come as in the order of nobody; later not.
		p.fail.Store(true)
		post(t, b, zoned("s")...)
		p.fail.Store(false)
		time.Sleep(2 * BreakerRest)
		synctest.Wait()
		one("s", "s")
		one("s", "s")
		one("s", "n")
	})
}
