package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

const zooKeeperConfig = `
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  driver = "zookeeper"
  config = { servers = [%q] }
}
board "default" {
  backend = "main"
  config  = { path = "/taskflow/jobs" }
}
`

// A zooBoard is a boardd that serves a board on ZooKeeper, and TaskFlow on the
// same board.
type zooBoard struct {
	*testing.T
	program string
	server  *testserver.Server
	python  *testserver.PythonBoard
}

func serveZooKeeper(t *testing.T) *zooBoard {
	t.Helper()
	program := withDriver(t, "zookeeper")
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, zooKeeperConfig, z.Servers()[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, program, "", "--config", config)
	f := testserver.StartTaskFlow(t)
	python := f.Connect("python", testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": "/taskflow/jobs"}, 0)
	return &zooBoard{t, program, server, python}
}

func (b *zooBoard) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(b.Context(), b.program, args...)
	c.Env = append(os.Environ(), "BOARDD_ADDR="+b.server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
	return c
}

func (b *zooBoard) run(args ...string) string {
	b.Helper()
	out, err := b.command(args...).CombinedOutput()
	if err != nil {
		b.Fatalf("boardd %v: %v\n%s\n%s", args, err, out, b.server.Log())
	}
	return string(out)
}

// TestZooKeeperBoard has a conductor of TaskFlow's and a worker of boardd's drain
// one board: every job is done once.
func TestZooKeeperBoard(t *testing.T) {
	t.Parallel()
	const jobs = 30
	b := serveZooKeeper(t)
	done := filepath.Join(t.TempDir(), "done")
	worker := b.command("worker", "run", "--", "/bin/sh", "-c", `echo "$BOARDD_JOB_NAME" >> `+done)
	var log strings.Builder
	worker.Stdout, worker.Stderr = &log, &log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	conductor := b.python.Go("conductor", testserver.Args{"board": "python", "name": "conductor"})
	for i := range jobs {
		b.python.Post(fmt.Sprintf("job-%d", i), testserver.Args{"book": true})
	}
	testserver.Eventually(t, "the board is empty", func() bool {
		list, err := b.python.List(false)
		return err == nil && len(list) == 0
	})
	if err := b.python.Do("stop", testserver.Args{"name": "conductor"}, nil); err != nil {
		t.Error(err)
	}
	if err := conductor(nil); err != nil {
		t.Error(err)
	}
	_ = worker.Process.Signal(syscall.SIGTERM) // it is running
	if err := worker.Wait(); err != nil {
		t.Logf("the worker ended with %v", err)
	}
	var runs []string
	if err := b.python.Do("runs", nil, &runs); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(done) // absent: the worker had no job
	all := append(strings.Fields(string(text)), runs...)
	slices.Sort(all)
	if len(all) != jobs || len(slices.Compact(slices.Clone(all))) != jobs {
		t.Errorf("%d jobs were posted, and these were done: %v\n%s\n%s", jobs, all, log.String(), b.server.Log())
	}
}

// TestZooKeeperDriverKilled kills the driver and then the whole server while a
// claim stands: it is the worker's, and TaskFlow sees it all the time.
func TestZooKeeperDriverKilled(t *testing.T) {
	t.Parallel()
	b := serveZooKeeper(t)
	b.run("job", "post", "kept", "--details", `{"a": 1}`)
	var claimed struct {
		Claims []struct{ UUID, Token string }
	}
	if err := json.Unmarshal([]byte(b.run("job", "claim", "--owner", "w", "--lease", "10m", "-o", "json")), &claimed); err != nil || len(claimed.Claims) != 1 {
		t.Fatalf("claim: %+v, %v", claimed, err)
	}
	id := claimed.Claims[0].UUID
	for _, pid := range b.server.Drivers() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	testserver.Eventually(t, "the board is served again", func() bool {
		out, err := b.command("job", "get", id).CombinedOutput()
		return err == nil && strings.Contains(string(out), "CLAIMED")
	})
	b.server.Kill()
	if owner, err := b.python.Owner(id); err != nil || owner != "w" {
		t.Errorf("boardd is gone, and to TaskFlow the owner is %q (%v)", owner, err)
	}
	b.server.Restart()
	testserver.Eventually(t, "the board is served again", func() bool {
		out, err := b.command("job", "get", id).CombinedOutput()
		return err == nil && strings.Contains(string(out), "CLAIMED")
	})
	b.run("job", "consume", id, "--claim-token", claimed.Claims[0].Token)
	if state, err := b.python.State(id); err != nil || state != "COMPLETE" {
		t.Errorf("to TaskFlow a consumed job is %s (%v)", state, err)
	}
}

// TestEntitiesOfTaskFlow: a conductor that TaskFlow registered is listed and taken away
// like one of boardd's own, and may come again.
func TestEntitiesOfTaskFlow(t *testing.T) {
	t.Parallel()
	b := serveZooKeeper(t)
	register := func() {
		t.Helper()
		if err := b.python.On("register", testserver.Args{"name": "py@host:1", "metadata": map[string]any{"pid": 1}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	listed := func(want ...string) {
		t.Helper()
		var got []string
		for line := range strings.Lines(b.run("entity", "list", "--kind", "conductor")) {
			if fields := strings.Fields(line); fields[0] == "conductor" {
				got = append(got, fields[1])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	register()
	b.run("entity", "register", "conductor", "go@host:2", "--ttl", "1h")
	listed("go@host:2", "py@host:1")
	b.run("entity", "remove", "conductor", "py@host:1")
	b.run("entity", "remove", "conductor", "go@host:2")
	listed()
	out, err := b.command("entity", "remove", "conductor", "py@host:1").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitNothing {
		t.Errorf("removed twice: %v, %s", err, out)
	}
	register() // where the node had stayed, TaskFlow would have made none
	listed("py@host:1")
}

// TestZooKeeperAsItWas puts a job of TaskFlow's back that was purged, for TaskFlow to do it, and
// brings the board to another one through a file.
func TestZooKeeperAsItWas(t *testing.T) {
	t.Parallel()
	b := serveZooKeeper(t)
	uuid := b.python.Post("flow", testserver.Args{"book": true}).UUID
	testserver.Eventually(t, "boardd sees TaskFlow's job", func() bool { return b.command("job", "get", uuid).Run() == nil })
	claims := filepath.Join(t.TempDir(), "claims.jsonl")
	write(t, claims, b.run("job", "claim", uuid, "--owner", "me", "-o", "json"))
	b.run("job", "abandon", "--claims", claims, "--reason", "not today")
	file := filepath.Join(t.TempDir(), "job.json")
	write(t, file, b.run("job", "get", uuid, "--log", "-o", "json"))
	const shown = "name,state,priority,details,book,attempt,attempts,lastReason,createdAt"
	before := b.run("job", "get", uuid, "--fields", shown, "-o", "json")
	if !strings.Contains(before, `"book":{"uuid":"`) || !strings.Contains(before, `"lastReason":"not today"`) {
		t.Errorf("the job of TaskFlow's is %s", before)
	}
	b.run("job", "trash", uuid)
	b.run("job", "purge", uuid)
	b.run("job", "post", "--from", file, "--as-it-was")
	if after := b.run("job", "get", uuid, "--fields", shown, "-o", "json"); after != before {
		t.Errorf("the job that was put back is %s: want %s", after, before)
	}
	testserver.Eventually(t, "TaskFlow sees the job", func() bool {
		list, err := b.python.List(true)
		return err == nil && len(list) == 1 && list[0].UUID == uuid && list[0].Name == "flow"
	})
	exported := filepath.Join(t.TempDir(), "default.jsonl")
	b.run("board", "export", "default", "--to", exported)
	if out := b.run("board", "import", "copy", "--from", exported, "--backend", "main"); !strings.Contains(out, "jobs:") {
		t.Error(out)
	}
	if got := b.run("job", "get", uuid, "--board", "copy", "--fields", shown, "-o", "json"); got != before {
		t.Errorf("the job on the copy of the board is %s: want %s", got, before)
	}
	conductor := b.python.Go("conductor", testserver.Args{"board": "python", "name": "conductor"})
	testserver.Eventually(t, "a conductor of TaskFlow's has done the job", func() bool {
		list, err := b.python.List(false)
		return err == nil && len(list) == 0
	})
	if err := b.python.Do("stop", testserver.Args{"name": "conductor"}, nil); err != nil {
		t.Error(err)
	}
	if err := conductor(nil); err != nil {
		t.Error(err)
	}
	var runs []string
	if err := b.python.Do("runs", nil, &runs); err != nil || !slices.Equal(runs, []string{"flow"}) {
		t.Errorf("TaskFlow ran %q, %v: want the job that was put back", runs, err)
	}
}
