package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
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

const (
	fleetToken  = "not-very-secret-1234567890"
	fleetConfig = `
advertise = %q
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  driver = "redis"
  config = { address = %q }
}
catalog {
  backend = "main"
}
%s
`
)

// fleetBoards is how many boards the servers of a fleet have in these tests.
const fleetBoards = 6

// startFleet starts servers that share a Redis, and waits until each board is open on one
// of them.
func startFleet(t *testing.T, n int, env ...string) []*testserver.Server {
	t.Helper()
	servers := startFleetWith(t, n, "", env...)
	settled(t, servers...)
	return servers
}

// startFleetWith starts servers with more in their configuration, and waits for nothing.
func startFleetWith(t *testing.T, n int, more string, env ...string) []*testserver.Server {
	t.Helper()
	return startFleetOn(t, testserver.StartRedis(t, testserver.RedisOptions{}), n, more, env...)
}

// startFleetOn is startFleetWith of servers that share a Redis of the test's own.
func startFleetOn(t *testing.T, redis *testserver.Redis, n int, more string, env ...string) []*testserver.Server {
	t.Helper()
	program := withDriver(t, "redis")
	var boards strings.Builder
	for i := range fleetBoards {
		fmt.Fprintf(&boards, "board \"b%d\" {\n  backend = \"main\"\n}\n", i)
	}
	servers := make([]*testserver.Server, n)
	for i := range servers {
		config := filepath.Join(t.TempDir(), "boards.hcl")
		s := testserver.New(t, program, "", "--config", config)
		s.Env = env
		if err := os.WriteFile(config, fmt.Appendf(nil, fleetConfig, s.Addr, redis.Addr, boards.String()+strings.ReplaceAll(more, "PUBLIC", publicOf(s))), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Launch()
		servers[i] = s
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range servers {
				t.Logf("%s:\n%s", s.Addr, s.Log())
			}
		}
	})
	return servers
}

// settled waits until the servers, and no others, live, and each board is open on one of
// them.
func settled(t *testing.T, servers ...*testserver.Server) {
	t.Helper()
	settledWith(t, fleetBoards, servers...)
}

func settledWith(t *testing.T, count int64, servers ...*testserver.Server) {
	t.Helper()
	testserver.Eventually(t, "each board is open on one server", func() bool {
		for _, s := range servers {
			if !s.Ready() {
				return false
			}
			list, err := fleetAdmin(t, s).ListServers(t.Context())
			live, boards := 0, int64(0)
			for _, o := range list {
				if o.GetLive() && o.GetState() != "joining" { // else it is about to take its share
					live, boards = live+1, boards+o.GetBoards()
				}
			}
			if err != nil || live != len(servers) || boards != count {
				return false
			}
		}
		return true
	})
}

func fleetClient(t testing.TB, servers ...*testserver.Server) *client.Client {
	t.Helper()
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr)
	}
	c, err := client.New(client.Config{Addr: strings.Join(addrs, ","), Token: fleetToken})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func fleetAdmin(t *testing.T, s *testserver.Server) *client.Admin { return fleetClient(t, s).Admin() }

// ask makes a call as curl does, and returns the answer's status, header and body.
func ask(t *testing.T, s *testserver.Server, call, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Addr+"/boardd.v1.BoardService/"+call, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+fleetToken)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(bytes.TrimSpace(text))
}

// ownerOf returns the server that serves a board, and one that doesn't.
func ownerOf(t *testing.T, board string, servers ...*testserver.Server) (owner, other *testserver.Server) {
	t.Helper()
	status, _, text := ask(t, servers[0], "GetBoard", fmt.Sprintf(`{"board":%q}`, board))
	var got struct{ Board struct{ Server string } }
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusOK {
		t.Fatalf("GetBoard: %d %s", status, text)
	}
	for _, s := range servers {
		if s.Addr == got.Board.Server {
			owner = s
		} else {
			other = s
		}
	}
	if owner == nil {
		t.Fatalf("the board %s is served by %q, which is no server of these", board, got.Board.Server)
	}
	return owner, other
}

// TestFleet has three servers on one Redis serve six boards together: any call works at
// any server, and whoever made it is told who has the board.
func TestFleet(t *testing.T) {
	t.Parallel()
	servers := startFleet(t, 3)
	for i := range fleetBoards {
		board := fmt.Sprint("b", i)
		owner, _ := ownerOf(t, board, servers...)
		for _, s := range servers {
			status, header, text := ask(t, s, "PostJobs", fmt.Sprintf(`{"board":%q,"jobs":[{"name":"x"}]}`, board), "X-Request-Id", "from-curl")
			want := owner.Addr
			if s == owner {
				want = ""
			}
			if status != http.StatusOK || header.Get("Boardd-Server") != want || header.Get("X-Request-Id") != "from-curl" {
				t.Errorf("a post to %s at %s: %d %s, from %q, want from %q", board, s.Addr, status, text, header.Get("Boardd-Server"), want)
			}
			if status, header, text := ask(t, s, "CountJobs", fmt.Sprintf(`{"board":%q,"bord":1}`, board)); status != http.StatusBadRequest || header.Get("Boardd-Server") != "" {
				t.Errorf("a wrong call at %s: %d %s", s.Addr, status, text)
			}
			if status, _, text := ask(t, s, "GetJobs", fmt.Sprintf(`{"board":%q,"uuids":["nonsense"]}`, board)); status != http.StatusOK || !strings.Contains(text, "INVALID") {
				t.Errorf("a call with a wrong item at %s: %d %s", s.Addr, status, text)
			}
			if status, _, text := ask(t, s, "PutSchedule", fmt.Sprintf(`{"board":%q,"schedule":{"name":"n","cron":"nonsense","job":{"name":"x"}}}`, board)); status != http.StatusBadRequest || !strings.Contains(text, "cron") {
				t.Errorf("a call that its server refuses, at %s: %d %s", s.Addr, status, text)
			}
		}
		if status, _, text := ask(t, owner, "CountJobs", fmt.Sprintf(`{"board":%q}`, board)); status != http.StatusOK || !strings.Contains(text, `"ready":"3"`) {
			t.Errorf("the board %s has %d %s, want 3 jobs", board, status, text)
		}
	}
	if status, _, text := ask(t, servers[1], "CountJobs", `{"board":"nobodys"}`); status != http.StatusNotFound {
		t.Errorf("a board that there isn't: %d %s", status, text)
	}
	for _, header := range []string{"x", "eyJmcm9tIjoiYSJ9.AAAA"} {
		if status, _, text := ask(t, servers[0], "CountJobs", `{"board":"b0"}`, "Boardd-Peer", header); status != http.StatusUnauthorized {
			t.Errorf("a call that only says that a server passed it on: %d %s", status, text)
		}
	}
	t.Run("watches and waits", func(t *testing.T) { fleetWaits(t, servers) })
	t.Run("drain", func(t *testing.T) { fleetDrain(t, servers) })
}

// fleetWaits has a claim wait, and a watch look, at a server that doesn't have the board.
func fleetWaits(t *testing.T, servers []*testserver.Server) {
	t.Helper()
	owner, other := ownerOf(t, "b1", servers...)
	board := fleetClient(t, other).Board("b1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	posted := make(chan struct{})
	seen := make(chan error, 1)
	go func() {
		for e, err := range board.Watch(ctx, "") {
			if err != nil || e.GetType() == boarddv1.EventType_POSTED && e.GetJob().GetName() == "awaited" {
				seen <- err
				return
			}
		}
	}()
	claimed := make(chan error, 1)
	go func() {
		claims, err := board.Claim(ctx, client.ClaimOptions{Owner: "w", Names: []string{"awaited"}, Wait: 50 * time.Second})
		if err == nil {
			err = board.Consume(ctx, claims...)
		}
		claimed <- err
	}()
	go func() {
		defer close(posted)
		testserver.Eventually(t, "the claim waits at the board's server", func() bool {
			return strings.Contains(scrape(t, owner), `boardd_waiting_claims{board="b1",tenant="default"} 1`)
		})
		if _, err := fleetClient(t, owner).Board("b1").Post(ctx, &client.NewJob{Name: "awaited"}); err != nil {
			t.Errorf("post: %v", err)
		}
	}()
	if err := <-claimed; err != nil {
		t.Errorf("the claim that waited: %v", err)
	}
	if err := <-seen; err != nil {
		t.Errorf("the watch: %v", err)
	}
	<-posted
	if text := scrape(t, other); !strings.Contains(text, fmt.Sprintf("boardd_calls_forwarded_total{to=%q}", owner.Addr)) {
		t.Errorf("the metrics of %s say nothing of calls that were passed on", other.Addr)
	}
}

// scrape reads a server's metrics.
func scrape(t testing.TB, s *testserver.Server) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Addr+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+fleetToken)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "" // it is being killed
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// fleetDrain has a server give its boards to the others and take them back.
func fleetDrain(t *testing.T, servers []*testserver.Server) {
	t.Helper()
	owner, other := ownerOf(t, "b2", servers...)
	if _, err := fleetAdmin(t, other).DrainServer(t.Context(), &boarddv1.DrainServerRequest{Server: owner.Addr}); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the drained server has no board open", func() bool {
		return strings.Contains(scrape(t, owner), "\nboardd_boards_open 0\n") && !owner.Ready()
	})
	if status, header, text := ask(t, owner, "PostJobs", `{"board":"b2","jobs":[{"name":"x"}]}`); status != http.StatusOK || header.Get("Boardd-Server") == "" {
		t.Errorf("a post at the drained server: %d %s, from %q", status, text, header.Get("Boardd-Server"))
	}
	if now, _ := ownerOf(t, "b2", servers...); now == owner {
		t.Error("the board is still the drained server's")
	}
	if _, err := fleetAdmin(t, other).DrainServer(t.Context(), &boarddv1.DrainServerRequest{Server: owner.Addr, Undo: true}); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the board is its first server's again", func() bool {
		now, _ := ownerOf(t, "b2", servers...)
		return now == owner
	})
	settled(t, servers...)
}

// TestFleetKilled kills the server of a board, and stops the next one for a while, under
// callers who know all of them. No call of theirs fails, and every job was done once.
func TestFleetKilled(t *testing.T) {
	t.Parallel()
	servers := startFleet(t, 3)
	board := fleetClient(t, servers...).Board("b3")
	l := startLoad(t, board)
	l.more(10 * loadCallers)
	owner, other := ownerOf(t, "b3", servers...)
	owner.Kill()
	l.more(10 * loadCallers)
	testserver.Eventually(t, "the board is another server's", func() bool {
		now, _ := ownerOf(t, "b3", other, owner, thirdOf(servers, owner, other))
		return now != owner
	})
	l.more(10 * loadCallers)
	owner.Restart()
	settled(t, servers...)
	l.more(10 * loadCallers)
	testserver.Freeze(t, owner.PID())
	l.more(10 * loadCallers)
	if err := syscall.Kill(owner.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	l.more(10 * loadCallers)
	allDone(t, board, l)
}

// TestFleetFrozen stops the process of the server that the callers talk to, which has their
// board, again and again: for long enough that another server takes the board, and for
// moments. No call of theirs fails, and each job that one server posted is soon seen by the
// next.
func TestFleetFrozen(t *testing.T) {
	t.Parallel()
	servers := startFleet(t, 3)
	owner, other := ownerOf(t, "b3", servers...)
	board := fleetClient(t, owner, other, thirdOf(servers, owner, other)).Board("b3")
	l := startLoad(t, board)
	l.more(10 * loadCallers)
	for range 12 {
		testserver.Freeze(t, owner.PID())
		l.more(10 * loadCallers)
		if err := syscall.Kill(owner.PID(), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		l.more(10 * loadCallers)
	}
	settled(t, servers...)
	allDone(t, board, l)
}

func thirdOf(servers []*testserver.Server, not ...*testserver.Server) *testserver.Server {
	for _, s := range servers {
		if s != not[0] && s != not[1] {
			return s
		}
	}
	return nil
}

// allDone ends a load and looks whether each of its jobs was done.
func allDone(t *testing.T, board *client.Board, l *load) {
	t.Helper()
	calls := l.end()
	testserver.Eventually(t, "every job is complete", func() bool {
		counts, err := board.Count(t.Context())
		return err == nil && counts.GetUnclaimed()+counts.GetClaimed()+counts.GetTrashed() == 0 && counts.GetComplete() == calls/3
	})
	t.Logf("%d calls", calls)
}

// TestFleetRollingRestart restarts three servers, one after the other, under callers who
// know two of them. No call of theirs fails. BOARDD_TEST_CALLS says how many they make at
// least.
func TestFleetRollingRestart(t *testing.T) {
	t.Parallel()
	calls := int64(10 * loadCallers)
	if all, err := strconv.ParseInt(os.Getenv("BOARDD_TEST_CALLS"), 10, 64); err == nil {
		calls = all / 7
	}
	servers := startFleet(t, 3, "BOARDD_DRAIN_DELAY=3s")
	board := fleetClient(t, servers[:2]...).Board("b4")
	l := startLoad(t, board)
	for _, s := range servers {
		l.more(calls)
		s.Stop()
		l.more(calls)
		s.Restart()
	}
	l.more(calls)
	allDone(t, board, l)
}

// TestFleetWarm has a board with more open jobs than fleet.warm: it is open on the server after its
// own as well, which passes calls on as before, and which has it already when the first one ends.
func TestFleetWarm(t *testing.T) {
	t.Parallel()
	servers := startFleetWith(t, 3, "fleet {\n  warm = 3\n}\n")
	settled(t, servers...)
	owner, _ := ownerOf(t, "b1", servers...)
	board := fleetClient(t, servers...).Board("b1")
	for range 4 {
		if _, err := board.Post(t.Context(), &client.NewJob{Name: "warm"}); err != nil {
			t.Fatal(err)
		}
	}
	var second *testserver.Server
	testserver.Eventually(t, "the board is open on a second server", func() bool {
		for _, s := range servers {
			if moves(t, s, "warm") == 1 {
				second = s
			}
		}
		return second != nil
	})
	if status, header, text := ask(t, second, "CountJobs", `{"board":"b1"}`); second == owner || status != http.StatusOK || header.Get("Boardd-Server") != owner.Addr {
		t.Errorf("a call at the second server: %d %s, from %q, want from %q", status, text, header.Get("Boardd-Server"), owner.Addr)
	}
	claims, err := board.Claim(t.Context(), client.ClaimOptions{Owner: "w"})
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	before, taken := ownedBy(t, second, servers), moves(t, second, "taken")
	if _, err := fleetAdmin(t, second).DrainServer(t.Context(), &boarddv1.DrainServerRequest{Server: owner.Addr}); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the drained server has no board open", func() bool { return openBoards(t, owner) == "0" })
	if now, _ := ownerOf(t, "b1", second, owner, thirdOf(servers, owner, second)); now != second {
		t.Errorf("the board is now that of %s, want %s, which had it open", now.Addr, second.Addr)
	}
	if got, want := moves(t, second, "taken")-taken, ownedBy(t, second, servers)-before-1; got != want {
		t.Errorf("the second server has opened %d boards more, want %d: it had one already", got, want)
	}
	if moves(t, second, "warm") != 1 || moves(t, second, "fallback") != 0 {
		t.Errorf("the second server has opened the board again:\n%s", scrape(t, second))
	}
	if err := board.Consume(t.Context(), claims...); err != nil {
		t.Errorf("the claim that the first server granted: %v", err)
	}
}

// moves is how many boards a server has begun or ceased to serve, for a reason.
func moves(t *testing.T, s *testserver.Server, reason string) (n int) {
	t.Helper()
	_, after, found := strings.Cut(scrape(t, s), fmt.Sprintf("\nboardd_board_moves_total{reason=%q} ", reason))
	if !found {
		return 0
	}
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// ownedBy is how many boards of a fleet are a server's.
func ownedBy(t *testing.T, of *testserver.Server, servers []*testserver.Server) (n int) {
	t.Helper()
	for i := range fleetBoards {
		if owner, _ := ownerOf(t, fmt.Sprint("b", i), servers...); owner == of {
			n++
		}
	}
	return n
}
