package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// follows are the GetLog streams of a server, as its network sees them.
type follows struct {
	mu  sync.Mutex
	all []*followed // in the order in which they began
}

// watch has the streams of a server seen that come from now on.
func (f *follows) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/GetLog") {
			s := &followed{ResponseWriter: w, controller: http.NewResponseController(w)}
			f.mu.Lock()
			f.all = append(f.all, s)
			f.mu.Unlock()
			w = s
		}
		next.ServeHTTP(w, r)
	})
}

// last is the stream that began last.
func (f *follows) last() *followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[len(f.all)-1]
}

// followed is one of them.
type followed struct {
	http.ResponseWriter

	controller *http.ResponseController

	mu       sync.Mutex
	deadline time.Time
}

// Flush sends what was written.
func (f *followed) Flush() { _ = f.controller.Flush() }

// SetWriteDeadline is called by the server.
func (f *followed) SetWriteDeadline(at time.Time) error {
	f.mu.Lock()
	f.deadline = at
	f.mu.Unlock()
	return f.controller.SetWriteDeadline(at)
}

// bounded reports whether the stream ends if it sends nothing.
func (f *followed) bounded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.deadline.IsZero()
}

// follow follows a log, and returns the stream with its first entry received.
func (m *member) follow(t *testing.T, board, id string) *connect.ServerStreamForClient[boarddv1.LogEntry] {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	r := connect.NewRequest(&boarddv1.GetLogRequest{Board: board, Uuid: id, Follow: true})
	r.Header().Set("Authorization", "Bearer "+secretOf("default"))
	stream, err := boarddv1connect.NewBoardServiceClient(&http.Client{Transport: transport}, m.url, connect.WithGRPC()).GetLog(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	if !stream.Receive() {
		t.Fatalf("no entry came: %v", stream.Err())
	}
	return stream
}

// TestStillLog has a log followed in which nothing is written for long, through a server that
// passes the call on: neither server ends the stream meanwhile. One that is reset all the same
// does not make the other server count as away, and the follower is told to go on there.
func TestStillLog(t *testing.T) {
	t.Parallel()
	servers := startFleet(t)
	entry, owner := servers[0], servers[1]
	board, id := owner.has(t, "default"), newUUID()
	ask := func(call, format string, more ...any) fleetAnswer {
		t.Helper()
		a, err := owner.call(t.Context(), "default", call, fmt.Sprintf(format, append([]any{board}, more...)...))
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", call, a.status, a.text, err)
		}
		return a
	}
	ask("PostJobs", `{"board":%q,"jobs":[{"uuid":%q,"name":"still"}]}`, id)
	claim := ask("ClaimJobs", `{"board":%q,"owner":"w","lease":"3000s"}`).Claims[0]
	ask("AppendLog", `{"board":%q,"claim":{"uuid":%q,"token":%q},"entries":[{"type":"out","message":"first"}]}`, id, claim.Token)

	broken := entry.follow(t, board, id)
	for _, m := range servers {
		stream := m.follows.last()
		testserver.Eventually(t, "the stream of "+m.advertised()+" has no end while nothing is written", func() bool { return !stream.bounded() })
	}
	if err := owner.follows.last().controller.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil { // which resets it
		t.Fatal(err)
	}
	for broken.Receive() {
	}
	err := broken.Err()
	if code := connect.CodeOf(err); code != connect.CodeUnavailable {
		t.Errorf("the follower of a stream that was reset is told %v", err)
	}
	if next := broken.ResponseTrailer().Get(movedHeader); next != owner.advertised() {
		t.Errorf("it is told to go on at %q, want %q", next, owner.advertised())
	}
	if seen := entry.peers.all(); len(seen) != 1 || seen[0].away.Load() {
		t.Error("the other server counts as away")
	}

	whole := entry.follow(t, board, id)
	ask("ConsumeJobs", `{"board":%q,"claims":[{"uuid":%q,"token":%q}]}`, id, claim.Token)
	for whole.Receive() {
	}
	if err := whole.Err(); err != nil {
		t.Errorf("the stream of a job that has ended ends with %v", err)
	}
	for _, m := range servers {
		if !m.follows.last().bounded() {
			t.Errorf("the end of the stream of %s may take for ever", m.advertised())
		}
	}
}
