package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// A sharedStore is one in which a board of TaskFlow's lies.
type sharedStore struct {
	driver, backend string // its name, and its block
	board           string // the config of a board in it
	python          testserver.Args
}

func sharedStores(t *testing.T) []sharedStore {
	t.Helper()
	redis := testserver.StartRedis(t, testserver.RedisOptions{}).Addr
	zookeeper := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true}).Servers()[0]
	const backend = "backend \"main\" {\n  driver = %q\n  config = { %s }\n}\n"
	return []sharedStore{
		{
			driver:  "redis",
			backend: fmt.Sprintf(backend, "redis", fmt.Sprintf("address = %q", redis)),
			board:   `{"namespace":"octavia_jobboard"}`,
			python:  testserver.Args{"board": "redis", "port": portOf(redis), "namespace": "octavia_jobboard"},
		},
		{
			driver:  "zookeeper",
			backend: fmt.Sprintf(backend, "zookeeper", fmt.Sprintf("servers = [%q]", zookeeper)),
			board:   `{"path":"/octavia_jobboard"}`,
			python:  testserver.Args{"board": "zookeeper", "hosts": zookeeper, "path": "/octavia_jobboard"},
		},
	}
}

// TestTaskFlowsBoardMoves moves boards on which TaskFlow and boardd have posted jobs into a file, with
// a server that is killed on the way, once TaskFlow was stopped: a program of TaskFlow's that starts
// again finds nothing there, and all jobs are done on the new board.
func TestTaskFlowsBoardMoves(t *testing.T) {
	t.Parallel()
	for _, s := range sharedStores(t) {
		t.Run(s.driver, func(t *testing.T) {
			t.Parallel()
			m, python := startSharedBoard(t, &s)
			posted := m.postBoth(python, 60)
			const held = "a conductor"
			one := python.Post("held", nil).UUID
			// A list of TaskFlow's from before takes a job that it has just posted for one that is gone.
			m.until("TaskFlow claims its job", func() bool { return python.Claim(one, held, 0) == nil })
			posted[one] = true
			m.until("TaskFlow's claim is seen", func() bool {
				answer, err := m.admin.MoveBoard(t.Context(), &boarddv1.MoveBoardRequest{Board: "builds", Backend: "disk", DryRun: true})
				notes := strings.Join(answer.GetNotes(), "\n")
				return err == nil && strings.Contains(notes, one) && strings.Contains(notes, held) && strings.Contains(notes, "--taskflow-stopped")
			})
			m.stays("nobody says that TaskFlow was stopped", false, "--taskflow-stopped")
			m.stays("TaskFlow holds a job", true, one)
			if err := python.End("abandon", one, held); err != nil {
				t.Fatal(err)
			}
			m.until("the claim is gone", func() bool {
				answer, err := m.admin.MoveBoard(t.Context(), &boarddv1.MoveBoardRequest{Board: "builds", Backend: "disk", DryRun: true, TaskflowStopped: true})
				return err == nil && len(answer.GetNotes()) == 0
			})
			if err := python.On("close", nil, nil); err != nil {
				t.Fatal(err)
			}
			m.moveAway()
			again := python.TaskFlow.Connect("again", s.python, 0)
			if list, err := again.List(false); err != nil || len(list) > 0 {
				t.Errorf("a program of TaskFlow's that starts on the old board lists %v, %v", list, err)
			}
			m.done(posted)
		})
	}
}

// TestBoardComesToTaskFlow brings a board to TaskFlow's place by a file: TaskFlow lists its jobs, in
// whatever order, and works on them.
func TestBoardComesToTaskFlow(t *testing.T) {
	t.Parallel()
	for _, s := range sharedStores(t) {
		t.Run(s.driver, func(t *testing.T) {
			t.Parallel()
			m, python := startSharedBoard(t, &s)
			run := func(args ...string) {
				t.Helper()
				c := exec.CommandContext(t.Context(), testserver.BuildWith(t, []string{s.driver}), args...)
				c.Env = append(os.Environ(), "BOARDD_ADDR="+m.server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("boardd %v: %v\n%s", args, err, out)
				}
			}
			file := filepath.Join(t.TempDir(), "jobs.jsonl")
			run("board", "create", "before", "--backend", "disk")
			want := []string{"a", "b", "c"}
			for _, name := range want {
				run("job", "post", name, "--board", "before")
			}
			run("board", "export", "before", "--to", file)
			run("board", "import", "builds", "--from", file)
			list, err := python.List(true)
			if err != nil || len(list) != len(want) {
				t.Fatalf("TaskFlow lists %v, %v: want the jobs %v", list, err, want)
			}
			for i := range list {
				if !slices.Contains(want, list[i].Name) {
					t.Errorf("TaskFlow lists %v: want the jobs %v", list, want)
				}
			}
			if err := errors.Join(python.Claim(list[0].UUID, "a conductor", 0), python.End("consume", list[0].UUID, "a conductor")); err != nil {
				t.Errorf("TaskFlow works on a job that came by a file: %v", err)
			}
		})
	}
}

func startSharedBoard(t *testing.T, s *sharedStore) (*movingBoard, *testserver.PythonBoard) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, []byte(movingConfig+s.backend), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, testserver.BuildWith(t, []string{s.driver}), "", "--config", config)
	c, err := client.New(client.Config{Addr: server.Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	m := &movingBoard{T: t, server: server, board: c.Board("builds"), admin: c.Admin(), runs: map[string]int{}}
	_, err = m.admin.CreateBoard(t.Context(), &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
		Name: "builds", Backend: "main", Config: []byte(s.board), Lease: durationpb.New(time.Minute), History: durationpb.New(time.Hour),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return m, testserver.StartTaskFlow(t).Connect("python", s.python, 0)
}

// postBoth posts jobs by either side.
func (m *movingBoard) postBoth(python *testserver.PythonBoard, n int) map[string]bool {
	m.Helper()
	posted := map[string]bool{}
	for range n {
		posted[python.Post("of TaskFlow", nil).UUID] = true
		job := &client.NewJob{Uuid: client.NewUUID(), Name: "of boardd"}
		m.patiently("a post", func() error {
			_, err := m.board.Post(m.Context(), job)
			return err
		})
		posted[job.GetUuid()] = true
	}
	return posted
}

func (m *movingBoard) until(what string, is func() bool) {
	m.Helper()
	testserver.Eventually(m, what, is)
}

// stays wants the board not to move, for a reason.
func (m *movingBoard) stays(why string, stopped bool, named string) {
	m.Helper()
	_, err := m.admin.MoveBoard(m.Context(), &boarddv1.MoveBoardRequest{Board: "builds", Backend: "disk", TaskflowStopped: stopped})
	if !errors.Is(err, job.Precondition) || !strings.Contains(err.Error(), named) {
		m.Errorf("%s, and the board moves: %v, want FAILED_PRECONDITION with %s", why, err, named)
	}
}

// moveAway moves the board into a file, and kills the server meanwhile, again and again.
func (m *movingBoard) moveAway() {
	m.Helper()
	m.patiently("the move", func() error {
		_, err := m.admin.MoveBoard(m.Context(), &boarddv1.MoveBoardRequest{Board: "builds", Backend: "disk", TaskflowStopped: true})
		return err
	})
	for range 4 {
		time.Sleep(time.Duration(1+rand.IntN(120)) * time.Millisecond)
		m.server.Kill()
		m.server.Restart()
	}
	var move *boarddv1.Move
	m.until("the board has moved", func() bool {
		answer, err := m.admin.GetMove(m.Context(), &boarddv1.GetMoveRequest{Board: "builds"})
		move = answer.GetMove()
		return err == nil && (move.GetState() == "MOVED" || move.GetState() == "ABANDONED")
	})
	if move.GetState() != "MOVED" || move.GetProblem() != "" {
		m.Errorf("the move is %v\n%s", move, m.server.Log())
	}
}

// done has a worker do all jobs, each once.
func (m *movingBoard) done(posted map[string]bool) {
	m.Helper()
	ctx, stop := context.WithCancel(m.Context())
	defer stop()
	var n atomic.Int64
	w := client.Worker{Board: m.board, Concurrency: 4, Handler: func(ctx context.Context, c *client.Claim) error {
		n.Add(1)
		return m.handle(ctx, c)
	}}
	var working sync.WaitGroup
	working.Go(func() {
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			m.Errorf("the worker ended: %v", err)
		}
	})
	m.until("all jobs are done", func() bool {
		counts, err := m.board.Count(m.Context())
		return err == nil && n.Load() > 0 && counts.GetUnclaimed()+counts.GetClaimed() == 0
	})
	stop()
	working.Wait()
	for id, runs := range m.runs {
		if !posted[id] || runs != 1 {
			m.Errorf("the job %s was worked on %d times: want once what was posted", id, runs)
		}
	}
	if len(m.runs) != len(posted) {
		m.Errorf("%d jobs were worked on, and %d posted", len(m.runs), len(posted))
	}
}
