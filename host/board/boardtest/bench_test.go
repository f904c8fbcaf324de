package boardtest_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
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
	return run(b, opened(b, p, "{}"), board.Spec{Name: "bench"})
}

// run runs a board until the benchmark ends.
func run(b *testing.B, d driver.Driver, spec board.Spec) *board.Board {
	b.Helper()
	spec.Logger = slog.New(slog.DiscardHandler)
	board := board.New(d, spec)
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

// BenchmarkClaims measures claims alone, of 32 jobs each, on a board whose jobs have
// 20 operations and on one whose jobs have none. They take turns; ratio is the median of
// the turns', the rate with operations over that without. The heap may grow as boardd
// lets its own.
func BenchmarkClaims(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	for store, program := range stores {
		b.Run(store, func(b *testing.B) {
			const batch, each = 32, 64
			boards := [2]*board.Board{bench(b, program()), bench(b, program())}
			operations := [2]int{0, 20}
			var ratios []float64
			var rates [2][]float64
			for n := 0; b.Loop(); n++ {
				var took [2]time.Duration
				for turn := range boards {
					i := (turn + n) % 2
					took[i] = claimAll(b, boards[i], operations[i], batch, each)
					rates[i] = append(rates[i], float64(took[i].Nanoseconds())/(batch*each))
				}
				ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
			}
			b.ReportMetric(middle(rates[0]), "ns/claim")
			b.ReportMetric(middle(rates[1]), "ns/claim-of-20")
			b.ReportMetric(middle(ratios), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// claimAll posts jobs and returns how long it took to claim them all.
func claimAll(b *testing.B, board1 *board.Board, operations, batch, calls int) time.Duration {
	b.Helper()
	posting := job.Posting{Name: "work", Details: []byte(`{"path":"/a/b/c.png","size":12345}`)}
	for i := range operations {
		posting.Operations = append(posting.Operations, job.NewOperation{Name: fmt.Sprint("operation-", i), Input: []byte(`{"path":"/a/b/c.png"}`)})
	}
	for range calls {
		if _, err := board1.Post(b.Context(), slices.Repeat([]job.Posting{posting}, batch)); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC() // what posting left is not the claims' to pay
	var given []job.Claim
	began := time.Now()
	for range calls {
		r, err := board1.Claim(b.Context(), board.ClaimRequest{Owner: "worker", Max: batch, Lease: time.Hour})
		if err != nil || len(r.Claims) != batch || len(r.Steps[0].List()) != operations {
			b.Fatal(len(r.Claims), err)
		}
		given = append(given, r.Claims...)
	}
	took := time.Since(began)
	refs := make([]board.Ref, len(given))
	for i := range given {
		refs[i] = board.Ref{ID: given[i].ID, Token: board1.FormatToken(given[i].ID, given[i].Token)}
	}
	for part := range slices.Chunk(refs, board.MaxBatch) {
		if _, err := board1.Consume(b.Context(), part); err != nil {
			b.Fatal(err)
		}
	}
	return took
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
