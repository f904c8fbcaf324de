package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// actVariable makes the test binary a driver, or a host of one.
const actVariable = "BOARDD_TEST_ACT"

func TestMain(m *testing.M) {
	switch act := os.Getenv(actVariable); act {
	case "":
		os.Exit(m.Run())
	case "embedded":
		plugin.Serve(embedded.Program())
	case "memory":
		plugin.Serve(memdriver.Program())
	case "liar":
		plugin.Serve(memdriver.Program().Wrapped(func(d driver.Driver) driver.Driver { return liar{d} }))
	case "picky":
		program := memdriver.Program()
		program.Open = func(context.Context, driver.Config) (driver.Driver, error) {
			return nil, job.Errorf(job.Invalid, "address is missing")
		}
		plugin.Serve(program)
	case "exit":
		fmt.Fprintln(os.Stderr, "no such library")
		os.Exit(3)
	case "host":
		beHost()
	default:
		fmt.Fprintln(os.Stderr, "no such act: "+act)
		os.Exit(1)
	}
}

// A liar gives claims that nobody asked for.
type liar struct{ driver.Driver }

func (l liar) Apply(_ context.Context, _ string, ops []driver.Op) []driver.Result {
	results := make([]driver.Result, len(ops))
	for i := range results {
		results[i].Claims = []driver.Claimed{{Job: job.ID{1}, Token: job.Token{Epoch: 1}}}
	}
	return results
}

func act(t testing.TB, name string) plugin.Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return plugin.Command{Path: self, Name: name, Env: []string{actVariable + "=" + name}}
}

// running starts a supervisor and waits until it is ready.
func running(t *testing.T, spec Spec) *Supervisor {
	t.Helper()
	s := New(spec)
	var run sync.WaitGroup
	run.Go(func() {
		if err := s.Run(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		run.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func durable(t *testing.T) Spec {
	t.Helper()
	return Spec{Name: "main", Command: act(t, "embedded"), DataDir: t.TempDir(), MaxCrashes: 1000}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 20 s for %s", what)
		}
	}
}

// beHost runs a driver, says its number, and waits to be killed.
func beHost() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	s := New(Spec{
		Name: "main", DataDir: os.Getenv("BOARDD_TEST_DIR"),
		Command: plugin.Command{Path: self, Env: []string{actVariable + "=embedded"}},
	})
	go func() {
		if err := s.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	if err := s.Ready(context.Background()); err != nil {
		panic(err)
	}
	if _, err := s.OpenBoard(context.Background(), driver.BoardSpec{Name: "b", Window: time.Hour, MaxTombstones: 100}); err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stdout, "driver", s.State().PID)
	select {}
}

// TestNoOrphans kills hosts without a warning. Their drivers have to end as well.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	hosts := 100
	if testing.Short() {
		hosts = 10
	}
	dir := t.TempDir()
	for range hosts {
		pid := killedHost(t, dir)
		waitFor(t, "the driver's end", func() bool { return !alive(pid) })
	}
}

// killedHost returns the number of the driver's process.
func killedHost(t *testing.T, dir string) int {
	t.Helper()
	host := act(t, "host")
	cmd := exec.CommandContext(t.Context(), host.Path)
	cmd.Env = append(append(os.Environ(), host.Env...), "BOARDD_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if killErr := cmd.Process.Kill(); killErr != nil {
		t.Fatal(killErr)
	}
	_ = cmd.Wait() // it was killed
	pid, convErr := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "driver ")))
	if err != nil || convErr != nil {
		t.Fatalf("the host said %q (%v)", line, err)
	}
	return pid
}

// alive reports whether a process runs; one that has only to be waited for by its
// parent does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
