package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// kinds of jobs that BenchmarkOperations posts, by their operations.
var kinds = []struct {
	name       string
	operations int
}{{"plain", 0}, {"steps", 20}}

// BenchmarkOperations is the rate of claims of jobs with 20 operations and of jobs with
// none, on one board that has both, by four callers who ask for one job each and who ask
// for 32. The two take turns on what was posted before; ratio is the median of the
// rounds', with over without.
func BenchmarkOperations(b *testing.B) {
	for _, most := range []int32{1, 32} {
		b.Run(fmt.Sprintf("max=%d", most), func(b *testing.B) {
			server := testserver.Start(b, program(b), "", "--dev")
			board := dial(b, server.Addr).Board("default")
			var ratios []float64
			var rates [2][]float64
			for b.Loop() {
				var took [2]time.Duration
				postKinds(b, board)
				for turn := range turns {
					for k := range kinds {
						i := (turn + k) % 2
						took[i] += claimKind(b, board, i, most)
					}
				}
				for i := range took {
					rates[i] = append(rates[i], turns*perTurn/took[i].Seconds())
				}
				ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
			}
			b.ReportMetric(middle(rates[0]), "claims/s")
			b.ReportMetric(middle(rates[1]), "claims/s-of-20")
			b.ReportMetric(middle(ratios), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// In one round each kind has so many turns, of so many claims.
const (
	turns   = 8
	perTurn = 256
)

// postKinds posts what the turns of one round claim, of both kinds.
func postKinds(b *testing.B, board *client.Board) {
	b.Helper()
	for range turns {
		for _, kind := range kinds {
			jobs := make([]*client.NewJob, perTurn)
			for i := range jobs {
				jobs[i] = newJob(i, "all")
				jobs[i].Name = kind.name
				for k := range kind.operations {
					jobs[i].Operations = append(jobs[i].Operations, &client.NewOperation{Name: fmt.Sprint("operation-", k), Input: []byte(`{"path":"/a/b/c.png"}`)})
				}
			}
			if _, err := board.Post(b.Context(), jobs...); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// claimKind claims jobs of one kind, up to most with each call, and consumes them; only
// the claims count.
func claimKind(b *testing.B, board *client.Board, kind int, most int32) time.Duration {
	b.Helper()
	calls := perTurn / 4 / int(most)
	claims := make([][]*client.Claim, 4*calls)
	took := byMany(4, calls, func(i int) {
		given, err := board.Claim(b.Context(), client.ClaimOptions{Owner: owner, Max: most, Names: []string{kinds[kind].name}})
		if err != nil || len(given) != int(most) || len(given[0].GetJob().GetOperations()) != kinds[kind].operations {
			b.Errorf("%d claims: %v", len(given), err)
		}
		claims[i] = given
	})
	for _, given := range claims {
		if err := board.Consume(b.Context(), given...); err != nil {
			b.Fatal(err)
		}
	}
	return took
}
