package interop_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const secret = "not-very-secret-1234567890"

const boards = `
token "root" {
  roles  = ["operator"]
  secret = %q
}
backend "main" {
  driver = "redis"
  config = { address = %q }
}
board "default" {
  backend = "main"
  config  = { namespace = %q }
}
`

// program is a boardd that serves one board on Redis.
type program struct {
	*testserver.Server

	t    *testing.T
	path string
}

func serve(t *testing.T, server *testserver.Redis) *program {
	t.Helper()
	path := testserver.BuildWith(t, []string{"redis"})
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, boards, secret, server.Addr, namespace), 0o600); err != nil {
		t.Fatal(err)
	}
	return &program{Server: testserver.Start(t, path, "", "--config", config), t: t, path: path}
}

func (p *program) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(p.t.Context(), p.path, args...)
	c.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + p.t.TempDir(), "BOARDD_ADDR=" + p.Addr, "BOARDD_TOKEN=" + secret}
	return c
}

// TestConductorAndWorker has a real BlockingConductor and a `boardd worker run`
// drain one board, onto which both sides post at the same time: every job is
// done once, and both sides do some. So that neither finds the board empty, however
// busy the machine is, the worker's first commands last until the conductor has
// done a job.
func TestConductorAndWorker(t *testing.T) {
	t.Parallel()
	const each = 40
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	p := serve(t, server)
	f := testserver.StartTaskFlow(t)
	board := f.Connect("octavia", conf(server), 0)

	dir := t.TempDir()
	done, begun, proceed := filepath.Join(dir, "done"), filepath.Join(dir, "begun"), filepath.Join(dir, "go-on")
	worker := p.command("worker", "run", "--concurrency", "4", "--", "/bin/sh", "-c",
		`touch `+begun+`; until [ -e `+proceed+` ]; do sleep 0.05; done; echo "$BOARDD_JOB_NAME" >> `+done)
	var log strings.Builder
	worker.Stdout, worker.Stderr = &log, &log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	postFromBoth(t, p, board, each)
	testserver.Eventually(t, "the worker has a job", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	conductor := f.Go("conductor", testserver.Args{"board": "octavia", "name": "conductor"})
	testserver.Eventually(t, "the conductor has done a job", func() bool {
		var runs []string
		return f.Do("runs", nil, &runs) == nil && len(runs) > 0
	})
	if err := os.WriteFile(proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the board is empty", func() bool {
		var n int
		return board.On("count", nil, &n) == nil && n == 0
	})
	if err := f.Do("stop", testserver.Args{"name": "conductor"}, nil); err != nil {
		t.Error(err)
	}
	var problem *string
	if err := conductor(&problem); err != nil || problem != nil {
		t.Errorf("the conductor ended with %v (%v)", problem, err)
	}
	_ = worker.Process.Signal(syscall.SIGTERM) // it is running
	_ = worker.Wait()                          // its exit code is 130

	var runs []string
	if err := f.Do("runs", nil, &runs); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(done) // absent: the worker had no job
	byWorker := strings.Fields(string(text))
	if len(byWorker) == 0 || len(runs) == 0 {
		t.Errorf("the worker did %d jobs, the conductor %d: want some by each\n%s", len(byWorker), len(runs), log.String())
	}
	all := slices.Sorted(slices.Values(append(byWorker, runs...)))
	if once := slices.Compact(slices.Clone(all)); len(all) != 2*each || len(once) != 2*each {
		t.Errorf("%d jobs were done %d times, want %d once: %v\n%s", len(once), len(all), 2*each, all, log.String())
	}
}

// postFromBoth posts jobs that a conductor can run: some by TaskFlow, as many by
// boardd. Each has a flow of its own, since a conductor runs a flow that its
// book says is done no second time, and consumes the job all the same.
func postFromBoth(t *testing.T, p *program, board *testserver.PythonBoard, each int) {
	t.Helper()
	var lines strings.Builder
	for i := range each {
		var book struct{ UUID, Name, Flow string }
		if err := board.Do("book", testserver.Args{"name": fmt.Sprintf("of boardd-%d", i)}, &book); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(map[string]any{
			"name": fmt.Sprintf("boardd-%d", i), "book": map[string]string{"uuid": book.UUID, "name": book.Name},
			"details": map[string]any{"flow_uuid": book.Flow, "store": map[string]any{"what": fmt.Sprintf("boardd-%d", i), "seconds": 0}},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	post := p.command("job", "post", "--from", "-")
	post.Stdin = strings.NewReader(lines.String())
	posted := make(chan error, 1)
	go func() {
		out, err := post.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		posted <- err
	}()
	for i := range each {
		board.Post(fmt.Sprintf("python-%d", i), testserver.Args{"book": true})
	}
	if err := <-posted; err != nil {
		t.Fatal(err)
	}
}

// TestAsOctaviaDoes: claims with an expiry that is shorter than the work, a
// thread that lists everything and extends what is its own, a poster that waits
// for every job on the board; and a worker of ours among them.
func TestAsOctaviaDoes(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	const name, expiry, work = "octavia-task-flow-conductor-1", 5, 8
	octavia := b.python.Connect("amphora", conf(b.server), expiry)
	theirs := b.pythonID(octavia.Post("their work", testserver.Args{"book": true, "seconds": work}))
	ours := b.post("our work", nil)
	token := b.claim(ours, "our worker", 2*time.Minute)

	conductor := octavia.Go("conductor", testserver.Args{"board": "amphora", "name": name})
	keeper := octavia.Go("keep_alive", testserver.Args{"board": "amphora", "conf": conf(b.server), "names": []string{name}, "expiry": expiry, "every": 0.2})
	waiting := octavia.Go("wait_all", testserver.Args{"board": "amphora", "timeout": 120})

	testserver.Eventually(t, "the conductor has its job", func() bool { return b.read(theirs).State == job.Claimed })
	begun := time.Now()
	for rec := b.read(theirs); rec.State == job.Claimed; rec = b.read(theirs) {
		if h := rec.Holder; h.Owner != name || !h.Foreign || h.NoExpiry || h.Remaining > expiry*time.Second || time.Since(begun) > time.Minute {
			t.Fatalf("held as %+v after %v", h, time.Since(begun))
		}
		if r := b.tryClaim(theirs, "our worker", time.Minute); len(r.Claims) != 0 {
			t.Fatal("we could claim what the conductor works on")
		}
		time.Sleep(100 * time.Millisecond) // the work goes on
	}
	b.want(job.NoKind, "ours", driver.Op{Kind: driver.Remove, Job: ours, Precondition: driver.HeldByToken, Token: token})

	var waited [][2]any
	b.ok(waiting(&waited))
	if len(waited) != 2 || waited[0][1] != true || waited[1][1] != true {
		t.Errorf("the poster waited for %v", waited)
	}
	b.ok(octavia.Do("let_go", nil, nil))
	var rounds int
	if b.ok(keeper(&rounds)); rounds < 5 {
		t.Errorf("the keeper went round %d times", rounds)
	}
	b.ok(octavia.Do("stop", testserver.Args{"name": name}, nil))
	var problem *string
	if b.ok(conductor(&problem)); problem != nil {
		t.Errorf("the conductor ended with %s", *problem)
	}
	var runs []string
	if b.ok(octavia.Do("runs", nil, &runs)); len(runs) != 1 {
		t.Errorf("the work was done %d times", len(runs))
	}
}
