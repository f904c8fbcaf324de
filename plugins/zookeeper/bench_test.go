package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

const benchBatch = 128

// failed remembers that a benchmark failed: package testing forgets it of the
// second and later rounds of -count, and says PASS.
var failed atomic.Bool

func TestMain(m *testing.M) {
	code := m.Run()
	if failed.Load() && code == 0 {
		code = 1
	}
	os.Exit(code)
}

func fail(b *testing.B, format string, args ...any) {
	b.Helper()
	failed.Store(true)
	b.Errorf(format, args...)
}

// BenchmarkCycle posts, claims and consumes jobs in batches of 128 from 4
// callers, through the driver's process and in this one, on one server and on
// boards alike. They take turns, so that what else the machine does hits both;
// ratio is the median of the turns', the process's jobs per second over the
// other's.
func BenchmarkCycle(b *testing.B) {
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	sides := []driver.Driver{openProcess(b, z.Servers()), openHere(b, z.Servers())}
	names := []string{newName("process"), newName("here")}
	for i, d := range sides {
		open(b, d, names[i], nil)
		cycles(b, d, names[i]) // warm
	}
	var ratios, rates [2][]float64
	for n := 0; b.Loop(); n++ {
		var took [2]time.Duration
		for turn := range sides {
			i := (turn + n) % 2 // each goes first as often as the other
			begun := time.Now()
			cycles(b, sides[i], names[i])
			took[i] = time.Since(begun)
			rates[i] = append(rates[i], callers*cyclesEach*benchBatch/took[i].Seconds())
		}
		ratios[0] = append(ratios[0], took[1].Seconds()/took[0].Seconds())
	}
	b.ReportMetric(median(rates[0]), "process-jobs/s")
	b.ReportMetric(median(rates[1]), "in-process-jobs/s")
	b.ReportMetric(median(ratios[0]), "ratio")
	b.ReportMetric(0, "ns/op")
}

// How much one turn of BenchmarkCycle is.
const (
	callers    = 4
	cyclesEach = 4
)

func cycles(b *testing.B, d driver.Driver, board string) {
	b.Helper()
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range cyclesEach {
				cycle(b, d, board)
			}
		})
	}
	group.Wait()
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// newName returns a name that no board had before, whatever -count says.
func newName(what string) string { return what + "-" + job.ID(random16()).String()[:8] }

// open opens a board and drops it when the benchmark is over.
func open(b *testing.B, d driver.Driver, name string, settings map[string]any) driver.BoardStatus {
	b.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		b.Fatal(err)
	}
	status, err := d.OpenBoard(b.Context(), driver.BoardSpec{Name: name, Settings: raw})
	if err != nil {
		fail(b, "%v", err)
		b.FailNow()
	}
	b.Cleanup(func() {
		if err := d.DropBoard(context.Background(), name); err != nil {
			fail(b, "%v", err)
		}
	})
	return status
}

func settingsOf(b testing.TB, servers []string) []byte {
	b.Helper()
	settings, err := json.Marshal(map[string]any{"servers": servers})
	if err != nil {
		b.Fatal(err)
	}
	return settings
}

func openHere(b testing.TB, servers []string) driver.Driver {
	b.Helper()
	d, err := store.Open(b.Context(), driver.Config{Settings: settingsOf(b, servers)}, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() }) // a benchmark's
	return d
}

func openProcess(b testing.TB, servers []string) driver.Driver {
	b.Helper()
	p, err := plugin.Start(b.Context(), plugin.Command{Path: testserver.Build(b, "./plugins/zookeeper")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	d, err := p.Open(b.Context(), driver.Config{Settings: settingsOf(b, servers)})
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func random16() (n [16]byte) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

func postOp() driver.Op {
	p := &driver.Posting{ID: random16(), Name: "a job", Encoding: job.JSON, Details: []byte(`{"server": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}`), Digest: random16()}
	return driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Event: job.Posted, Request: random16()}
}

func claimOp(id job.ID) driver.Op {
	return driver.Op{Kind: driver.Claim, Event: job.ClaimedEvent, Request: random16(), Claim: &driver.ClaimSpec{
		Count: 1, Owner: "worker", Lease: time.Hour, Candidates: []driver.Candidate{{Job: id, Nonce: random16()}},
	}}
}

func apply(b *testing.B, d driver.Driver, board string, ops ...driver.Op) []driver.Result {
	b.Helper()
	results := d.Apply(b.Context(), board, ops)
	for i := range results {
		if err := results[i].Err(&ops[i]); err != nil || ops[i].Kind == driver.Claim && len(results[i].Claims) != 1 {
			fail(b, "op %d: %v, %+v", ops[i].Kind, err, results[i].Skipped)
			runtime.Goexit() // whoever has called cannot go on
		}
	}
	return results
}

// fill posts jobs, in batches.
func fill(b *testing.B, d driver.Driver, board string, jobs int) []job.ID {
	b.Helper()
	ids := make([]job.ID, 0, jobs)
	for left := jobs; left > 0; left -= benchBatch {
		ops := make([]driver.Op, min(left, benchBatch))
		for i := range ops {
			ops[i] = postOp()
			ids = append(ids, ops[i].Job)
		}
		apply(b, d, board, ops...)
	}
	return ids
}

// cycle takes a batch of jobs through their lives.
func cycle(b *testing.B, d driver.Driver, board string) {
	b.Helper()
	claims, removes := make([]driver.Op, benchBatch), make([]driver.Op, benchBatch)
	for i, id := range fill(b, d, board, benchBatch) {
		claims[i] = claimOp(id)
	}
	for i, r := range apply(b, d, board, claims...) {
		removes[i] = removeOp(r.Claims[0])
	}
	apply(b, d, board, removes...)
}

func removeOp(c driver.Claimed) driver.Op {
	return driver.Op{Kind: driver.Remove, Job: c.Job, Precondition: driver.HeldByToken, Token: c.Token, Event: job.ConsumedEvent}
}
