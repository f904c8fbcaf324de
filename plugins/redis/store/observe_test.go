package store

import (
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestObserverHears checks what is told of an observed board without going through it:
// what notifications name, and what the board's own hosts leave in its stream.
func TestObserverHears(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.server.Command("CONFIG", "SET", "notify-keyspace-events", "KA")
	s := &server{T: t, store: openStore(t, f.server.Addr), seen: map[job.ID]bool{}}
	t.Cleanup(s.close)
	if _, err := s.store.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Observe: true}); err != nil {
		t.Fatal(err)
	}
	b, err := s.store.board("b")
	if err != nil {
		t.Fatal(err)
	}
	st := b.opening.Load()
	woken, stop := s.store.wakes.watch(st.keys.wake, "")
	defer stop()
	last := map[job.ID]driver.Change{}
	o := b.newObserver(t.Context(), st, 1<<40, woken, func(c driver.Changes) bool {
		for _, one := range c.List {
			last[one.Job] = one
		}
		return true
	})
	defer func() { o.notices.stop() }()
	if err := o.pass(t.Context()); err != nil || len(last) != surveyed {
		t.Fatalf("of %d jobs %d were told: %v", surveyed, len(last), err)
	}
	testserver.Eventually(t, "Redis names keys", func() bool { return f.server.Command("PUBSUB", "NUMPAT") == ":2" })
	o.next = time.Now().Add(time.Hour)
	const unknown = surveyed + 1
	hears := func(what string, n int, is func(c driver.Change) bool) {
		t.Helper()
		testserver.Eventually(t, what, func() bool {
			if err := o.rest(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			return is(last[numbered(n)])
		})
	}
	claimed := func(c driver.Change) bool { return c.Record.State == job.Claimed && c.Owner == "py" }
	f.claim(numbered(unknown))
	f.claim(numbered(3))
	hears("a claim", 3, claimed)
	f.claim(numbered(4))
	f.end(4)
	hears("an ending", 4, func(c driver.Change) bool { return c.Record.State == job.Complete })
	f.apply(driver.Op{Kind: driver.Remove, Job: numbered(5), Event: job.ConsumedEvent})
	hears("a change of boardd's", 5, func(c driver.Change) bool { return c.Event == job.ConsumedEvent })
	if c, told := last[numbered(unknown)]; told {
		t.Errorf("the end of a job that was never there is told: %+v", c)
	}
	if o.next.IsZero() {
		t.Error("all jobs are to be looked at again, though nothing was missed")
	}
	last = map[job.ID]driver.Change{}
	if err := o.pass(t.Context()); err != nil || len(last) > 1 {
		t.Errorf("what was told once is told again: %v, %v", last, err)
	}
}
