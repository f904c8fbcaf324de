package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkClaims measures claim calls over the network, of jobs with and without
// operations.
func BenchmarkClaims(b *testing.B) {
	for _, operations := range []int{0, 20} {
		b.Run(fmt.Sprintf("operations=%d", operations), func(b *testing.B) {
			s := serve(b)
			c, err := client.New(client.Config{Addr: s.url, Token: rootSecret})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			board := c.Board("default")
			const batch = 32
			left := 0
			b.ReportAllocs()
			for b.Loop() {
				if left < batch {
					b.StopTimer()
					for range 8 {
						postings := make([]*client.NewJob, 256)
						for i := range postings {
							postings[i] = &client.NewJob{Name: "work", Details: []byte(`{"path":"/a/b/c.png","size":12345}`)}
							for k := range operations {
								postings[i].Operations = append(postings[i].Operations, &client.NewOperation{Name: fmt.Sprint("operation-", k), Input: []byte(`{"path":"/a/b/c.png"}`)})
							}
						}
						if _, err := board.Post(b.Context(), postings...); err != nil {
							b.Fatal(err)
						}
						left += len(postings)
					}
					b.StartTimer()
				}
				claims, err := board.Claim(b.Context(), client.ClaimOptions{Owner: "w", Max: batch, Lease: time.Minute})
				if err != nil || len(claims) != batch || len(claims[0].GetJob().GetOperations()) != operations {
					b.Fatal(len(claims), err)
				}
				left -= batch
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/claim")
		})
	}
}
