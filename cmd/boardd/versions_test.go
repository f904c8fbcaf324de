package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// release is the programs of one commit.
type release struct{ program, drivers string }

// runs has a server go on with these programs.
func (r release) runs(s *testserver.Server) {
	s.Stop()
	s.Use(r.program, r.drivers)
	s.Restart()
}

// versionBoards are enough for each of three servers to have some.
const versionBoards = 24

// TestFleetOfTwoVersions runs a fleet beside the programs of an earlier commit.
func TestFleetOfTwoVersions(t *testing.T) {
	t.Parallel()
	for _, commit := range testserver.Earlier(t) {
		t.Run(commit, func(t *testing.T) {
			t.Parallel()
			twoVersions(t, commit)
		})
	}
}

// twoVersions has the servers of a fleet, which are of this commit, taken one by one to the
// programs of another, and back, under callers who know two of them. In between both stand side
// by side: each passes calls on to the other, and gives it boards. No call fails.
func twoVersions(t *testing.T, commit string) {
	t.Helper()
	built := testserver.BuildBefore(t, commit, "./cmd/boardd", "./plugins/redis")
	program := withDriver(t, "redis")
	present := release{program, filepath.Join(filepath.Dir(program), "plugins")}
	before := release{filepath.Join(built, "boardd"), built}
	var more strings.Builder
	for i := fleetBoards; i < versionBoards; i++ {
		fmt.Fprintf(&more, "board \"b%d\" {\n  backend = \"main\"\n}\n", i)
	}
	servers := startFleetWith(t, 3, more.String(), "BOARDD_DRAIN_DELAY=3s")
	settledWith(t, versionBoards, servers...)
	board := fleetClient(t, servers[:2]...).Board("b4")
	l := startLoad(t, board)
	for _, next := range []release{before, present} {
		l.more(10 * loadCallers)
		next.runs(servers[0])
		settledWith(t, versionBoards, servers...)
		sideBySide(t, servers)
		handsOver(t, servers[0], servers) // of either version
		handsOver(t, servers[1], servers)
		for _, s := range servers[1:] {
			l.more(10 * loadCallers)
			next.runs(s)
		}
	}
	l.more(10 * loadCallers)
	allDone(t, board, l)
}

// sideBySide posts to each board at each server, and claims and consumes at each. The first
// server, whose version is another than the others', passes calls on to them, and they to it.
func sideBySide(t *testing.T, servers []*testserver.Server) {
	t.Helper()
	there, back := 0, 0
	for i := range versionBoards - fleetBoards { // not that of the load
		board := fmt.Sprint("b", fleetBoards+i)
		for _, s := range servers {
			status, header, text := ask(t, s, "PostJobs", fmt.Sprintf(`{"board":%q,"jobs":[{"name":"x"}]}`, board))
			if status != http.StatusOK {
				t.Errorf("a post to %s at %s: %d %s", board, s.Addr, status, text)
			}
			switch by := header.Get("Boardd-Server"); {
			case s == servers[0] && by != "":
				there++
			case by == servers[0].Addr:
				back++
			}
		}
		for _, s := range servers {
			its := fleetClient(t, s).Board(board)
			claims, err := its.Claim(t.Context(), client.ClaimOptions{Owner: "w", Max: 1})
			if err == nil {
				err = its.Consume(t.Context(), claims...)
			}
			if err != nil || len(claims) != 1 {
				t.Errorf("a claim of %s at %s: %d claims, %v", board, s.Addr, len(claims), err)
			}
		}
	}
	t.Logf("%d calls were passed on to another version, %d back", there, back)
	if there == 0 || back == 0 {
		t.Error("calls were not passed on both ways")
	}
}

// handsOver has a server give its boards to the others, and take them back.
func handsOver(t *testing.T, s *testserver.Server, servers []*testserver.Server) {
	t.Helper()
	drain := func(undo bool) {
		t.Helper()
		if _, err := fleetAdmin(t, servers[2]).DrainServer(t.Context(), &boarddv1.DrainServerRequest{Server: s.Addr, Undo: undo}); err != nil {
			t.Fatal(err)
		}
	}
	drain(false)
	testserver.Eventually(t, "the drained server has no board open", func() bool { return strings.Contains(scrape(t, s), "\nboardd_boards_open 0\n") })
	drain(true)
	testserver.Eventually(t, "it has boards again", func() bool { return !strings.Contains(scrape(t, s), "\nboardd_boards_open 0\n") })
	settledWith(t, versionBoards, servers...)
}
