package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkReopened kills a server that has 2,000 boards open, or as many as BOARDD_BENCH_OPEN
// says, with a job on each. It gives how many it opens in a second when it comes back, how long
// it takes until it is ready, and until the first call of one board is answered meanwhile.
func BenchmarkReopened(b *testing.B) {
	boardd := program(b)
	for _, plugin := range []string{"redis", "postgres"} {
		withPlugin(b, boardd, plugin)
	}
	boards := wanted(b, "BOARDD_BENCH_OPEN", 2000)
	const callers = 32
	for _, store := range []string{"embedded", "redis", "postgres"} {
		b.Run(store, func(b *testing.B) {
			setting, _ := startStore(b, store)
			server := testserver.Start(b, boardd, "", "--config", testserver.CatalogConfig(b, store, setting, "rest_after = \"1h\"\n"))
			c := dialWith(b, client.Config{Addr: server.Addr})
			byMany(callers, (boards+callers-1)/callers, func(i int) {
				name := fmt.Sprint("open-", i)
				_, err := c.Admin().CreateBoard(b.Context(), &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{Name: name, Backend: "main"}})
				if err == nil {
					_, err = c.Board(name).Post(b.Context(), &client.NewJob{Name: "waits"})
				}
				if err != nil {
					b.Error(err)
				}
			})
			open := metric(b, server, "boardd_boards_open ")
			var rates, ready, first []float64
			for b.Loop() {
				server.Kill()
				began := time.Now()
				server.Launch()
				name := fmt.Sprint("open-", boards/2)
				testserver.Eventually(b, "a board is served", func() bool {
					_, err := c.Board(name).Count(b.Context())
					return err == nil
				})
				first = append(first, time.Since(began).Seconds())
				testserver.Eventually(b, "the server is ready", server.Ready)
				ready = append(ready, time.Since(began).Seconds())
				testserver.Eventually(b, "all boards are open", func() bool { return metric(b, server, "boardd_boards_open ") >= open })
				rates = append(rates, open/time.Since(began).Seconds())
			}
			b.ReportMetric(middle(rates), "boards/s")
			b.ReportMetric(middle(ready), "s/ready")
			b.ReportMetric(middle(first), "s/first-call")
			b.ReportMetric(0, "ns/op")
		})
	}
}
