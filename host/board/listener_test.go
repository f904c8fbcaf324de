package board

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// ears goes through what an owner's stream tells, one line at a time.
func ears(t *testing.T, b *Board, owner, from string) (next func() (string, job.Event), stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events, done := make(chan job.Event), make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range b.WatchOwner(ctx, owner, from) {
			if err != nil {
				t.Error(err)
			}
			select {
			case events <- e:
			case <-ctx.Done():
			}
		}
	}()
	next = func() (string, job.Event) {
		e := <-events
		if e.Job == nil {
			return e.Type.String(), e
		}
		return e.Type.String() + " " + e.Job.Name, e
	}
	return next, func() { cancel(); <-done }
}

func TestWatchOwner(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		next, stop := ears(t, b, "worker", "")
		hear := func(want string) job.Event {
			t.Helper()
			got, e := next()
			if got != want {
				t.Fatalf("heard %s, want %s", got, want)
			}
			return e
		}
		hear("HEARTBEAT")
		postN(t, b, 3)
		claim(t, b, ClaimRequest{Owner: "other"})
		mine := claimOne(t, b, ClaimRequest{})
		last := hear("CLAIMED job-1")
		hear("HEARTBEAT") // the others' jobs are no reason to speak
		stop()

		// Going on where it was.
		if _, err := b.Extend(t.Context(), []Ref{refOf(b, mine)}, time.Minute); err != nil {
			t.Fatal(err)
		}
		next, stop = ears(t, b, "worker", last.Cursor)
		hear("EXTENDED job-1")

		// One that is slow hears that it missed something, and what came last.
		synctest.Wait()
		for range maxHeard + 2 { // one is on its way to the watcher
			if _, err := b.Extend(t.Context(), []Ref{refOf(b, mine)}, time.Minute); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		hear("EXTENDED job-1")
		hear("RESYNC")
		hear("EXTENDED job-1")
		stop()

		// So does one whose cursor is older than what is at hand.
		for i := range ringSize {
			post(t, b, job.Posting{Name: "more-" + strconv.Itoa(i)})
		}
		synctest.Wait()
		next, stop = ears(t, b, "worker", last.Cursor)
		hear("RESYNC")
		stop()
		if n := len(b.hub.listeners); n != 0 {
			t.Errorf("%d owners are still listened for", n)
		}
	})
}

// Listening costs nothing where nobody does, and one look-up where many do.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{0, 1, 1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			h := newHub()
			for i := range n {
				h.listen("worker-"+strconv.Itoa(i), h.now())
			}
			items := []item{{owner: "nobody"}}
			for b.Loop() {
				items[0].position++
				h.publish(items, items[0].position)
			}
		})
	}
}
