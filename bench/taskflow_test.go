package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const sharedBoard = `
backend "redis" {
  driver = "redis"
  config = { address = %q }
}
board "shared" {
  backend = "redis"
  config  = { namespace = "shared" }
}
`

// BenchmarkBesideTaskFlow is how long it takes a worker to get the best job of a
// board on Redis: by TaskFlow, which lists the board and claims the first one
// that is free, and by boardd, through its API, on the same board. Of the jobs,
// none or half are held by somebody else: those that TaskFlow comes to first.
// Medians; times is TaskFlow's over boardd's.
func BenchmarkBesideTaskFlow(b *testing.B) {
	boardd := withRedis(b)
	for _, n := range []int{100, 1_000, 5_000, 20_000} {
		for _, percent := range []int{0, 50} {
			b.Run(fmt.Sprintf("jobs=%d/claimed=%d%%", n, percent), func(b *testing.B) {
				redis := testserver.StartRedis(b, testserver.RedisOptions{})
				config := filepath.Join(b.TempDir(), "boards.hcl")
				if err := os.WriteFile(config, fmt.Appendf(nil, sharedBoard, redis.Addr), 0o600); err != nil {
					b.Fatal(err)
				}
				server := testserver.Start(b, boardd, "", "--dev", "--config", config)
				board := dial(b, server.Addr).Board("shared")
				fill(b, board, n, anyone)
				hold(b, board, n*percent/100)
				port, _ := strconv.Atoi(redis.Addr[strings.LastIndexByte(redis.Addr, ':')+1:])
				python := testserver.StartTaskFlow(b).Connect("shared", testserver.Args{"board": "redis", "host": "127.0.0.1", "port": port, "namespace": "shared"}, 0)
				for range b.N { // once, with -benchtime=1x
					ours := median(200, func() time.Duration { return take(b, board) })
					theirs := median(max(3, 2000/n), func() time.Duration { return takeTheirs(b, python) })
					b.ReportMetric(float64(ours.Microseconds())/1e3, "boardd-ms")
					b.ReportMetric(float64(theirs.Microseconds())/1e3, "taskflow-ms")
					b.ReportMetric(float64(theirs)/float64(ours), "times")
				}
			})
		}
	}
}

// withRedis builds boardd and, in the folder where it looks for drivers, the one
// for Redis.
func withRedis(b *testing.B) string {
	b.Helper()
	boardd := program(b)
	withPlugin(b, boardd, "redis")
	return boardd
}

// withPlugin puts a driver where a boardd finds it.
func withPlugin(b *testing.B, boardd, name string) {
	b.Helper()
	driver := testserver.Build(b, "./plugins/"+name)
	folder := filepath.Join(filepath.Dir(boardd), "plugins")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(driver, filepath.Join(folder, name)); err != nil {
		b.Fatal(err)
	}
}

// hold has somebody else claim the n newest jobs, which TaskFlow lists first.
func hold(b *testing.B, board *client.Board, n int) {
	b.Helper()
	var uuids []string
	for job, err := range board.List(b.Context(), client.ListOptions{}) {
		if err != nil {
			b.Fatal(err)
		}
		uuids = append(uuids, job.GetUuid())
	}
	for chunk := range slices.Chunk(uuids[len(uuids)-n:], 100) {
		if _, err := board.Claim(b.Context(), client.ClaimOptions{Owner: "another", UUIDs: chunk, Lease: 2 * time.Hour}); err != nil {
			b.Fatal(err)
		}
	}
}

// take claims the best job and gives it back; only the claim counts.
func take(b *testing.B, board *client.Board) time.Duration {
	b.Helper()
	began := time.Now()
	claims, err := board.Claim(b.Context(), client.ClaimOptions{Owner: owner})
	spent := time.Since(began)
	if err != nil || len(claims) != 1 {
		b.Fatalf("%d claims: %v", len(claims), err)
	}
	if err := board.Abandon(b.Context(), client.AbandonOptions{}, claims...); err != nil {
		b.Fatal(err)
	}
	return spent
}

// takeTheirs lets TaskFlow list the board and claim the first job that is free.
// It measures that itself, without the way to its process.
func takeTheirs(b *testing.B, python *testserver.PythonBoard) time.Duration {
	b.Helper()
	var took struct {
		UUID    string  `json:"uuid"`
		Seconds float64 `json:"seconds"`
	}
	if err := python.On("take", testserver.Args{"who": owner}, &took); err != nil {
		b.Fatal(err)
	}
	if err := python.End("abandon", took.UUID, owner); err != nil {
		b.Fatal(err)
	}
	return time.Duration(took.Seconds * float64(time.Second))
}

func median(n int, one func() time.Duration) time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = one()
	}
	return middle(times)
}
