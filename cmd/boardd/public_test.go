package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// withPublic has each server of a fleet say where clients may go straight to it: at another
// name than the one at which the servers reach each other.
const withPublic = `
fleet {
  public = "PUBLIC"
}
`

// publicOf is where clients may go straight to a server of a fleet.
func publicOf(s *testserver.Server) string {
	return strings.Replace(s.Addr, "127.0.0.1", "localhost", 1)
}

// forwarded returns how many calls a server has passed on.
func forwarded(t *testing.T, s *testserver.Server) (n int64) {
	t.Helper()
	for line := range strings.Lines(scrape(t, s)) {
		if strings.HasPrefix(line, "boardd_calls_forwarded_total{") {
			more, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			n += int64(more)
		}
	}
	return n
}

// straight waits until calls of a board that a client makes are passed on by none of these.
func straight(t *testing.T, board *client.Board, servers ...*testserver.Server) {
	t.Helper()
	sum := func() (n int64) {
		for _, s := range servers {
			n += forwarded(t, s)
		}
		return n
	}
	testserver.Eventually(t, "calls go straight to the board's server", func() bool {
		before := sum()
		for range 3 {
			if _, err := board.Count(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return sum() == before
	})
}

// TestPublic has a client that knows one server of three, which does not have its board, call
// the one that does, through a drain, a kill, a restart and a stop of the one that it knows. No
// call fails, no job is done twice, and a watch misses nothing.
func TestPublic(t *testing.T) {
	t.Parallel()
	servers := startFleetWith(t, 3, withPublic)
	settled(t, servers...)
	owner, known := ownerOf(t, "b3", servers...)
	third := thirdOf(servers, owner, known)
	board := fleetClient(t, known).Board("b3")
	straight(t, board, servers...)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan string, 1_000_000)
	page, err := board.Events(ctx, "", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(seen)
		for e, err := range board.Watch(ctx, page.Cursor) {
			switch {
			case err != nil:
				return
			case e.GetType() == boarddv1.EventType_POSTED:
				seen <- e.GetJob().GetUuid()
			case e.GetType() == boarddv1.EventType_RESYNC:
				t.Error("the watch was told to list the board again")
			}
		}
	}()
	l := startLoad(t, board)
	l.more(10 * loadCallers)
	drain := func(s *testserver.Server, undo bool) {
		t.Helper()
		if _, err := fleetAdmin(t, known).DrainServer(t.Context(), &boarddv1.DrainServerRequest{Server: s.Addr, Undo: undo}); err != nil {
			t.Fatal(err)
		}
		testserver.Eventually(t, "the board has moved", func() bool {
			now, _ := ownerOf(t, "b3", servers...)
			return (now == s) == undo
		})
		l.more(10 * loadCallers)
	}
	drain(owner, false)
	if now, _ := ownerOf(t, "b3", servers...); now == third {
		straight(t, board, servers...)
	}
	drain(owner, true)
	straight(t, board, servers...)
	owner.Kill()
	l.more(10 * loadCallers)
	owner.Restart()
	settled(t, servers...)
	straight(t, board, servers...)
	known.Stop() // the client needs it no more
	l.more(10 * loadCallers)
	known.Restart()
	settled(t, servers...)
	allDone(t, board, l)
	posts := l.end() / 3
	uuids := map[string]bool{}
	for int64(len(uuids)) < posts {
		select {
		case id := <-seen:
			if uuids[id] {
				t.Errorf("the post of %s was seen twice", id)
			}
			uuids[id] = true
		case <-time.After(time.Minute):
			t.Fatalf("the watch has seen %d posts, want %d", len(uuids), posts)
		}
	}
}

// TestPublicIsTold looks at what the answers say of whose a board is, and where that server is
// to be reached: when a call was passed on, and when the board moves while calls wait and
// streams are open, at its server and at another one.
func TestPublicIsTold(t *testing.T) {
	t.Parallel()
	servers := startFleetWith(t, 3, withPublic)
	settled(t, servers...)
	owner, other := ownerOf(t, "b1", servers...)
	for _, c := range []struct {
		call, body string
		status     int
	}{
		{"CountJobs", `{"board":"b1"}`, http.StatusOK},
		{"PutSchedule", `{"board":"b1","schedule":{"name":"n","cron":"nonsense","job":{"name":"x"}}}`, http.StatusBadRequest},
	} {
		status, header, text := ask(t, other, c.call, c.body)
		if status != c.status || header.Get("Boardd-Server") != owner.Addr || header.Get("Boardd-Public") != publicOf(owner) {
			t.Errorf("%s, passed on: %d %s, headers %v", c.call, status, text, header)
		}
		if status, header, text := ask(t, owner, c.call, c.body); status != c.status || header.Get("Boardd-Public") != "" || header.Get("Boardd-Peer-Public") != "" {
			t.Errorf("%s at the board's server: %d %s, headers %v", c.call, status, text, header)
		}
	}

	type ended struct {
		what   string
		status int
		header http.Header
	}
	ends := make(chan ended, 3)
	go func() {
		status, header, _ := ask(t, owner, "ClaimJobs", `{"board":"b1","owner":"w","wait":"50s"}`)
		ends <- ended{"a wait", status, header}
	}()
	for what, s := range map[string]*testserver.Server{"a stream": owner, "a stream that was passed on": other} {
		go func() { ends <- ended{what, http.StatusServiceUnavailable, watchToItsEnd(t, s, "b1")} }()
	}
	testserver.Eventually(t, "all wait", func() bool {
		text := scrape(t, owner)
		return strings.Contains(text, `boardd_waiting_claims{board="b1",tenant="default"} 1`) && strings.Contains(text, "\nboardd_streams 2\n")
	})
	if _, err := fleetAdmin(t, other).DrainServer(t.Context(), &boarddv1.DrainServerRequest{Server: owner.Addr}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		e := <-ends
		now, _ := ownerOf(t, "b1", servers...)
		if e.status != http.StatusServiceUnavailable || e.header.Get("Boardd-Moved") != now.Addr || e.header.Get("Boardd-Moved-Public") != publicOf(now) {
			t.Errorf("%s ends with %d and the headers %v, want the server %s, which has the board now", e.what, e.status, e.header, now.Addr)
		}
	}
}

// watchToItsEnd watches a board and returns what came with the error at the end.
func watchToItsEnd(t *testing.T, s *testserver.Server, board string) http.Header {
	t.Helper()
	question := fmt.Sprintf(`{"board":%q}`, board)
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(question))), question...)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Addr+"/boardd.v1.BoardService/WatchBoard", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	r.Header.Set("Authorization", "Bearer "+fleetToken)
	r.Header.Set("Content-Type", "application/connect+json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Errorf("watch at %s: %v", s.Addr, err)
		return nil
	}
	defer answer.Body.Close()
	var end struct {
		Error    struct{ Code string }
		Metadata http.Header
	}
	for head := make([]byte, 5); head[0] != 2; { // the flag of the end
		if _, err := io.ReadFull(answer.Body, head); err != nil {
			t.Errorf("the watch at %s broke: %v", s.Addr, err)
			return nil
		}
		message := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(answer.Body, message); err != nil {
			t.Errorf("the watch at %s broke: %v", s.Addr, err)
			return nil
		}
		if head[0] == 2 {
			err = json.Unmarshal(message, &end)
		}
	}
	if err != nil || end.Error.Code != "unavailable" {
		t.Errorf("the watch at %s ended with %+v, %v", s.Addr, end, err)
	}
	header := http.Header{} // their names are written small there
	for name, values := range end.Metadata {
		header.Set(name, values[0])
	}
	return header
}
