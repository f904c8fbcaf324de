package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// byTens has jobs with the same last digit as a key.
func byTens(entries []*Entry) {
	for _, e := range entries {
		e.Group = &Group{Key: strconv.Itoa(numbers([]*Entry{e})[0] % 10)}
	}
}

func ranks(rank func(policy.Key) policy.Rank) Ranker {
	return func(keys []policy.Key, ranks []policy.Rank) error {
		for i, k := range keys {
			ranks[i] = rank(k)
		}
		return nil
	}
}

func atMost(n int64) Ranker {
	return ranks(func(k policy.Key) policy.Rank { return policy.Rank{Full: k.Running >= n, Most: n} })
}

func leastFirst(k policy.Key) policy.Rank { return policy.Rank{Score: -k.Running} }

// keyed returns an index with jobs 1 to n in ten keys.
func keyed(t testing.TB, n int, rank Ranker) *Index {
	t.Helper()
	ix := New()
	ix.SetScorer(byTens, &Ranking{By: "tens", Rank: rank})
	var es []*Entry
	for i := 1; i <= n; i++ {
		es = append(es, entry(i))
	}
	ix.PutAll(es)
	if err := ix.Rescore(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ix
}

// Many sides put, take, end, return and rank: no key ever has more running than it
// may, and in the end everything was done.
func TestKeysUnderSiege(t *testing.T) {
	t.Parallel()
	const jobs, limit = 900, 3
	ix := keyed(t, jobs, atMost(limit))
	var running [10]atomic.Int64
	var done atomic.Int64
	var position atomic.Uint64
	position.Store(10 * jobs)
	judge := func(_ context.Context, entries []*Entry, allowed []bool) error {
		for i, e := range entries {
			allowed[i] = numbers([]*Entry{e})[0]%2 == 0
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	var workers, others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			ix.SetScorer(byTens, &Ranking{By: "tens", Rank: atMost(limit)})
			_, _ = ix.Rescore(ctx), ix.Rerank(ctx)
			time.Sleep(5 * time.Millisecond)
		}
	})
	work := func(w int) {
		rnd := rand.New(rand.NewPCG(uint64(w), 1))
		for done.Load() < jobs {
			class := ix.everyone
			if w%3 == 0 {
				class, _ = ix.Class(t.Context(), "even", judge)
			}
			taken := ix.Take(context.Background(), class, 1+rnd.IntN(3))
			if len(taken) == 0 {
				waiter := ix.Waiter(class)
				select {
				case <-waiter.C:
				case <-time.After(time.Millisecond):
				}
				taken = ix.Take(context.Background(), class, 1)
				waiter.Close()
			}
			for _, e := range taken {
				key := numbers([]*Entry{e})[0] % 10
				if n := running[key].Add(1); n > limit {
					t.Errorf("%d of the key %d run", n, key)
				}
				if rnd.IntN(3) == 0 {
					running[key].Add(-1)
					ix.Return(e.ID)
					continue
				}
				e.Version++
				e.Position = driver.Position(position.Add(1))
				e.Claim = &Claim{Owner: "w", Token: job.Token{Epoch: uint64(e.Position)}}
				ix.Put(e)
				running[key].Add(-1)
				ix.Remove(e.ID, driver.Position(position.Add(1)))
				done.Add(1)
			}
		}
	}
	for w := range 6 {
		workers.Go(func() { work(w) })
	}
	workers.Wait()
	stop()
	others.Wait()
	ix.rankTouched(context.Background())
	ix.check(t)
	if n := done.Load(); n != jobs {
		t.Errorf("%d jobs were done, want %d", n, jobs)
	}
}

// Until a new ranking has gone through all keys, a take asks it about each that it
// takes of: what the old one said is no reason to.
func TestRankingBeforeItIsThrough(t *testing.T) {
	t.Parallel()
	ix := keyed(t, 100, atMost(3))
	if got := len(ix.Take(context.Background(), ix.everyone, 100)); got != 30 {
		t.Fatalf("took %d, want 30", got)
	}
	ix.SetScorer(byTens, &Ranking{By: "tens", Rank: atMost(5)})
	if got := len(ix.Take(context.Background(), ix.everyone, 100)); got != 20 {
		t.Errorf("took %d, want 20", got)
	}
	ix.SetScorer(byTens, &Ranking{By: "tens", Rank: atMost(4)})
	if got := len(ix.Take(context.Background(), ix.everyone, 100)); got != 0 {
		t.Errorf("took %d beyond the new limit", got)
	}
	// Under another grouping nothing is in its group yet, neither running nor ready.
	one := func(entries []*Entry) {
		for _, e := range entries {
			e.Group = &Group{Key: "one"}
		}
	}
	ix.SetScorer(one, &Ranking{By: "one", Rank: atMost(52)})
	if got := numbers(ix.Take(context.Background(), ix.everyone, 100)); !slices.Equal(got, []int{51, 52}) {
		t.Errorf("took %v, want 51 and 52", got)
	}
	ix.SetScorer(one, nil)
	if got := numbers(ix.Take(context.Background(), ix.everyone, 100)); len(got) != 48 {
		t.Errorf("took %d without a ranking, want the other 48", len(got))
	}
	if err := ix.Rescore(t.Context()); err != nil {
		t.Fatal(err)
	}
	ix.check(t)
}

// What the store says of a key is believed for a while, or until it may be true no
// more.
func TestRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := keyed(t, 20, atMost(9))
		e := ix.Take(context.Background(), ix.everyone, 1)[0]
		ix.Refused(e.ID)
		ix.Refused(e.ID)
		ix.Refused(id(999)) // who is that?
		ix.Return(e.ID)
		if got := numbers(ix.Take(context.Background(), ix.everyone, 20)); slices.Contains(got, 1) || slices.Contains(got, 11) || len(got) != 18 {
			t.Fatalf("took %v", got)
		}
		w := ix.Waiter(ix.everyone)
		defer w.Close()
		<-w.C
		if got := ix.Take(context.Background(), ix.everyone, 1); len(got) != 0 {
			t.Fatalf("took %v", numbers(got))
		}
		next, ok := ix.Next()
		if !ok {
			t.Fatal("nothing is due")
		}
		time.Sleep(time.Until(next))
		ix.Tick(time.Now())
		<-w.C
		if got := numbers(ix.Take(context.Background(), ix.everyone, 2)); !slices.Equal(got, []int{1, 11}) {
			t.Fatalf("took %v", got)
		}
		ix.check(t)
	})
}

// A key that has nothing open is remembered for as long as it counts what it was
// served, and no more than so many of them.
func TestIdleKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := keyed(t, 20, ranks(leastFirst))
		for _, e := range ix.Take(context.Background(), ix.everyone, 10) {
			e.Position++
			e.Claim = &Claim{Owner: "w", Token: job.Token{Epoch: 1}}
			ix.Put(e)
			ix.Remove(e.ID, e.Position+1)
		}
		for n := 1; n <= 20; n++ {
			ix.Remove(id(n), 1000)
		}
		ix.rankTouched(context.Background())
		if n := len(ix.keys.byKey); n != 10 || ix.keys.idle != 10 {
			t.Fatalf("%d keys, %d idle: want 10", n, ix.keys.idle)
		}
		time.Sleep(2 * ranking.ServedHalfLife)
		if err := ix.Rerank(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(ix.keys.byKey); n != 0 || ix.keys.idle != 0 {
			t.Fatalf("%d keys, %d idle: want none", n, ix.keys.idle)
		}
		k := ix.keys
		for n := range MaxIdleKeys + 2 {
			h := k.join(strconv.Itoa(n))
			k.groups.at(h).served.Add(k.minute)
			k.leave(h)
		}
		if n := len(k.byKey); n != MaxIdleKeys || k.idle != MaxIdleKeys {
			t.Errorf("%d keys, %d idle: want %d", n, k.idle, MaxIdleKeys)
		}
	})
}

// backwards has an order of its own: by number, the highest first.
func backwards(_ context.Context, entries []*Entry, allowed []bool) error {
	for i, e := range entries {
		n := numbers([]*Entry{e})[0]
		e.Score, allowed[i] = int64(n), n%3 != 0
	}
	return nil
}

func TestOwnClass(t *testing.T) {
	t.Parallel()
	for name, rank := range map[string]Ranker{"": nil, "keys": ranks(leastFirst)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ix := keyed(t, 30, ranks(leastFirst))
			if rank == nil {
				ix.SetScorer(byTens, nil)
			}
			c, err := ix.OwnClass(t.Context(), "back", backwards)
			if err != nil {
				t.Fatal(err)
			}
			ix.Put(entry(32))
			ix.Put(entry(31))
			if at, ok := ix.Rank(id(29), c); !ok || at != 2 {
				t.Errorf("29 is at %d, want 2", at)
			}
			if got := numbers(ix.Take(context.Background(), c, 4)); !slices.Equal(got, []int{32, 31, 29, 28}) {
				t.Errorf("took %v", got)
			}
			want := []int{26, 25, 23, 22} // each of another key
			if rank != nil {
				want = []int{26, 25, 23, 20} // 22 is of the key that has one running
			}
			if got := numbers(ix.Take(context.Background(), c, 4)); !slices.Equal(got, want) {
				t.Errorf("took %v, want %v", got, want)
			}
			if got := numbers(ix.Take(context.Background(), ix.everyone, 1)); rank == nil && !slices.Equal(got, []int{1}) {
				t.Errorf("took %v, want 1", got)
			}
			ix.rankTouched(context.Background())
			ix.check(t)
		})
	}
}

// A class that no verdicts are remembered for is given the best of what a scan
// finds.
func TestScanOfKeysAndOwnOrders(t *testing.T) {
	t.Parallel()
	ix := keyed(t, 40, atMost(2))
	for n := range MaxClasses {
		if _, err := ix.Class(t.Context(), strconv.Itoa(n+1), backwards); err != nil {
			t.Fatal(err)
		}
	}
	over, err := ix.OwnClass(t.Context(), "over", backwards)
	if err != nil || over.slot != noSlot {
		t.Fatal(err, over.slot)
	}
	if got, want := numbers(ix.Take(context.Background(), over, 3)), []int{40, 38, 37}; !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
	got := numbers(ix.Take(context.Background(), over, 100))
	if len(got) != 17 || !slices.IsSortedFunc(got, func(a, b int) int { return cmp.Compare(b, a) }) {
		t.Errorf("took %v, want 17 from the highest on", got)
	}
	if got := ix.Take(context.Background(), over, 1); len(got) != 0 {
		t.Errorf("took %v beyond the limit", numbers(got))
	}
	ix.SetScorer(byTens, &Ranking{By: "others", Rank: atMost(1)}) // nothing is grouped so far
	for _, e := range []int{40, 38, 37, 36} {
		ix.Return(id(e))
	}
	if got := len(ix.Take(context.Background(), over, 100)); got != 0 {
		t.Errorf("took %d beyond the limit", got)
	}
	ix.SetScorer(byTens, nil)
	if got, want := numbers(ix.Take(context.Background(), over, 2)), []int{40, 38}; !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
}

// A ranker that fails leaves every key where it was.
func TestRankerFails(t *testing.T) {
	t.Parallel()
	fail := errors.New("broken")
	var broken atomic.Bool
	by := ranks(func(k policy.Key) policy.Rank {
		n, _ := strconv.ParseInt(k.Key, 10, 64)
		return policy.Rank{Score: n, Full: n == 9}
	})
	ix := keyed(t, 20, func(keys []policy.Key, ranks []policy.Rank) error {
		if broken.Load() {
			return fail
		}
		return by(keys, ranks)
	})
	if got := numbers(ix.Take(context.Background(), ix.everyone, 1)); !slices.Equal(got, []int{8}) {
		t.Fatal(got)
	}
	broken.Store(true)
	ix.Put(entry(28))
	ix.Put(entry(29))
	if got := numbers(ix.Take(context.Background(), ix.everyone, 4)); !slices.Equal(got, []int{18, 28, 7, 17}) {
		t.Fatal(got)
	}
	fresh := keyed(t, 3, func([]policy.Key, []policy.Rank) error { return fail })
	if got := numbers(fresh.Take(context.Background(), fresh.everyone, 4)); !slices.Equal(got, []int{1, 2, 3}) {
		t.Fatal("a board is stuck because its policy fails:", got)
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	ix := keyed(t, 30, atMost(2))
	for _, c := range []struct {
		n          int
		done, full bool
	}{{5, true, false}, {5, false, false}, {15, true, false}, {25, false, true}, {31, false, false}} {
		if done, full := ix.Reserve(context.Background(), id(c.n)); done != c.done || full != c.full {
			t.Errorf("job %d: done %v, full %v", c.n, done, full)
		}
	}
	ix.Return(id(5))
	if s, ok := ix.Standing(context.Background(), id(25), ix.everyone); !ok || s.Full || s.Running != 1 || s.Waiting != 2 || s.Ahead != 1 || s.Keys != 4 || s.Most != 2 || s.Key != "5" {
		t.Errorf("%+v %v", s, ok)
	}
	if _, ok := ix.Standing(context.Background(), id(15), ix.everyone); ok {
		t.Error("a job that is not ready stands in line")
	}
	// A new ranking is asked about a key that was full.
	ix.Reserve(context.Background(), id(25))
	ix.SetScorer(byTens, &Ranking{By: "tens", Rank: atMost(3)})
	if done, full := ix.Reserve(context.Background(), id(5)); !done || full {
		t.Error(done, full)
	}
	ix.Return(id(5), id(25))
	// Just before, it was in no group.
	ix.SetScorer(byTens, &Ranking{By: "others", Rank: atMost(2)})
	if done, full := ix.Reserve(context.Background(), id(25)); !done || full {
		t.Error(done, full)
	}
	if done, full := ix.Reserve(context.Background(), id(5)); done || !full {
		t.Error(done, full)
	}
	plain := New()
	plain.Put(entry(1))
	if done, full := plain.Reserve(context.Background(), id(1)); done || full {
		t.Error("it did something without a ranking")
	}
}

// The oldest of a key is found behind jobs that come first.
func TestOldestOfKey(t *testing.T) {
	t.Parallel()
	var oldest atomic.Int64
	ix := New()
	ix.SetScorer(byTens, &Ranking{By: "tens", Rank: func(keys []policy.Key, ranks []policy.Rank) error {
		oldest.Store(keys[0].Oldest.UnixMicro())
		return nil
	}})
	for n := 1; n <= 5; n++ {
		e := entry(10 * n)
		e.Priority = job.Priority(2 - n%5)
		e.CreatedAt = time.Unix(int64(1000-100*n), 0)
		ix.Put(e)
		ix.rankTouched(context.Background())
		if got := oldest.Load(); got != e.CreatedAt.UnixMicro() {
			t.Errorf("after %d jobs the oldest is of %d", n, got)
		}
	}
}

// keyLoad is n jobs in so many keys, with a ranker that counts.
func keyLoad(b *testing.B, n, of int) *Index {
	b.Helper()
	ix := New()
	names := make([]*Group, of)
	for i := range names {
		names[i] = &Group{Key: fmt.Sprint("customer-", i)}
	}
	ix.SetScorer(func(entries []*Entry) {
		for _, e := range entries {
			e.Group = names[e.Sequence%uint64(of)]
		}
	}, &Ranking{By: "customer", Rank: ranks(func(k policy.Key) policy.Rank { return policy.Rank{Score: -(k.Running<<20 + k.Served)} })})
	batch := make([]*Entry, 0, slice)
	for i := range n {
		if batch = append(batch, posted(i+1)); len(batch) == slice || i == n-1 {
			ix.PutAll(batch)
			batch = batch[:0]
		}
	}
	if err := ix.Rescore(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := ix.Rerank(b.Context()); err != nil {
		b.Fatal(err)
	}
	return ix
}

// BenchmarkKeyClaim is BenchmarkClaim where the order depends on counts: asked is
// how many keys the ranker is asked about for a claim, each with what it would be
// after the next ones.
func BenchmarkKeyClaim(b *testing.B) {
	for _, backlog := range []int{1e5, 1e6} {
		for _, of := range []int{10, 1000, 100_000} {
			b.Run(fmt.Sprintf("%.0e/keys=%d", float64(backlog), of), func(b *testing.B) {
				ix := keyLoad(b, backlog, of)
				asked := 0
				rank := ix.keys.rank
				ix.keys.rank = func(keys []policy.Key, ranks []policy.Rank) error {
					asked += len(keys) / ranking.Rungs
					return rank(keys, ranks)
				}
				claims(b, ix, ix.everyone, backlog, posted)
				b.ReportMetric(float64(asked)/float64(b.N), "asked/op")
			})
		}
	}
}

// BenchmarkKeySwap is a new policy for 100,000 keys of a million jobs; worst-ns is
// the longest of the claims meanwhile.
func BenchmarkKeySwap(b *testing.B) {
	ix := keyLoad(b, 1e6, 100_000)
	others := claimMeanwhile(b, ix)
	sign := int64(1)
	for b.Loop() {
		sign = -sign
		score := ix.scoring.score
		ix.SetScorer(score, &Ranking{By: "customer", Rank: ranks(func(k policy.Key) policy.Rank { return policy.Rank{Score: sign * k.Waiting} })})
		if err := ix.Rescore(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := ix.Rerank(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	others(b)
}

// What was served is told by the keys of the present ranking, and no others.
func TestServed(t *testing.T) {
	t.Parallel()
	want := func(ix *Index, by string, want ...int64) {
		t.Helper()
		all := []policy.Key{{Key: "1", Served: -1}, {Key: "2", Served: -1}, {Key: "none", Served: -1}}
		ix.Served(by, all)
		if got := []int64{all[0].Served, all[1].Served, all[2].Served}; !slices.Equal(got, want) {
			t.Fatalf("by %s: served %v, want %v", by, got, want)
		}
	}
	want(New(), "tens", -1, -1, -1)
	ix := keyed(t, 2, atMost(9))
	e := ix.Take(context.Background(), ix.everyone, 1)[0]
	want(ix, "tens", 0, 0, -1) // a claim that is under way may come to nothing
	e.Position, e.Claim = e.Position+10, &Claim{Owner: "w", Token: job.Token{Epoch: 1}}
	ix.Put(e)
	want(ix, "tens", 1, 0, -1)
	want(ix, "ones", -1, -1, -1)
}

// byID has a key for each job.
func byID(entries []*Entry) {
	for _, e := range entries {
		e.Group = &Group{Key: e.ID.String()}
	}
}

// manyKeys is an index of n jobs with a key each.
func manyKeys(t testing.TB, n int) *Index {
	t.Helper()
	ix := New()
	ix.SetScorer(byID, &Ranking{By: "id", Rank: ranks0})
	es := make([]*Entry, n)
	for i := range es {
		es[i] = entry(i + 1)
	}
	ix.PutAll(es)
	if err := ix.Rescore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ix.Rerank(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ix
}

// How a job stands is found out without a look at each key, since others wait meanwhile.
func TestStandingAmongManyKeys(t *testing.T) {
	t.Parallel()
	ix := manyKeys(t, 4*MaxKeysAhead)
	l := ix.everyone.keyQueues
	first, looks := l.first, 0
	l.first = func(a, b uint32) bool { looks++; return first(a, b) }
	for _, c := range []struct {
		job   int
		keys  int64
		looks int
	}{
		{1, 0, 1},
		{11, 10, 21},
		{MaxKeysAhead + 1, MaxKeysAhead, 2*MaxKeysAhead + 1},
		{MaxKeysAhead + 2, MaxKeysAhead + 1, 2*MaxKeysAhead + 1},
		{4 * MaxKeysAhead, MaxKeysAhead + 1, 2*MaxKeysAhead + 1},
	} {
		looks = 0
		s, ok := ix.Standing(t.Context(), id(c.job), ix.everyone)
		if !ok || s.Keys != c.keys || looks > c.looks {
			t.Errorf("before job %d come %d keys, %t, by %d looks; want %d, by at most %d", c.job, s.Keys, ok, looks, c.keys, c.looks)
		}
	}
}

// BenchmarkStanding asks how the last job stands.
func BenchmarkStanding(b *testing.B) {
	for _, n := range []int{1e4, 1e6} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ix := manyKeys(b, n)
			for b.Loop() {
				if _, ok := ix.Standing(b.Context(), id(n), ix.everyone); !ok {
					b.Fatal("it does not stand in line")
				}
			}
		})
	}
}
