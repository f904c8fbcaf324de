package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// putBack is a boardd on a store that can be put back to an earlier state.
type putBack struct {
	*testing.T
	program string
	server  *testserver.Server

	save    func() // keeps a copy of the store; boardd is not running on the embedded one
	restore func() // puts the copy back, likewise
	during  func() // restore while boardd is running
}

func (b *putBack) run(into any, args ...string) {
	b.Helper()
	c := exec.CommandContext(b.Context(), b.program, append(args, "-o", "json")...)
	c.Env = append(os.Environ(), "BOARDD_ADDR="+b.server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
	out, err := c.CombinedOutput()
	if err == nil && into != nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		b.Fatalf("boardd %v: %v\n%s\n%s", args, err, out, b.server.Log())
	}
}

// boardState is what the board says of itself.
type boardState struct {
	Ready            bool
	Loss, Generation string
}

// board is how the board stands, once it is open.
func (b *putBack) board() boardState {
	b.Helper()
	var answer struct{ Board boardState }
	testserver.Eventually(b, "the board is ready", func() bool {
		b.run(&answer, "board", "get", "default")
		return answer.Board.Ready
	})
	return answer.Board
}

const putBackConfig = `
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  driver = %q
  config = { %s }
}
board "default" {
  backend = "main"
  config  = { %s }
}
`

// start serves a board on a driver.
func (b *putBack) start(driver, backend, board string) {
	b.Helper()
	config := filepath.Join(b.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, putBackConfig, driver, backend, board), 0o600); err != nil {
		b.Fatal(err)
	}
	b.server = testserver.Start(b, b.program, "", "--config", config)
}

// copyFolder makes a folder's content be another one's.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func onEmbedded(t *testing.T, program string) *putBack {
	b := &putBack{T: t, program: program}
	b.start("embedded", "", "")
	store, kept := filepath.Join(b.server.Data, "backends", "main"), filepath.Join(t.TempDir(), "copy")
	b.save = func() { copyFolder(t, store, kept) }
	b.restore = func() { copyFolder(t, kept, store) }
	b.during = func() {
		b.restore()
		for _, pid := range b.server.Drivers() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b
}

func onRedis(t *testing.T, program string) *putBack {
	b := &putBack{T: t, program: program}
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	b.start("redis", fmt.Sprintf("address = %q", redis.Addr), `namespace = "n"`)
	b.save = func() {
		if answer := redis.Command("SAVE"); answer != "+OK" {
			t.Fatal(answer)
		}
	}
	b.restore = func() { // it comes back with what was saved
		redis.Kill()
		redis.Restart()
	}
	b.during = b.restore
	return b
}

func onZooKeeper(t *testing.T, program string) *putBack {
	b := &putBack{T: t, program: program}
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	b.start("zookeeper", fmt.Sprintf("servers = [%q]", z.Servers()[0]), `path = "/n"`)
	kept := filepath.Join(t.TempDir(), "copy")
	exchange := func(from, to string) {
		z.Kill(0)
		copyFolder(t, from, to)
		z.Start(0)
	}
	b.save = func() { exchange(z.Dir(0), kept) }
	b.restore = func() { exchange(kept, z.Dir(0)) }
	b.during = b.restore
	return b
}

func onPostgres(t *testing.T, program string) *putBack {
	b := &putBack{T: t, program: program}
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	b.start("postgres", fmt.Sprintf("url = %q", p.URL("postgres")), "")
	kept := filepath.Join(t.TempDir(), "copy")
	exchange := func(from, to string) {
		p.Kill()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil { // with whom its files belong to
			t.Fatalf("%v: %s", err, out)
		}
		p.Restart()
	}
	b.save = func() { exchange(p.Dir, kept) }
	b.restore = func() { exchange(kept, p.Dir) }
	b.during = b.restore
	return b
}

// A store that was put back to an earlier state is noticed, however boardd and the
// store were stopped meanwhile, or not at all: the loss is shown, also after further
// restarts, until somebody acknowledges it; the generation is another one; and a token
// from before is good for nothing.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]func(*testing.T, string) *putBack{"embedded": onEmbedded, "postgres": onPostgres, "redis": onRedis, "zookeeper": onZooKeeper} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := ""
			if name == "embedded" {
				program = testserver.Build(t, "./cmd/boardd")
			} else {
				program = withDriver(t, name)
			}
			for _, how := range []string{"stopped", "killed", "running"} {
				t.Run(how, func(t *testing.T) {
					t.Parallel()
					on(t, program).goBack(how)
				})
			}
		})
	}
}

func (b *putBack) goBack(how string) {
	var claimed struct {
		Claims []struct{ UUID, Token string }
	}
	b.run(nil, "job", "post", "kept")
	b.run(&claimed, "job", "claim", "--owner", "w", "--lease", "1h")
	b.run(nil, "job", "post", "kept")
	b.server.Stop()
	b.save()
	b.server.Restart()
	if loss := b.board().Loss; loss != "" {
		b.Fatalf("nothing was lost, and the board says %q", loss)
	}
	for range 3 { // the last one is acknowledged just before the end
		b.run(nil, "job", "post", "lost")
	}
	switch how {
	case "stopped":
		b.server.Stop()
		b.restore()
		b.server.Restart()
	case "killed":
		b.server.Kill()
		b.restore()
		b.server.Restart()
	default:
		b.during()
	}
	testserver.Eventually(b, "the board shows the loss", func() bool { return b.board().Loss != "" })
	if info := b.board(); info.Generation != "2" {
		b.Errorf("after the store was put back the board is in generation %s, want 2: %s", info.Generation, info.Loss)
	}
	c := claimed.Claims[0]
	stale := exec.CommandContext(b.Context(), b.program, "job", "consume", c.UUID, "--owner", "w", "--claim-token", c.Token)
	stale.Env = append(os.Environ(), "BOARDD_ADDR="+b.server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
	if out, err := stale.CombinedOutput(); err == nil || !strings.Contains(string(out), "LEASE_LOST") {
		b.Errorf("a token from before: %v\n%s\nwant LEASE_LOST", err, out)
	}
	b.server.Stop()
	b.server.Restart()
	b.server.Kill()
	b.server.Restart()
	if b.board().Loss == "" {
		b.Errorf("the loss is forgotten after restarts; the log:\n%s", b.server.Log())
	}
	gauge := func(value string) bool {
		return strings.Contains(metricsOf(b.T, b.server.Addr, "not-very-secret-1234567890"), `boardd_board_unacknowledged_loss{board="default",tenant="default"} `+value)
	}
	if !gauge("1") {
		b.Error("the metric of a loss that nobody acknowledged is not 1")
	}
	b.run(nil, "board", "acknowledge-loss", "default")
	if !gauge("0") {
		b.Error("the metric of an acknowledged loss is not 0")
	}
	b.server.Stop()
	b.server.Restart()
	if info := b.board(); info.Loss != "" || info.Generation != "2" {
		b.Errorf("after it was acknowledged: generation %s, loss %q", info.Generation, info.Loss)
	}
}
