package bench

import (
	"context"
	"fmt"
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
// the slowest call of the callers took, which come again until they are served.
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

	var slowest atomic.Int64 // of the calls since it was looked at last, in ns
	atWork, stop := context.WithCancel(ctx)
	defer stop()
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for atWork.Err() == nil {
				began := time.Now()
				if err := cycle(atWork, board, 1); err != nil && atWork.Err() == nil {
					b.Error(err)
					return
				}
				took := int64(time.Since(began))
				for known := slowest.Load(); took > known && !slowest.CompareAndSwap(known, took); known = slowest.Load() {
				}
			}
		})
	}
	for _, to := range []string{"other", "main"} {
		began := time.Now()
		if _, err := c.Admin().MoveBoard(ctx, &boarddv1.MoveBoardRequest{Board: "moving", Backend: to}); err != nil {
			b.Fatal(err)
		}
		frozen := untilMoved(b, c)
		b.ReportMetric(time.Since(began).Seconds(), "s/to-"+to)
		b.ReportMetric(frozen.Seconds(), "s/frozen-to-"+to)
		if err := cycle(ctx, board, 1); err != nil { // the others' calls are over soon after it
			b.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		b.ReportMetric(time.Duration(slowest.Swap(0)).Seconds(), "s/slowest-to-"+to)
	}
	stop()
	callers.Wait()
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
