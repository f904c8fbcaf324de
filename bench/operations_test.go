package bench

import (
	"fmt"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkOperations is the rate of claims, of 32 jobs each from four callers, on a
// board whose jobs have 20 operations and on one whose jobs have none, on one server.
// They take turns; ratio is the median of the turns', with over without.
func BenchmarkOperations(b *testing.B) {
	server := testserver.Start(b, program(b), "", "--dev")
	board := dial(b, server.Addr).Board("default")
	var ratios []float64
	var rates [2][]float64
	for n := 0; b.Loop(); n++ {
		var rate [2]float64
		for turn := range 2 {
			i := (turn + n) % 2
			rate[i] = claimRate(b, board, 20*i)
			rates[i] = append(rates[i], rate[i])
		}
		ratios = append(ratios, rate[1]/rate[0])
	}
	b.ReportMetric(middle(rates[0]), "claims/s")
	b.ReportMetric(middle(rates[1]), "claims/s-of-20")
	b.ReportMetric(middle(ratios), "ratio")
	b.ReportMetric(0, "ns/op")
}

// claimRate posts jobs, claims them all, and consumes them; only the claims count.
func claimRate(b *testing.B, board *client.Board, operations int) float64 {
	b.Helper()
	const each, batch = 16, 32
	for range 4 * each {
		jobs := make([]*client.NewJob, batch)
		for i := range jobs {
			jobs[i] = newJob(i, "all")
			for k := range operations {
				jobs[i].Operations = append(jobs[i].Operations, &client.NewOperation{Name: fmt.Sprint("operation-", k), Input: []byte(`{"path":"/a/b/c.png"}`)})
			}
		}
		if _, err := board.Post(b.Context(), jobs...); err != nil {
			b.Fatal(err)
		}
	}
	claims := make([][]*client.Claim, 4*each)
	took := byFour(each, func(i int) {
		given, err := board.Claim(b.Context(), client.ClaimOptions{Owner: owner, Max: batch})
		if err != nil || len(given) != batch || len(given[0].GetJob().GetOperations()) != operations {
			b.Errorf("%d claims: %v", len(given), err)
		}
		claims[i] = given
	})
	for _, given := range claims {
		if err := board.Consume(b.Context(), given...); err != nil {
			b.Fatal(err)
		}
	}
	return 4 * each * batch / took.Seconds()
}
