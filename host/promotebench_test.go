package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/build"
)

// BenchmarkClaims posts, claims and consumes 32 jobs at a time beside a standing
// backlog, without a policy and with one that orders and says who may have what,
// in this process and in one of its own; and in the order of fair shares.
func BenchmarkClaims(b *testing.B) {
	for _, backlog := range []int{1_000, 100_000} {
		for _, with := range []string{"none", "process", "own", "fair-share"} {
			b.Run(fmt.Sprintf("backlog=%d/policy=%s", backlog, with), func(b *testing.B) {
				var rules hostboard.Rules
				switch with {
				case "none":
				case "fair-share":
					p, err := policies.New("fair-share", map[string]any{"by": "label:tier"})
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = p.Close() })
					rules.Ordering = &hostboard.Rule{Policy: p}
				default:
					p := bindTemplate(b, with == "own")
					rules.Eligibility, rules.Ordering = []hostboard.Rule{{Policy: p}}, &hostboard.Rule{Policy: p}
				}
				benchmarkClaims(b, rules, backlog)
			})
		}
	}
}

func bindTemplate(b *testing.B, own bool) *wasm.Policy {
	b.Helper()
	module, err := build.Folder(b.Context(), filepath.Join("..", "policies", "templates", "c"), os.Environ())
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(b, missing.Error())
	}
	if err != nil {
		b.Fatal(err)
	}
	var config wasm.Config
	if own {
		config.CacheDir = b.TempDir()
		config.Child = func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, os.Args[0], wasm.ChildArgument) } //nolint:gosec // this program
	}
	engine, err := wasm.New(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	m, err := engine.Load(b.Context(), module)
	if err != nil {
		b.Fatal(err)
	}
	p, err := m.Bind(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = errors.Join(p.Close(), m.Close(), engine.Close()) })
	return p
}

func benchmarkClaims(b *testing.B, rules hostboard.Rules, backlog int) {
	b.Helper()
	d, err := memdriver.Open(b.Context(), driver.Config{})
	if err != nil {
		b.Fatal(err)
	}
	board := hostboard.New(d, hostboard.Spec{Name: "bench", Rules: rules, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- board.Run(ctx) }()
	defer func() {
		cancel()
		if err := errors.Join(<-ended, d.Close()); err != nil {
			b.Error(err)
		}
	}()
	const batch = 32
	postings := make([]job.Posting, batch)
	for i := range postings {
		postings[i] = job.Posting{Name: fmt.Sprintf("job-%d", i), Labels: []job.Label{{Key: "gpu", Value: "a100"}, {Key: "tier", Value: []string{"gold", "silver", "tin"}[i%3]}}}
	}
	for part := range slices.Chunk(slices.Repeat(postings, backlog/batch), hostboard.MaxBatch) {
		if _, err := board.Post(ctx, part); err != nil {
			b.Fatal(err)
		}
	}
	claim := hostboard.ClaimRequest{Owner: "w", Max: batch, WorkerLabels: []job.Label{{Key: "gpu", Value: "a100"}}}
	round := func() {
		r, err := board.Claim(ctx, claim)
		if err != nil || len(r.Claims) != batch {
			b.Fatalf("%d claims: %v", len(r.Claims), err)
		}
		refs := make([]hostboard.Ref, batch)
		for i, c := range r.Claims {
			refs[i] = hostboard.Ref{ID: c.ID, Owner: "w", Token: board.FormatToken(c.ID, c.Token)}
		}
		if _, err := board.Consume(ctx, refs); err != nil {
			b.Fatal(err)
		}
		if _, err := board.Post(ctx, postings); err != nil {
			b.Fatal(err)
		}
	}
	round() // the class's first claim
	for b.Loop() {
		round()
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "jobs/s")
}
