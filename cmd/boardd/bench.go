package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/sdk/client"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	jobs, clients, batch, bytes int
	counted                     bool // by a batch
}

func (p *program) benchCommand() *cobra.Command {
	f := &benchFlags{}
	c := p.command("bench", "Measure how fast a board is",
		"It posts jobs of a name that nobody else has, then claims and consumes them with as\n"+
			"many clients, and touches no other job. The rates count jobs; the times are those of\n"+
			"calls, each with up to --batch jobs.",
		"boardd bench --jobs 20000 --clients 8 --batch 32",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return usagef("bench takes no arguments, got %q", args[0])
			}
			return p.bench(ctx, f)
		})
	flags := c.Flags()
	flags.IntVar(&f.jobs, "jobs", 10_000, "how many jobs")
	flags.IntVar(&f.clients, "clients", 8, "how many clients at the same time")
	flags.IntVar(&f.batch, "batch", 32, "how many jobs one call carries")
	flags.IntVar(&f.bytes, "details-bytes", 100, "how large the details of each job are")
	flags.BoolVar(&f.counted, "counted", false, "post the jobs with one batch, which counts them (as --batch of boardd job post)")
	return c
}

// measurement is a run of the benchmark.
type measurement struct {
	*benchFlags
	boards []*client.Board // each client's: they share no calls
	name   string          // of its jobs

	mu    sync.Mutex
	times map[string][]time.Duration
}

// phase is what was measured of one sort of call. Times are in milliseconds.
type phase struct {
	Call    string  `json:"call"`
	Jobs    int     `json:"jobs"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"jobsPerSecond"`
	Calls   int     `json:"calls"`
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

func (p *program) bench(ctx context.Context, f *benchFlags) error {
	if f.jobs < 1 || f.clients < 1 || f.batch < 1 || f.batch > 1000 || f.bytes < 0 {
		return usagef("want --jobs and --clients of at least 1, --batch from 1 to 1000, --details-bytes not negative")
	}
	m := &measurement{benchFlags: f, name: "boardd-bench-" + client.NewUUID()[:8], times: map[string][]time.Duration{}}
	for range f.clients {
		board, done, err := p.onBoard()
		if err != nil {
			return err
		}
		defer done()
		m.boards = append(m.boards, board)
	}
	phases, err := m.run(ctx)
	if err != nil {
		p.complain(fmt.Sprintf("jobs of the name %s may be left: boardd job list --limit 0 --filter 'name = %q'", m.name, m.name))
		return err
	}
	if p.output == "json" {
		return json.NewEncoder(p.out).Encode(map[string]any{
			"jobs": f.jobs, "clients": f.clients, "batch": f.batch, "detailsBytes": f.bytes, "calls": phases,
		})
	}
	t := &table{}
	t.row("CALL", "JOBS", "SECONDS", "JOBS/S", "CALLS", "P50 ms", "P95 ms", "P99 ms", "MAX ms")
	for _, x := range phases {
		t.row(x.Call, x.Jobs, fmt.Sprintf("%.2f", x.Seconds), fmt.Sprintf("%.0f", x.Rate), x.Calls,
			fmt.Sprintf("%.2f", x.P50), fmt.Sprintf("%.2f", x.P95), fmt.Sprintf("%.2f", x.P99), fmt.Sprintf("%.2f", x.Max))
	}
	return t.write(p.out)
}

func (m *measurement) run(ctx context.Context) ([]phase, error) {
	posting, err := m.clock(ctx, m.post)
	if err != nil {
		return nil, err
	}
	working, err := m.clock(ctx, m.work)
	if err != nil {
		return nil, err
	}
	if m.counted {
		if _, err := m.boards[0].CloseBatch(ctx, m.name); err != nil { // so that it is forgotten
			return nil, err
		}
	}
	return []phase{m.phase("post", posting), m.phase("claim", working), m.phase("consume", working)}, nil
}

// clock runs one loop for each client and returns how long all of them took. They
// share the jobs that are left to do.
func (m *measurement) clock(ctx context.Context, loop func(ctx context.Context, id int, left *atomic.Int64) error) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var left atomic.Int64
	left.Store(int64(m.jobs))
	var clients sync.WaitGroup
	began := time.Now()
	for id := range m.clients {
		clients.Go(func() {
			if err := loop(ctx, id, &left); err != nil {
				cancel(err)
			}
		})
	}
	clients.Wait()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return time.Since(began), nil
}

func (m *measurement) post(ctx context.Context, id int, left *atomic.Int64) error {
	details := []byte(`{"filling":"` + strings.Repeat("x", max(0, m.bytes-len(`{"filling":""}`))) + `"}`)
	for {
		n := m.batch
		if rest := left.Add(-int64(n)); rest < 0 {
			n += int(rest)
		}
		if n <= 0 {
			return nil
		}
		postings := make([]*client.NewJob, n)
		for i := range postings {
			postings[i] = &client.NewJob{Name: m.name, Details: details}
			if m.counted {
				postings[i].Batch = m.name
			}
		}
		began := time.Now()
		if _, err := m.boards[id].Post(ctx, postings...); err != nil {
			return err
		}
		m.took("post", began)
	}
}

func (m *measurement) work(ctx context.Context, id int, left *atomic.Int64) error {
	o := client.ClaimOptions{
		Owner: fmt.Sprintf("%s-%d", m.name, id), Max: int32(m.batch), Names: []string{m.name},
		Lease: time.Minute, Wait: time.Second,
	}
	for left.Load() > 0 {
		began := time.Now()
		claims, err := m.boards[id].Claim(ctx, o)
		if err != nil {
			return err
		}
		if len(claims) == 0 {
			continue // the others have the last ones, or a lease is about to run out
		}
		m.took("claim", began)
		began = time.Now()
		if err := m.boards[id].Consume(ctx, claims...); err != nil {
			return err
		}
		m.took("consume", began)
		left.Add(-int64(len(claims)))
	}
	return nil
}

func (m *measurement) took(call string, began time.Time) {
	d := time.Since(began)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times[call] = append(m.times[call], d)
}

func (m *measurement) phase(call string, took time.Duration) phase {
	times := m.times[call]
	slices.Sort(times)
	at := func(share float64) float64 {
		return float64(times[int(share*float64(len(times)-1))]) / float64(time.Millisecond)
	}
	return phase{
		Call: call, Jobs: m.jobs, Seconds: took.Seconds(), Rate: float64(m.jobs) / took.Seconds(), Calls: len(times),
		P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: at(1),
	}
}
