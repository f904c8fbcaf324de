package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// backlogs are the numbers of jobs that wait on the board.
var backlogs = []int{1_000, 10_000, 100_000, 1_000_000}

// cycles is how often a backlog benchmark does what it measures.
const cycles = 500

// BenchmarkBacklog is what one cycle of post, claim and consume costs a single
// caller, against the number of jobs that wait on the board: the median time,
// the processor time of all processes together, and both over those of the
// smallest backlog in the same run.
func BenchmarkBacklog(b *testing.B) {
	against(b, func(ctx context.Context, board *client.Board) error { return cycle(ctx, board, 1) })
}

// BenchmarkPicky is the same for a worker who may have none of the jobs that
// wait, but for the one that it posts: all others stand before it in the line.
func BenchmarkPicky(b *testing.B) {
	against(b, func(ctx context.Context, board *client.Board) error {
		if _, err := board.Post(ctx, newJob(0, "mine")); err != nil {
			return err
		}
		claims, err := board.Claim(ctx, client.ClaimOptions{Owner: owner, Filter: `labels.group = "mine"`})
		if err != nil || len(claims) != 1 {
			return fmt.Errorf("%d claims: %w", len(claims), err)
		}
		return board.Consume(ctx, claims...)
	})
}

// cost is what one run of a backlog benchmark found.
type cost struct{ wall, cpu float64 } // microseconds a cycle

func against(b *testing.B, one func(ctx context.Context, board *client.Board) error) {
	b.Helper()
	boardd := program(b)
	var smallest cost
	for _, n := range backlogs {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			server := testserver.Start(b, boardd, "")
			board := dial(b, server.Addr).Board("default")
			fill(b, board, n, anyone)
			began := time.Now()
			if err := one(b.Context(), board); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(began).Microseconds())/1e3, "ms/first")
			for range b.N { // once, with -benchtime=1x
				c := measure(b, server, func() error { return one(b.Context(), board) })
				if n == backlogs[0] {
					smallest = c
				}
				b.ReportMetric(c.wall, "µs/median")
				b.ReportMetric(c.cpu, "cpu-µs/cycle")
				if smallest != (cost{}) {
					b.ReportMetric(c.wall/smallest.wall, "wall-ratio")
					b.ReportMetric(c.cpu/smallest.cpu, "cpu-ratio")
				}
			}
		})
	}
}

// measure runs one as often as cycles says.
func measure(b *testing.B, server *testserver.Server, one func() error) cost {
	b.Helper()
	times := make([]time.Duration, cycles)
	before := stagesNow(server)
	for i := range times {
		began := time.Now()
		if err := one(); err != nil {
			b.Fatal(err)
		}
		times[i] = time.Since(began)
	}
	spent := stagesNow(server).sum() - before.sum()
	return cost{
		wall: float64(middle(times).Nanoseconds()) / 1e3,
		cpu:  float64(spent.Nanoseconds()) / 1e3 / cycles,
	}
}
