package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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

const movingConfig = `
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "disk" {
  driver = "embedded"
}
`

// movingStores says for each other backend what it is called, its driver and how it is reached.
func movingStores(t *testing.T, names []string) (drivers []string, config string) {
	t.Helper()
	for _, name := range names {
		var driver, settings string
		switch name {
		case "red":
			driver, settings = "redis", fmt.Sprintf("address = %q", testserver.StartRedis(t, testserver.RedisOptions{}).Addr)
		case "pg":
			driver, settings = "postgres", fmt.Sprintf("url = %q", testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true}).URL("postgres"))
		case "zk":
			driver, settings = "zookeeper", fmt.Sprintf("servers = [%q]", testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true}).Servers()[0])
		}
		drivers = append(drivers, driver)
		config += fmt.Sprintf("backend %q {\n  driver = %q\n  config = { %s }\n}\n", name, driver, settings)
	}
	return drivers, config
}

// movingBoard is a board at work that moves.
type movingBoard struct {
	*testing.T
	server *testserver.Server
	board  *client.Board
	admin  *client.Admin

	posted atomic.Int64
	mu     sync.Mutex
	runs   map[string]int // of handlers, by job
}

func startMovingBoard(t *testing.T, lease time.Duration, others ...string) *movingBoard {
	t.Helper()
	drivers, backends := movingStores(t, others)
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, []byte(movingConfig+backends), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, testserver.BuildWith(t, drivers), "", "--config", config)
	c, err := client.New(client.Config{Addr: server.Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	m := &movingBoard{T: t, server: server, board: c.Board("builds"), admin: c.Admin(), runs: map[string]int{}}
	_, err = m.admin.CreateBoard(t.Context(), &boarddv1.CreateBoardRequest{Board: &boarddv1.BoardSettings{
		Name: "builds", Backend: "disk", Lease: durationpb.New(lease), History: durationpb.New(time.Hour),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// patiently makes a call until the server is there and takes it.
func (m *movingBoard) patiently(what string, call func() error) {
	m.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := call()
		if err == nil {
			return
		}
		if kind := job.KindOf(err); kind != job.Unavailable && kind != job.OutcomeUnknown && kind != job.Interrupted || time.Now().After(deadline) {
			m.Errorf("%s: %v", what, err)
			return
		}
	}
}

// post posts jobs until ctx ends.
func (m *movingBoard) post(ctx context.Context) {
	for ctx.Err() == nil && !m.Failed() {
		posting := &client.NewJob{Uuid: client.NewUUID(), Name: "n"}
		m.patiently("a post", func() error {
			_, err := m.board.Post(m.Context(), posting)
			return err
		})
		m.posted.Add(1)
		time.Sleep(time.Millisecond)
	}
}

func (m *movingBoard) handle(_ context.Context, c *client.Claim) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[c.GetUuid()]++
	return nil
}

// move moves the board, and has the server killed meanwhile.
func (m *movingBoard) move(to string, kill time.Duration) *boarddv1.Move {
	m.Helper()
	m.patiently("the move to "+to, func() error {
		_, err := m.admin.MoveBoard(m.Context(), &boarddv1.MoveBoardRequest{Board: "builds", Backend: to})
		if errors.Is(err, job.Precondition) { // the answer to an earlier try was lost
			return nil
		}
		return err
	})
	if kill > 0 {
		time.Sleep(kill)
		m.server.Kill()
		m.server.Restart()
	}
	var move *boarddv1.Move
	testserver.EventuallyGoingOn(m, "the board has moved to "+to, func() (bool, int64) {
		answer, err := m.admin.GetMove(m.Context(), &boarddv1.GetMoveRequest{Board: "builds"})
		move = answer.GetMove()
		return err == nil && (move.GetState() == "MOVED" || move.GetState() == "ABANDONED"), move.GetJobs()
	})
	if move.GetState() != "MOVED" || move.GetTo() != to || move.GetLostClaims() != 0 {
		m.Errorf("the move to %s is %v\n%s", to, move, m.server.Log())
	}
	return move
}

// TestMoveAtWork moves a board at work from a file to Redis, to PostgreSQL and back into the
// file, with servers that are killed on the way: no job is lost, and none is worked on twice.
// BOARDD_TEST_JOBS says how many jobs the board has at first, in place of 1,000, and of 100,000 with
// BOARDD_TEST_ALL=1.
func TestMoveAtWork(t *testing.T) {
	t.Parallel()
	jobs := 1000
	if os.Getenv("BOARDD_TEST_ALL") == "1" {
		jobs = 100_000
	}
	moveAtWork(t, jobs, []string{"red", "pg"}, []string{"red", "pg", "disk"})
}

// TestMoveAtWorkWithZooKeeper does so with a board that comes to ZooKeeper from a file and from
// Redis, which it left for it, and where it goes on beyond what it had come to in either.
func TestMoveAtWorkWithZooKeeper(t *testing.T) {
	t.Parallel()
	moveAtWork(t, 1000, []string{"red", "zk"}, []string{"zk", "red", "zk", "disk"})
}

func moveAtWork(t *testing.T, jobs int, others, ways []string) {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("BOARDD_TEST_JOBS")); err == nil {
		jobs = n
	}
	// A worker gives up what it could not end within its lease: so that has to be longer than
	// the board is frozen, and than the server takes to start again on a loaded machine.
	m := startMovingBoard(t, time.Minute+time.Duration(jobs)*time.Millisecond, others...)
	for left := jobs; left > 0; left -= 500 {
		var batch []*client.NewJob
		for range min(left, 500) {
			batch = append(batch, &client.NewJob{Name: "n"})
		}
		if _, err := m.board.Post(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	m.posted.Add(int64(jobs))
	posting, stopPosting := context.WithCancel(t.Context())
	defer stopPosting()
	working, stopWorking := context.WithCancel(t.Context())
	defer stopWorking()
	var posters, workers sync.WaitGroup
	posters.Go(func() { m.post(posting) })
	workers.Go(func() {
		w := client.Worker{Board: m.board, Concurrency: 4, Handler: m.handle}
		if err := w.Run(working); err != nil && working.Err() == nil {
			t.Errorf("the worker ended: %v", err)
		}
	})
	for i, to := range ways {
		kill := time.Duration(1+rand.IntN(150)) * time.Millisecond
		if i == 0 {
			kill = 0
		}
		move := m.move(to, kill)
		t.Logf("to %s: %d jobs and %d claims in %v and %d rounds, frozen for %v, killed after %v", to, move.GetJobs(), move.GetClaims(),
			move.GetEndedAt().AsTime().Sub(move.GetBegunAt().AsTime()), move.GetRounds(),
			move.GetFrozenFor().AsDuration(), kill)
	}
	stopPosting()
	posters.Wait()
	var counts *client.Counts
	testserver.EventuallyGoingOn(t, "all jobs are done", func() (bool, int64) {
		var err error
		counts, err = m.board.Count(t.Context())
		open := counts.GetUnclaimed() + counts.GetClaimed()
		return err == nil && open == 0 && counts.GetComplete() >= min(m.posted.Load(), counts.GetHistory().GetMaxJobs()), m.posted.Load() - open
	})
	stopWorking()
	workers.Wait()
	if counts.GetTrashed() != 0 {
		t.Errorf("in the end there are %v, and %d were posted", counts, m.posted.Load())
	}
	for id, n := range m.runs {
		if n != 1 {
			t.Errorf("the job %s was worked on %d times", id, n)
		}
	}
	if int64(len(m.runs)) != m.posted.Load() {
		t.Errorf("%d jobs were worked on, and %d posted", len(m.runs), m.posted.Load())
	}
	if t.Failed() {
		t.Log(m.server.Log())
	}
}
