package catalog

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRounds has many ask at once, some of whom go away.
func TestRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen, sizes := map[int]int{}, []int{}
		r := newRounds(func(ctx context.Context, items []int) {
			time.Sleep(time.Second)
			if ctx.Err() != nil {
				return // its round came to nothing
			}
			mu.Lock()
			defer mu.Unlock()
			sizes = append(sizes, len(items))
			for _, i := range items {
				seen[i]++
			}
		})
		var asking sync.WaitGroup
		impatient, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		asking.Go(func() {
			if err := r.join(impatient, 0); err == nil {
				t.Error("a round that was left is said to be done")
			}
		})
		synctest.Wait()
		for i := range 100 {
			asking.Go(func() {
				if err := r.join(t.Context(), i+1); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if seen[i+1] == 0 {
					t.Errorf("%d is said to be done", i+1)
				}
			})
		}
		asking.Wait()
		if len(sizes) != 1 || sizes[0] < 100 {
			t.Errorf("the rounds had %v items", sizes)
		}
		if err := r.join(t.Context(), 1); err != nil || seen[1] != 2 {
			t.Errorf("alone: %d, %v", seen[1], err)
		}
	})
}
