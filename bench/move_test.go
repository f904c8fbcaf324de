package bench

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkMove moves a board of waiting jobs, with details of 200 bytes and three labels, from
// the embedded store to another one and back, while four callers post, claim and consume. It
// gives how long each move took, for how long of it nothing could be changed, and how long
// the slowest life of a job took, whose callers come again until they are served.
func BenchmarkMove(b *testing.B) {
	boardd := program(b)
	for _, plugin := range []string{"redis", "postgres"} {
		withPlugin(b, boardd, plugin)
	}
	for _, store := range []string{"redis", "postgres"} {
		for _, jobs := range []int{100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/jobs=%d", store, jobs), func(b *testing.B) {
				for b.Loop() {
					benchmarkMove(b, boardd, store, jobs)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func benchmarkMove(b *testing.B, boardd, store string, jobs int) {
	b.Helper()
	ctx := b.Context()
	setting, _ := startStore(b, store)
	config := testserver.CatalogConfig(b, "embedded", "", fmt.Sprintf("backend \"other\" {\n  driver = %q\n  config = { %s }\n}\n", store, setting))
	c := dialWith(b, client.Config{Addr: testserver.Start(b, boardd, "", "--config", config).Addr, RetryFor: time.Hour})
	_, err := c.Admin().CreateBoard(ctx, &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
		Name: "moving", Backend: "main", History: durationpb.New(time.Hour),
	}})
	if err != nil {
		b.Fatal(err)
	}
	board := c.Board("moving")
	fill(b, board, jobs, anyone)

	for _, to := range []string{"other", "main"} {
		rest := atWork(b, board)
		began := time.Now()
		if _, err := c.Admin().MoveBoard(ctx, &boarddv1.MoveBoardRequest{Board: "moving", Backend: to}); err != nil {
			b.Fatal(err)
		}
		frozen := untilMoved(b, c)
		b.ReportMetric(time.Since(began).Seconds(), "s/to-"+to)
		b.ReportMetric(frozen.Seconds(), "s/frozen-to-"+to)
		b.ReportMetric(rest().Seconds(), "s/slowest-to-"+to)
	}
}

// atWork has four callers post, claim and consume a job each, again and again, until rest is
// called, which returns when they are served and says how long the slowest of those three calls
// took together.
func atWork(b *testing.B, board *client.Board) (rest func() time.Duration) {
	b.Helper()
	var over atomic.Bool
	var callers sync.WaitGroup
	slowest := make([]time.Duration, 4)
	for i := range slowest {
		callers.Go(func() {
			for !over.Load() {
				began := time.Now()
				if err := cycle(b.Context(), board, 1); err != nil {
					b.Error(err)
					return
				}
				slowest[i] = max(slowest[i], time.Since(began))
			}
		})
	}
	return func() time.Duration {
		over.Store(true)
		callers.Wait()
		return slices.Max(slowest)
	}
}

// untilMoved waits until the board has moved, and returns for how long nothing could be changed.
func untilMoved(b *testing.B, c *client.Client) time.Duration {
	b.Helper()
	for ; ; time.Sleep(100 * time.Millisecond) { // nobody announces it
		asked, err := c.Admin().GetMove(b.Context(), &boarddv1.GetMoveRequest{Board: "moving"})
		if err != nil || b.Failed() {
			b.Fatalf("of the move: %v", err)
		}
		if frozen := asked.GetMove().GetFrozenFor(); frozen != nil {
			return frozen.AsDuration()
		}
	}
}
