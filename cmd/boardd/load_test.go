package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

// load is callers who post jobs, claim and consume them, until the test has enough.
// No call of theirs may fail. BOARDD_TEST_RATE says how many calls they make in a
// second at most, 0: as many as the machine can; otherwise it is loadRate, which leaves
// the processors to the tests beside.
type load struct {
	t     *testing.T
	calls atomic.Int64
	begun time.Time
	done  sync.WaitGroup
	stop  context.CancelFunc
}

// loadCallers is how many there are, and loadRate how many calls they make in a second.
const (
	loadCallers = 8
	loadRate    = 400
)

func startLoad(t *testing.T, board *client.Board) *load {
	t.Helper()
	rate, err := strconv.Atoi(os.Getenv("BOARDD_TEST_RATE"))
	if err != nil {
		rate = loadRate
	}
	ctx, stop := context.WithCancel(t.Context())
	l := &load{t: t, begun: time.Now(), stop: stop}
	for i := range loadCallers {
		l.done.Go(func() { l.call(ctx, board, i, rate) })
	}
	t.Cleanup(func() { _ = l.end() })
	return l
}

// call works on jobs of the caller's own.
func (l *load) call(ctx context.Context, board *client.Board, caller, rate int) {
	name, own := fmt.Sprint("load-", caller), context.WithoutCancel(ctx)
	for round := 1; ctx.Err() == nil && !l.t.Failed(); round++ {
		if _, err := board.Post(own, &client.NewJob{Name: name}); err != nil {
			l.t.Errorf("post: %v", err)
			return
		}
		claims, err := board.Claim(own, client.ClaimOptions{Owner: name, Names: []string{name}, Wait: 20 * time.Second})
		if err != nil || len(claims) != 1 {
			l.t.Errorf("claim: %d claims, %v", len(claims), err)
			return
		}
		if err := board.Consume(own, claims...); err != nil {
			l.t.Errorf("consume: %v", err)
			return
		}
		l.calls.Add(3)
		if rate > 0 {
			time.Sleep(time.Until(l.begun.Add(time.Duration(round) * 3 * loadCallers * time.Second / time.Duration(rate))))
		}
	}
}

// more waits until so many calls more were made.
func (l *load) more(n int64) {
	l.t.Helper()
	want := l.calls.Load() + n
	testserver.Eventually(l.t, fmt.Sprint(n, " more calls"), func() bool { return l.calls.Load() >= want || l.t.Failed() })
}

// end ends the load and returns how many calls were made.
func (l *load) end() int64 {
	l.stop()
	l.done.Wait()
	return l.calls.Load()
}

const rollingConfig = `
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  driver = "redis"
  config = { address = %q }
}
board "default" {
  backend = "main"
  config  = { namespace = "rolling" }
}
`

// TestRollingRestart restarts two servers of one Redis, one after the other, under
// callers who know both. No call of theirs fails, and no job is lost.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	program := withDriver(t, "redis")
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, rollingConfig, redis.Addr), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := []*testserver.Server{testserver.Start(t, program, "", "--config", config), testserver.Start(t, program, "", "--config", config)}
	c, err := client.New(client.Config{Addr: servers[0].Addr + "," + servers[1].Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	board := c.Board("default")
	l := startLoad(t, board)
	for range 2 {
		for _, server := range servers {
			l.more(10 * loadCallers)
			server.Stop()
			l.more(10 * loadCallers)
			server.Restart()
		}
	}
	l.more(10 * loadCallers)
	calls := l.end()
	testserver.Eventually(t, "every job is complete", func() bool { // a server hears of what another did a moment later
		counts, err := board.Count(t.Context())
		return err == nil && counts.GetUnclaimed()+counts.GetClaimed()+counts.GetTrashed() == 0 && counts.GetComplete() == calls/3
	})
	t.Logf("%d calls, %.0f a second", calls, float64(calls)/time.Since(l.begun).Seconds())
}
