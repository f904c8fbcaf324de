package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const restBenchConfig = `
data_dir   = "data"
rest_after = "1s"
token "root" {
  roles  = ["operator"]
  secret = %[1]q
}
backend "embedded" {
  driver = "embedded"
}
backend "redis" {
  driver = "redis"
  config = { address = %[2]q }
}
board "embedded" {
  backend = "embedded"
}
board "redis" {
  backend = "redis"
}
`

// BenchmarkFirstCallAtRest measures the first call on a board of 1,000 waiting jobs that rests,
// through the network: until it is open again, and the call is answered. Each takes some seconds
// that are not measured, in which the board comes to rest: -benchtime 20x makes 20.
func BenchmarkFirstCallAtRest(b *testing.B) {
	redis := testserver.StartRedis(b, testserver.RedisOptions{})
	config := filepath.Join(b.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, restBenchConfig, fleetToken, redis.Addr), 0o600); err != nil {
		b.Fatal(err)
	}
	server := testserver.Start(b, testserver.BuildWith(b, []string{"redis"}), "", "--config", config)
	c := fleetClient(b, server)
	jobs := make([]*client.NewJob, 1000)
	for i := range jobs {
		jobs[i] = &client.NewJob{Name: "waits", Details: []byte(`{"path":"/a/file.png"}`)}
	}
	for _, name := range []string{"embedded", "redis"} {
		if _, err := c.Board(name).Post(b.Context(), jobs...); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				testserver.Eventually(b, "the boards rest", func() bool { return openBoards(b, server) == "0" })
				b.StartTimer()
				counts, err := c.Board(name).Count(b.Context())
				if err != nil || counts.GetReady() != 1000 {
					b.Fatalf("counts %v, %v", counts, err)
				}
			}
		})
	}
}
