package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// BenchmarkFlood is BenchmarkNeighbour on two servers, each with a Redis and a core of its own:
// the 99th percentile of the calls on a board of one, while callers of a process of their own,
// on the other one's core, do what they can on a board of that, over what it is while they are
// still. "forwarded" is how many of all the calls one server has passed on to the other one.
func BenchmarkFlood(b *testing.B) {
	boardd := withRedis(b)
	testneed.Program(b, "taskset")
	const boards = 8
	loudRedis := testserver.StartRedis(b, testserver.RedisOptions{})
	var more strings.Builder
	fmt.Fprintf(&more, "backend \"loud\" {\n  driver = \"redis\"\n  config = { address = %q }\n}\n", loudRedis.Addr)
	for i := range boards {
		fmt.Fprintf(&more, "board \"loud%d\" {\n  backend = \"loud\"\n}\n", i)
	}
	f := startFleet(b, boardd, fleetOptions{servers: 2, boards: boards, others: boards, more: more.String()})
	quiet, loud := f.servers[0], f.servers[1]
	owners, err := f.owners(b.Context(), f.straight(b))
	if err != nil {
		b.Fatal(err)
	}
	itsBoard := func(s *testserver.Server, prefix string) string {
		for board, of := range owners {
			if of == s.Addr && strings.HasPrefix(board, prefix) {
				return board
			}
		}
		b.Fatalf("%s has no board %s", s.Addr, prefix)
		return ""
	}
	pin(b, "0", os.Getpid(), quiet.PID(), f.redis.PID())
	pin(b, "0", quiet.Drivers()...)
	pin(b, "1", loud.PID(), loudRedis.PID())
	pin(b, "1", loud.Drivers()...)
	b.Cleanup(func() { pin(b, "0-1", os.Getpid()) })
	board := itsBoard(loud, "loud")
	before, calls := metric(b, quiet, "boardd_calls_forwarded_total{")+metric(b, loud, "boardd_calls_forwarded_total{"), 0
	byTurns(b, f.straight(b).Board(itsBoard(quiet, "b")), func(ctx context.Context) {
		for ctx.Err() == nil {
			const jobs = 2000
			flood := exec.CommandContext(ctx, "taskset", "-c", "1", boardd, "bench",
				"--addr", loud.Addr, "--token", testserver.RootSecret, "--board", board, "--jobs", strconv.Itoa(jobs), "--clients", "64", "--batch", "1")
			if text, err := flood.CombinedOutput(); err != nil && ctx.Err() == nil {
				b.Errorf("%v: %s", err, text)
				return
			}
			calls += 3 * jobs
		}
	})
	after := metric(b, quiet, "boardd_calls_forwarded_total{") + metric(b, loud, "boardd_calls_forwarded_total{")
	b.ReportMetric(float64(calls), "loud-calls")
	b.ReportMetric(after-before, "forwarded")
}

// pin keeps all threads of processes on cores, and those that they begin.
func pin(b *testing.B, cores string, pids ...int) {
	b.Helper()
	for _, pid := range pids {
		if text, err := exec.CommandContext(context.WithoutCancel(b.Context()), "taskset", "-a", "-c", "-p", cores, strconv.Itoa(pid)).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, text)
		}
	}
}
