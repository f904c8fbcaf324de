package bench

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// BenchmarkThrough posts, claims and consumes in batches of 32 from 64 callers:
// once straight on the driver in this process, once through everything. Both
// wait for their disk, and they take turns of about a second each, since a machine
// that others share is now faster and now slower. "share" is the second's rate over
// the first's, of all turns the median.
func BenchmarkThrough(b *testing.B) {
	d := openDirect(b)
	server := testserver.Start(b, program(b), "")
	board := dial(b, server.Addr).Board("default")
	const callers, batch = 64, 32
	turn := func(each int, one func(context.Context) error) (jobsPerSecond float64) {
		took := byMany(callers, each, func(int) {
			if err := one(b.Context()); err != nil {
				b.Error(err)
			}
		})
		return float64(callers*each*batch) / took.Seconds()
	}
	direct := func(ctx context.Context) error { return directCycle(ctx, d, batch) }
	through := func(ctx context.Context) error { return cycle(ctx, board, batch) }
	turn(4, direct)
	turn(4, through)
	var straight, whole, shares []float64
	var spent stages
	var did counts
	jobs := 0
	for b.Loop() {
		straight = append(straight, turn(28, direct))
		before, counted := stagesNow(server), countsNow(b, server)
		whole = append(whole, turn(10, through))
		spent = spent.plus(stagesNow(server).minus(before))
		did = did.plus(countsNow(b, server), counted)
		jobs += callers * 10 * batch
		shares = append(shares, whole[len(whole)-1]/straight[len(straight)-1])
	}
	spent.report(b, "job", jobs)
	did.report(b, jobs)
	b.ReportMetric(middle(straight), "direct-jobs/s")
	b.ReportMetric(middle(whole), "jobs/s")
	slices.Sort(shares)
	b.ReportMetric(middle(shares), "share")
	b.ReportMetric(shares[len(shares)/4], "share-quarter")
	b.ReportMetric(shares[len(shares)*3/4], "share-three-quarters")
	b.ReportMetric(0, "ns/op")
}

// stages is the processor time of each stage at one moment.
type stages struct{ client, host, driver time.Duration }

func stagesNow(server *testserver.Server) stages {
	host, driver := server.Stages()
	return stages{ownCPU(), host, driver}
}

func (s stages) sum() time.Duration { return s.client + s.host + s.driver }

func (s stages) plus(o stages) stages {
	return stages{s.client + o.client, s.host + o.host, s.driver + o.driver}
}

func (s stages) minus(o stages) stages {
	return stages{s.client - o.client, s.host - o.host, s.driver - o.driver}
}

// report gives microseconds of each stage per unit, of n.
func (s stages) report(b *testing.B, unit string, n int) {
	b.Helper()
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
	b.ReportMetric(each(s.client), "client-µs/"+unit)
	b.ReportMetric(each(s.host), "host-µs/"+unit)
	b.ReportMetric(each(s.driver), "driver-µs/"+unit)
}

// openDirect opens the embedded driver in this process, with one board.
func openDirect(b *testing.B) driver.Driver {
	b.Helper()
	d, err := embedded.Program().Open(b.Context(), driver.Config{DataDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	openDefault(b, d)
	return d
}

// openDefault opens a board on a driver, which is closed when the benchmark ends.
func openDefault(b *testing.B, d driver.Driver) {
	b.Helper()
	b.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(b.Context(), driver.BoardSpec{Name: "default", Window: time.Hour, MaxTombstones: driver.DefaultMaxTombstones}); err != nil {
		b.Fatal(err)
	}
}

// directCycle is cycle on a driver: it knows which jobs it posted, and has no
// index to find them with.
func directCycle(ctx context.Context, d driver.Driver, batch int) error {
	posts := make([]driver.Op, batch)
	claim := driver.Op{Kind: driver.Claim, Request: random(), Event: job.ClaimedEvent, Claim: &driver.ClaimSpec{
		Count: batch, Owner: owner, Lease: job.DefaultLease, Parts: driver.Details, Candidates: make([]driver.Candidate, batch),
	}}
	for i := range posts {
		id := job.ID(random())
		p := newJob(i, "all")
		posts[i] = driver.Op{Kind: driver.Post, Job: id, Request: random(), Event: job.Posted, Posting: &driver.Posting{
			ID: id, Name: p.GetName(), Details: p.GetDetails(), Digest: random(), Extra: make([]byte, 60),
		}}
		claim.Claim.Candidates[i] = driver.Candidate{Job: id, Nonce: random()}
	}
	for i, r := range d.Apply(ctx, "default", posts) {
		if err := r.Err(&posts[i]); err != nil {
			return err
		}
	}
	answer := d.Apply(ctx, "default", []driver.Op{claim})[0]
	if err := answer.Err(&claim); err != nil {
		return err
	}
	removes := make([]driver.Op, len(answer.Claims))
	for i, c := range answer.Claims {
		removes[i] = driver.Op{Kind: driver.Remove, Job: c.Job, Precondition: driver.HeldByToken, Token: c.Token, Event: job.ConsumedEvent}
	}
	for i, r := range d.Apply(ctx, "default", removes) {
		if err := r.Err(&removes[i]); err != nil {
			return err
		}
	}
	return nil
}

func random() (id [16]byte) {
	_, _ = rand.Read(id[:])
	return id
}

// BenchmarkSingle is the processor time of single calls, all processes counted,
// against an empty Connect call from this process to one other: a request without
// fields, answered without fields, by a handler that does nothing. Callers are
// goroutines of one client, clients have one each; what callers of one client ask for
// at once shares calls, but for the empty ones. The third
// thing measured is the empty call when its handler waits a millisecond, about
// as long as a change waits for its disk: a process that goes to sleep and is
// woken for each call spends more on that than on the call. Direct is the change
// alone, on the driver in this process.
func BenchmarkSingle(b *testing.B) {
	boardd := program(b)
	for _, kind := range []struct {
		name             string
		callers, clients int
	}{{"callers=1", 1, 1}, {"callers=64", 64, 1}, {"clients=64", 64, 64}} {
		var empty float64
		b.Run(kind.name+"/empty", func(b *testing.B) { empty = emptyCall(b, kind.callers, kind.clients, 0) })
		b.Run(kind.name+"/empty-waits", func(b *testing.B) { emptyCall(b, kind.callers, kind.clients, time.Millisecond) })
		if kind.clients == 1 {
			b.Run(kind.name+"/direct", func(b *testing.B) {
				d := openDirect(b)
				before := ownCPU()
				b.ResetTimer()
				parallel(b, kind.callers, func(ctx context.Context) error { return directCycle(ctx, d, 1) })
				b.StopTimer()
				perCall(b, ownCPU()-before, 3)
			})
		}
		b.Run(kind.name+"/cycle", func(b *testing.B) {
			server := testserver.Start(b, boardd, "")
			fill(b, dial(b, server.Addr).Board("default"), 1000, anyone)
			turns := inTurn(b, server.Addr, kind.clients, func(ctx context.Context, c *client.Client) error {
				return cycle(ctx, c.Board("default"), 1)
			})
			for range kind.clients {
				if err := turns(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			before := stagesNow(server)
			b.ResetTimer()
			parallel(b, kind.callers, turns)
			b.StopTimer()
			spent := stagesNow(server).minus(before)
			spent.report(b, "call", b.N*3)
			each := perCall(b, spent.sum(), 3)
			if empty > 0 {
				b.ReportMetric(each/empty, "times-empty")
			}
		})
	}
}

// inTurn gives each call to the client that was used last longest ago.
func inTurn(b *testing.B, addr string, clients int, one func(context.Context, *client.Client) error) func(context.Context) error {
	b.Helper()
	free := make(chan *client.Client, clients)
	for range clients {
		free <- dial(b, addr)
	}
	if clients == 1 {
		only := <-free
		return func(ctx context.Context) error { return one(ctx, only) }
	}
	return func(ctx context.Context) error {
		c := <-free
		defer func() { free <- c }()
		return one(ctx, c)
	}
}

// emptyCall reports and returns the processor time of an empty call.
func emptyCall(b *testing.B, callers, clients int, wait time.Duration) float64 {
	b.Helper()
	server := emptyProcess(b, wait)
	turns := inTurn(b, server.Addr, clients, func(ctx context.Context, c *client.Client) error {
		_, err := c.WhoAmI(ctx)
		return err
	})
	for range clients {
		if err := turns(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	before := ownCPU() + server.CPU()
	b.ResetTimer()
	parallel(b, callers, turns)
	b.StopTimer()
	return perCall(b, ownCPU()+server.CPU()-before, 1)
}

// perCall reports and returns microseconds of processor time per call.
func perCall(b *testing.B, cpu time.Duration, calls int) float64 {
	b.Helper()
	each := float64(cpu.Nanoseconds()) / 1e3 / float64(b.N*calls)
	b.ReportMetric(each, "cpu-µs/call")
	return each
}
