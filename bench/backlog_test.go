package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// backlogs are the numbers of jobs that wait on the board.
var backlogs = []int{1_000, 10_000, 100_000, 1_000_000}

// A backlog benchmark does what it measures so often: by turns on a board of the smallest
// backlog and on that in question.
const backlogTurns, cycles = 5, 100

// BenchmarkBacklog is what one cycle of post, claim and consume costs a single
// caller, against the number of jobs that wait on the board: the median time of
// the cycle and of its claim, the processor time of client, server and driver, and
// each over that of a board of the smallest backlog, on a server and a store of its
// own, by turns. `-bench 'Backlog/postgres'` measures one store.
func BenchmarkBacklog(b *testing.B) { against(b, "all", "") }

// BenchmarkPicky is the same for a worker who may have none of the jobs that
// wait, but for the one that it posts: all others stand before it in the line.
func BenchmarkPicky(b *testing.B) { against(b, "mine", `labels.group = "mine"`) }

// against measures a worker with a filter, which posts jobs of a group.
func against(b *testing.B, group, filter string) {
	b.Helper()
	boardd := program(b)
	for _, store := range []string{"embedded", "redis", "postgres"} {
		b.Run(store, func(b *testing.B) {
			if store != "embedded" {
				withPlugin(b, boardd, store)
			}
			for _, n := range backlogs {
				b.Run(fmt.Sprint(n), func(b *testing.B) {
					few := newBacklog(b, boardd, store, backlogs[0])
					all := newBacklog(b, boardd, store, n)
					b.ReportMetric(all.posted, "posts/s")
					few.cycle(b, group, filter)
					began := time.Now()
					all.cycle(b, group, filter)
					b.ReportMetric(float64(time.Since(began).Microseconds())/1e3, "ms/first")
					for range b.N { // once, with -benchtime=1x
						bothBacklogs(b, few, all, group, filter)
					}
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// bothBacklogs measures cycles on both boards and reports those on the second one.
func bothBacklogs(b *testing.B, few, all *backlog, group, filter string) {
	b.Helper()
	few.spent, all.spent = spent{}, spent{}
	for turn := range backlogTurns {
		first, second := few, all
		if turn%2 == 1 {
			first, second = all, few
		}
		first.turn(b, group, filter)
		second.turn(b, group, filter)
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	whole, claim := middle(all.whole), middle(all.claims)
	b.ReportMetric(micros(whole), "µs/median")
	b.ReportMetric(micros(claim), "claim-µs/median")
	b.ReportMetric(micros(all.cpu)/backlogTurns/cycles, "cpu-µs/cycle")
	b.ReportMetric(float64(whole)/float64(middle(few.whole)), "wall-ratio")
	b.ReportMetric(float64(claim)/float64(middle(few.claims)), "claim-ratio")
	b.ReportMetric(float64(all.cpu)/float64(few.cpu), "cpu-ratio")
}

// A backlog is a board on which jobs wait, with a server and a store of its own.
type backlog struct {
	server *testserver.Server
	board  *client.Board
	posted float64 // jobs a second
	spent
}

// spent is what cycles took.
type spent struct {
	whole, claims []time.Duration
	cpu           time.Duration
}

// newBacklog starts a server and posts n jobs that wait.
func newBacklog(b *testing.B, boardd, store string, n int) *backlog {
	b.Helper()
	setting, _ := startStore(b, store)
	config := testserver.CatalogConfig(b, store, setting, "board \"backlog\" {\n  backend = \"main\"\n}\n")
	server := testserver.Start(b, boardd, "", "--config", config)
	k := &backlog{server: server, board: dialWith(b, client.Config{Addr: server.Addr}).Board("backlog")}
	began := time.Now()
	fill(b, k.board, n, anyone)
	k.posted = float64(n) / time.Since(began).Seconds()
	return k
}

// turn runs cycles.
func (k *backlog) turn(b *testing.B, group, filter string) {
	b.Helper()
	before := stagesNow(k.server)
	for range cycles {
		began := time.Now()
		k.claims = append(k.claims, k.cycle(b, group, filter))
		k.whole = append(k.whole, time.Since(began))
	}
	k.cpu += stagesNow(k.server).minus(before).sum()
}

// cycle posts a job, claims the best one and consumes it, and returns how long the claim took.
func (k *backlog) cycle(b *testing.B, group, filter string) (claim time.Duration) {
	b.Helper()
	ctx := b.Context()
	if _, err := k.board.Post(ctx, newJob(0, group)); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	claims, err := k.board.Claim(ctx, client.ClaimOptions{Owner: owner, Filter: filter})
	claim = time.Since(began)
	if err != nil || len(claims) != 1 {
		b.Fatalf("%d claims: %v", len(claims), err)
	}
	if err := k.board.Consume(ctx, claims...); err != nil {
		b.Fatal(err)
	}
	return claim
}
