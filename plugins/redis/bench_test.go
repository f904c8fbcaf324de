package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// callers is how many batches are under way at once: what the driver asks for.
const callers = 4

var numbers atomic.Uint64

func fresh() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], numbers.Add(1))
	b[15] = 1
	return b
}

// cycle posts, claims and consumes a batch of jobs, and says what went wrong.
func cycle(b *testing.B, d driver.Driver, board string, n int) {
	b.Helper()
	posts, claims, ends := make([]driver.Op, n), make([]driver.Op, n), make([]driver.Op, n)
	for i := range n {
		p := &driver.Posting{ID: fresh(), Name: "resize", Details: []byte(`{"path":"/images/a.png","width":640}`), Digest: fresh()}
		posts[i] = driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Request: fresh(), Event: job.Posted}
		claims[i] = driver.Op{Kind: driver.Claim, Request: fresh(), Event: job.ClaimedEvent, Claim: &driver.ClaimSpec{
			Owner: "worker", Lease: time.Minute, Count: 1, Candidates: []driver.Candidate{{Job: p.ID, Nonce: fresh()}},
		}}
	}
	apply := func(ops []driver.Op) []driver.Result {
		results := d.Apply(b.Context(), board, ops)
		for i := range results {
			if err := results[i].Err(&ops[i]); err != nil {
				b.Error(err)
			}
		}
		return results
	}
	apply(posts)
	for i, r := range apply(claims) {
		if len(r.Claims) != 1 {
			b.Errorf("a free job was passed over: %+v", r.Skipped)
			return
		}
		ends[i] = driver.Op{
			Kind: driver.Remove, Job: posts[i].Job, Request: fresh(), Precondition: driver.HeldByToken, Token: r.Claims[0].Token, Event: job.ConsumedEvent,
		}
	}
	apply(ends)
}

// rate returns how many transitions a second there are, measured for a while.
func rate(b *testing.B, d driver.Driver, board string, batch int, window time.Duration) float64 {
	b.Helper()
	var done atomic.Int64
	var running sync.WaitGroup
	begun := time.Now()
	for range callers {
		running.Go(func() {
			for time.Since(begun) < window && !b.Failed() {
				cycle(b, d, board, batch)
				done.Add(int64(3 * batch))
			}
		})
	}
	running.Wait()
	return float64(done.Load()) / time.Since(begun).Seconds()
}

func openBoard(b *testing.B, d driver.Driver, name string) {
	b.Helper()
	b.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(b.Context(), driver.BoardSpec{Name: name, Window: time.Second}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkProcess compares the driver as a process with the same engine in this
// process: transitions (post, claim and consume, in equal parts) a second in
// batches of 128 on one Redis. Both take turns, each first as often as the other,
// and the ratio is the median of all rounds. What a transition costs each process
// is processor time; "caller" is who makes the ops and looks at the answers.
func BenchmarkProcess(b *testing.B) {
	server := testserver.StartRedis(b, testserver.RedisOptions{})
	inside := openStore(b, server)
	outside, process := launch(b, server)
	openBoard(b, inside, "inside")
	openBoard(b, outside, "process")
	const batch, window, rounds = 128, 500 * time.Millisecond, 8
	spent := map[string]*spending{"inside": {}, "process": {}}
	measure := func(d driver.Driver, name string) float64 {
		s := spent[name]
		s.redis -= server.CPU().Seconds()
		s.caller -= testserver.CPUOf(os.Getpid()).Seconds()
		s.driver -= testserver.CPUOf(process.PID()).Seconds()
		r := rate(b, d, name, batch, window)
		s.redis += server.CPU().Seconds()
		s.caller += testserver.CPUOf(os.Getpid()).Seconds()
		s.driver += testserver.CPUOf(process.PID()).Seconds()
		s.done += r * window.Seconds()
		return r
	}
	measure(inside, "inside") // both are warm then
	measure(outside, "process")
	*spent["inside"], *spent["process"] = spending{}, spending{}
	var in, ratios []float64
	for b.Loop() {
		for round := range rounds {
			var i, o float64
			if round%2 == 0 {
				i, o = measure(inside, "inside"), measure(outside, "process")
			} else {
				o, i = measure(outside, "process"), measure(inside, "inside")
			}
			in, ratios = append(in, i), append(ratios, o/i)
		}
	}
	b.ReportMetric(median(in), "inside-ops/s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(slices.Min(ratios), "least-ratio")
	for name, s := range spent {
		b.ReportMetric(s.redis*1e6/s.done, name+"-redis-us")
		b.ReportMetric(s.caller*1e6/s.done, name+"-caller-us")
	}
	b.ReportMetric(spent["process"].driver*1e6/spent["process"].done, "process-driver-us")
	b.ReportMetric(0, "ns/op")
}

// spending is processor time in seconds, and for how many transitions.
type spending struct{ redis, caller, driver, done float64 }

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// watched follows a board until the benchmark ends.
func watched(b *testing.B, d driver.Driver, board string) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	ready := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		var once sync.Once
		for _, err := range d.Watch(ctx, board, 1<<40) { // it is told to read everything again at once
			once.Do(func() { close(ready) })
			if err != nil {
				return
			}
		}
	})
	b.Cleanup(func() { stop(); following.Wait() })
	<-ready
}

// openStore opens the engine in this process.
func openStore(b *testing.B, server *testserver.Redis) driver.Driver {
	b.Helper()
	settings, err := json.Marshal(map[string]string{"address": server.Addr})
	if err != nil {
		b.Fatal(err)
	}
	d, err := store.Open(b.Context(), driver.Config{Settings: settings})
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// redisCost returns what a transition costs Redis, in seconds of processor time.
func redisCost(b *testing.B, server *testserver.Redis, d driver.Driver, board string, batch int) float64 {
	b.Helper()
	before, begun := server.CPU().Seconds(), time.Now()
	r := rate(b, d, board, batch, 500*time.Millisecond)
	done := r * time.Since(begun).Seconds()
	return (server.CPU().Seconds() - before) / done
}

// BenchmarkLife says what a job's life (post, claim and consume) costs Redis in calls for so
// many jobs: the median of the turns.
func BenchmarkLife(b *testing.B) {
	for _, batch := range []int{1, 32} {
		b.Run("batch="+strconv.Itoa(batch), func(b *testing.B) {
			server := testserver.StartRedis(b, testserver.RedisOptions{})
			d := openStore(b, server)
			openBoard(b, d, "b")
			redisCost(b, server, d, "b", batch) // it is warm then
			var lives []float64
			for b.Loop() {
				lives = append(lives, 3*redisCost(b, server, d, "b", batch))
			}
			b.ReportMetric(median(lives)*1e6, "redis-us/life")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkNotifications compares what a transition costs Redis with keyspace notifications
// on and off, on a board that other programs write to as well and that is followed by a
// watcher: both take turns, and the ratio is the median of all rounds.
func BenchmarkNotifications(b *testing.B) {
	for _, batch := range []int{1, 32, 128} {
		b.Run("batch="+strconv.Itoa(batch), func(b *testing.B) {
			server := testserver.StartRedis(b, testserver.RedisOptions{})
			server.Command("CONFIG", "SET", "notify-keyspace-events", "Kg$x")
			d := openStore(b, server)
			b.Cleanup(func() { _ = d.Close() })
			spec := driver.BoardSpec{Name: "b", Window: time.Second, Settings: []byte(`{"foreign":true}`)}
			if _, err := d.OpenBoard(b.Context(), spec); err != nil {
				b.Fatal(err)
			}
			watched(b, d, "b")
			rate(b, d, "b", batch, 2*time.Second) // it is warm then, and the first search is over
			measure := func(events string) float64 {
				server.Command("CONFIG", "SET", "notify-keyspace-events", events)
				return redisCost(b, server, d, "b", batch)
			}
			var off, ratios []float64
			for b.Loop() {
				for range 4 {
					first, second := measure("Kg$x"), measure("")
					third, fourth := measure(""), measure("Kg$x")
					off, ratios = append(off, second, third), append(ratios, first/second, fourth/third)
				}
			}
			b.ReportMetric(median(off)*1e6, "off-redis-us")
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkManyBoards compares what a job's life costs Redis beside many other boards, which
// are open and followed, with what it costs on a Redis of its own, by turns; and says what
// part of a core the others keep Redis busy with at rest.
func BenchmarkManyBoards(b *testing.B) {
	for _, others := range []int{1_000, 5_000, 20_000} {
		b.Run("others="+strconv.Itoa(others), func(b *testing.B) { manyBoards(b, others) })
	}
}

func manyBoards(b *testing.B, others int) {
	b.Helper()
	servers := map[string]*testserver.Redis{}
	drivers := map[string]driver.Driver{}
	for _, name := range []string{"alone", "many"} {
		servers[name] = testserver.StartRedis(b, testserver.RedisOptions{})
		drivers[name] = openStore(b, servers[name])
		openBoard(b, drivers[name], "b")
		watched(b, drivers[name], "b")
	}
	for i := range others {
		name := "other " + strconv.Itoa(i)
		if _, err := drivers["many"].OpenBoard(b.Context(), driver.BoardSpec{Name: name}); err != nil {
			b.Fatal(err)
		}
		cycle(b, drivers["many"], name, 1) // it has been used
		watched(b, drivers["many"], name)
	}
	const rest = 90 * time.Second // what is looked at ever more rarely is at rest then
	b.Logf("%d boards are open", others)
	time.Sleep(rest)
	before, begun := servers["many"].CPU().Seconds(), time.Now()
	time.Sleep(rest)
	idle := (servers["many"].CPU().Seconds() - before) / time.Since(begun).Seconds()
	const batch = 32
	measure := func(name string) float64 { return 3 * redisCost(b, servers[name], drivers[name], "b", batch) }
	measure("alone")
	measure("many")
	var alone, ratios []float64
	for b.Loop() {
		for range 4 {
			first, second := measure("many"), measure("alone")
			third, fourth := measure("alone"), measure("many")
			alone, ratios = append(alone, second, third), append(ratios, first/second, fourth/third)
		}
	}
	b.ReportMetric(median(alone)*1e6, "alone-redis-us/job")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(100*idle, "idle-%")
	b.ReportMetric(float64(strings.Count(servers["many"].Command("CLIENT", "LIST"), " laddr=")-1), "connections")
	b.ReportMetric(0, "ns/op")
}
