package board

import (
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// fillBoard puts n jobs on a board, behind all that a benchmark posts.
func fillBoard(b *testing.B, board *Board, n int) {
	b.Helper()
	postings := make([]job.Posting, 0, MaxBatch)
	for n > 0 {
		postings = postings[:0]
		for range min(n, MaxBatch) {
			postings = append(postings, job.Posting{Name: "backlog", Priority: job.Low, Details: []byte(`{"path":"/a/b/c.png","size":12345}`)})
		}
		if _, err := board.Post(b.Context(), postings); err != nil {
			b.Fatal(err)
		}
		n -= len(postings)
	}
	for board.index.Count().Ready == 0 || !caughtUp(b, board) {
		time.Sleep(time.Millisecond)
	}
}

// caughtUp reports whether the board has followed everything, so that what is
// measured is not still the filling.
func caughtUp(b *testing.B, board *Board) bool {
	b.Helper()
	status, err := board.driver.OpenBoard(b.Context(), driver.BoardSpec{Name: board.spec.Key})
	if err != nil {
		b.Fatal(err)
	}
	_, ready, _ := board.readiness.look()
	return ready && board.hub.now().position >= status.Position
}

func BenchmarkCycle(b *testing.B) {
	for _, open := range []int{1000, 1_000_000} {
		for _, batch := range []int{1, 32} {
			b.Run(fmt.Sprintf("open=%d/batch=%d", open, batch), func(b *testing.B) {
				if open > 1000 && testing.Short() {
					b.Skip("a million jobs in memory")
				}
				board := start(b, openStore(b), Spec{})
				fillBoard(b, board, open)
				postings := make([]job.Posting, batch)
				for i := range postings {
					postings[i] = job.Posting{Name: "work", Details: []byte(`{"path":"/a/b/c.png","size":12345}`), Labels: []job.Label{{Key: "customer", Value: "7"}}}
				}
				phases := map[string]func(){
					"post": func() {
						if _, err := board.Post(b.Context(), postings); err != nil {
							b.Fatal(err)
						}
					},
				}
				b.ReportAllocs()
				for b.Loop() {
					phases["post"]()
					r, err := board.Claim(b.Context(), ClaimRequest{Owner: "worker", Max: batch})
					if err != nil || len(r.Claims) != batch {
						b.Fatal(len(r.Claims), err)
					}
					refs := make([]Ref, batch)
					for i, c := range r.Claims {
						refs[i] = refOf(board, c)
					}
					errs, err := board.Consume(b.Context(), refs)
					if err != nil || errs[0] != nil {
						b.Fatal(errs, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/job")
			})
		}
	}
}

func BenchmarkPost(b *testing.B) {
	for _, batch := range []int{1, 32} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			board := start(b, openStore(b), Spec{})
			postings := make([]job.Posting, batch)
			for i := range postings {
				postings[i] = job.Posting{Name: "work", Details: []byte(`{"path":"/a/b/c.png","size":12345}`), Labels: []job.Label{{Key: "customer", Value: "7"}}}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := board.Post(b.Context(), postings); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/job")
		})
	}
}
