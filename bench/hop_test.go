package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin"
)

// BenchmarkHop is what the embedded store's process costs: post, claim and consume by 64
// callers straight on the driver in a process of its own over the same on one in this process,
// by turns, one job or 32 in each call. It is how much less a job would cost at most if boardd
// called the driver in its own process.
func BenchmarkHop(b *testing.B) {
	boardd := program(b)
	for _, batch := range []int{1, 32} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			inside := openDirect(b)
			process, err := plugin.Start(b.Context(), plugin.Command{Path: boardd, Args: []string{"driver", "embedded"}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(process.Kill)
			outside, err := process.Open(b.Context(), driver.Config{DataDir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			openDefault(b, outside)
			const callers = 64
			turn := func(d driver.Driver) (took, cpu float64) {
				spent := func() time.Duration { return ownCPU() + testserver.CPUOf(process.PID()) }
				before := spent()
				length := byMany(callers, 1600/batch, func(int) {
					if err := directCycle(b.Context(), d, batch); err != nil {
						b.Error(err)
					}
				})
				jobs := float64(callers * (1600 / batch) * batch)
				return length.Seconds() * 1e6 / jobs, (spent() - before).Seconds() * 1e6 / jobs
			}
			turn(inside)
			turn(outside)
			var times, cpus, in, out []float64
			for b.Loop() {
				insideTook, insideCPU := turn(inside)
				outsideTook, outsideCPU := turn(outside)
				times, cpus = append(times, outsideTook/insideTook), append(cpus, outsideCPU/insideCPU)
				in, out = append(in, insideCPU), append(out, outsideCPU)
			}
			b.ReportMetric(middle(times), "time-ratio")
			b.ReportMetric(middle(cpus), "cpu-ratio")
			b.ReportMetric(middle(in), "cpu-µs/job-inside")
			b.ReportMetric(middle(out), "cpu-µs/job-process")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLone is how long a job waits for a lone worker, which waits for it on a board on
// Redis: from the call that posts it to the beginning of its handler, over an empty Connect
// call from this process to another one, by turns of 200 each. Medians count.
func BenchmarkLone(b *testing.B) {
	d := newDrain(b, withRedis(b), 1)
	ctx, stop := context.WithCancel(b.Context())
	begun, ended := make(chan time.Time), make(chan error, 1)
	w := client.Worker{Board: d.boards[0], Concurrency: 1, Handler: func(context.Context, *client.Claim) error {
		begun <- time.Now()
		return nil
	}}
	go func() { ended <- w.Run(ctx) }()
	empty := dial(b, emptyProcess(b, 0).Addr)
	poster := dial(b, d.servers[0].Addr).Board("shared")
	const each = 200
	var ratios, latencies []float64
	for b.Loop() {
		var posts, calls []time.Duration
		for range each {
			from := time.Now()
			if _, err := poster.Post(b.Context(), newJob(0, "all")); err != nil {
				b.Fatal(err)
			}
			posts = append(posts, (<-begun).Sub(from))
			from = time.Now()
			if _, err := empty.WhoAmI(b.Context()); err != nil {
				b.Fatal(err)
			}
			calls = append(calls, time.Since(from))
			time.Sleep(2 * time.Millisecond) // the worker waits again
		}
		slices.Sort(posts)
		slices.Sort(calls)
		ratios = append(ratios, posts[each/2].Seconds()/calls[each/2].Seconds())
		latencies = append(latencies, posts[each/2].Seconds()*1e3)
	}
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	b.ReportMetric(middle(ratios), "times-empty")
	b.ReportMetric(middle(latencies), "ms/begun")
	b.ReportMetric(0, "ns/op")
}
