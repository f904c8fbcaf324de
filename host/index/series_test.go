package index

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/policy"
)

// TestSeries: a class at a later time takes the place of those of its series that went
// before, so that any number of them takes one place.
func TestSeries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		ix.Put(entry(1))
		all := func(_ context.Context, entries []*Entry, allowed []bool) error {
			for i := range entries {
				allowed[i] = true
			}
			return nil
		}
		for at := range int64(3 * MaxClasses) {
			for s := range 4 {
				series := fmt.Sprint("series ", s)
				if _, err := ix.ClassOf(t.Context(), Key{Name: fmt.Sprint(series, at), Series: series, At: at}, all, false); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		if n := ix.Stats(); n.Classes != 4 {
			t.Errorf("%+v", n)
		}
		old, err := ix.ClassOf(t.Context(), Key{Name: "old", Series: "series 1", At: 1}, all, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := ix.Take(t.Context(), old, 1); len(got) != 1 {
			t.Errorf("a class of an earlier time took %d", len(got))
		}
		if n := ix.Stats(); n.Classes != 4 || n.Overflow != 1 {
			t.Errorf("a class of an earlier time took a place: %+v", n)
		}
	})
}

// TestRankerHangs: while the ranker gives no answer, who waits for another one that
// asks goes when his context ends, and news go in.
func TestRankerHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		gate := make(chan struct{})
		ix := keyed(t, 20, func(keys []policy.Key, ranks []policy.Rank) error {
			if hangs.Load() {
				<-gate
			}
			return ranks0(keys, ranks)
		})
		hangs.Store(true)
		ix.Put(entry(21))
		asked := make(chan []*Entry, 1)
		go func() { asked <- ix.Take(t.Context(), ix.everyone, 1) }()
		synctest.Wait() // he asks
		w := ix.Waiter(ix.everyone)
		defer w.Close()
		ix.Put(entry(22)) // which is to be ranked, and nobody waits for that here
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if got := ix.Take(ctx, ix.everyone, 1); len(got) != 0 || time.Since(begun) != time.Second {
			t.Errorf("took %d after %s", len(got), time.Since(begun))
		}
		if done, _ := ix.Reserve(ctx, entry(5).ID); done {
			t.Error("reserved without a rank")
		}
		hangs.Store(false)
		close(gate)
		if got := <-asked; len(got) != 1 {
			t.Errorf("who asked took %d", len(got))
		}
		if got := numbers(ix.Take(t.Context(), ix.everyone, 30)); len(got) != 21 || !slices.Contains(got, 22) {
			t.Errorf("took %v", got)
		}
	})
}

// TestAskerLeaves: who has the ranker asked goes when his context ends. The ranker goes on
// for the others, and its answer counts.
func TestAskerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		var calls atomic.Int64
		gate := make(chan struct{})
		ix := keyed(t, 20, func(keys []policy.Key, ranks []policy.Rank) error {
			calls.Add(1)
			if hangs.Load() {
				<-gate
			}
			return ranks0(keys, ranks)
		})
		ix.Take(t.Context(), ix.everyone, 20)
		hangs.Store(true)
		calls.Store(0)
		begun := time.Now()
		ix.Put(entry(21)) // nobody waits for a job: whoever claims next has it ranked
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if got := ix.Take(ctx, ix.everyone, 1); len(got) != 0 {
				t.Errorf("taker %d took %v", i, numbers(got))
			}
			cancel()
		}
		if took := time.Since(begun); took != 3*time.Second || calls.Load() != 1 {
			t.Errorf("three takers with a second each took %v, in %d calls", took, calls.Load())
		}
		w := ix.Waiter(ix.everyone)
		ix.Put(entry(22)) // somebody waits: who brings it has it ranked, or leaves that to who asks
		w.Close()
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("news waited until %v", took)
		}
		hangs.Store(false)
		close(gate)
		synctest.Wait()
		if got := numbers(ix.Take(t.Context(), ix.everyone, 5)); !slices.Equal(got, []int{21, 22}) {
			t.Errorf("took %v", got)
		}
	})
}

// TestNewsOfAHangingRanker: who brings a job that somebody waits for doesn't wait for the
// ranker, and the one who waits hears of it when the ranker has answered.
func TestNewsOfAHangingRanker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		ix := keyed(t, 0, func(keys []policy.Key, ranks []policy.Rank) error {
			<-gate
			return ranks0(keys, ranks)
		})
		w := ix.Waiter(ix.everyone)
		defer w.Close()
		begun := time.Now()
		ix.Put(entry(1))
		ix.Put(entry(2))
		if took := time.Since(begun); took != newsPatience {
			t.Errorf("news took %v", took)
		}
		close(gate)
		<-w.C
		if got := numbers(ix.Take(t.Context(), ix.everyone, 5)); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("took %v", got)
		}
	})
}

func ranks0(keys []policy.Key, into []policy.Rank) error { return ranks(leastFirst)(keys, into) }
