package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newOpenLimiter(openingAtOnce)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range openingAtOnce {
			if err := l.enter(ctx, &openSlot{}); err != nil {
				t.Fatal(err)
			}
		}
		var order []int
		turns := make([]openSlot, 5)
		l.first(&turns[4]) // asked for before it stands in the line
		for i := range turns {
			go func() {
				if l.enter(ctx, &turns[i]) == nil {
					order = append(order, i)
				}
			}()
			synctest.Wait()
		}
		l.first(&turns[2])
		l.first(&turns[2])
		for range 3 {
			l.leave()
			synctest.Wait()
		}
		if want := [3]int{2, 4, 0}; len(order) != 3 || [3]int(order) != want {
			t.Errorf("the order is %v, want %v", order, want)
		}
		cancel()
		synctest.Wait()
		if err := l.enter(ctx, &openSlot{}); !errors.Is(err, context.Canceled) {
			t.Errorf("entered after the end: %v", err)
		}
	})
}

// TestLineLosesNoSlot: whoever gives up in the line, before it or as it is called, leaves
// as many slots as there were.
func TestLineLosesNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newOpenLimiter(openingAtOnce)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 * openingAtOnce {
			if l.enter(gone, &openSlot{}) == nil {
				t.Fatal("a board that is gone was let in")
			}
		}
		for range openingAtOnce {
			if err := l.enter(t.Context(), &openSlot{}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 * openingAtOnce { // these give up while they wait, some as they are called
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				if l.enter(ctx, &openSlot{}) == nil {
					l.leave()
				}
			}()
			synctest.Wait()
			if i%2 == 0 {
				cancel()
				synctest.Wait()
			} else {
				go cancel()
				l.leave()
				if err := l.enter(t.Context(), &openSlot{}); err != nil {
					t.Error(err)
				}
			}
			<-left
			cancel()
		}
		for range openingAtOnce {
			l.leave()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		entered := 0
		go func() {
			for range openingAtOnce {
				if l.enter(ctx, &openSlot{}) == nil {
					entered++
				}
			}
		}()
		synctest.Wait()
		if entered != openingAtOnce || l.free != 0 || len(l.waiting) != 0 {
			t.Errorf("%d boards can be opened at once, want %d; %d slots are free, %d turns wait", entered, openingAtOnce, l.free, len(l.waiting))
		}
	})
}
