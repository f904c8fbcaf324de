package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var backlogs = []int{1e3, 1e4, 1e5, 1e6}

// posted returns the n-th job of a benchmark: a name out of few, three labels
// out of a thousand values, five priorities.
func posted(n int) *Entry {
	e := entry(n)
	e.Priority = job.Priority(n%5 - 2)
	e.Labels = []job.Label{
		{Key: "a", Value: strconv.Itoa(n % 1000)},
		{Key: "b", Value: strconv.Itoa(n * 7 % 1000)},
		{Key: "c", Value: strconv.Itoa(n * 31 % 1000)},
	}
	return e
}

// filled returns an index with that many jobs, put in the order of their
// posting.
func filled(b *testing.B, backlog int) *Index {
	b.Helper()
	return filledBy(b, backlog, func(i int) int { return i })
}

func filledBy(b *testing.B, backlog int, number func(i int) int) *Index {
	b.Helper()
	ix := New()
	batch := make([]*Entry, 0, slice)
	for i := range backlog {
		if batch = append(batch, posted(1+number(i))); len(batch) == slice || i == backlog-1 {
			ix.PutAll(batch)
			batch = batch[:0]
		}
	}
	runtime.GC()
	return ix
}

// claims measures a claim from Take to Remove. The backlog shrinks by a part in
// ten at most before it is filled up again, off the clock.
func claims(b *testing.B, ix *Index, class *Class, backlog int, refill func(n int) *Entry) {
	b.Helper()
	next, missing := backlog, 0
	ends := time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		taken := ix.Take(context.Background(), class, 1)
		if len(taken) != 1 {
			b.Fatal("nothing to take")
		}
		e := taken[0]
		e.Version++
		e.Attempt++
		e.Position = driver.Position(1<<40 + next)
		e.Claim = &Claim{Owner: "worker", Token: job.Token{Epoch: 1}, Ends: ends}
		ix.Put(e)
		ix.Remove(e.ID, e.Position+1)
		if missing++; missing == backlog/10 {
			b.StopTimer()
			for ; missing > 0; missing-- {
				next++
				ix.Put(refill(next))
			}
			ix.Forget(1 << 60)
			b.StartTimer()
		}
	}
}

func BenchmarkClaim(b *testing.B) {
	for _, backlog := range backlogs {
		b.Run(fmt.Sprintf("%.0e", float64(backlog)), func(b *testing.B) {
			ix := filled(b, backlog)
			claims(b, ix, everyone(b, ix), backlog, posted)
		})
	}
}

// BenchmarkClaimScattered has jobs that came in no order at all, as a snapshot
// brings them.
func BenchmarkClaimScattered(b *testing.B) {
	for _, backlog := range backlogs {
		b.Run(fmt.Sprintf("%.0e", float64(backlog)), func(b *testing.B) {
			order := rand.New(rand.NewPCG(1, 1)).Perm(backlog)
			ix := filledBy(b, backlog, func(i int) int { return order[i] })
			claims(b, ix, everyone(b, ix), backlog, posted)
		})
	}
}

// picky allows one label of a thousand; it reads what a policy would.
func picky(_ context.Context, entries []*Entry, allowed []bool) error {
	for i, e := range entries {
		allowed[i] = e.Labels[0].Value == "7"
	}
	return nil
}

// BenchmarkClaimPicky has 999 of 1,000 jobs ahead for others.
func BenchmarkClaimPicky(b *testing.B) {
	for _, backlog := range backlogs {
		b.Run(fmt.Sprintf("%.0e", float64(backlog)), func(b *testing.B) {
			ix := filled(b, backlog)
			class, err := ix.Class(b.Context(), "picky", picky)
			if err != nil {
				b.Fatal(err)
			}
			refill := func(n int) *Entry {
				e := posted(n)
				e.Labels[0].Value = "7"
				return e
			}
			for n := range backlog / 10 { // enough of them to go on for a while
				ix.Put(refill(2*backlog + n))
			}
			claims(b, ix, class, backlog, func(n int) *Entry { return refill(3*backlog + n) })
		})
	}
}

// BenchmarkFirstClaimOfClass1e6 is what the first worker of a new class waits
// for, while others claim: other-ns is what such a claim takes meanwhile, and
// worst-ns the longest one.
func BenchmarkFirstClaimOfClass1e6(b *testing.B) {
	for name, judge := range map[string]Judge{"picky": picky, "all": everything} {
		b.Run(name, func(b *testing.B) {
			ix := filled(b, 1e6)
			others := claimMeanwhile(b, ix)
			round := 0
			for b.Loop() {
				round++
				class, err := ix.Class(b.Context(), strconv.Itoa(round), judge)
				if err != nil {
					b.Fatal(err)
				}
				taken := ix.Take(context.Background(), class, 1)
				b.StopTimer()
				ix.Return(taken[0].ID)
				ix.mu.Lock()
				ix.classes.evict(class)
				ix.mu.Unlock()
				b.StartTimer()
			}
			others(b)
		})
	}
}

// claimMeanwhile claims and gives back until the returned function is called.
func claimMeanwhile(b *testing.B, ix *Index) (stop func(*testing.B)) {
	b.Helper()
	var worst, all time.Duration
	count := 0
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			start := time.Now()
			for _, e := range ix.Take(context.Background(), ix.everyone, 1) {
				ix.Return(e.ID)
			}
			took := time.Since(start)
			worst, all = max(worst, took), all+took
			count++
			runtime.Gosched()
		}
	}()
	return func(b *testing.B) {
		b.Helper()
		close(quit)
		<-done
		b.ReportMetric(float64(worst.Nanoseconds()), "worst-ns")
		b.ReportMetric(float64(all.Nanoseconds())/float64(count), "other-ns")
	}
}

func everything(_ context.Context, entries []*Entry, allowed []bool) error {
	for i := range entries {
		allowed[i] = true
	}
	return nil
}

func BenchmarkPut(b *testing.B) {
	for _, classes := range []int{0, 1, 8} {
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			ix := New()
			for i := range classes {
				if _, err := ix.Class(b.Context(), strconv.Itoa(i+1), picky); err != nil {
					b.Fatal(err)
				}
			}
			n := 0
			batch := make([]*Entry, 128)
			b.ReportAllocs()
			for b.Loop() {
				if n%128 == 0 {
					b.StopTimer()
					for i := range batch {
						batch[i] = posted(n + i)
					}
					b.StartTimer()
					ix.PutAll(batch)
				}
				n++
			}
		})
	}
}

// BenchmarkMemory reports the bytes that an entry costs with all there is about
// it, without a class and with one that may have all of them.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	for _, classes := range []int{0, 1} {
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				ix := filled(b, n)
				for i := range classes {
					if _, err := ix.Class(b.Context(), strconv.Itoa(i+1), everything); err != nil {
						b.Fatal(err)
					}
				}
				batches.Get()
				runtime.GC()
				runtime.GC() // the second one empties the pools
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/entry")
				runtime.KeepAlive(ix)
			}
		})
	}
}
