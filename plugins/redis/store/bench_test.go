package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func numbered(n uint64, sort byte) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], n*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint32(id[8:], uint32(n))
	id[15] = sort
	return id
}

// fill posts n jobs with 150 bytes of details.
func fill(b *testing.B, d driver.Driver, board string, n int) {
	b.Helper()
	details := []byte(`{"store":"` + strings.Repeat("x", 138) + `"}`)
	for from := 0; from < n; from += 128 {
		var ops []driver.Op
		for i := from; i < min(from+128, n); i++ {
			p := &driver.Posting{ID: numbered(uint64(i), 1), Name: "job", Details: details, Digest: numbered(uint64(i), 2)}
			ops = append(ops, driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Event: job.Posted})
		}
		for _, r := range d.Apply(b.Context(), board, ops) {
			if r.Kind != job.NoKind {
				b.Fatal(r.Kind, r.Message)
			}
		}
	}
}

// scanOnce returns how many jobs a scan found.
func scanOnce(b *testing.B, d driver.Driver, board string) int {
	b.Helper()
	n := 0
	for page, err := range d.Scan(b.Context(), board, driver.ScanRequest{}) {
		if err != nil {
			b.Error(err)
			return n
		}
		n += len(page.Records)
	}
	return n
}

// live extends claims, 8 at a time and each in a call of its own, until stopped,
// and returns how many a second.
func live(b *testing.B, d driver.Driver, board string, claims []driver.Claimed, stop <-chan struct{}) float64 {
	b.Helper()
	var running sync.WaitGroup
	var done [8]int
	begun := time.Now()
	for i := range done {
		running.Go(func() {
			op := driver.Op{Kind: driver.Extend, Job: claims[i].Job, Precondition: driver.HeldByToken, Token: claims[i].Token, Lease: time.Hour}
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r := d.Apply(b.Context(), board, []driver.Op{op})[0]; r.Kind != job.NoKind {
					b.Error(r.Kind, r.Message)
					return
				}
				done[i]++
			}
		})
	}
	running.Wait()
	sum := 0
	for _, n := range done {
		sum += n
	}
	return float64(sum) / time.Since(begun).Seconds()
}

// BenchmarkBoard measures what depends on the size of a board: a scan, what is
// left of live changes beside it, and what the search for other programs'
// changes costs Redis.
func BenchmarkBoard(b *testing.B) {
	for _, n := range []int{1_000, 20_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			server := testserver.StartRedis(b, testserver.RedisOptions{})
			d := openAt(b, server.Addr)
			b.Cleanup(func() { _ = d.Close() })
			status, err := d.OpenBoard(b.Context(), driver.BoardSpec{Name: "b", Settings: []byte(`{"foreign":true}`)})
			if err != nil {
				b.Fatal(err)
			}
			fill(b, d, "b", n)
			var claims []driver.Claimed
			for i := range 8 {
				spec := &driver.ClaimSpec{Owner: "w", Lease: time.Hour, Count: 1, Candidates: []driver.Candidate{{Job: numbered(uint64(i), 1), Nonce: numbered(1, 3)}}}
				claims = append(claims, d.Apply(b.Context(), "b", []driver.Op{{Kind: driver.Claim, Claim: spec}})[0].Claims...)
			}
			b.Run("scan", func(b *testing.B) {
				for b.Loop() {
					if got := scanOnce(b, d, "b"); got != n {
						b.Fatalf("found %d", got)
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			})
			b.Run("live-beside-scan", func(b *testing.B) { besideScan(b, d, claims) })
			b.Run("search", func(b *testing.B) { search(b, server, d, n, status.Position) })
		})
	}
}

func besideScan(b *testing.B, d driver.Driver, claims []driver.Claimed) {
	b.Helper()
	var alone, beside float64
	turns := 0.0
	for b.Loop() {
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		alone += live(b, d, "b", claims, stop)
		stop = make(chan struct{})
		var scanning sync.WaitGroup
		scanning.Go(func() {
			defer close(stop)
			for begun := time.Now(); time.Since(begun) < time.Second; {
				scanOnce(b, d, "b")
			}
		})
		beside += live(b, d, "b", claims, stop)
		scanning.Wait()
		turns++
	}
	b.ReportMetric(alone/turns, "alone-ops/s")
	b.ReportMetric(beside/turns, "beside-ops/s")
	b.ReportMetric(beside/alone, "ratio")
	b.ReportMetric(0, "ns/op")
}

// posts is how many jobs another program posts one after the other, each when the last one
// was seen: no search after the first can use what others left.
const posts = 4

// search watches the board, and says which part of a core Redis needs for the search: in
// its first seconds, when everything is looked at, once it has come to rest, and while
// other programs work; and how many seconds it takes then until a watcher sees what they
// did: a post (the first, and the slowest of some at once behind it), a claim, an ending
// of a job with an owner and of one that nobody had, and claims in a database that is full
// of other keys: the first, and the slowest of those behind it.
func search(b *testing.B, server *testserver.Redis, d driver.Driver, jobs int, from driver.Position) {
	b.Helper()
	const window = 10 * time.Second
	share := func() float64 { return shareOf(b, server, func() { time.Sleep(window) }) }
	p := newPython(b, server, "b")
	seen := make(chan job.ID, 1024)
	for b.Loop() {
		stop := watchFor(b, d, from, func(c driver.Change) {
			if c.Event == job.ForeignChange {
				seen <- c.Job
			}
		})
		begun := time.Now()
		rests := share()
		b.ReportMetric(rests, "%core-first")
		for time.Since(begun) < 15*time.Minute && rests > 1 {
			rests = share()
		}
		b.ReportMetric(time.Since(begun).Seconds(), "s-first")
		b.ReportMetric(rests, "%core")
		until := func(id job.ID) float64 {
			begun := time.Now()
			for id != <-seen {
			}
			return time.Since(begun).Seconds()
		}
		busy := shareOf(b, server, func() {
			id := p.post("python's")
			b.ReportMetric(until(id), "s-post")
			p.claim(id, "py", 0)
			b.ReportMetric(until(id), "s-claim")
			p.consume(id)
			b.ReportMetric(until(id), "s-end")
			slowest := 0.0
			for range posts {
				id = p.post("python's")
				slowest = max(slowest, until(id))
			}
			b.ReportMetric(slowest, "s-post-slowest")
			time.Sleep(sweepTwice) // what found the job looks at it once more
			p.consume(id)
			b.ReportMetric(until(id), "s-end-unowned")
		})
		b.ReportMetric(busy, "%core-busy")
		for n := 0; n <= 2*jobs; n += othersOnce { // each step answers soon
			server.Command("DEBUG", "POPULATE", strconv.Itoa(othersOnce), "other"+strconv.Itoa(n))
		}
		first, slowest := 0.0, 0.0
		for i := range posts {
			id := numbered(uint64(100+i), 1)
			time.Sleep(sweepTwice)
			p.claim(id, "py", 0)
			took := until(id)
			if slowest = max(slowest, took); i == 0 {
				first, slowest = took, 0
			}
		}
		b.ReportMetric(first, "s-claim-crowded-first")
		b.ReportMetric(slowest, "s-claim-crowded")
		stop()
	}
	b.ReportMetric(0, "ns/op")
}

// othersOnce is how many keys of others are made in one step.
const othersOnce = 10_000

// sweepTwice is a time in which the search has looked at the numbers once more.
const sweepTwice = 2 * time.Second

// shareOf returns which part of a core the server needs while something is done.
func shareOf(b *testing.B, server *testserver.Redis, do func()) float64 {
	b.Helper()
	before, begun := server.CPU(), time.Now()
	do()
	return 100 * (server.CPU() - before).Seconds() / time.Since(begun).Seconds()
}

// watchFor watches until it is ended, from the present on.
func watchFor(b *testing.B, d driver.Driver, from driver.Position, seen func(driver.Change)) func() {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	ready := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		var once sync.Once
		for changes, err := range d.Watch(ctx, "b", from+1<<40) { // it is told to read everything again, and goes on from now
			once.Do(func() { close(ready) })
			if err != nil {
				return
			}
			for _, c := range changes.List {
				seen(c)
			}
		}
	})
	<-ready
	return func() { cancel(); watching.Wait() }
}
