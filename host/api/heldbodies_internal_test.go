package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// readBody counts what is read of the bodies of posts.
type readBody struct {
	io.ReadCloser

	bytes *atomic.Int64
}

// Read reads the body.
func (b readBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// counts counts what is read of the bodies of posts that come to a server.
func counts(bytes *atomic.Int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/PostJobs") {
			r.Body = readBody{r.Body, bytes}
		}
		next.ServeHTTP(w, r)
	})
}

// TestPassedBodiesAreCounted has a server pass on a call for whose body the other one has no room:
// nothing of it is read there before there is.
func TestPassedBodiesAreCounted(t *testing.T) {
	t.Parallel()
	servers := startFleet(t)
	entry, owner := servers[0], servers[1]
	board := owner.has(t, "default")
	held := &portion{budget: &owner.gate.passed, tenant: "default"}
	if err := held.reserve(t.Context(), MaxTenantBytes); err != nil {
		t.Fatal(err)
	}
	posted := make(chan fleetAnswer, 1)
	go func() {
		a, err := entry.call(t.Context(), "default", "PostJobs", fmt.Sprintf(`{"board":%q,"jobs":[{"uuid":%q,"name":"large","details":{"x":%q}}]}`, board, newUUID(), strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Error(err)
		}
		posted <- a
	}()
	testserver.Eventually(t, "the call waits for room", func() bool {
		n := &owner.gate.passed
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.waiting) == 1
	})
	if n := owner.bodies.Load(); n != 0 {
		t.Errorf("%d bytes were read for which there is no room", n)
	}
	held.shrink(0)
	if a := <-posted; !a.posted() || a.from != owner.advertised() {
		t.Errorf("the call is answered with %d %.300s by %q", a.status, a.text, a.from)
	}
	testserver.Eventually(t, "nothing is held any more", func() bool { n, _ := owner.gate.passed.held(); return n == 0 })
}
