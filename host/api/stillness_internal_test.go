package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

// TestStood has a process look at a clock, which says for how long it stood still.
func TestStood(t *testing.T) {
	t.Parallel()
	s := &still{after: time.Second}
	now := time.Now()
	for i, step := range []struct {
		later, want time.Duration
	}{
		{0, 0},
		{stillEvery, 0},
		{stillEvery / 2, 0},
		{3*time.Second + stillEvery, 3 * time.Second},
		{stillEvery, 3 * time.Second},
		{2 * stillEvery, 3 * time.Second}, // a little late: the longer time counts on
		{stillEvery, 3 * time.Second},
		{time.Second / 2, 3 * time.Second},
		{stillEvery, 0},
		{20*time.Second + stillEvery, 20 * time.Second},
	} {
		now = now.Add(step.later)
		if got := s.look(now); got != step.want {
			t.Errorf("look %d: it stood still for %v, want %v", i, got, step.want)
		}
	}
}

// TestStaleCall has the server of a board go on after it stood still: what was passed on to it
// before that it does not do, and says so, and the server that was called does it.
func TestStaleCall(t *testing.T) {
	t.Parallel()
	servers := startFleet(t)
	asked, owner := servers[0], servers[1]
	board := owner.has(t, "default")
	claim := func(from string) {
		t.Helper()
		a, err := asked.call(t.Context(), "default", "PostJobs", fmt.Sprintf(`{"board":%q,"jobs":[{"name":"x"}]}`, board))
		if err != nil || !a.posted() {
			t.Fatalf("a post: %d %s, %v", a.status, a.text, err)
		}
		a, err = asked.call(t.Context(), "default", "ClaimJobs", fmt.Sprintf(`{"board":%q,"owner":"w","wait":"60s"}`, board))
		if err != nil || a.status != http.StatusOK || len(a.Claims) != 1 || a.from != from {
			t.Errorf("a claim: %d %s, from %q, want one from %q; %v", a.status, a.text, a.from, from, err)
		}
	}
	claim(owner.advertised())
	patience := owner.peers.transport.HTTP2.SendPingTimeout + owner.peers.transport.HTTP2.PingTimeout
	s := &owner.peers.still
	s.mu.Lock()
	s.after, s.last = time.Hour, time.Now().Add(-2*patience)
	s.mu.Unlock()
	testserver.Eventually(t, "the server notices that it stood still", func() bool { return s.look(time.Now()) > patience })
	claim("")
	s.mu.Lock()
	s.stood, s.until, s.after = 0, time.Time{}, stillAfter
	s.mu.Unlock()
	testserver.Eventually(t, "the board is its server's again", func() bool {
		a, err := asked.call(t.Context(), "default", "CountJobs", fmt.Sprintf(`{"board":%q}`, board))
		return err == nil && a.from == owner.advertised()
	})
	a, err := owner.call(t.Context(), "default", "CountJobs", fmt.Sprintf(`{"board":%q}`, board))
	if err != nil || a.status != http.StatusOK {
		t.Fatal(a, err)
	}
	claim(owner.advertised())
}
