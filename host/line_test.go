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
		l := newLine()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range openingAtOnce {
			if err := l.enter(ctx, &turn{}); err != nil {
				t.Fatal(err)
			}
		}
		var order []int
		turns := make([]turn, 5)
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
		if err := l.enter(ctx, &turn{}); !errors.Is(err, context.Canceled) {
			t.Errorf("entered after the end: %v", err)
		}
	})
}
