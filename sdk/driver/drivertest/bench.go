package drivertest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A Benchmark is a T that measures: a *testing.B.
type Benchmark[S any] interface {
	T
	Run(name string, part func(S)) bool
	Loop() bool
	StartTimer()
	StopTimer()
	ReportAllocs()
	ReportMetric(value float64, unit string)
	Elapsed() time.Duration
}

// Bench measures a driver: each transition in batches of 1, 32 and 128, from 1,
// 8 and 64 callers, a scan, and how fast changes reach a watcher. One turn of a
// loop is one batch; jobs/s is what counts.
func Bench[S Benchmark[S]](b S, h Harness) {
	b.Helper()
	s := &suite{harness: h}
	s.driver = s.open(b)
	for _, m := range measures {
		for _, batch := range []int{1, 32, 128} {
			for _, callers := range []int{1, 8, 64} {
				b.Run(m.name+"/batch="+strconv.Itoa(batch)+"/callers="+strconv.Itoa(callers), func(b S) {
					measureBatches(b, s, m, batch, callers)
				})
			}
		}
	}
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run("scan/jobs="+strconv.Itoa(n), func(b S) { measureScan(b, s, n) })
	}
	b.Run("watch", func(b S) { measureWatch(b, s) })
}

// A measure is one thing to measure: what must be there before, and what is done.
type measure struct {
	name    string
	prepare func(e *env, n int) []driver.Claimed // jobs for n items
	run     func(ctx context.Context, e *env, list []driver.Claimed) error
}

var measures = []measure{
	{"post", unposted, applyEach(func(c driver.Claimed) driver.Op { return postOp(posting("benchmark")) })},
	{"claim", unclaimed, applyEach(func(c driver.Claimed) driver.Op { return claimOp("w", long, c.Job) })},
	{"extend", claimed, applyEach(func(c driver.Claimed) driver.Op { return byToken(driver.Extend, c) })},
	{"consume", claimed, applyEach(func(c driver.Claimed) driver.Op { return byToken(driver.Remove, c) })},
	{"cycle", unposted, cycle},
}

func unposted(_ *env, n int) []driver.Claimed { return make([]driver.Claimed, n) }

func unclaimed(e *env, n int) []driver.Claimed {
	list := make([]driver.Claimed, n)
	for i, p := range e.posts(n) {
		list[i].Job = p.ID
	}
	return list
}

func claimed(e *env, n int) []driver.Claimed {
	list := unclaimed(e, n)
	for part := range slices.Chunk(list, 128) {
		ops := make([]driver.Op, len(part))
		for i := range part {
			ops[i] = claimOp("w", long, part[i].Job)
		}
		results := e.apply(ops...)
		if err := failure(ops, results); err != nil {
			e.Fatalf("Claim: %v", err)
		}
		for i := range part {
			part[i] = results[i].Claims[0]
		}
	}
	return list
}

func applyEach(op func(driver.Claimed) driver.Op) func(context.Context, *env, []driver.Claimed) error {
	return func(ctx context.Context, e *env, list []driver.Claimed) error {
		ops := make([]driver.Op, len(list))
		for i := range list {
			ops[i] = op(list[i])
			ops[i].Request = random16()
		}
		return failure(ops, e.driver.Apply(ctx, e.name, ops))
	}
}

// failure returns the first result that is not what was wanted.
func failure(ops []driver.Op, results []driver.Result) error {
	for i := range results {
		if err := results[i].Err(&ops[i]); err != nil {
			return err
		}
		if ops[i].Kind == driver.Claim && len(results[i].Claims) == 0 {
			return job.Errorf(job.Internal, "a free job was passed over: %s", goneKinds(results[i].Skipped))
		}
	}
	return nil
}

// cycle posts, claims and consumes.
func cycle(ctx context.Context, e *env, list []driver.Claimed) error {
	posts, claims, ends := make([]driver.Op, len(list)), make([]driver.Op, len(list)), make([]driver.Op, len(list))
	for i := range list {
		posts[i] = postOp(posting("benchmark"))
		claims[i] = claimOp("w", long, posts[i].Posting.ID)
	}
	if err := failure(posts, e.driver.Apply(ctx, e.name, posts)); err != nil {
		return err
	}
	results := e.driver.Apply(ctx, e.name, claims)
	if err := failure(claims, results); err != nil {
		return err
	}
	for i := range results {
		ends[i] = byToken(driver.Remove, results[i].Claims[0])
	}
	return failure(ends, e.driver.Apply(ctx, e.name, ends))
}

// stock is how many items are prepared at a time, while the clock stands.
const stock = 4096

func measureBatches[S Benchmark[S]](b S, s *suite, m measure, batch, callers int) {
	b.ReportAllocs()
	e := &env{T: b, suite: s, driver: s.driver, name: boardName("bench")}
	b.StopTimer()
	e.openBoard(nil)
	work := make(chan []driver.Claimed)
	var workers, under sync.WaitGroup
	defer workers.Wait()
	defer close(work)
	for range callers {
		workers.Go(func() {
			for list := range work {
				if err := m.run(e.Context(), e, list); err != nil {
					b.Errorf("%s: %v", m.name, err)
				}
				under.Done()
			}
		})
	}
	var ready []driver.Claimed
	done := 0
	b.StartTimer()
	for b.Loop() {
		if len(ready) < batch {
			under.Wait()
			b.StopTimer()
			ready = m.prepare(e, max(stock, batch))
			b.StartTimer()
		}
		under.Add(1)
		work <- ready[:batch]
		ready = ready[batch:]
		done += batch
	}
	under.Wait()
	b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "jobs/s")
}

func measureScan[S Benchmark[S]](b S, s *suite, n int) {
	b.ReportAllocs()
	e := &env{T: b, suite: s, driver: s.driver, name: boardName("bench")}
	b.StopTimer()
	e.openBoard(nil)
	e.posts(n)
	turns := 0
	b.StartTimer()
	for b.Loop() {
		if list, _ := e.scan(driver.ScanRequest{}); len(list) != n {
			b.Fatalf("a scan of %d jobs found %d", n, len(list))
		}
		turns++
	}
	b.ReportMetric(float64(turns*n)/b.Elapsed().Seconds(), "jobs/s")
}

// measureWatch posts batches, and counts the time until the watcher has them.
func measureWatch[S Benchmark[S]](b S, s *suite) {
	b.ReportAllocs()
	e := &env{T: b, suite: s, driver: s.driver, name: boardName("bench")}
	b.StopTimer()
	e.openBoard(nil)
	const batch = 128
	reached := make(chan driver.Position, 1024)
	ctx, cancel := context.WithCancel(e.Context())
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer cancel()
	watcher.Go(func() {
		for c, err := range e.driver.Watch(ctx, e.name, e.status.Position) {
			if err != nil {
				close(reached)
				return
			}
			select {
			case reached <- c.Position:
			case <-ctx.Done():
			}
		}
	})
	turns := 0
	b.StartTimer()
	for b.Loop() {
		ops := make([]driver.Op, batch)
		for i := range ops {
			ops[i] = postOp(posting("benchmark"))
		}
		var last driver.Position
		for _, r := range e.apply(ops...) {
			last = max(last, r.Position)
		}
		for p := range reached {
			if p >= last {
				break
			}
		}
		turns++
	}
	b.ReportMetric(float64(turns*batch)/b.Elapsed().Seconds(), "jobs/s")
}
