package api

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

// owners is workers on one board that two servers have open, each for its own callers.
type owners struct {
	t     *testing.T
	board string

	mu       sync.Mutex
	held     map[string]bool // jobs that somebody holds now
	tokens   map[string]bool // that were given, with their jobs
	posted   map[string]bool
	consumed map[string]int
}

// ask makes a call that has to be done, at a server that makes it by itself.
func (o *owners) ask(m *member, call, format string, more ...any) (fleetAnswer, bool) {
	body := fmt.Sprintf(format, append([]any{o.board}, more...)...)
	a, err := m.call(o.t.Context(), "default", call, body)
	ok := err == nil && a.status == http.StatusOK && a.from == ""
	for _, r := range a.Results {
		ok = ok && r.Error == nil
	}
	if !ok {
		o.t.Errorf("%s at %s: %d %.300s, from %q, %v", call, m.advertised(), a.status, a.text, a.from, err)
	}
	return a, ok
}

// post posts a job.
func (o *owners) post(m *member) bool {
	id := newUUID()
	_, ok := o.ask(m, "PostJobs", `{"board":%q,"jobs":[{"uuid":%q,"name":"x"}]}`, id)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.posted[id] = ok
	return ok
}

// work claims jobs and consumes them, and returns how many.
func (o *owners) work(m *member) int {
	a, ok := o.ask(m, "ClaimJobs", `{"board":%q,"owner":%q,"max":2,"lease":"3000s"}`, m.advertised())
	if !ok {
		return 0
	}
	o.mu.Lock()
	for _, c := range a.Claims {
		if o.held[c.UUID] || o.consumed[c.UUID] > 0 || o.tokens[c.UUID+c.Token] {
			o.t.Errorf("the job %s is claimed with the token %s; held: %v, consumed: %d", c.UUID, c.Token, o.held[c.UUID], o.consumed[c.UUID])
		}
		o.held[c.UUID], o.tokens[c.UUID+c.Token] = true, true
	}
	o.mu.Unlock()
	for _, c := range a.Claims {
		if _, ok := o.ask(m, "ConsumeJobs", `{"board":%q,"claims":[{"uuid":%q,"token":%q}]}`, c.UUID, c.Token); ok {
			o.mu.Lock()
			delete(o.held, c.UUID)
			o.consumed[c.UUID]++
			o.mu.Unlock()
		}
	}
	return len(a.Claims)
}

// TestTwoOwners cuts two servers off from each other, but not from their store, so that both
// have a board open, and has callers of both post, claim and consume there: no job is lost,
// none is held by two, and each is consumed once. BOARDD_TEST_OWNERS=1m goes on for so long.
func TestTwoOwners(t *testing.T) {
	t.Parallel()
	const workers, rounds = 3, 30
	long, err := time.ParseDuration(os.Getenv("BOARDD_TEST_OWNERS"))
	if err != nil {
		long = 0
	}
	servers := startFleet(t)
	o := &owners{
		t: t, board: servers[0].has(t, "default"),
		held: map[string]bool{}, tokens: map[string]bool{}, posted: map[string]bool{}, consumed: map[string]int{},
	}
	for _, m := range servers {
		m.way.Sever(true)
	}
	for _, m := range servers {
		testserver.Eventually(t, "each server answers by itself", func() bool {
			a, err := m.call(t.Context(), "default", "CountJobs", fmt.Sprintf(`{"board":%q}`, o.board))
			return err == nil && a.status == http.StatusOK && a.from == ""
		})
	}
	var working sync.WaitGroup
	until := time.Now().Add(long)
	for _, m := range servers {
		for range workers {
			working.Go(func() {
				for n := 0; (n < rounds || time.Now().Before(until)) && !t.Failed(); n++ {
					if o.post(m) {
						o.work(m)
					}
				}
			})
		}
	}
	working.Wait()
	for _, m := range servers { // what one of them has not seen yet, it is told soon
		testserver.Eventually(t, "no job is left", func() bool { return t.Failed() || o.work(m) == 0 && len(o.consumed) == len(o.posted) })
	}
	for id := range o.posted {
		if o.consumed[id] != 1 {
			t.Errorf("the job %s was consumed %d times", id, o.consumed[id])
		}
	}
	t.Logf("%d jobs", len(o.posted))
}
