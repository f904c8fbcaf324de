package board

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// drain returns what a watcher saw as one text, and its last cursor.
func drain(t testing.TB, b *Board, from string, most int) (string, string) {
	t.Helper()
	var seen []string
	for {
		events, cursor, err := b.Events(t.Context(), from, most, 0)
		if err != nil {
			t.Fatal(err)
		}
		from = cursor
		for _, e := range events {
			text := e.Type.String()
			if e.Job != nil {
				text += " " + e.Job.Name + " " + e.Job.State.String()
			}
			if e.Reason != "" {
				text += " (" + e.Reason + ")"
			}
			seen = append(seen, text)
		}
		if len(events) == 0 {
			return strings.Join(seen, "\n"), cursor
		}
	}
}

func TestEventsOfALife(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		b, other := start(t, d, Spec{Retry: Retry{MaxAttempts: 2}}), start(t, d, Spec{})
		_, from, err := b.Events(t.Context(), "", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		post(t, b, job.Posting{Name: "a"})
		c := claimOne(t, b, ClaimRequest{})
		if _, err := b.Extend(t.Context(), []Ref{refOf(b, c)}, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		c = claimOne(t, b, ClaimRequest{})
		wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, c)}, AbandonOptions{Reason: "no"})), job.NoKind)
		wantKind(t, one(b.Restore(t.Context(), []job.ID{c.ID})), job.NoKind)
		c = claimOne(t, b, ClaimRequest{})
		wantKind(t, one(b.Release(t.Context(), []job.ID{c.ID}, "", "broken")), job.NoKind)
		c = claimOne(t, b, ClaimRequest{})
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
		synctest.Wait()
		want := strings.TrimSpace(`
POSTED a UNCLAIMED
CLAIMED a CLAIMED
EXTENDED a CLAIMED
EXPIRED a UNCLAIMED (the lease of worker ran out)
CLAIMED a CLAIMED
TRASHED a TRASHED (no)
RESTORED a UNCLAIMED
CLAIMED a CLAIMED
ABANDONED a UNCLAIMED (broken)
CLAIMED a CLAIMED
CONSUMED a COMPLETE`)
		for _, host := range []*Board{b, other} {
			for _, most := range []int{1, 3, 100} {
				if got, _ := drain(t, host, from, most); got != want {
					t.Fatalf("got\n%s\nwant\n%s", got, want)
				}
			}
		}
		// From the very beginning, too: both hosts began there.
		if got, _ := drain(t, b, "1.0", 100); got != want {
			t.Fatalf("got\n%s", got)
		}
	})
}

func TestWatchHeartbeatAndEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		var seen []string
		go func() {
			time.Sleep(20 * time.Second)
			postN(t, b, 1)
		}()
		for e, err := range b.Watch(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Cursor == "" {
				t.Fatalf("%+v has no cursor", e)
			}
			seen = append(seen, fmt.Sprint(e.Type, time.Since(began)))
			if len(seen) == 4 {
				cancel()
			}
		}
		if got := strings.Join(seen, " "); got != "HEARTBEAT 0s HEARTBEAT 15s POSTED 20s HEARTBEAT 35s" {
			t.Fatal(got)
		}
		if b.Metrics().Watchers.Load() != 0 {
			t.Fatal("the watcher is still counted")
		}
	})
}

// A stream that broke before anything happened goes on without a gap.
func TestWatchBeginsWithItsCursor(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		postN(t, b, 3)
		synctest.Wait()
		from := ""
		for e, err := range b.Watch(t.Context(), "") {
			if err != nil || e.Type != job.Heartbeat || e.Job != nil {
				t.Fatalf("%+v, %v", e, err)
			}
			from = e.Cursor
			break
		}
		post(t, b, job.Posting{Name: "missed"})
		synctest.Wait()
		for e, err := range b.Watch(t.Context(), from) {
			if err != nil || e.Type != job.Posted || e.Job.Name != "missed" {
				t.Fatalf("%+v, %v", e, err)
			}
			break
		}
	})
}

func TestWatchCursors(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		b := start(t, d, Spec{Settings: []byte(`{"events": 3000}`)})
		for _, bad := range []string{"x", "1", "1.x", "01.1", "-1.1", "1.1.1"} {
			_, _, err := b.Events(t.Context(), bad, 0, 0)
			wantKind(t, err, job.Invalid)
		}
		// Another generation's cursor, and one that is too old, give RESYNC.
		if got, _ := drain(t, b, "9.5", 10); got != "RESYNC" {
			t.Fatal(got)
		}
		post(t, b, job.Posting{Name: "first"})
		for range 2 {
			postN(t, b, 1000)
		}
		synctest.Wait()
		// Out of the ring, but not out of the store's memory.
		got, end := drain(t, b, "1.0", 1000)
		if !strings.HasPrefix(got, "POSTED first UNCLAIMED\nPOSTED job-0") || strings.Count(got, "\n") != 2000 {
			t.Fatalf("%d lines: %.100s", strings.Count(got, "\n"), got)
		}
		for range 2 {
			postN(t, b, 1000)
		}
		synctest.Wait()
		if got, after := drain(t, b, "1.0", 1000); got != "RESYNC" || after == end {
			t.Fatalf("%.100s, then %s", got, after)
		}
		// A host that is ahead gave this one: nothing until it is reached.
		_, now, _ := b.Events(t.Context(), "", 0, 0)
		c, _ := parseCursor(now)
		ahead := cursor{c.generation, c.position + 1}.String()
		post(t, b, job.Posting{Name: "seen already"}, job.Posting{Name: "new"})
		synctest.Wait()
		if got, _ := drain(t, b, ahead, 10); got != "POSTED new UNCLAIMED" {
			t.Fatal(got)
		}
	})
}

// A cursor that is ahead of where the board ever was is of another board: all who begin there
// are told to resync, and go on from where the board is.
func TestCursorAheadOfTheBoard(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		postN(t, b, 3)
		synctest.Wait()
		c := b.hub.now()
		ahead := cursor{c.generation, c.position + 1000}.String()
		events, next, err := b.Events(t.Context(), ahead, 10, 0)
		if err != nil || len(events) != 1 || events[0].Type != job.Resync || next != c.String() || events[0].Cursor != next {
			t.Fatalf("%+v, %s, %v; want RESYNC at %s", events, next, err, c)
		}
		post(t, b, job.Posting{Name: "after"})
		synctest.Wait()
		if got, _ := drain(t, b, next, 10); got != "POSTED after UNCLAIMED" {
			t.Fatal(got)
		}
		c = b.hub.now()
		for name, watch := range map[string]iter.Seq2[job.Event, error]{"board": b.Watch(t.Context(), ahead), "owner": b.WatchOwner(t.Context(), "me", ahead)} {
			for e, err := range watch {
				if err != nil || e.Type != job.Resync || e.Cursor != c.String() {
					t.Errorf("%s: %+v, %v; want RESYNC at %s", name, e, err, c)
				}
				break
			}
		}
	})
}

// A watcher that is too slow is told to resync, and costs no memory.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Settings: []byte(`{"events": 10}`)})
		slow := make(chan string, 1)
		go func() {
			var seen []string
			for e, err := range b.Watch(t.Context(), "") {
				if err != nil {
					t.Error(err)
				}
				seen = append(seen, e.Type.String())
				time.Sleep(10 * time.Second)
				if e.Job != nil && e.Job.Name == "last" {
					break
				}
			}
			slow <- strings.Join(seen, " ")
		}()
		synctest.Wait()
		for range 3 {
			postN(t, b, 1)
			synctest.Wait()
			postN(t, b, ringSize/2)
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		post(t, b, job.Posting{Name: "last"})
		got := <-slow
		if !strings.HasPrefix(got, "HEARTBEAT POSTED RESYNC") && !strings.Contains(got, "RESYNC") {
			t.Fatal(got)
		}
		if !strings.HasSuffix(got, "POSTED") || b.Metrics().Overrun.Load() == 0 {
			t.Fatal(got)
		}
	})
}

func TestEventsWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		began := time.Now()
		events, cursor, err := b.Events(t.Context(), "", 10, 4*time.Second)
		if err != nil || len(events) != 0 || cursor == "" || time.Since(began) != 4*time.Second {
			t.Fatal(events, cursor, err, time.Since(began))
		}
		go func() {
			time.Sleep(time.Second)
			postN(t, b, 1)
		}()
		events, _, err = b.Events(t.Context(), cursor, 10, time.Minute)
		if err != nil || len(events) != 1 || time.Since(began) != 5*time.Second {
			t.Fatal(events, err, time.Since(began))
		}
		_, _, err = b.Events(t.Context(), "", -1, 0)
		wantKind(t, err, job.Invalid)
	})
}

// TestEventsOfOnePosition: what other programs did may be found out together and have
// one position. A page does not end between two of them.
func TestEventsOfOnePosition(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.publish([]item{{position: 1}, {position: 2}, {position: 2}, {position: 2}, {position: 3}}, 3)
	var at cursor
	var pages []int
	for {
		r := h.read(at, 2, false)
		if len(r.items) == 0 {
			break
		}
		pages = append(pages, len(r.items))
		at = r.at
	}
	if want := []int{4, 1}; !slices.Equal(pages, want) {
		t.Errorf("pages of %v events, want %v", pages, want)
	}
}
