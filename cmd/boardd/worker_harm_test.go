package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// harmed is a board whose workers come to harm. Their command writes a line, of the job's
// name and who runs it, and stays if it is a long job and the worker is the first.
type harmed struct {
	t       *testing.T
	program string
	server  *testserver.Server
	board   *client.Board
	script  string
	lines   string
}

func newHarmed(t *testing.T) *harmed {
	t.Helper()
	program, dir := testserver.Build(t, "./cmd/boardd"), t.TempDir()
	h := &harmed{t: t, program: program, server: testserver.Start(t, program, ""), script: filepath.Join(dir, "run.sh"), lines: filepath.Join(dir, "lines")}
	write(t, h.script, `cat > /dev/null
echo "$BOARDD_JOB_NAME $BOARDD_JOB_OWNER" >> `+h.lines+`
case "$BOARDD_JOB_NAME $BOARDD_JOB_OWNER" in long*first) exec sleep 1000 ;; esac
`)
	c, err := client.New(client.Config{Addr: h.server.Addr, Token: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	h.board = c.Board("default")
	return h
}

func (h *harmed) post(name string, n int) {
	h.t.Helper()
	jobs := make([]*client.NewJob, n)
	for i := range jobs {
		jobs[i] = &client.NewJob{Name: name + strconv.Itoa(i)}
	}
	if _, err := h.board.Post(h.t.Context(), jobs...); err != nil {
		h.t.Fatal(err)
	}
}

// hire starts a worker in a process of its own.
func (h *harmed) hire(addr, owner string, flags ...string) *exec.Cmd {
	h.t.Helper()
	args := append([]string{"worker", "run", "--addr", addr, "--token", "dev", "--owner", owner, "--no-log"}, flags...)
	worker := exec.CommandContext(context.Background(), h.program, append(args, "--", "sh", h.script)...)
	if err := worker.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = worker.Process.Kill() // of one that has ended it is refused
		_ = worker.Wait()
	})
	return worker
}

// runs is how often each job's command was started, and by whom.
func (h *harmed) runs() map[string]int {
	h.t.Helper()
	text, err := os.ReadFile(h.lines)
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	runs := map[string]int{}
	for line := range strings.Lines(string(text)) {
		runs[strings.TrimSpace(line)]++
	}
	return runs
}

// left is how many jobs are open and claimed, or -1: the server did not say.
func (h *harmed) left() (open, claimed int64) {
	c, err := h.board.Count(h.t.Context())
	if err != nil {
		return -1, -1
	}
	return c.GetUnclaimed() + c.GetClaimed(), c.GetClaimed()
}

// holdsAhead has the first worker run a long job, with claims of others ahead, and
// returns it and the names of what it holds.
func (h *harmed) holdsAhead() (worker *exec.Cmd, held map[string]bool) {
	h.t.Helper()
	h.post("quick", 30) // so that the worker knows how long they take
	h.post("long", 8)
	worker = h.hire(h.server.Addr, "first", "--ahead", "4", "--lease", "6s")
	testserver.Eventually(h.t, "the worker runs a long job, holds others, and has ended all quick ones", func() bool {
		held = map[string]bool{}
		for j, err := range h.board.List(h.t.Context(), client.ListOptions{States: []boarddv1.State_Enum{boarddv1.State_CLAIMED}}) {
			if err != nil || !strings.HasPrefix(j.GetName(), "long") {
				return false
			}
			held[j.GetName()] = true
		}
		return h.runs()["long0 first"] == 1 && len(held) > 1
	})
	return worker, held
}

// lapse waits until no job is claimed.
func (h *harmed) lapse() {
	h.t.Helper()
	testserver.Eventually(h.t, "the leases ran out", func() bool {
		_, claimed := h.left()
		return claimed == 0
	})
}

// workOff has a second worker do everything that is left.
func (h *harmed) workOff() {
	h.t.Helper()
	if err := h.hire(h.server.Addr, "second", "--until-empty", "--ahead", "0").Wait(); err != nil {
		h.t.Error(err)
	}
	if open, _ := h.left(); open != 0 {
		h.t.Errorf("%d jobs are left", open)
	}
	for i := range 8 {
		if name := fmt.Sprintf("long%d second", i); h.runs()[name] != 1 {
			h.t.Errorf("%s: %d times", name, h.runs()[name])
		}
	}
}

// byFirst is how many long jobs the first worker began.
func (h *harmed) byFirst() (n int) {
	for line, times := range h.runs() {
		if strings.HasPrefix(line, "long") && strings.HasSuffix(line, " first") {
			n += times
		}
	}
	return n
}

// TestWorkerKilledAhead: what a killed worker had not begun uses up no attempt.
func TestWorkerKilledAhead(t *testing.T) {
	t.Parallel()
	h := newHarmed(t)
	worker, held := h.holdsAhead()
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.lapse()
	for j, err := range h.board.List(t.Context(), client.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if j.GetName() != "long0" && j.GetAttempt() != 0 {
			t.Errorf("%s, which was not begun, has used %d attempts", j.GetName(), j.GetAttempt())
		}
		delete(held, j.GetName())
	}
	if len(held) > 0 || h.byFirst() != 1 {
		t.Errorf("%v are gone, and %d were begun", held, h.byFirst())
	}
	h.workOff()
}

// TestWorkerStoodStill: a worker that stands still for longer than its leases begins
// nothing of what it has lost, and stops what it had begun. Then it works as before.
func TestWorkerStoodStill(t *testing.T) {
	t.Parallel()
	h := newHarmed(t)
	worker, _ := h.holdsAhead()
	testserver.Freeze(t, worker.Process.Pid)
	h.lapse()
	h.workOff()
	if err := worker.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	h.post("after", 1)
	testserver.Eventually(t, "it works again", func() bool { return h.runs()["after0 first"] == 1 })
	if n := h.byFirst(); n != 1 {
		t.Errorf("it began %d long jobs, of which it had lost all but one", n)
	}
	testserver.Eventually(t, "the last job is done", func() bool {
		open, _ := h.left()
		return open == 0
	})
}

// TestOperationAcrossRestart: a server that is away for longer than a command line waits for
// it, as an operation ends, has none of them run again.
func TestOperationAcrossRestart(t *testing.T) {
	t.Parallel()
	h := newHarmed(t)
	began, goOn := filepath.Join(t.TempDir(), "began"), filepath.Join(t.TempDir(), "go-on")
	write(t, h.script, `cat > /dev/null
echo "$BOARDD_JOB_OPERATION $BOARDD_JOB_ATTEMPT" >> `+h.lines+`
case $BOARDD_JOB_OPERATION in 0) touch `+began+`; until test -e `+goOn+`; do sleep 0.05; done ;; esac
`)
	posting := &client.NewJob{Name: "two", Operations: []*boarddv1.NewOperation{{Name: "a"}, {Name: "b"}}}
	if _, err := h.board.Post(t.Context(), posting); err != nil {
		t.Fatal(err)
	}
	h.hire(h.server.Addr, "first")
	testserver.Eventually(t, "the first operation runs", func() bool { _, err := os.Stat(began); return err == nil })
	h.server.Stop()
	write(t, goOn, "")
	time.Sleep(2 * impatient) // real processes have no other clock
	h.server.Launch()
	testserver.Eventually(t, "the job is done", func() bool {
		open, _ := h.left()
		return open == 0
	})
	if got, want := h.runs(), map[string]int{"0 1": 1, "1 1": 1}; !maps.Equal(got, want) {
		t.Errorf("operations and attempts that were begun: %v, want %v", got, want)
	}
}

// TestWorkerOutlivesHarm: whatever happens to the server and to the way there while a
// worker works, each job is run once.
func TestWorkerOutlivesHarm(t *testing.T) {
	t.Parallel()
	const jobs, times = 120, 3
	for name, harm := range map[string]func(h *harmed, p *testserver.Proxy){
		"a server that stands still": func(h *harmed, _ *testserver.Proxy) {
			testserver.Freeze(h.t, h.server.PID())
			time.Sleep(2 * time.Second) // the harm itself
			if err := syscall.Kill(h.server.PID(), syscall.SIGCONT); err != nil {
				h.t.Fatal(err)
			}
		},
		"a server that is killed":    func(h *harmed, _ *testserver.Proxy) { h.server.Kill(); h.server.Restart() },
		"a server that is restarted": func(h *harmed, _ *testserver.Proxy) { h.server.Stop(); h.server.Restart() },
		"cut connections":            func(_ *harmed, p *testserver.Proxy) { p.Sever(false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarmed(t)
			proxy := testserver.NewProxy(t, strings.TrimPrefix(h.server.Addr, "http://"))
			h.post("job", jobs)
			h.hire("http://"+proxy.Addr(), "w", "--concurrency", "3", "--lease", "50s")
			for n := range times {
				testserver.Eventually(t, "the worker works", func() bool { return len(h.runs()) > n*jobs/times })
				harm(h, proxy)
			}
			testserver.Eventually(t, "all jobs are done", func() bool {
				open, _ := h.left()
				return open == 0
			})
			runs := h.runs()
			for i := range jobs {
				if line := fmt.Sprintf("job%d w", i); runs[line] != 1 {
					t.Errorf("%s: %d times", line, runs[line])
				}
			}
		})
	}
}
