package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// crossingCallers are more than the calls of one tenant that a server works on at a time.
const crossingCallers = 200

// Some of them do not wait for as long as the others: longer than a Redis may take to answer.
const (
	impatientCallers = 8
	impatience       = 12 * time.Second
)

// manyBoards are so many that each of two servers has some of them.
const manyBoards = 24

// moreBoards are those beside the boards that every fleet has here.
func moreBoards() string {
	var more strings.Builder
	for i := fleetBoards; i < manyBoards; i++ {
		fmt.Fprintf(&more, "board \"b%d\" {\n  backend = \"main\"\n}\n", i)
	}
	return more.String()
}

// crossing is what the callers of one server post to a board of the other one.
type crossing struct {
	board     *client.Board
	impatient *client.Board // the same, for callers who do not wait
	ended     atomic.Int64  // calls

	mu    sync.Mutex
	kinds map[string]job.Kind // what was said of each job, by its uuid; NoKind: it was posted
}

// TestFleetCrossing has the callers of each of two servers post to a board of the other one,
// more of them than either has seats for, while their store does nothing, for so long that it
// is asked again and callers give up. Every call ends, most of them when the store is back; what
// was posted is there once, what was refused is not there, and what nobody knew is known when it
// comes again.
func TestFleetCrossing(t *testing.T) {
	t.Parallel()
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	servers := startFleetOn(t, redis, 2, moreBoards())
	settledWith(t, manyBoards, servers...)
	theirs := map[*testserver.Server]string{} // a board of each
	for i := range manyBoards {
		board := fmt.Sprint("b", i)
		owner, _ := ownerOf(t, board, servers...)
		theirs[owner] = board
	}
	if len(theirs) < 2 {
		t.Fatalf("one server has all of %d boards", manyBoards)
	}
	testserver.Freeze(t, redis.PID())
	var calling sync.WaitGroup
	sides := make([]*crossing, len(servers))
	for i, s := range servers {
		sides[i] = newCrossing(t, s, theirs[servers[1-i]])
		for n := range crossingCallers {
			board := sides[i].board
			if n < impatientCallers {
				board = sides[i].impatient
			}
			calling.Go(func() { sides[i].post(t, board, 2) })
		}
	}
	for _, c := range sides {
		testserver.Eventually(t, "callers have given up", func() bool { return c.ended.Load() >= impatientCallers })
	}
	if err := syscall.Kill(redis.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	calling.Wait()
	for _, c := range sides {
		c.check(t)
	}
}

func newCrossing(t *testing.T, s *testserver.Server, board string) *crossing {
	t.Helper()
	dial := func(patience time.Duration) *client.Board {
		c, err := client.New(client.Config{Addr: s.Addr, Token: fleetToken, RetryFor: -1, CallTimeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c.Board(board)
	}
	return &crossing{board: dial(3 * time.Minute), impatient: dial(impatience), kinds: map[string]job.Kind{}} // the server ends what takes two minutes
}

// post makes one call that posts so many jobs, and keeps what was said of each.
func (c *crossing) post(t *testing.T, board *client.Board, jobs int) {
	postings := make([]*client.NewJob, jobs)
	for i := range postings {
		postings[i] = &client.NewJob{Uuid: client.NewUUID(), Name: "crosses"}
	}
	_, err := board.Post(t.Context(), postings...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range postings {
		failed := err
		if items, ok := errors.AsType[client.Failures](err); ok {
			failed = items[i]
		}
		kind := job.NoKind
		if failed != nil {
			kind = job.KindOf(failed)
		}
		if kind == job.Interrupted { // of an impatient caller, whom the server told first that the time is over
			kind = job.OutcomeUnknown
		}
		switch kind {
		case job.NoKind, job.Unavailable, job.OutcomeUnknown:
		default:
			t.Errorf("a post while the store does nothing: %v; want it done, refused or unknown", failed)
		}
		c.kinds[p.Uuid] = kind
	}
	c.ended.Add(1)
}

// with returns the uuids of which this was said.
func (c *crossing) with(kind job.Kind) (ids []string) {
	for id, k := range c.kinds {
		if k == kind {
			ids = append(ids, id)
		}
	}
	return ids
}

// check looks whether what was said is so.
func (c *crossing) check(t *testing.T) {
	t.Helper()
	posted, refused, unknown := c.with(job.NoKind), c.with(job.Unavailable), c.with(job.OutcomeUnknown)
	t.Logf("%s: %d posted, %d refused, %d unknown", c.board.Name(), len(posted), len(refused), len(unknown))
	if len(posted)+len(refused)+len(unknown) != 2*crossingCallers || len(refused)+len(unknown) == 0 || len(posted) == 0 {
		t.Errorf("of %d jobs, %d were posted, %d refused and %d unknown", 2*crossingCallers, len(posted), len(refused), len(unknown))
	}
	c.again(t, unknown) // which may have been made, and are known then
	there := c.listed(t)
	for _, id := range append(posted, unknown...) {
		if there[id] != 1 {
			t.Errorf("the job %s, which was posted, is listed %d times", id, there[id])
		}
	}
	for _, id := range refused {
		if there[id] != 0 {
			t.Errorf("the job %s, whose post was refused, is there", id)
		}
	}
	c.again(t, refused)
	c.again(t, posted)
	there = c.listed(t)
	for id, times := range there {
		if _, ours := c.kinds[id]; !ours || times != 1 {
			t.Errorf("the job %s is listed %d times, posted here: %v", id, times, ours)
		}
	}
	if len(there) != 2*crossingCallers {
		t.Errorf("%d jobs are there, want %d", len(there), 2*crossingCallers)
	}
}

// again posts jobs again, which has to be done now.
func (c *crossing) again(t *testing.T, ids []string) {
	t.Helper()
	for len(ids) > 0 {
		n := min(len(ids), 100)
		postings := make([]*client.NewJob, n)
		for i := range postings {
			postings[i] = &client.NewJob{Uuid: ids[i], Name: "crosses"}
		}
		ids = ids[n:]
		testserver.Eventually(t, "posts that come again are done", func() bool {
			_, err := c.board.Post(t.Context(), postings...)
			return err == nil
		})
	}
}

// listed returns how often each job is on the board.
func (c *crossing) listed(t *testing.T) map[string]int {
	t.Helper()
	there := map[string]int{}
	for j, err := range c.board.List(t.Context(), client.ListOptions{Fields: []string{"uuid"}, PageSize: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		there[j.GetUuid()]++
	}
	return there
}
