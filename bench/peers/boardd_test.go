package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const boards = `
backend "redis" {
  driver = "redis"
  config = { address = %q }
}
backend "postgres" {
  driver = "postgres"
  config = { url = %q }
}
board "redis"    { backend = "redis" }
board "postgres" { backend = "postgres" }
`

// startBoardd starts one server with a board on each store: "default" is on the embedded one.
func startBoardd(t *testing.T, redis *testserver.Redis, postgres *testserver.Postgres) *client.Client {
	t.Helper()
	postgres.SQL("postgres", "CREATE DATABASE boardd ENCODING 'UTF8' TEMPLATE template0")
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, boards, redis.Addr, postgres.URL("boardd")), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, testserver.BuildWith(t, []string{"redis", "postgres"}), "", "--dev", "--config", config)
	c, err := client.New(client.Config{Addr: server.Addr, Token: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// boardd is a board of the server. Its jobs' details are JSON, so the payload is text in it.
type boardd struct {
	t     *testing.T
	board *client.Board
}

func (s *boardd) Post(ctx context.Context, payloads [][]byte) error {
	const batch = 500
	return inBatches(payloads, 4, batch, func(part [][]byte) error {
		jobs := make([]*client.NewJob, len(part))
		for i, p := range part {
			details := make([]byte, 0, len(p)+8)
			details = append(append(append(details, `{"p":"`...), p...), `"}`...)
			jobs[i] = &client.NewJob{Name: "bench", Details: details}
		}
		_, err := s.board.Post(ctx, jobs...)
		return err
	})
}

func (s *boardd) Work(handlers int, handle func([]byte)) (func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	w := client.Worker{Board: s.board, Concurrency: handlers, Handler: func(_ context.Context, c *client.Claim) error {
		var details struct{ P string }
		if err := json.Unmarshal(c.Job.GetDetails(), &details); err != nil {
			return err
		}
		handle([]byte(details.P))
		return nil
	}}
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
	})
	return func() { cancel(); running.Wait() }, nil
}

// inBatches gives out payloads in batches to so many callers.
func inBatches(payloads [][]byte, callers, batch int, one func([][]byte) error) error {
	if len(payloads) <= batch {
		return one(payloads)
	}
	next := make(chan [][]byte)
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range callers {
		running.Go(func() {
			for part := range next {
				if err := one(part); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	for from := 0; from < len(payloads); from += batch {
		next <- payloads[from:min(from+batch, len(payloads))]
	}
	close(next)
	running.Wait()
	return failed
}
