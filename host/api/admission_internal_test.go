package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// sitting takes n seats for a tenant, at once.
func sitting(t *testing.T, s *admission, tenant string, n int) []*seat {
	t.Helper()
	list := make([]*seat, n)
	for i := range list {
		var err error
		if list[i], err = s.admit(t.Context(), tenant); err != nil {
			t.Fatalf("seat %d of %d for %s: %v", i+1, n, tenant, err)
		}
	}
	return list
}

func leave(list []*seat) {
	for _, t := range list {
		t.leave()
	}
}

// idle fails unless nobody has or wants a seat.
func idle(t *testing.T, s *admission) {
	t.Helper()
	if l := s.load(); l.working+l.waiting+l.queued != 0 || len(s.tenants) != 0 || s.oldest != nil || s.newest != nil {
		t.Errorf("left over: %+v, %d tenants", l, len(s.tenants))
	}
}

// TestSeatsAtTheirEdges takes every seat that one tenant may have, and one more.
func TestSeatsAtTheirEdges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &admission{}
		own := sitting(t, s, "a", MaxTenantCalls)
		rest := sitting(t, s, "b", MaxCalls-MaxTenantCalls) // at once, whatever a does
		var order []string
		var calls sync.WaitGroup
		ask := func(tenant string) {
			calls.Go(func() {
				got, err := s.admit(t.Context(), tenant)
				if err != nil {
					t.Errorf("%s: %v", tenant, err)
					return
				}
				order = append(order, tenant)
				got.leave()
			})
			synctest.Wait()
		}
		ask("a")
		ask("a")
		ask("c")
		ask("b")
		own[0].leave()
		calls.Wait()
		if got := fmt.Sprint(order); got != "[c b a a]" {
			t.Errorf("seats went to %s, want those with the fewest first", got)
		}
		leave(own[1:])
		leave(rest)
		idle(t, s)
	})
}

// TestSlowCalls: calls that a slow store holds up don't keep those of others
// waiting, and those that say that they wait no one at all.
func TestSlowCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &admission{}
		slow := append(sitting(t, s, "a", MaxTenantCalls), sitting(t, s, "b", MaxCalls-MaxTenantCalls)...)
		begun := time.Now()
		leave(sitting(t, s, "c", 1))
		if waited := time.Since(begun); waited != longAfter {
			t.Errorf("waited %v, want %v", waited, longAfter)
		}
		if l := s.load(); l.waiting != MaxCalls || l.working != 0 {
			t.Errorf("there are %+v", l)
		}
		leave(slow)
		idle(t, s)

		begun = time.Now()
		var waiting []*seat
		for range MaxLongCalls / 2 {
			one := sitting(t, s, "a", 1)
			if err := waits(context.WithValue(t.Context(), seatKey{}, one[0])); err != nil {
				t.Fatal(err)
			}
			waiting = append(waiting, one...)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited %v for those who only wait", waited)
		}
		more := sitting(t, s, "a", 1)
		if err := more[0].waiting(); !errors.Is(err, job.QuotaExceeded) || !more[0].taken {
			t.Errorf("one tenant has more than %d calls that only wait", MaxLongCalls/2)
		}
		leave(more)
		leave(waiting)
		idle(t, s)
	})
}

// TestWaitingHoldsNoSeat: a tenant that has as many calls waiting as it may can make all
// others all the same, whatever else it would like to wait for.
func TestWaitingHoldsNoSeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, service := &admission{}, &service{stopping: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		var refused atomic.Int64
		poll := func(readOnly bool) {
			calls.Go(func() {
				got, err := s.admit(ctx, "a")
				if err != nil {
					t.Error(err)
					return
				}
				defer got.leave()
				err = service.waiting(context.WithValue(ctx, seatKey{}, got), time.Minute, func(ctx context.Context, wait time.Duration) error {
					if wait == 0 {
						return nil
					}
					<-ctx.Done()
					return context.Cause(ctx)
				}, readOnly)
				if errors.Is(err, errCrowded) {
					refused.Add(1)
				}
			})
		}
		for n := 0; n < MaxLongCalls/2; n += MaxTenantCalls {
			for range min(MaxTenantCalls, MaxLongCalls/2-n) {
				poll(true)
			}
			time.Sleep(soonAfter)
			synctest.Wait()
		}
		if l := s.load(); l.waiting != MaxLongCalls/2 || l.working != 0 {
			t.Fatalf("there are %+v", l)
		}
		for i := range MaxTenantCalls {
			poll(i%2 == 0)
		}
		time.Sleep(soonAfter)
		synctest.Wait()
		if refused.Load() != MaxTenantCalls {
			t.Errorf("%d of %d calls that can't wait were told", refused.Load(), MaxTenantCalls)
		}
		begun := time.Now()
		leave(sitting(t, s, "a", MaxTenantCalls)) // its posts
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("its other calls waited %v", waited)
		}
		cancel()
		calls.Wait()
		idle(t, s)
	})
}

// TestMuchWorkWaits: a flood of large calls has a bounded part of them worked on at a
// time, and waits without seats; another tenant's large call goes before it, and small
// ones don't wait at all.
func TestMuchWorkWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, work := &admission{}, &budget{most: MaxWork, mostOfTenant: MaxTenantWork}
		var mu sync.Mutex
		var order []string
		var calls sync.WaitGroup
		call := func(tenant string, items int) {
			calls.Go(func() {
				got, err := s.admit(t.Context(), tenant)
				if err != nil {
					t.Error(err)
					return
				}
				defer got.leave()
				if err := works(context.WithValue(t.Context(), seatKey{}, got), work, items); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				order = append(order, fmt.Sprint(tenant, items))
				mu.Unlock()
			})
			synctest.Wait()
		}
		for range 16 {
			call("flood", 1000)
		}
		call("other", 1000)
		call("third", 1000)
		call("flood", MaxLightWork)
		if used, _ := work.held(); used != 2000 || s.load().working != 3 {
			t.Errorf("%d items are worked on by %+v", used, s.load())
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		slices.Sort(order)
		if got := fmt.Sprint(order); got != "[flood1000 flood8 other1000]" {
			t.Errorf("first ended %s", got)
		}
		order = nil
		mu.Unlock()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		if !slices.Contains(order, "third1000") {
			t.Errorf("then ended %s", order)
		}
		mu.Unlock()
		calls.Wait()
		if used, refused := work.held(); used != 0 || refused != 0 {
			t.Errorf("left over: %d items, %d refused", used, refused)
		}
		idle(t, s)
		time.Sleep(workWithin)
	})
}

// TestShedding: a full queue refuses those who ask for the most, and nobody waits
// for longer than is said.
func TestShedding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &admission{}
		held := sitting(t, s, "a", MaxTenantCalls)
		s.mu.Lock()
		for range MaxLongCalls / 2 {
			s.long++
			s.tenants["a"].long++ // what takes long stays where it is
		}
		s.mu.Unlock()
		var mu sync.Mutex
		failed := map[string]int{}
		var calls sync.WaitGroup
		ask := func(ctx context.Context, tenant string, n int) {
			for range n {
				calls.Go(func() {
					got, err := s.admit(ctx, tenant)
					if err == nil {
						got.leave()
						return
					}
					mu.Lock()
					defer mu.Unlock()
					failed[fmt.Sprint(tenant, " ", job.KindOf(err), " ", errors.Is(err, context.Canceled))]++
				})
			}
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ask(ctx, "a", 10)
		ask(t.Context(), "a", MaxQueued-10)
		if l := s.load(); l.queued != MaxQueued || l.full != 0 {
			t.Fatalf("the queue is %+v", l)
		}
		ask(t.Context(), "a", 5)
		if l := s.load(); l.queued != MaxQueued || l.full != 5 {
			t.Errorf("five more: %+v", l)
		}
		begun := time.Now()
		ask(t.Context(), "b", 10)
		if waited := time.Since(begun); waited != 0 || s.load().full != 5 {
			t.Errorf("another tenant waited %v, %+v", waited, s.load())
		}
		filled := sitting(t, s, "b", MaxCalls-MaxTenantCalls)
		ask(t.Context(), "c", 7)
		if l := s.load(); l.queued != MaxQueued || l.full != 12 {
			t.Errorf("another tenant's calls go before the last ones of the longest queue: %+v", l)
		}
		cancel()
		synctest.Wait()
		time.Sleep(queuedFor)
		synctest.Wait()
		if l := s.load(); l.queued != 0 {
			t.Errorf("after %v there still wait %+v", queuedFor, l)
		}
		leave(filled)
		calls.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := map[string]int{"a UNAVAILABLE false": MaxQueued - 10 + 5, fmt.Sprint("a ", job.KindOf(context.Canceled), " true"): 10}
		for what, n := range want {
			if failed[what] != n {
				t.Errorf("%d were refused as %s, want %d: %v", failed[what], what, n, failed)
			}
		}
		s.mu.Lock()
		s.long -= MaxLongCalls / 2
		s.tenants["a"].long -= MaxLongCalls / 2
		s.mu.Unlock()
		leave(held)
		idle(t, s)
	})
}

// TestSeatGivenUpLate: who has gone when he hears of his seat frees what has become of it
// meanwhile.
func TestSeatGivenUpLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &admission{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 { // of the seat and the end of ctx, now one is seen first and now the other
			held := sitting(t, s, "a", MaxTenantCalls)
			s.mu.Lock()
			late := &seat{seats: s, party: s.tenants["a"]}
			err := s.queue(late)
			s.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			held[0].leave() // his is the seat now
			time.Sleep(longAfter)
			synctest.Wait() // and he only waits
			if late.wait(ctx) == nil {
				late.leave()
			}
			leave(held[1:])
			idle(t, s)
		}
	})
}

// TestSeatsHammer takes and leaves seats in every way at once.
func TestSeatsHammer(t *testing.T) {
	t.Parallel()
	s := &admission{}
	var calls sync.WaitGroup
	for i := range 600 {
		calls.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%7 == 0 {
					go cancel()
				}
				if got, err := s.admit(ctx, fmt.Sprint("t", i%5)); err == nil {
					if n%3 == 0 {
						go func() { _ = got.waiting() }()
					}
					if l := s.load(); l.working > MaxCalls {
						t.Errorf("there are %+v", l)
					}
					got.leave()
				}
				cancel()
			}
		})
	}
	calls.Wait()
	idle(t, s)
}

func BenchmarkSeats(b *testing.B) {
	s := &admission{}
	for b.Loop() {
		got, err := s.admit(b.Context(), "a")
		if err != nil {
			b.Fatal(err)
		}
		got.leave()
	}
}
