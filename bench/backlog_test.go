package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkBacklog is what one cycle of post, claim and consume costs a single
// caller, against the number of jobs that wait on the board. "ratio" is to the
// smallest backlog of the same run.
func BenchmarkBacklog(b *testing.B) {
	boardd := program(b)
	var first float64
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			server := testserver.Start(b, boardd, "")
			board := dial(b, server.Addr).Board("default")
			fill(b, board, n, anyone)
			for range 50 {
				if err := cycle(b.Context(), board, 1); err != nil {
					b.Fatal(err)
				}
			}
			before := server.CPU() + ownCPU()
			b.ResetTimer()
			parallel(b, 1, func(ctx context.Context) error { return cycle(ctx, board, 1) })
			b.StopTimer()
			report(b, &first, server.CPU()+ownCPU()-before)
		})
	}
}

// BenchmarkPicky is the same for a worker who may have one job in a thousand:
// those whose name it asks for. All others stand before its own in the line.
func BenchmarkPicky(b *testing.B) {
	boardd := program(b)
	var first float64
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			server := testserver.Start(b, boardd, "")
			board := dial(b, server.Addr).Board("default")
			fill(b, board, n, anyone)
			one := func(ctx context.Context) error {
				job := newJob(0, "mine")
				job.Name = "rare"
				if _, err := board.Post(ctx, job); err != nil {
					return err
				}
				claims, err := board.Claim(ctx, client.ClaimOptions{Owner: owner, Filter: `labels.group = "mine"`})
				if err != nil || len(claims) != 1 {
					return fmt.Errorf("%d claims: %w", len(claims), err)
				}
				return board.Consume(ctx, claims...)
			}
			began := time.Now()
			if err := one(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/first")
			before := server.CPU() + ownCPU()
			b.ResetTimer()
			parallel(b, 1, one)
			b.StopTimer()
			report(b, &first, server.CPU()+ownCPU()-before)
		})
	}
}

// report gives the processor time per cycle, all processes together, and its
// ratio to the first of the run.
func report(b *testing.B, first *float64, cpu time.Duration) {
	b.Helper()
	each := float64(cpu.Microseconds()) / float64(b.N)
	wall := float64(b.Elapsed().Microseconds()) / float64(b.N)
	if *first == 0 || b.N == 1 {
		*first = wall
	}
	b.ReportMetric(each, "cpu-µs/op")
	b.ReportMetric(wall/(*first), "ratio")
}
