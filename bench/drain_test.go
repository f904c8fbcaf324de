package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkDrain is how fast some workers, each with one job at a time, empty a
// board on Redis that one or more hosts serve, and how many scripts Redis runs
// for each job: the search for other programs' changes is among them.
func BenchmarkDrain(b *testing.B) {
	boardd := withRedis(b)
	for _, hosts := range []int{1, 2, 4} {
		for _, workers := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("hosts=%d/workers=%d", hosts, workers), func(b *testing.B) {
				redis := testserver.StartRedis(b, testserver.RedisOptions{})
				config := filepath.Join(b.TempDir(), "boards.hcl")
				if err := os.WriteFile(config, fmt.Appendf(nil, sharedBoard, redis.Addr), 0o600); err != nil {
					b.Fatal(err)
				}
				boards := make([]*client.Board, hosts)
				for i := range boards {
					boards[i] = dial(b, testserver.Start(b, boardd, "", "--dev", "--config", config).Addr).Board("shared")
				}
				for range b.N { // once, with -benchtime=1x
					drain(b, redis, boards, workers)
				}
			})
		}
	}
}

const drained = 2000

func drain(b *testing.B, redis *testserver.Redis, boards []*client.Board, workers int) {
	b.Helper()
	fill(b, boards[0], drained, anyone)
	for _, board := range boards { // every host has to have seen them
		testserver.Eventually(b, "the host knows every job", func() bool {
			counts, err := board.Count(b.Context())
			return err == nil && counts.GetReady() == drained
		})
	}
	before := scripts(redis)
	var done atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for i := range workers {
		worker := &client.Worker{
			Board: boards[i%len(boards)], Owner: fmt.Sprintf("worker-%d", i), UntilEmpty: true,
			Handler: func(context.Context, *client.Claim) error { done.Add(1); return nil },
		}
		group.Go(func() {
			if err := worker.Run(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
	spent := time.Since(began)
	if done.Load() != drained {
		b.Errorf("%d jobs were done, want %d", done.Load(), drained)
	}
	b.ReportMetric(drained/spent.Seconds(), "jobs/s")
	b.ReportMetric(float64(scripts(redis)-before)/drained, "scripts/job")
}

var evalsha = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// scripts returns how many scripts a Redis has run.
func scripts(redis *testserver.Redis) int {
	match := evalsha.FindStringSubmatch(redis.Command("INFO", "commandstats"))
	if match == nil {
		return 0
	}
	n, _ := strconv.Atoi(match[1])
	return n
}
