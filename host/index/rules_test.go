package index

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestPostedAgain checks that a job whose uuid is posted again, with another posting, is
// judged and scored anew, although its end was not heard of yet and its version is that
// of the one before.
func TestPostedAgain(t *testing.T) {
	t.Parallel()
	ix := New()
	ix.SetScorer(func(entries []*Entry) {
		for _, e := range entries {
			e.Score = int64(len(e.Labels[0].Value))
		}
	}, nil)
	judge := func(_ context.Context, entries []*Entry, allowed []bool) error {
		for i, e := range entries {
			allowed[i] = e.Labels[0].Value == "gpu"
		}
		return nil
	}
	posted := func(sequence uint64, label string) {
		e := entry(1)
		e.Sequence, e.Position, e.Version = sequence, driver.Position(sequence), 1
		e.Labels = []job.Label{{Key: "needs", Value: label}}
		if !ix.Put(e) {
			t.Fatalf("the posting %d is no news", sequence)
		}
	}
	class, err := ix.Class(t.Context(), "gpu", judge)
	if err != nil {
		t.Fatal(err)
	}
	posted(1, "nothing")
	posted(5, "gpu")
	taken := ix.Take(t.Context(), class, 1)
	if len(taken) != 1 || taken[0].Score != 3 {
		t.Fatalf("a job that is allowed now is not offered: %+v", taken)
	}
	posted(9, "nothing")
	if taken := ix.Take(t.Context(), class, 1); len(taken) > 0 {
		t.Errorf("a job that is not allowed any more is offered: %+v", taken[0])
	}
	ix.check(t)
}

// TestNews has one rule about what is news in each case.
func TestNews(t *testing.T) {
	t.Parallel()
	put := func(n, position int) func(*Index) bool {
		return func(ix *Index) bool { e := entry(n); e.Position = driver.Position(position); return ix.Put(e) }
	}
	remove := func(n, position int) func(*Index) bool {
		return func(ix *Index) bool { return ix.Remove(id(n), driver.Position(position)) }
	}
	forget := func(position int) func(*Index) bool {
		return func(ix *Index) bool { ix.Forget(driver.Position(position)); return true }
	}
	touched := func(n, position int, version uint64) func(*Index) bool {
		return func(ix *Index) bool {
			return ix.Touch(id(n), driver.Position(position), version, Claim{Owner: "w"})
		}
	}
	touch := func(n, position int) func(*Index) bool {
		return func(ix *Index) bool { return ix.Touch(id(n), driver.Position(position), 2, Claim{Owner: "w"}) }
	}
	claim := func(n, position int) func(*Index) bool {
		return func(ix *Index) bool { return ix.Put(claimedBy(entry(n), position, "w", time.Hour)) }
	}
	for name, steps := range map[string][]struct {
		do   func(*Index) bool
		want bool
	}{
		"older put":                  {{put(1, 5), true}, {put(1, 4), false}, {put(1, 5), false}, {put(1, 6), true}},
		"older remove":               {{put(1, 5), true}, {remove(1, 5), false}, {remove(1, 6), true}, {remove(1, 6), false}},
		"late put after remove":      {{put(1, 5), true}, {remove(1, 7), true}, {put(1, 6), false}, {put(1, 7), false}},
		"restored after remove":      {{put(1, 5), true}, {remove(1, 7), true}, {put(1, 8), true}, {remove(1, 8), false}},
		"remove of one never seen":   {{remove(1, 7), true}, {put(1, 5), false}, {put(1, 8), true}},
		"forgotten":                  {{remove(1, 7), true}, {forget(7), true}, {put(1, 5), true}},
		"forgotten too early":        {{remove(1, 7), true}, {forget(6), true}, {put(1, 5), false}},
		"removed again after forget": {{remove(1, 3), true}, {put(1, 4), true}, {remove(1, 7), true}, {forget(3), true}, {put(1, 6), false}},
		"touch of nobody":            {{touch(1, 5), false}},
		"touch of an unclaimed one":  {{put(1, 5), true}, {touch(1, 6), false}},
		"touch":                      {{claim(1, 5), true}, {touch(1, 5), false}, {touch(1, 6), true}, {claim(1, 6), false}},
		"touch before older news":    {{touched(1, 5, 3), false}, {claim(1, 5), true}, {touched(1, 8, 3), false}, {claim(1, 6), true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ix := New()
			for i, s := range steps {
				if got := s.do(ix); got != s.want {
					t.Fatalf("step %d: %v, want %v", i, got, s.want)
				}
			}
			ix.check(t)
		})
	}
}

// TestReservation has what ends one and what does not.
func TestReservation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    func(ix *Index, taken *Entry)
		ready bool // to be taken again
	}{
		"nothing":     {func(*Index, *Entry) {}, false},
		"older put":   {func(ix *Index, _ *Entry) { ix.Put(entry(1)) }, false},
		"newer put":   {func(ix *Index, e *Entry) { ix.Put(at(e, 9)) }, true},
		"claimed put": {func(ix *Index, e *Entry) { ix.Put(claimedBy(e, 9, "w", time.Hour)) }, false},
		"remove":      {func(ix *Index, e *Entry) { ix.Remove(e.ID, 9) }, false},
		"old remove":  {func(ix *Index, e *Entry) { ix.Remove(e.ID, 1) }, false},
		"return":      {func(ix *Index, e *Entry) { ix.Return(e.ID) }, true},
		"other":       {func(ix *Index, _ *Entry) { ix.Return(id(2)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ix := New()
			ix.Put(entry(1))
			class, err := ix.Class(t.Context(), "1", labelled(1))
			if err != nil {
				t.Fatal(err)
			}
			taken := ix.Take(context.Background(), class, 5)
			if len(taken) != 1 {
				t.Fatalf("took %d", len(taken))
			}
			c.do(ix, taken[0])
			ix.check(t)
			for _, class := range []*Class{class, everyone(t, ix)} {
				got := ix.Take(context.Background(), class, 5)
				if (len(got) == 1) != c.ready {
					t.Errorf("class %q: taken again: %v, want %v", class.key, len(got) == 1, c.ready)
				}
				for _, e := range got {
					ix.Return(e.ID)
				}
			}
		})
	}
}

func TestSync(t *testing.T) {
	t.Parallel()
	put := func(ix *Index, n, position int) {
		e := entry(n)
		e.Position = driver.Position(position)
		ix.Put(e)
	}
	for name, c := range map[string]struct {
		reset bool
		end   driver.Position
		do    func(ix *Index)
		want  []int
	}{
		"nothing seen":        {false, 100, func(*Index) {}, nil},
		"same news":           {false, 100, func(ix *Index) { put(ix, 1, 10); put(ix, 3, 30) }, []int{1, 3}},
		"older news is seen":  {false, 100, func(ix *Index) { put(ix, 1, 5) }, []int{1}},
		"newer than the end":  {false, 25, func(ix *Index) { put(ix, 1, 5) }, []int{1, 3}},
		"live post":           {false, 100, func(ix *Index) { put(ix, 2, 20); put(ix, 4, 101) }, []int{2, 4}},
		"live removal":        {false, 100, func(ix *Index) { ix.Remove(id(2), 99); put(ix, 2, 20) }, nil},
		"forget waits":        {false, 100, func(ix *Index) { ix.Remove(id(2), 50); ix.Forget(90); put(ix, 2, 20) }, nil},
		"reset takes older":   {true, 3, func(ix *Index) { put(ix, 1, 2) }, []int{1}},
		"reset orders itself": {true, 3, func(ix *Index) { put(ix, 1, 2); ix.Remove(id(1), 3); put(ix, 1, 2) }, nil},
		"reset removes newer": {true, 3, func(*Index) {}, nil},
		"reset, live removal": {true, 3, func(ix *Index) { ix.Remove(id(1), 2); put(ix, 1, 1) }, nil},
		"begun again":         {false, 100, func(ix *Index) { put(ix, 1, 10); ix.Sync().End(0) }, []int{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ix := New()
			for n := 1; n <= 3; n++ {
				put(ix, n, 10*n)
			}
			s := ix.Sync()
			if c.reset {
				s = ix.Reset()
			}
			if n := ix.Count().Ready; n != 3 {
				t.Fatalf("%d ready after the beginning, want 3", n)
			}
			c.do(ix)
			s.End(c.end)
			got := numbers(ix.Page(PageRequest{Unclaimed: true, Limit: 9}).Entries)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			ix.check(t)
		})
	}
}

func TestSyncRemembersWhatItRemoved(t *testing.T) {
	t.Parallel()
	ix := New()
	ix.Put(entry(1))
	if n := ix.Sync().End(50); n != 1 {
		t.Fatalf("%d removed, want 1", n)
	}
	if e := entry(1); ix.Put(at(e, 40)) {
		t.Error("late news brought a job back")
	}
	ix.Forget(50)
	if !ix.Put(entry(1)) {
		t.Error("not forgotten")
	}
}

// judgeLog counts what it is asked.
type judgeLog struct {
	seen map[int][]int32 // attempts, by number
	fail error
}

func (l *judgeLog) judge(_ context.Context, entries []*Entry, allowed []bool) error {
	if l.fail != nil {
		return l.fail
	}
	for i, e := range entries {
		n := numbers(entries[i : i+1])[0]
		l.seen[n] = append(l.seen[n], e.Attempt)
		allowed[i] = n%2 == 1
	}
	return nil
}

func TestJudgedOncePerVersion(t *testing.T) {
	t.Parallel()
	ix := New()
	for n := 1; n <= 3; n++ {
		ix.Put(entry(n))
	}
	l := &judgeLog{seen: map[int][]int32{}}
	c, err := ix.Class(t.Context(), "odd", l.judge)
	if err != nil {
		t.Fatal(err)
	}
	e := ix.Take(context.Background(), c, 1)[0]
	ix.Return(e.ID)
	e = ix.Take(context.Background(), c, 1)[0]
	lost := claimedBy(e, 10, "w", time.Hour)
	ix.Put(lost)
	back := at(lost, 11)
	back.Claim = nil
	ix.Put(back)
	ix.Put(entry(5))
	if _, err := ix.Class(t.Context(), "odd", l.judge); err != nil {
		t.Fatal(err)
	}
	want := map[int][]int32{1: {0, 1}, 2: {0}, 3: {0}, 5: {0}}
	if diff := cmp.Diff(want, l.seen); diff != "" {
		t.Errorf("judged (-want +got):\n%s", diff)
	}
}

func TestJudgeFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		l := &judgeLog{seen: map[int][]int32{}}
		c, err := ix.Class(t.Context(), "odd", l.judge)
		if err != nil {
			t.Fatal(err)
		}
		ix.Put(entry(1))
		w := ix.Waiter(c)
		defer w.Close()
		<-w.C
		l.fail = errors.New("no answer")
		ix.Put(entry(3))
		if diff := cmp.Diff([]int{1}, numbers(ix.Take(context.Background(), c, 9))); diff != "" {
			t.Error("offered without a verdict", diff)
		}
		if _, err := ix.Class(t.Context(), "odd", l.judge); !errors.Is(err, l.fail) {
			t.Errorf("error %v, want %v", err, l.fail)
		}
		l.fail = nil
		next, ok := ix.Next()
		if !ok {
			t.Fatal("somebody waits, and nothing is due")
		}
		time.Sleep(time.Until(next))
		for _, c := range ix.Failed(time.Now()) {
			ix.Rebuild(t.Context(), c)
		}
		<-w.C
		if diff := cmp.Diff([]int{3}, numbers(ix.Take(context.Background(), c, 9))); diff != "" {
			t.Error(diff)
		}
		ix.check(t)
	})
}

func TestClassIsBuiltByTheNextIfOneGivesUp(t *testing.T) {
	t.Parallel()
	ix := New()
	for n := 1; n <= 3*slice; n++ {
		ix.Put(entry(n))
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	judge := func(ctx context.Context, entries []*Entry, allowed []bool) error {
		if calls++; calls == 2 {
			cancel()
			return ctx.Err()
		}
		return everything(ctx, entries, allowed)
	}
	if _, err := ix.Class(ctx, "k", judge); !errors.Is(err, job.Interrupted) {
		t.Fatalf("error %v, want %v", err, job.Interrupted)
	}
	ix.Put(entry(0)) // before all others, in the part that is done
	c, err := ix.Class(t.Context(), "k", judge)
	if err != nil {
		t.Fatal(err)
	}
	ix.check(t)
	if got := len(ix.Take(context.Background(), c, 9999)); got != 3*slice+1 {
		t.Errorf("took %d, want %d", got, 3*slice+1)
	}
	if s := ix.Stats(); s.Judged != 3*slice+1 {
		t.Errorf("judged %d, want %d", s.Judged, 3*slice+1)
	}
}

// TestTooManyClasses has one class more than there is room for, and then one
// whose predecessor in the slot left its marks.
func TestTooManyClasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		for n := 1; n <= 3*slice; n++ {
			ix.Put(entry(n))
		}
		class := func(key, value int) *Class {
			t.Helper()
			c, err := ix.Class(t.Context(), strconv.Itoa(key), labelled(value))
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		first := class(0, 0)
		for key := 1; key < MaxClasses; key++ {
			class(key, 5)
		}
		over := class(MaxClasses, 7)
		if diff := cmp.Diff([]int{7, 17}, numbers(ix.Take(context.Background(), over, 2))); diff != "" {
			t.Error(diff)
		}
		if s := ix.Stats(); s.Overflow != 1 || s.Classes != MaxClasses {
			t.Errorf("%+v, want one overflow", s)
		}
		w := ix.Waiter(over)
		<-w.C // there are ready jobs, and nobody knows whether they are for this class
		if got := len(ix.Take(context.Background(), over, 1000)); got != 3*slice/10-2 {
			t.Errorf("took %d of the rest", got)
		}
		ix.Put(at(entry(7), 5000))
		<-w.C
		if diff := cmp.Diff([]int{7}, numbers(ix.Take(context.Background(), over, 2))); diff != "" {
			t.Error(diff)
		}
		w.Close()
		ix.Return(id(37), id(47))

		time.Sleep(2 * idle)
		for key := 1; key < MaxClasses; key++ {
			class(key, 5)
		}
		if again := class(MaxClasses, 7); again != over || again.slot != 0 {
			t.Errorf("slot %d, want that of the idle class", again.slot)
		}
		ix.check(t)
		if diff := cmp.Diff([]int{37, 47}, numbers(ix.Take(context.Background(), over, 2))); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int{10, 20}, numbers(ix.Take(context.Background(), first, 2))); diff != "" {
			t.Error("a class without a place:", diff)
		}
		if s := ix.Stats(); s.Overflow != 4 {
			t.Errorf("%+v, want four overflows", s)
		}
	})
}

func TestClassWithAWaiterStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		for key := range MaxClasses {
			c, err := ix.Class(t.Context(), strconv.Itoa(key+1), labelled(1))
			if err != nil {
				t.Fatal(err)
			}
			w := ix.Waiter(c)
			defer w.Close()
		}
		time.Sleep(2 * idle)
		c, err := ix.Class(t.Context(), "more", labelled(1))
		if err != nil || c.slot != noSlot {
			t.Errorf("slot %d, %v: want none", c.slot, err)
		}
	})
}
