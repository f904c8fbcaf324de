package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkMillion posts 1,000,000 jobs with details of 200 bytes and three
// labels, gives the memory of the host and of the driver, restarts the server
// with kill -9 and gives the time to its first claim, and that of another board.
// The host runs with GOMEMLIMIT=480MiB.
func BenchmarkMillion(b *testing.B) { benchmarkBacklog(b, 1_000_000, "480MiB") }

// BenchmarkTenfold is BenchmarkMillion with 10,000,000 jobs, and no limit.
func BenchmarkTenfold(b *testing.B) { benchmarkBacklog(b, 10_000_000, "off") }

func benchmarkBacklog(b *testing.B, jobs int, memory string) {
	b.Helper()
	boardd := program(b)
	config := filepath.Join(b.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, []byte("board \"other\" {\n  backend = \"embedded\"\n}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Setenv("GOMEMLIMIT", memory)
	for range b.N {
		server := testserver.Start(b, boardd, "", "--dev", "--config", config)
		c := dial(b, server.Addr)
		board, other := c.Board("default"), c.Board("other")
		began := time.Now()
		fill(b, board, jobs, anyone)
		b.ReportMetric(float64(jobs)/time.Since(began).Seconds(), "posts/s")
		fill(b, other, 1_000, anyone)
		resident(b, server, "filled")

		server.Kill()
		began = time.Now()
		server.Launch()
		untilClaim(b, other)
		b.ReportMetric(time.Since(began).Seconds(), "s/other-claim")
		untilClaim(b, board)
		b.ReportMetric(time.Since(began).Seconds(), "s/first-claim")
		resident(b, server, "restarted")
	}
}

// BenchmarkMillionOnRedis posts 1,000,000 such jobs to a board on Redis, restarts
// the server with kill -9 and gives the time to its first claim. Redis goes on.
func BenchmarkMillionOnRedis(b *testing.B) {
	boardd := withRedis(b)
	for range b.N {
		redis := testserver.StartRedis(b, testserver.RedisOptions{})
		config := filepath.Join(b.TempDir(), "boards.hcl")
		if err := os.WriteFile(config, fmt.Appendf(nil, sharedBoard, redis.Addr), 0o600); err != nil {
			b.Fatal(err)
		}
		server := testserver.Start(b, boardd, "", "--dev", "--config", config)
		board := dial(b, server.Addr).Board("shared")
		fill(b, board, 1_000_000, anyone)
		resident(b, server, "filled")

		server.Kill()
		began := time.Now()
		server.Launch()
		untilClaim(b, board)
		b.ReportMetric(time.Since(began).Seconds(), "s/first-claim")
		resident(b, server, "restarted")
	}
}

// untilClaim claims one job, as soon as the server gives one, and consumes it.
func untilClaim(b *testing.B, board *client.Board) {
	b.Helper()
	for b.Context().Err() == nil {
		claims, err := board.Claim(b.Context(), client.ClaimOptions{Owner: owner})
		if err == nil && len(claims) == 1 {
			if err := board.Consume(b.Context(), claims...); err != nil {
				b.Fatal(err)
			}
			return
		}
		time.Sleep(10 * time.Millisecond) // the server is not up yet
	}
}

func resident(b *testing.B, server *testserver.Server, when string) {
	b.Helper()
	report := func(who string, pid int) {
		m := testserver.MemoryOf(b, pid)
		b.ReportMetric(float64(m.Resident)/(1<<20), "MiB/"+who+"-"+when)
		b.ReportMetric(float64(m.Peak)/(1<<20), "MiB/"+who+"-"+when+"-peak")
		b.ReportMetric(float64(m.Anonymous)/(1<<20), "MiB/"+who+"-"+when+"-anonymous")
	}
	report("host", server.PID())
	for _, pid := range server.Drivers() {
		report("driver", pid)
	}
}

// BenchmarkIdle is the processor time of a server with 1,000 boards that nobody
// calls, as a percentage of one core, over a minute after it has come to rest.
func BenchmarkIdle(b *testing.B) {
	boardd := program(b)
	var boards strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&boards, "board \"idle-%d\" {\n  backend = \"embedded\"\n}\n", i)
	}
	config := filepath.Join(b.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, []byte(boards.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		server := testserver.Start(b, boardd, "", "--dev", "--config", config)
		time.Sleep(10 * time.Second) // boards open in the background
		before := server.CPU()
		time.Sleep(time.Minute)
		b.ReportMetric(100*(server.CPU()-before).Seconds()/60, "%core")
	}
}
