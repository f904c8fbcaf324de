package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

const fairConfig = `
tenant "quiet" {
  token "quiet" {
    roles  = ["tenant-admin"]
    secret = "the-secret-of-the-quiet-one"
  }
}
tenant "loud" {
  token "loud" {
    roles  = ["tenant-admin"]
    secret = "the-secret-of-the-loud-one"
  }
  limits {
    requests_per_second = %d
  }
}
backend "local" {
  driver = "embedded"
}
board "quiet" {
  tenant  = "quiet"
  backend = "local"
}
board "loud" {
  tenant  = "loud"
  backend = "local"
}
`

// noise is what the loud tenant does.
type noise struct {
	limit   int  // calls a second that it may make
	limited bool // it tries ten times as many, evenly, and not as many as it can
	callers int
	jobs    int // that it posts in one call
}

// loudLimit is how many calls a second the loud tenant may make in the first of these.
const loudLimit = 200

// BenchmarkNeighbour measures the 99th percentile of one tenant's calls while another
// one asks for ten times its limit, as against while that one is still. The two are
// measured in turns of two seconds, and of all turns the medians count: one stall of the
// disk is more calls than a hundredth of a turn. With limit=none the other tenant has
// none, and asks for as much as it can from a hundred callers; with posts=1000, from
// sixteen who post a thousand jobs in each call. With compiles it promotes policies, and
// has its board ask them in the shadow, without pause, each of them compiled anew.
func BenchmarkNeighbour(b *testing.B) {
	const none = 1_000_000
	b.Run("limit=ten-times", func(b *testing.B) { neighbour(b, noise{loudLimit, true, 100, 1}) })
	b.Run("limit=none", func(b *testing.B) { neighbour(b, noise{none, false, 100, 1}) })
	b.Run("posts=1000", func(b *testing.B) { neighbour(b, noise{none, false, 16, 1000}) })
	b.Run("compiles", compiles)
}

func neighbour(b *testing.B, n noise) {
	b.Helper()
	of := neighbours(b, n.limit)
	quiet := of("quiet").Board("quiet")
	loud := make([]*client.Board, n.callers) // each with a client of his own: one client's posts would share calls
	for i := range loud {
		loud[i] = of("loud").Board("loud")
	}
	var calls, refused atomic.Int64
	byTurns(b, quiet, func(ctx context.Context) {
		var shouting sync.WaitGroup
		for caller := range n.callers {
			shouting.Go(func() { n.shout(ctx, loud[caller], caller, &calls, &refused) })
		}
		shouting.Wait()
	})
	b.ReportMetric(float64(calls.Load())/(turn.Seconds()*float64(b.N)), "loud-calls/s")
	b.ReportMetric(float64(refused.Load())/float64(max(1, calls.Load())), "loud-refused")
}

func compiles(b *testing.B) {
	of := neighbours(b, 1_000_000)
	loud := newCompiling(b, of("loud").Admin())
	byTurns(b, of("quiet").Board("quiet"), func(ctx context.Context) { loud.run(ctx, b) })
	b.ReportMetric(float64(loud.versions.Load())/(turn.Seconds()*float64(b.N)), "loud-versions/s")
	b.ReportMetric(float64(loud.refused.Load())/float64(max(1, loud.versions.Load())), "loud-refused")
}

// neighbours starts a server with two tenants and returns what makes clients of them.
func neighbours(b *testing.B, limit int) func(tenant string) *client.Client {
	b.Helper()
	path := filepath.Join(b.TempDir(), "fair.hcl")
	if err := os.WriteFile(path, fmt.Appendf(nil, fairConfig, limit), 0o600); err != nil {
		b.Fatal(err)
	}
	server := testserver.Start(b, program(b), "", "--config", path)
	return func(tenant string) *client.Client {
		c, err := client.New(client.Config{Addr: server.Addr, Token: "the-secret-of-the-" + tenant + "-one", RetryFor: -1})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		return c
	}
}

// turn is for how long one tenant is measured at a time.
const turn = 2 * time.Second

// byTurns measures one tenant alone and beside the noise of another, by turns.
func byTurns(b *testing.B, quiet *client.Board, noise func(ctx context.Context)) {
	b.Helper()
	var alone, beside []float64 // a turn's each
	for b.Loop() {
		alone = append(alone, p99(paced(b, quiet, turn)))
		ctx, stop := context.WithCancel(b.Context())
		var loud sync.WaitGroup
		loud.Go(func() { noise(ctx) })
		beside = append(beside, p99(paced(b, quiet, turn)))
		stop()
		loud.Wait()
	}
	b.ReportMetric(middle(alone), "p99-ms-alone")
	b.ReportMetric(middle(beside), "p99-ms-beside")
	b.ReportMetric(middle(beside)/middle(alone), "p99-ratio")
	b.ReportMetric(0, "ns/op")
}

// p99 is in milliseconds.
func p99(list []time.Duration) float64 {
	slices.Sort(list)
	return list[len(list)*99/100].Seconds() * 1000
}

// paced works on jobs for a while, a hundred times a second, and returns how long each
// round of three calls took from when it was due.
func paced(b *testing.B, board *client.Board, during time.Duration) []time.Duration {
	b.Helper()
	const every = 10 * time.Millisecond
	var mu sync.Mutex
	var took []time.Duration
	var rounds sync.WaitGroup
	for begun := time.Now(); time.Since(begun) < during; {
		due := time.Now()
		rounds.Go(func() {
			if err := cycle(context.Background(), board, 1); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(due))
		})
		time.Sleep(time.Until(due.Add(every)))
	}
	rounds.Wait()
	return took
}

// shout posts jobs: one of the callers who together try ten times the limit, evenly, or
// who have none.
func (n noise) shout(ctx context.Context, board *client.Board, caller int, calls, refused *atomic.Int64) {
	every := time.Duration(n.callers) * time.Second / time.Duration(10*n.limit)
	if n.limited {
		time.Sleep(time.Duration(caller) * every / time.Duration(n.callers))
	}
	jobs := make([]*client.NewJob, n.jobs)
	for i := range jobs {
		jobs[i] = newJob(1, "all")
	}
	for ctx.Err() == nil {
		begun := time.Now()
		_, err := board.Post(ctx, jobs...)
		calls.Add(1)
		if errors.Is(err, job.QuotaExceeded) || errors.Is(err, job.Unavailable) {
			refused.Add(1)
		}
		if n.limited {
			time.Sleep(time.Until(begun.Add(every)))
		}
	}
}
