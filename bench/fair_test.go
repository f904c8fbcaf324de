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

// loudLimit is how many calls a second the loud tenant may make. It tries ten times
// as many, from a hundred callers.
const (
	loudLimit = 200
	shouters  = 100
)

// BenchmarkNeighbour measures the 99th percentile of one tenant's calls while another
// one asks for ten times its limit, as against while that one is still. The two are
// measured in turns of two seconds, and of all turns the medians count: one stall of the
// disk is more calls than a hundredth of a turn. With limit=none the other tenant has
// none, and asks for as much as it can from a hundred callers.
func BenchmarkNeighbour(b *testing.B) {
	for _, limited := range []bool{true, false} {
		name, limit := "limit=ten-times", loudLimit
		if !limited {
			name, limit = "limit=none", 1_000_000
		}
		b.Run(name, func(b *testing.B) { neighbour(b, limit, limited) })
	}
}

func neighbour(b *testing.B, limit int, limited bool) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "fair.hcl")
	if err := os.WriteFile(path, fmt.Appendf(nil, fairConfig, limit), 0o600); err != nil {
		b.Fatal(err)
	}
	server := testserver.Start(b, program(b), "", "--config", path)
	board := func(tenant string) *client.Board {
		c, err := client.New(client.Config{Addr: server.Addr, Token: "the-secret-of-the-" + tenant + "-one", RetryFor: -1})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		return c.Board(tenant)
	}
	quiet := board("quiet")
	loud := make([]*client.Board, shouters) // each with a client of his own: one client's posts would share calls
	for i := range loud {
		loud[i] = board("loud")
	}
	var alone, beside []float64 // a turn's each
	var calls, refused atomic.Int64
	const turn = 2 * time.Second
	for b.Loop() {
		alone = append(alone, p99(paced(b, quiet, turn)))
		ctx, stop := context.WithCancel(b.Context())
		var shouting sync.WaitGroup
		for caller := range shouters {
			shouting.Go(func() { shout(ctx, loud[caller], limited, caller, &calls, &refused) })
		}
		beside = append(beside, p99(paced(b, quiet, turn)))
		stop()
		shouting.Wait()
	}
	b.ReportMetric(middle(alone), "p99-ms-alone")
	b.ReportMetric(middle(beside), "p99-ms-beside")
	b.ReportMetric(middle(beside)/middle(alone), "p99-ratio")
	b.ReportMetric(float64(calls.Load())/(turn.Seconds()*float64(b.N)), "loud-calls/s")
	b.ReportMetric(float64(refused.Load())/float64(max(1, calls.Load())), "loud-refused")
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
func shout(ctx context.Context, board *client.Board, limited bool, caller int, calls, refused *atomic.Int64) {
	const every = shouters * time.Second / (10 * loudLimit)
	if limited {
		time.Sleep(time.Duration(caller) * every / shouters)
	}
	for ctx.Err() == nil {
		begun := time.Now()
		_, err := board.Post(ctx, newJob(1, "all"))
		calls.Add(1)
		if errors.Is(err, job.QuotaExceeded) || errors.Is(err, job.Unavailable) {
			refused.Add(1)
		}
		if limited {
			time.Sleep(time.Until(begun.Add(every)))
		}
	}
}
