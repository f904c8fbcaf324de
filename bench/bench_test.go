// Package bench measures boardd from outside: a client, the server and its
// driver, each in a process of its own, on the durable store. Every figure that
// is a claim is a ratio of two things measured in one run. docs/benchmarks.md
// says how to run it and what it printed.
package bench

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// TestMain lets the heap of the load generator grow as boardd lets its own: what
// is measured is boardd.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	serveNothing()
	os.Exit(m.Run())
}

// owner is who claims in all benchmarks.
const owner = "bench"

// dial returns a client of the server, closed when the benchmark ends.
func dial(b *testing.B, addr string) *client.Client {
	b.Helper()
	c, err := client.New(client.Config{Addr: addr, Token: "dev"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

// fill posts n jobs in batches with details of 200 bytes and three labels out of
// a thousand values, from four callers.
func fill(b *testing.B, board *client.Board, n int, label func(i int) string) {
	b.Helper()
	const batch = 500
	var group sync.WaitGroup
	next := make(chan int)
	for range 4 {
		group.Go(func() {
			for first := range next {
				jobs := make([]*client.NewJob, 0, batch)
				for i := first; i < min(first+batch, n); i++ {
					jobs = append(jobs, newJob(i, label(i)))
				}
				if _, err := board.Post(context.Background(), jobs...); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for first := 0; first < n; first += batch {
		next <- first
	}
	close(next)
	group.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

var padding = func() string {
	text := make([]byte, 170)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	return string(text)
}()

func newJob(i int, group string) *client.NewJob {
	return &client.NewJob{
		Name:    "bench",
		Details: fmt.Appendf(nil, `{"n":%d,"padding":"%s"}`, i, padding),
		Labels: map[string]string{
			"group": group, "customer": fmt.Sprintf("customer-%03d", i%1000), "site": fmt.Sprintf("site-%03d", i/7%1000),
		},
	}
}

func anyone(int) string { return "all" }

// cycle posts one job, claims the best one and consumes it.
func cycle(ctx context.Context, board *client.Board, batch int, names ...string) error {
	jobs := make([]*client.NewJob, batch)
	for i := range jobs {
		jobs[i] = newJob(i, "all")
	}
	if _, err := board.Post(ctx, jobs...); err != nil {
		return err
	}
	claims, err := board.Claim(ctx, client.ClaimOptions{Owner: owner, Max: int32(batch), Names: names})
	if err != nil {
		return err
	}
	if len(claims) != batch {
		return fmt.Errorf("%d claims of %d", len(claims), batch)
	}
	return board.Consume(ctx, claims...)
}

// parallel runs b.N calls of one from n callers.
func parallel(b *testing.B, n int, one func(ctx context.Context) error) {
	b.Helper()
	var group sync.WaitGroup
	tickets := make(chan struct{}, b.N)
	for range b.N {
		tickets <- struct{}{}
	}
	close(tickets)
	for range n {
		group.Go(func() {
			for range tickets {
				if err := one(context.Background()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// byMany has so many callers do one so many times each, and returns how long that took.
func byMany(callers, each int, one func(i int)) time.Duration {
	var group sync.WaitGroup
	began := time.Now()
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				one(caller*each + i)
			}
		})
	}
	group.Wait()
	return time.Since(began)
}

// middle is the median.
func middle[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// ownCPU returns the processor time of this process.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

var prebuilt = flag.String("boardd", "", "measure this program instead of building one")

// program returns the program to measure.
func program(b *testing.B) string {
	b.Helper()
	if *prebuilt != "" {
		return *prebuilt
	}
	return testserver.Build(b, "./cmd/boardd")
}
