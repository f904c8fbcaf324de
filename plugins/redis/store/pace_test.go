package store

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace checks that a search keeps to its share of Redis, to its rate, and to
// the longest rest, over several steps.
func TestPace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		busy, took time.Duration // by Redis's clock, and by ours
		looked     int
		steps      int
		want       time.Duration // for all steps together
	}{
		"the share":                    {time.Millisecond, 2 * time.Millisecond, 1, 10, 200 * time.Millisecond},
		"the rate":                     {time.Microsecond, 0, 500, 10, 100 * time.Millisecond},
		"nothing was done":             {0, 0, 0, 10, 0},
		"it took longer by itself":     {time.Millisecond, 50 * time.Millisecond, 1, 10, 500 * time.Millisecond},
		"one slow answer is no reason": {time.Hour, 0, 1, 1, longRest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				p := pace{budget: newSearchBudget()}
				for range c.steps {
					time.Sleep(c.took)
					p.busy, p.looked = p.busy+c.busy, p.looked+c.looked
					time.Sleep(p.rest())
				}
				if got := time.Since(begun); got != c.want {
					t.Errorf("%d steps took %v, want %v", c.steps, got, c.want)
				}
			})
		})
	}
}

// TestHurry checks that what was not used before makes a search three times as fast, until it
// is used up, and that no more than maxCredit is kept.
func TestHurry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		idle  time.Duration
		steps int // of a millisecond each, whose share is 20 ms
		want  time.Duration
	}{
		"nothing was left":     {0, 10, 200 * time.Millisecond},
		"enough":               {time.Second, 10, 10 * (20 * time.Millisecond / 3)},
		"it ends in the midst": {50 * time.Millisecond, 10, 150 * time.Millisecond},
		"a day of rest":        {24 * time.Hour, 4000, 4000*20*time.Millisecond - maxCredit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := pace{budget: newSearchBudget()}
				time.Sleep(c.idle)
				p.rest()
				p.hurry = true
				begun := time.Now()
				for range c.steps {
					p.busy += time.Millisecond
					time.Sleep(p.rest())
				}
				if got := time.Since(begun); got != c.want {
					t.Errorf("%d steps took %v, want %v", c.steps, got, c.want)
				}
			})
		})
	}
}

// TestSearchBudget checks that searches which share a part of Redis keep to it together, also
// where other servers have theirs.
func TestSearchBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		searches, servers int
		want              time.Duration // for ten steps of a millisecond each
	}{
		"alone":                    {1, 1, 200 * time.Millisecond},
		"four boards":              {4, 1, 800 * time.Millisecond},
		"three servers":            {1, 3, 600 * time.Millisecond},
		"two boards, five servers": {2, 5, 2 * time.Second},
		"nobody said how many":     {1, 0, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSearchBudget()
				s.among(c.servers)
				begun := time.Now()
				var all sync.WaitGroup
				for range c.searches {
					all.Go(func() {
						p := pace{budget: s}
						for range 10 {
							p.busy += time.Millisecond
							time.Sleep(p.rest())
						}
					})
				}
				all.Wait()
				if got := time.Since(begun); got != c.want {
					t.Errorf("it took %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestIdle checks how long a search waits for its next round: not longer than until
// something is due, not without a pause, and at least as long as the last one has cost.
func TestIdle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next, busy, want time.Duration
	}{
		"nothing is due soon":      {time.Hour, 0, lookTime},
		"claims are due":           {100 * time.Millisecond, 0, 100 * time.Millisecond},
		"they were due long since": {-time.Hour, 0, noticeTime},
		"a round has its cost":     {time.Hour, 20 * time.Millisecond, 400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := sweep{pace: &pace{budget: newSearchBudget(), busy: c.busy}, next: time.Now().Add(c.next)}
				if got := s.idle(); got != c.want {
					t.Errorf("it waits %v, want %v", got, c.want)
				}
			})
		})
	}
}
