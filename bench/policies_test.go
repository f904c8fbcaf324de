package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/policy/build"
)

// judged is a board whose order and whose eligibility a module decides.
type judged struct {
	name     string
	language string // empty: none decides
	pushed   bool   // so that it runs in processes of its own
}

// BenchmarkPolicies is the rate of whole claims: post, claim and consume 32 jobs at a
// time from four callers, beside a standing backlog. Each board has a server of its own.
// They take turns, and each board's rate is held against that of the board without a
// policy in the same turn; the medians count.
func BenchmarkPolicies(b *testing.B) {
	for _, backlog := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(backlog), func(b *testing.B) { benchmarkPolicies(b, backlog) })
	}
}

func benchmarkPolicies(b *testing.B, backlog int) {
	b.Helper()
	boards := []judged{{name: "none"}, {name: "c", language: "c"}, {name: "go", language: "go"}, {name: "c-apart", language: "c", pushed: true}}
	clients := make([]*client.Board, len(boards))
	boardd := program(b)
	for i := range boards {
		clients[i] = serveJudged(b, boardd, &boards[i])
		fill(b, clients[i], backlog, anyone)
		rounds(b, clients[i])
	}
	rates, ratios := make([][]float64, len(boards)), make([][]float64, len(boards))
	for n := 0; b.Loop(); n++ {
		for turn := range boards {
			i := (turn + n) % len(boards)
			rates[i] = append(rates[i], rounds(b, clients[i]))
		}
		for i := range boards {
			ratios[i] = append(ratios[i], rates[i][n]/rates[0][n])
		}
	}
	b.ReportMetric(middle(rates[0]), "jobs/s-none")
	for i := range boards[1:] {
		b.ReportMetric(middle(ratios[i+1]), "ratio-"+boards[i+1].name)
	}
	b.ReportMetric(0, "ns/op")
}

// rounds returns how many jobs a second went through the board.
func rounds(b *testing.B, board *client.Board) float64 {
	b.Helper()
	const each, batch = 16, 32
	took := byMany(4, each, func(int) {
		if err := cycle(b.Context(), board, batch); err != nil {
			b.Error(err)
		}
	})
	return 4 * each * batch / took.Seconds()
}

const judgedConfig = `
policy "gpu" {
  path = %q
}
backend "local" {
  driver = "embedded"
}
board "judged" {
  backend = "local"
  eligibility {
    policy = "gpu"
  }
  ordering {
    policy = "gpu"
  }
}
`

// serveJudged starts a server for one board.
func serveJudged(b *testing.B, boardd string, j *judged) *client.Board {
	b.Helper()
	if j.language == "" {
		return dial(b, testserver.Start(b, boardd, "", "--dev").Addr).Board("default")
	}
	module, err := build.Folder(b.Context(), filepath.Join("..", "policies", "templates", j.language), os.Environ())
	if missing, ok := errors.AsType[*build.Missing](err); ok {
		testneed.Skip(b, missing.Error())
	}
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	path, config := filepath.Join(dir, "gpu.wasm"), filepath.Join(dir, "judged.hcl")
	if err := errors.Join(os.WriteFile(path, module, 0o600), os.WriteFile(config, fmt.Appendf(nil, judgedConfig, path), 0o600)); err != nil {
		b.Fatal(err)
	}
	if !j.pushed {
		return dial(b, testserver.Start(b, boardd, "", "--dev", "--config", config).Addr).Board("judged")
	}
	server := testserver.Start(b, boardd, "", "--dev")
	for _, args := range [][]string{{"push", path}, {"promote", "gpu"}} {
		command := exec.CommandContext(b.Context(), boardd, append([]string{"policy"}, args...)...) //nolint:gosec // this project's program
		command.Env = append(os.Environ(), "BOARDD_ADDR="+server.Addr, "BOARDD_TOKEN=dev")
		if text, err := command.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, text)
		}
	}
	return dial(b, server.Addr).Board("default")
}
