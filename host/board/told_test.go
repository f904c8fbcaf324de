package board

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// crowd watches a board many times over, together.
type crowd struct {
	board *Board
	began time.Time
	made  atomic.Int64 // forms of events

	mu    sync.Mutex
	heard map[string]int // what watchers were told, and when, by how many
}

func (c *crowd) watch(ctx context.Context, t *testing.T, n int, from string) {
	t.Helper()
	for range n {
		go func() {
			for list, err := range c.board.WatchTogether(ctx, "", from) {
				if err != nil {
					t.Error(err)
					return
				}
				line := fmt.Sprint(time.Since(c.began))
				for _, told := range list {
					text, err := told.Form(0, func(e job.Event) ([]byte, error) {
						if e.Type != job.Heartbeat {
							c.made.Add(1)
						}
						return []byte(e.Type.String()), nil
					})
					if err != nil {
						t.Error(err)
					}
					line += " " + string(text)
				}
				c.mu.Lock()
				c.heard[line]++
				c.mu.Unlock()
			}
		}()
	}
	synctest.Wait()
}

// since returns what was heard since the last time it was asked.
func (c *crowd) since(t *testing.T) []string {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for line, n := range c.heard {
		lines = append(lines, fmt.Sprintf("%d: %s", n, line))
	}
	clear(c.heard)
	slices.Sort(lines)
	return lines
}

// TestManyAreToldTogether: where many watch, they are told of events at the same time, at
// most GatherFor after they happened, and what is made of an event is made once. A few
// are told at once.
func TestManyAreToldTogether(t *testing.T) {
	t.Parallel()
	for watchers, want := range map[int][]string{
		1:   {"1: 0s POSTED", "1: 4ms POSTED", "1: 6ms POSTED"},
		49:  {"49: 0s POSTED", "49: 4ms POSTED", "49: 6ms POSTED"},
		250: {"250: 5ms POSTED POSTED", "250: 11ms POSTED"},
		500: {"500: 10ms POSTED POSTED POSTED"},
		900: {"900: 10ms POSTED POSTED POSTED"},
	} {
		t.Run(fmt.Sprint(watchers), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				c := &crowd{board: start(t, openStore(t), Spec{}), heard: map[string]int{}}
				c.began = time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c.watch(ctx, t, watchers, "")
				c.since(t) // the cursors that they begin with
				c.began = time.Now()
				for _, pause := range []time.Duration{0, 4 * time.Millisecond, 2 * time.Millisecond} {
					time.Sleep(pause)
					postN(t, c.board, 1)
					synctest.Wait()
				}
				time.Sleep(GatherFor)
				slices.Sort(want)
				if got := c.since(t); !slices.Equal(got, want) {
					t.Errorf("heard %q, want %q", got, want)
				}
				if n := c.made.Load(); n != 3 {
					t.Errorf("%d forms were made of 3 events", n)
				}
				cancel()
				synctest.Wait()
				c.began = time.Now()
				c.watch(t.Context(), t, 1, "")
				c.since(t)
				postN(t, c.board, 1)
				if got := c.since(t); !slices.Equal(got, []string{"1: 0s POSTED"}) {
					t.Errorf("alone after the others had left: %q", got)
				}
			})
		})
	}
}

// TestWaitingForOthersMissesNothing: who begins while events are gathered, with or without a
// cursor, misses none and sees none twice.
func TestWaitingForOthersMissesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := &crowd{board: start(t, openStore(t), Spec{}), heard: map[string]int{}}
		c.began = time.Now()
		c.watch(t.Context(), t, 500, "")
		before := c.board.hub.now().String()
		postN(t, c.board, 1)
		c.since(t)
		c.watch(t.Context(), t, 1, before)
		c.watch(t.Context(), t, 1, "") // from now on, which is after what is gathered
		if got := c.since(t); !slices.Equal(got, []string{"1: 0s HEARTBEAT"}) {
			t.Errorf("before the time is up: %q", got)
		}
		time.Sleep(GatherFor / 2)
		postN(t, c.board, 1)
		time.Sleep(GatherFor / 2)
		if got := c.since(t); !slices.Equal(got, []string{"1: 10ms POSTED", "501: 10ms POSTED POSTED"}) {
			t.Errorf("after it: %q", got)
		}
		// What calls ask for one by one is not gathered.
		cursor := c.board.hub.now().String()
		postN(t, c.board, 1)
		events, _, err := c.board.Events(t.Context(), cursor, 0, time.Minute)
		if err != nil || len(events) != 1 || time.Since(c.began) != GatherFor {
			t.Errorf("asked for: %v, %v after %v", events, err, time.Since(c.began))
		}
	})
}

// TestGatheringIsBounded: no more is gathered than is read at a time.
func TestGatheringIsBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		h := newHub()
		for range 500 {
			defer h.enter()()
		}
		at := cursor{}
		for i := range sharedEvents - 1 {
			h.publish([]item{{position: driver.Position(i + 1)}}, driver.Position(i+1))
		}
		if r := h.read(at, ringSize, true); len(r.items) != 0 || r.at != at {
			t.Fatalf("%d items before the time is up, going on at %v", len(r.items), r.at)
		}
		h.publish([]item{{position: sharedEvents}}, sharedEvents)
		r := h.read(at, ringSize, true)
		if len(r.items) != sharedEvents || r.at.position != sharedEvents {
			t.Fatalf("%d items, going on at %v", len(r.items), r.at)
		}
		// Only the last ones are shared: a watcher that is behind costs the others no memory.
		h.publish([]item{{position: sharedEvents + 1}}, sharedEvents+1)
		time.Sleep(GatherFor)
		synctest.Wait()
		r = h.read(at, ringSize, true)
		for i, it := range r.items {
			if shared := it.told != nil; shared != (i > 0) {
				t.Errorf("item %d of %d is shared: %v", i, len(r.items), shared)
			}
		}
		// After a restart of the board nothing is owed any more.
		h.publish([]item{{position: sharedEvents + 2}}, sharedEvents+2)
		h.restart(2, 1000)
		if r = h.read(cursor{2, 1000}, ringSize, true); r.lost || len(r.items) != 0 || r.at != (cursor{2, 1000}) {
			t.Errorf("after a restart: %+v", r)
		}
		time.Sleep(GatherFor)
		synctest.Wait()
	})
}
