package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const restingConfig = `
data_dir   = "data"
rest_after = "1s"
token "root" {
  roles  = ["operator"]
  secret = %[1]q
}
backend "disk" {
  driver = "embedded"
}
backend "cache" {
  driver = "redis"
  config = { address = %[2]q }
}
backend "tables" {
  driver = "postgres"
  config = { url = %[3]q }
}
board "disk" {
  backend = "disk"
}
board "cache" {
  backend = "cache"
}
board "foreign" {
  backend = "cache"
  config  = { namespace = "taskflow" }
}
board "tables" {
  backend = "tables"
}
`

// openBoards returns what a server's metrics say of how many boards it has open.
func openBoards(t testing.TB, s *testserver.Server) string {
	t.Helper()
	return metricOf(t, s, "boardd_boards_open ")
}

// jobsOf returns what a server's metrics say of how many jobs of a state a board has.
func jobsOf(t testing.TB, s *testserver.Server, board, state string) string {
	t.Helper()
	return metricOf(t, s, fmt.Sprintf(`boardd_jobs{board=%q,state=%q,tenant="default"} `, board, state))
}

// metricOf returns the value of a metric, named with its labels.
func metricOf(t testing.TB, s *testserver.Server, name string) string {
	t.Helper()
	for line := range strings.Lines(scrape(t, s)) {
		if n, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(n)
		}
	}
	return "unknown"
}

// TestBoardsAtRest has boards on real stores rest: those that boardd alone writes or is told of
// what others write, with jobs that wait or without, and no others. They stay closed over a kill of the
// server, and open for whoever calls, and when a job is due that waited for its time; a board
// with a claimed job is opened after the kill although nobody calls.
func TestBoardsAtRest(t *testing.T) {
	t.Parallel()
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	postgres := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true})
	config := filepath.Join(t.TempDir(), "boards.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, restingConfig, fleetToken, redis.Addr, postgres.URL("postgres")), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, testserver.BuildWith(t, []string{"redis", "postgres"}), "", "--config", config)
	c := fleetClient(t, server)
	atRest := func(what, want string) {
		t.Helper()
		testserver.Eventually(t, what, func() bool { return server.Ready() && openBoards(t, server) == want })
	}
	own := []string{"disk", "cache", "tables"}
	atRest("the board of others is open alone", "1") // foreign
	for _, name := range own {
		once(t, c.Board(name))
	}
	atRest("the boards rest again", "1")
	at := time.Now().Add(15 * time.Second)
	for _, name := range own {
		if _, err := c.Board(name).Post(t.Context(), &client.NewJob{Name: "waits"}, &client.NewJob{Name: "later", NotBefore: timestamppb.New(at)}); err != nil {
			t.Fatal(err)
		}
	}
	atRest("boards with jobs that wait rest", "1")
	for _, name := range own {
		if ready, delayed := jobsOf(t, server, name, "ready"), jobsOf(t, server, name, "delayed"); time.Now().Before(at) && (ready != "1" || delayed != "1") {
			t.Errorf("the metrics of %s: %s ready, %s delayed", name, ready, delayed)
		}
		if age := metricOf(t, server, fmt.Sprintf(`boardd_oldest_ready_seconds{board=%q,tenant="default"} `, name)); age == "0" || age == "unknown" {
			t.Errorf("the oldest job of %s has waited for %s", name, age)
		}
	}
	server.Kill()
	server.Restart()
	atRest("after a kill they are at rest still", "1")
	list, err := c.Boards(t.Context())
	for _, b := range list {
		if !b.GetReady() || b.GetDurability() == "" {
			t.Errorf("the list says of %s: %v", b.GetName(), b)
		}
	}
	if err != nil || len(list) != 4 {
		t.Errorf("%d boards, %v", len(list), err)
	}
	for _, name := range own {
		testserver.Eventually(t, "the job is ready whose time has come", func() bool { return jobsOf(t, server, name, "ready") == "2" })
	}
	if time.Now().Before(at) {
		t.Error("a job is ready before its time")
	}
	atRest("they rest again", "1")
	claims, err := c.Board("disk").Claim(t.Context(), client.ClaimOptions{Owner: "w", Lease: time.Minute})
	if err != nil || len(claims) != 1 || claims[0].Job.GetName() != "waits" {
		t.Fatalf("claims %v, %v", claims, err)
	}
	atRest("a board with a claimed job is open", "2")
	server.Kill()
	server.Restart()
	atRest("after a kill it is opened", "2")
	if err := c.Board("disk").Consume(t.Context(), claims...); err != nil {
		t.Fatal(err)
	}
	once(t, c.Board("cache"))
	if counts, err := c.Board("cache").Count(t.Context()); err != nil || counts.GetComplete() != 2 || counts.GetReady() != 2 {
		t.Errorf("counts %v, %v, want two jobs complete and two ready", counts, err)
	}
}

// once posts a job and works it.
func once(t *testing.T, b *client.Board) {
	t.Helper()
	if _, err := b.Post(t.Context(), &client.NewJob{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	claims, err := b.Claim(t.Context(), client.ClaimOptions{Owner: "w", Wait: 10 * time.Second})
	if err != nil || len(claims) != 1 {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	if err := b.Consume(t.Context(), claims...); err != nil {
		t.Fatal(err)
	}
}

// TestFleetAtRest has the boards of a fleet rest, a job on each, which costs callers nothing: calls through
// any server open them, while servers come and go. curl gets no error either.
func TestFleetAtRest(t *testing.T) {
	t.Parallel()
	servers := startFleetWith(t, 3, `rest_after = "1s"`)
	boards := fleetClient(t, servers...)
	for i := range fleetBoards {
		if _, err := boards.Board(fmt.Sprint("b", i)).Post(t.Context(), &client.NewJob{Name: "waits"}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 4 {
		testserver.Eventually(t, "all boards rest", func() bool {
			for _, s := range servers {
				if !s.Ready() || openBoards(t, s) != "0" {
					return false
				}
			}
			return true
		})
		for i := range fleetBoards {
			once(t, boards.Board(fmt.Sprint("b", i)))
			if status, _, text := ask(t, servers[i%3], "CountJobs", fmt.Sprintf(`{"board":"b%d"}`, i)); status != http.StatusOK {
				t.Errorf("counts of b%d: %d %s", i, status, text)
			}
		}
		servers[round%3].Kill()
		servers[round%3].Restart()
	}
}
