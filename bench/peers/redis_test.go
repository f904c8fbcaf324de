package peers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkRedisTime compares what a job's life costs Redis: boardd's post, claim and consume
// in calls for 32 jobs, through the server, and asynq's enqueue and process, with 64 callers
// and 64 handlers. Both take turns, and the ratio is the median of all turns.
func BenchmarkRedisTime(b *testing.B) {
	ours, theirs := testserver.StartRedis(b, testserver.RedisOptions{}), testserver.StartRedis(b, testserver.RedisOptions{})
	config := filepath.Join(b.TempDir(), "boards.hcl")
	text := fmt.Sprintf("backend \"redis\" {\n driver = \"redis\"\n config = { address = %q }\n}\nboard \"redis\" { backend = \"redis\" }\n", ours.Addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	server := testserver.Start(b, testserver.BuildWith(b, []string{"redis"}), "", "--dev", "--config", config)
	c, err := client.New(client.Config{Addr: server.Addr, Token: "dev"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	board, asynq := c.Board("redis"), newAsynq(theirs)
	const lives = 4096
	here := func() float64 {
		return redisTime(b, ours, lives, func() error { return inCalls(b.Context(), board, lives) })
	}
	there := func() float64 {
		return redisTime(b, theirs, lives, func() error { return processed(b.Context(), asynq, lives) })
	}
	here() // both are warm then
	there()
	var us, them, ratios []float64
	for turn := 0; b.Loop(); turn++ {
		var one, other float64
		if turn%2 == 0 {
			one, other = here(), there()
		} else {
			other, one = there(), here()
		}
		us, them, ratios = append(us, one), append(them, other), append(ratios, one/other)
	}
	b.ReportMetric(median(us), "boardd-us/job")
	b.ReportMetric(median(them), "asynq-us/job")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(slices.Min(ratios), "least-ratio")
	b.ReportMetric(slices.Max(ratios), "most-ratio")
	b.ReportMetric(0, "ns/op")
}

// redisTime returns how many microseconds of its processor a server uses for each of n jobs.
func redisTime(b *testing.B, server *testserver.Redis, n int, do func() error) float64 {
	b.Helper()
	before := server.CPU()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return float64((server.CPU() - before).Microseconds()) / float64(n)
}

// inCalls has n jobs posted, claimed and consumed by 4 callers, 32 in each call.
func inCalls(ctx context.Context, board *client.Board, n int) error {
	const batch = 32
	return inBatches(payloads(n), 4, batch, func(part [][]byte) error {
		jobs := make([]*client.NewJob, len(part))
		for i, p := range part {
			jobs[i] = &client.NewJob{Name: "bench", Details: fmt.Appendf(nil, `{"p":%q}`, p)}
		}
		if _, err := board.Post(ctx, jobs...); err != nil {
			return err
		}
		claims, err := board.Claim(ctx, client.ClaimOptions{Owner: "bench", Max: batch})
		if err != nil {
			return err
		}
		if len(claims) != len(part) {
			return fmt.Errorf("%d claims of %d", len(claims), len(part))
		}
		return board.Consume(ctx, claims...)
	})
}

// processed has n jobs enqueued and then done.
func processed(ctx context.Context, queue *asynqAt, n int) error {
	if err := queue.Post(ctx, payloads(n)); err != nil {
		return err
	}
	done := make(chan struct{}, n)
	stop, err := queue.Work(64, func([]byte) { done <- struct{}{} })
	if err != nil {
		return err
	}
	for range n {
		<-done
	}
	stop()
	return nil
}
