package index

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/job"
)

// signals returns which of the waiters have a signal, and takes it.
func signals(ws ...*Waiter) []int {
	var got []int
	for i, w := range ws {
		select {
		case <-w.C:
			got = append(got, i)
		default:
		}
	}
	return got
}

func TestOneJobWakesOneWaiter(t *testing.T) {
	t.Parallel()
	ix := New()
	one, err := ix.Class(t.Context(), "1", labelled(1))
	if err != nil {
		t.Fatal(err)
	}
	two, err := ix.Class(t.Context(), "2", labelled(2))
	if err != nil {
		t.Fatal(err)
	}
	ws := []*Waiter{ix.Waiter(one), ix.Waiter(two), ix.Waiter(one), ix.Waiter(two), ix.Waiter(everyone(t, ix))}
	want := func(what string, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, signals(ws...)); diff != "" {
			t.Errorf("%s: waiters with a signal (-want +got):\n%s", what, diff)
		}
	}
	ix.Put(entry(3))
	want("a job for everyone", 4)
	ix.Put(entry(2))
	want("the first of class two", 1)
	taken := ix.Take(context.Background(), two, 1)
	want("a take")
	ix.Return(taken[0].ID)
	want("a return", 3)
	ix.Take(context.Background(), two, 1)
	ix.Put(at(taken[0], 100))
	want("nobody is idle, for nobody came back empty")
	ix.Take(context.Background(), two, 1)
	ix.Take(context.Background(), two, 1) // empty: whoever was told before may be waiting again
	ix.Put(at(taken[0], 101))
	want("the first in line again", 1)
	ix.Put(entry(1))
	ix.Put(entry(11))
	ix.Put(entry(21))
	want("three jobs, two waiters", 0, 2)
	for _, w := range ws {
		w.Close()
		w.Close()
	}
	if n := ix.Stats().Waiters; n != 0 {
		t.Errorf("%d waiters are left", n)
	}
}

// Who received a signal and takes nothing says so: the job is for the next in line.
func TestDeclinedSignalGoesOn(t *testing.T) {
	t.Parallel()
	ix := New()
	c := everyone(t, ix)
	ws := []*Waiter{ix.Waiter(c), ix.Waiter(c)}
	ix.Put(entry(1))
	if got := signals(ws...); !cmp.Equal(got, []int{0}) {
		t.Fatalf("waiters %v have a signal", got)
	}
	ws[0].Decline()
	if got := signals(ws...); !cmp.Equal(got, []int{1}) {
		t.Errorf("waiters %v have a signal after the first declined", got)
	}
	ws[0].Close()
	ws[1].Close()
}

func TestClosedWaiterPassesItsSignalOn(t *testing.T) {
	t.Parallel()
	ix := New()
	c := everyone(t, ix)
	ws := []*Waiter{ix.Waiter(c), ix.Waiter(c), ix.Waiter(c)}
	ix.Put(entry(1))
	ws[0].Close()
	if diff := cmp.Diff([]int{1}, signals(ws...)); diff != "" {
		t.Error("unused:", diff)
	}
	ws[1].Close()
	if diff := cmp.Diff([]int(nil), signals(ws...)); diff != "" {
		t.Error("used:", diff)
	}
	ix.Put(entry(2))
	ix.Take(context.Background(), c, 9)
	ws[2].Close() // the job is taken: there is nothing to pass on
	late := ix.Waiter(c)
	defer late.Close()
	if diff := cmp.Diff([]int(nil), signals(late)); diff != "" {
		t.Error("taken:", diff)
	}
	ix.Return(id(1))
	if diff := cmp.Diff([]int{0}, signals(late)); diff != "" {
		t.Error("returned:", diff)
	}
	later := ix.Waiter(c)
	defer later.Close()
	if diff := cmp.Diff([]int{0}, signals(later)); diff != "" {
		t.Error("there is a job already:", diff)
	}
}

func TestTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		c := everyone(t, ix)
		if next, ok := ix.Next(); ok {
			t.Errorf("%v is due on an empty board", next)
		}
		start := time.Now()
		w := ix.Waiter(c)
		defer w.Close()
		later := entry(1)
		later.NotBefore = start.Add(10 * time.Second)
		ix.Put(later)
		held := entry(2)
		held.Held, held.NotBefore = true, start.Add(time.Second)
		ix.Put(held)
		<-ix.DueSooner()
		if next, ok := ix.Next(); !ok || !next.Equal(later.NotBefore) {
			t.Errorf("next is %v, want %v", next, later.NotBefore)
		}
		ix.Put(claimedBy(entry(3), 9, "w", 5*time.Second))
		<-ix.DueSooner()
		forever := claimedBy(entry(4), 9, "w", time.Second)
		forever.Claim.NoExpiry = true
		ix.Put(forever)
		ix.Touch(id(3), 10, 2, Claim{Owner: "w", Ends: start.Add(7 * time.Second)})
		ix.check(t)

		time.Sleep(7*time.Second - 1)
		if got := ix.Tick(time.Now()); got != nil {
			t.Errorf("lapsed early: %v", got)
		}
		time.Sleep(time.Nanosecond)
		want := []Lapse{{ID: id(3), Claim: Claim{Owner: "w", Ends: start.Add(7 * time.Second)}}}
		if diff := cmp.Diff(want, ix.Tick(time.Now())); diff != "" {
			t.Error(diff)
		}
		if got := ix.Tick(time.Now()); got != nil {
			t.Errorf("lapsed twice: %v", got)
		}
		ix.Again(id(3), start.Add(9*time.Second))
		ix.Again(id(2), start) // not claimed
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff(want, ix.Tick(time.Now())); diff != "" {
			t.Error("again:", diff)
		}

		if got := signals(w); got != nil || len(ix.Take(context.Background(), c, 1)) != 0 {
			t.Error("a delayed job was offered")
		}
		changed := ix.Changed()
		time.Sleep(time.Second)
		ix.Tick(time.Now())
		<-w.C
		<-changed
		if diff := cmp.Diff([]int{1}, numbers(ix.Take(context.Background(), c, 9))); diff != "" {
			t.Error(diff)
		}
		if next, ok := ix.Next(); ok {
			t.Errorf("%v is due, want nothing", next)
		}
		ix.check(t)
	})
}

func TestManyAreDueAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		c, err := ix.Class(t.Context(), "1", labelled(1))
		if err != nil {
			t.Fatal(err)
		}
		const n = 3 * slice
		for i := range n {
			e := entry(i)
			e.NotBefore = time.Now().Add(time.Duration(1+i%3) * time.Second)
			ix.Put(e)
			ix.Put(claimedBy(entry(n+i), 1<<20, "w", time.Second))
		}
		time.Sleep(3 * time.Second)
		if got := len(ix.Tick(time.Now())); got != n {
			t.Errorf("%d lapses, want %d", got, n)
		}
		ix.check(t)
		if got := len(ix.Take(context.Background(), c, n)); got != n/10 && got != n/10+1 {
			t.Errorf("took %d, want a tenth of %d", got, n)
		}
	})
}

func TestLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		ix.Put(entry(1))
		ix.Put(entry(2))
		if err := ix.Left(t.Context(), []job.ID{id(7)}); err != nil {
			t.Errorf("not on the board: %v", err)
		}
		done := make(chan error, 2)
		go func() { done <- ix.Left(t.Context(), []job.ID{id(1), id(2), id(1), id(3)}) }()
		synctest.Wait()
		ix.Remove(id(1), 10)
		synctest.Wait()
		if len(done) != 0 {
			t.Error("ended with one still open")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := ix.Left(ctx, []job.ID{id(2)}); !errors.Is(err, job.Interrupted) {
			t.Errorf("error %v, want %v", err, job.Interrupted)
		}
		ix.Sync().End(10)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(ix.departures) != 0 {
			t.Error("somebody is still waited for")
		}
	})
}

// overLimit returns a class that has no place, as all are taken, and for which somebody waits. All
// the others are idle by now.
func overLimit(t *testing.T, ix *Index, judge Judge) *Waiter {
	t.Helper()
	for n := range MaxClasses {
		if _, err := ix.Class(t.Context(), fmt.Sprint(n), labelled(1)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ix.Class(t.Context(), "over", judge)
	if err != nil {
		t.Fatal(err)
	}
	w := ix.Waiter(c)
	time.Sleep(2 * idle)
	return w
}

// While a class is built for which somebody waits, all others are looked after.
func TestTickWhileAClassIsBuilt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		let := make(chan struct{})
		judge := func(ctx context.Context, entries []*Entry, allowed []bool) error {
			<-let
			return everything(ctx, entries, allowed)
		}
		defer overLimit(t, ix, judge).Close()
		ix.Put(entry(1))
		ends := time.Now().Add(10 * time.Second)
		ix.Put(claimedBy(entry(2), 9, "w", 10*time.Second))
		built := make(chan error, 1)
		go func() {
			_, err := ix.Class(t.Context(), "over", judge)
			built <- err
		}()
		synctest.Wait()
		if next, ok := ix.Next(); !ok || !next.Equal(ends) {
			t.Errorf("next is %v, %t, want %v", next, ok, ends)
		}
		time.Sleep(time.Until(ends))
		ticked := make(chan []Lapse, 1)
		go func() { ticked <- ix.Tick(time.Now()) }()
		synctest.Wait()
		select {
		case lapses := <-ticked:
			if len(lapses) != 1 {
				t.Errorf("%d leases ran out, want 1", len(lapses))
			}
		default:
			t.Error("it waits for the judge of a class")
		}
		close(let)
		if err := <-built; err != nil {
			t.Error(err)
		}
	})
}

// A class for which somebody waits is built in a while if its judge failed, whoever had it built.
func TestJudgeFailsWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ix := New()
		l := &judgeLog{seen: map[int][]int32{}}
		w := overLimit(t, ix, l.judge)
		defer w.Close()
		ix.Put(entry(1))
		if signals(w) == nil {
			t.Fatal("a job that the class may have came, and nobody was told")
		}
		l.fail = errors.New("no answer")
		if _, err := ix.Class(t.Context(), "over", l.judge); !errors.Is(err, l.fail) {
			t.Fatalf("error %v, want %v", err, l.fail)
		}
		l.fail = nil
		select {
		case <-ix.DueSooner():
		default:
			t.Error("nobody is told that the class is to be built")
		}
		next, ok := ix.Next()
		if !ok {
			t.Fatal("somebody waits, and nothing is due")
		}
		time.Sleep(time.Until(next))
		for _, c := range ix.Failed(time.Now()) {
			ix.Rebuild(t.Context(), c)
		}
		if got := numbers(ix.Take(t.Context(), w.class, 9)); len(got) != 1 {
			t.Errorf("took %v, want the job", got)
		}
		if next, ok := ix.Next(); ok {
			t.Errorf("%v is due, want nothing", next)
		}
		ix.check(t)
	})
}
