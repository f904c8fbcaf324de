package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// BenchmarkDrain is how fast some workers, each with one job at a time, empty a
// board on Redis that one or more hosts serve, alone or beside two conductors of
// TaskFlow. asked/won is how many claim operations the hosts gave the store for
// each job that their workers won, scripts/job how many scripts Redis ran in all,
// and the processor time of a job that of the workers, the hosts, their drivers
// and Redis together: where jobs/s times it is two seconds, two cores are used up.
func BenchmarkDrain(b *testing.B) {
	boardd := withRedis(b)
	for _, hosts := range []int{1, 2, 4} {
		for _, workers := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("hosts=%d/workers=%d", hosts, workers), func(b *testing.B) {
				for range b.N { // once, with -benchtime=1x
					d := newDrain(b, boardd, hosts)
					fill(b, d.boards[0], drained, anyone)
					d.run(b, workers, nobody{})
				}
			})
		}
	}
	for _, workers := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("conductors=2/workers=%d", workers), func(b *testing.B) {
			for range b.N {
				besideConductors(b, newDrain(b, boardd, 1), workers)
			}
		})
	}
}

const drained = 2000

// A drain is a board on Redis and the hosts that serve it.
type drain struct {
	redis   *testserver.Redis
	servers []*testserver.Server
	boards  []*client.Board
}

func newDrain(b *testing.B, boardd string, hosts int) *drain {
	b.Helper()
	d := &drain{redis: testserver.StartRedis(b, testserver.RedisOptions{})}
	config := filepath.Join(b.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, sharedBoard, d.redis.Addr), 0o600); err != nil {
		b.Fatal(err)
	}
	for range hosts {
		server := testserver.Start(b, boardd, "", "--dev", "--config", config)
		d.servers = append(d.servers, server)
		d.boards = append(d.boards, dial(b, server.Addr).Board("shared"))
	}
	return d
}

// others work on the board as well.
type others interface {
	begin()
	end() int // waits until the board is empty, and returns how many jobs they did
}

type nobody struct{}

func (nobody) begin()   {}
func (nobody) end() int { return 0 }

// run lets workers empty the board.
func (d *drain) run(b *testing.B, workers int, beside others) {
	b.Helper()
	for _, board := range d.boards { // every host has to have seen them
		testserver.Eventually(b, "the host knows every job", func() bool {
			counts, err := board.Count(b.Context())
			return err == nil && counts.GetReady() == drained
		})
	}
	before, ran := d.used(), scripts(d.redis)
	var done atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	beside.begin()
	for i := range workers {
		worker := &client.Worker{
			Board: d.boards[i%len(d.boards)], Owner: fmt.Sprintf("worker-%d", i), UntilEmpty: true,
			Handler: func(context.Context, *client.Claim) error { done.Add(1); return nil },
		}
		group.Go(func() {
			if err := worker.Run(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
	theirs := beside.end()
	spent, used := time.Since(began), d.used()-before
	if got := int(done.Load()) + theirs; got != drained {
		b.Errorf("%d jobs were done, want %d", got, drained)
	}
	b.ReportMetric(drained/spent.Seconds(), "jobs/s")
	b.ReportMetric(float64(scripts(d.redis)-ran)/drained, "scripts/job")
	b.ReportMetric(float64(used.Microseconds())/drained, "cpu-µs/job")
	b.ReportMetric(d.event(b, "claim_asked")/max(d.event(b, "claimed"), 1), "asked/won")
	if theirs > 0 {
		b.ReportMetric(float64(done.Load()), "jobs-by-workers")
	}
}

// besideConductors has two conductors of TaskFlow work on the board as well. All
// jobs are ones that they can run, each with a flow of its own that does nothing.
func besideConductors(b *testing.B, d *drain, workers int) {
	b.Helper()
	port, _ := strconv.Atoi(d.redis.Addr[strings.LastIndexByte(d.redis.Addr, ':')+1:])
	where := testserver.Args{"board": "redis", "host": "127.0.0.1", "port": port, "namespace": "shared"}
	c := &conductors{b: b, python: testserver.StartTaskFlow(b)} // one process, which has the flows
	for i := range 2 {
		c.boards = append(c.boards, c.python.Connect(fmt.Sprintf("board-%d", i), where, 0))
	}
	for i := range drained {
		c.boards[0].Post(fmt.Sprintf("job-%d", i), testserver.Args{"book": true})
	}
	d.run(b, workers, c)
	for i := range c.boards {
		if err := c.python.Do("stop", testserver.Args{"name": c.name(i)}, nil); err != nil {
			b.Error(err)
		}
	}
}

// conductors are conductors of TaskFlow, each on a connection of its own.
type conductors struct {
	b      *testing.B
	python *testserver.TaskFlow
	boards []*testserver.PythonBoard
}

func (c *conductors) name(i int) string { return fmt.Sprintf("conductor-%d", i) }

func (c *conductors) begin() {
	for i, board := range c.boards {
		c.python.Go("conductor", testserver.Args{"board": board.Name, "name": c.name(i)})
	}
}

func (c *conductors) end() int {
	testserver.Eventually(c.b, "the board is empty", func() bool {
		var n int
		return c.boards[0].On("count", nil, &n) == nil && n == 0
	})
	var runs []string
	if err := c.python.Do("runs", nil, &runs); err != nil {
		c.b.Error(err)
	}
	return len(runs)
}

// used is the processor time of everybody but conductors.
func (d *drain) used() time.Duration {
	sum := ownCPU() + testserver.CPUOf(d.redis.PID())
	for _, s := range d.servers {
		sum += s.CPU()
	}
	return sum
}

// event returns how often all hosts counted an event of jobs.
func (d *drain) event(b *testing.B, name string) float64 {
	b.Helper()
	sum := 0.0
	for _, s := range d.servers {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.Addr+"/metrics", nil)
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer dev")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		match := regexp.MustCompile(`boardd_job_events_total{board="shared",event="` + name + `"[^}]*} (\S+)`).FindSubmatch(text)
		if err != nil || match == nil {
			b.Fatalf("no event %q in the metrics of %s: %v", name, s.Addr, err)
		}
		n, _ := strconv.ParseFloat(string(match[1]), 64)
		sum += n
	}
	return sum
}

var evalsha = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// scripts returns how many scripts a Redis has run.
func scripts(redis *testserver.Redis) int {
	match := evalsha.FindStringSubmatch(redis.Command("INFO", "commandstats"))
	if match == nil {
		return 0
	}
	n, _ := strconv.Atoi(match[1])
	return n
}
