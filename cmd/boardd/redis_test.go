package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

// withDriver builds boardd with a driver in the folder beside it, and returns the
// program.
func withDriver(t *testing.T, name string) string {
	t.Helper()
	return testserver.BuildWith(t, []string{name})
}

const redisConfig = `
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
  config  = { namespace = "octavia_jobboard" }
  fencing = "owner"
}
backend "production" {
  driver = "redis"
  config = { address = %q }
}
board "seen" {
  backend = "production"
  config  = { namespace = "octavia_jobboard" }
  mode    = "observe"
}
`

// TestRedisBoards serves two boards on Redis, with the driver found beside the
// program: one as TaskFlow fences it, and one that is only looked at.
func TestRedisBoards(t *testing.T) {
	t.Parallel()
	program := withDriver(t, "redis")
	main, production := testserver.StartRedis(t, testserver.RedisOptions{}), testserver.StartRedis(t, testserver.RedisOptions{})
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, redisConfig, main.Addr, production.Addr), 0o600); err != nil {
		t.Fatal(err)
	}
	production.Command("CONFIG", "RESETSTAT")
	server := testserver.Start(t, program, "", "--config", config)
	run := func(board string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), program, append([]string{"job"}, args...)...)
		c.Env = append(os.Environ(), "BOARDD_ADDR="+server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890", "BOARDD_BOARD="+board)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	done := func(board string, args ...string) string {
		t.Helper()
		out, err := run(board, args...)
		if err != nil {
			t.Fatalf("boardd job %v: %v\n%s\n%s", args, err, out, server.Log())
		}
		return out
	}
	done("default", "post", "resize", "--details", `{"path":"/a.png"}`)
	var claimed struct {
		Claims []struct{ UUID string }
	}
	if err := json.Unmarshal([]byte(done("default", "claim", "--owner", "w", "-o", "json")), &claimed); err != nil || len(claimed.Claims) != 1 {
		t.Fatalf("claim: %v, %v", claimed, err)
	}
	id := claimed.Claims[0].UUID
	if owner := main.Command("GET", "octavia_jobboard:"+id+".owned"); owner != "w" {
		t.Errorf("TaskFlow would see the owner %q, want w", owner)
	}
	// TaskFlow's rule: who has the owner's name has the claim.
	if out, err := run("default", "consume", id, "--owner", "another"); err == nil || !strings.Contains(out, "NOT_OWNER") {
		t.Errorf("consumed by another: %v\n%s", err, out)
	}
	done("default", "consume", id, "--owner", "w")
	if exists := main.Command("HEXISTS", "octavia_jobboard:listings", id); exists != ":0" {
		t.Errorf("a consumed job is still on TaskFlow's board: %s", exists)
	}
	observed(t, production, run, done)
}

// observed checks that a board that is only observed can be read, and that
// nothing was written to its Redis.
func observed(t *testing.T, production *testserver.Redis, run func(string, ...string) (string, error), done func(string, ...string) string) {
	t.Helper()
	python := testserver.StartTaskFlow(t)
	board := python.Connect("octavia", testserver.Args{"board": "redis", "port": portOf(production.Addr), "namespace": "octavia_jobboard"}, 0)
	posted := board.Post("by python", nil)
	if err := board.Claim(posted.UUID, "octavia-1", 0); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(done("seen", "list"), "octavia-1"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the job that Python posted and claimed is not seen:\n%s", done("seen", "list"))
		}
	}
	if out, err := run("seen", "post", "no"); err == nil || !strings.Contains(out, "FAILED_PRECONDITION") {
		t.Errorf("a post to an observed board: %v\n%s", err, out)
	}
	if keys := production.Command("KEYS", "*boardd*"); strings.TrimSpace(keys) != "*0" && keys != "" {
		t.Errorf("boardd left keys in a Redis that it only observes:\n%s", keys)
	}
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
