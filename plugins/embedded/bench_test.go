package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// syncs counts how often a journal was synced.
var syncs atomic.Int64

// benchStore opens a store with one board in it.
func benchStore(b *testing.B, path string) *Store {
	b.Helper()
	s := openStore(b, path, options{
		logger: slog.New(slog.DiscardHandler),
		disk: wal.Disk{Sync: func(f *os.File) error {
			syncs.Add(1)
			return wal.SyncData(f)
		}},
	})
	if _, err := s.OpenBoard(b.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		b.Fatal(err)
	}
	return s
}

func numberedID(n uint64) (id job.ID) {
	binary.BigEndian.PutUint64(id[:], n*0x9E3779B97F4A7C15)
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

var benchDetails = make([]byte, 200)

func postOf(id job.ID) driver.Op {
	return driver.Op{Kind: driver.Post, Job: id, Request: id, Event: job.Posted, Posting: &driver.Posting{
		ID: id, Name: "resize", Details: benchDetails, Extra: benchDetails[:40], Digest: [16]byte{1},
	}}
}

func claimOf(id job.ID, nonce [16]byte) driver.Op {
	return driver.Op{Kind: driver.Claim, Event: job.ClaimedEvent, Claim: &driver.ClaimSpec{
		Candidates: []driver.Candidate{{Job: id, Nonce: nonce}}, Count: 1, Owner: "worker-17", Lease: time.Minute,
	}}
}

func consumeOf(id job.ID, token job.Token) driver.Op {
	return driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: token, Event: job.ConsumedEvent}
}

// fill posts n jobs.
func fill(b *testing.B, s *Store, n int) {
	b.Helper()
	const batch = 4096
	ops := make([]driver.Op, 0, batch)
	for i := range n {
		ops = append(ops, postOf(numberedID(1<<40+uint64(i))))
		if len(ops) < batch && i < n-1 {
			continue
		}
		for _, r := range s.Apply(b.Context(), "b", ops) {
			if r.Kind != job.NoKind {
				b.Fatal(r.Kind, r.Message)
			}
		}
		ops = ops[:0]
	}
}

// cycle posts, claims and consumes one job, each acknowledged by itself.
func cycle(ctx context.Context, s *Store, id job.ID) error {
	for _, op := range []driver.Op{postOf(id), claimOf(id, id)} {
		r := s.Apply(ctx, "b", []driver.Op{op})[0]
		if r.Kind != job.NoKind {
			return fmt.Errorf("op %d: %v %s", op.Kind, r.Kind, r.Message)
		}
		if op.Kind == driver.Claim {
			r = s.Apply(ctx, "b", []driver.Op{consumeOf(id, r.Claims[0].Token)})[0]
			if r.Kind != job.NoKind {
				return fmt.Errorf("consume: %v %s", r.Kind, r.Message)
			}
		}
	}
	return nil
}

// BenchmarkCycle posts, claims and consumes a job, each change durable before
// the next begins, over a backlog of 100,000 jobs.
func BenchmarkCycle(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := benchStore(b, b.TempDir())
			defer s.Close()
			fill(b, s, 100_000)
			b.ReportAllocs()
			before := syncs.Load()
			b.ResetTimer()
			var next atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if err := cycle(b.Context(), s, numberedID(uint64(n))); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(3*b.N)/float64(syncs.Load()-before), "ops/commit")
		})
	}
}

// BenchmarkReplay opens a store that was killed, with 16 MiB of postings in its
// journal.
func BenchmarkReplay(b *testing.B) {
	s := benchStore(b, b.TempDir())
	fill(b, s, 10_000)
	defer s.Close()
	for n := uint64(0); s.committer.journal.At < 15<<20; n++ { // an epoch is 16 MiB
		mustApply(b, s, postsOf(n*100, 100)...)
	}
	for b.Loop() {
		b.StopTimer()
		path := crashed(b, s)
		b.StartTimer()
		if err := benchStore(b, path).Close(); err != nil {
			b.Fatal(err)
		}
	}
}

const million = 1_000_000

// BenchmarkMillion opens and scans a board of 1,000,000 jobs.
func BenchmarkMillion(b *testing.B) {
	path := b.TempDir()
	s := benchStore(b, path)
	fill(b, s, million)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			s := benchStore(b, path)
			b.ReportMetric(time.Since(start).Seconds(), "s/open")
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/million, "B/job")
			b.StopTimer()
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	s = benchStore(b, path)
	defer s.Close()
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		scans := 0
		for ; b.Loop(); scans++ {
			n := 0
			for page, err := range s.Scan(b.Context(), "b", driver.ScanRequest{}) {
				if err != nil {
					b.Fatal(err)
				}
				n += len(page.Records)
			}
			if n != million {
				b.Fatalf("%d jobs, want %d", n, million)
			}
		}
		b.ReportMetric(float64(scans)*million/b.Elapsed().Seconds(), "jobs/s")
	})
	b.Run("drop", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			if err := s.DropBoard(b.Context(), "b"); err != nil {
				b.Fatal(err)
			}
			if n == 0 {
				b.ReportMetric(b.Elapsed().Seconds(), "s/drop")
			}
		}
	})
}

// postsOf are n postings behind the first so many.
func postsOf(first uint64, n int) []driver.Op {
	ops := make([]driver.Op, n)
	for i := range ops {
		ops[i] = postOf(numberedID(first + uint64(i) + 1))
	}
	return ops
}
