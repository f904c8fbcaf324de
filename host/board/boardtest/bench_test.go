package boardtest_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

var stores = map[string]func() driver.Program{"memory": memdriver.Program, "embedded": embedded.Program}

func bench(b *testing.B, p driver.Program) *board.Board {
	b.Helper()
	d, err := p.Open(b.Context(), driver.Config{Settings: []byte("{}"), DataDir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	})
	board := board.New(d, board.Spec{Name: "bench", Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan error, 1)
	ctx := b.Context()
	go func() { ended <- board.Run(ctx) }()
	b.Cleanup(func() { // the context of a test ends before its cleanups
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	if err := board.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	return board
}

// BenchmarkClaims measures claims alone, on boards whose jobs have operations and
// on boards whose jobs have none.
func BenchmarkClaims(b *testing.B) {
	for store, program := range stores {
		for _, operations := range []int{0, 20} {
			b.Run(fmt.Sprintf("%s/operations=%d", store, operations), func(b *testing.B) {
				board1 := bench(b, program())
				posting := job.Posting{Name: "work", Details: []byte(`{"path":"/a/b/c.png","size":12345}`)}
				for i := range operations {
					posting.Operations = append(posting.Operations, job.NewOperation{Name: fmt.Sprint("operation-", i), Input: []byte(`{"path":"/a/b/c.png"}`)})
				}
				postings := make([]job.Posting, 256)
				for i := range postings {
					postings[i] = posting
				}
				const batch = 32
				left := 0
				b.ReportAllocs()
				for b.Loop() {
					if left < batch {
						b.StopTimer()
						for range 8 {
							if _, err := board1.Post(b.Context(), postings); err != nil {
								b.Fatal(err)
							}
							left += len(postings)
						}
						b.StartTimer()
					}
					r, err := board1.Claim(b.Context(), board.ClaimRequest{Owner: "worker", Max: batch, Lease: time.Hour})
					if err != nil || len(r.Claims) != batch || len(r.Claims[0].Job.Operations) != operations {
						b.Fatal(len(r.Claims), err)
					}
					left -= batch
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/claim")
			})
		}
	}
}

// BenchmarkAppendLog measures calls of one writer, with one entry and with many.
func BenchmarkAppendLog(b *testing.B) {
	for store, program := range stores {
		for _, entries := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/entries=%d", store, entries), func(b *testing.B) {
				board1 := bench(b, program())
				if _, err := board1.Post(b.Context(), []job.Posting{{Name: "work"}}); err != nil {
					b.Fatal(err)
				}
				r, err := board1.Claim(b.Context(), board.ClaimRequest{Owner: "worker", Lease: time.Hour})
				if err != nil || len(r.Claims) != 1 {
					b.Fatal(r, err)
				}
				c := &r.Claims[0]
				req := board.LogRequest{Ref: board.Ref{ID: c.ID, Token: board1.FormatToken(c.ID, c.Token)}}
				for range entries {
					req.Entries = append(req.Entries, job.LogEntry{Type: "stdout", Message: strings.Repeat("x", 80)})
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := board1.AppendLog(b.Context(), req); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*entries), "ns/entry")
			})
		}
	}
}

// BenchmarkFollowers measures one entry on its way to all who follow the log.
func BenchmarkFollowers(b *testing.B) {
	for store, program := range stores {
		for _, followers := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/followers=%d", store, followers), func(b *testing.B) {
				board1 := bench(b, program())
				posted, err := board1.Post(b.Context(), []job.Posting{{Name: "work"}})
				if err != nil {
					b.Fatal(err)
				}
				r, err := board1.Claim(b.Context(), board.ClaimRequest{Owner: "worker", Lease: time.Hour})
				if err != nil || len(r.Claims) != 1 {
					b.Fatal(r, err)
				}
				c := &r.Claims[0]
				var seen sync.WaitGroup
				for range followers {
					go func() { // until the benchmark ends
						for _, err := range board1.FollowLog(b.Context(), posted[0].Job.ID, 0, true) {
							if err != nil {
								return
							}
							seen.Done()
						}
					}()
				}
				req := board.LogRequest{Ref: board.Ref{ID: c.ID, Token: board1.FormatToken(c.ID, c.Token)}, Entries: []job.LogEntry{{Message: strings.Repeat("x", 80)}}}
				b.ReportAllocs()
				for b.Loop() {
					seen.Add(followers)
					if _, err := board1.AppendLog(b.Context(), req); err != nil {
						b.Fatal(err)
					}
					seen.Wait()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*followers), "ns/follower")
			})
		}
	}
}
