package index

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A siege is many goroutines on one index, and what must hold among them.
type siege struct {
	ix       *Index
	position atomic.Uint64
	holders  []atomic.Int32 // by job: how many hold a reservation of this version
	done     atomic.Int64
}

func (s *siege) next() driver.Position { return driver.Position(s.position.Add(1)) }

func (s *siege) class(t *testing.T, rnd *rand.Rand) *Class {
	t.Helper()
	value := rnd.IntN(12)
	c, err := s.ix.Class(t.Context(), strconv.Itoa(value), labelled(value))
	if err != nil {
		t.Error(err)
	}
	return c
}

// work waits for a job, holds it, and ends it in one of the ways there are.
func (s *siege) work(t *testing.T, rnd *rand.Rand) bool {
	t.Helper()
	c := s.class(t, rnd)
	w := s.ix.Waiter(c)
	defer w.Close()
	taken := s.ix.Take(context.Background(), c, 1+rnd.IntN(3))
	if len(taken) == 0 {
		select {
		case <-w.C:
		case <-time.After(time.Millisecond):
			return false
		}
		taken = s.ix.Take(context.Background(), c, 1)
	}
	w.Close()
	for _, e := range taken {
		n := numbers([]*Entry{e})[0]
		if s.holders[n].Add(1) != 1 {
			t.Errorf("job %d was offered to two at once", n)
		}
		if c.key.Name != "" && e.Labels[0].Value != c.key.Name {
			t.Errorf("job %d is not for class %q", n, c.key)
		}
		how := rnd.IntN(4)
		if how == 0 {
			s.holders[n].Add(-1)
			s.ix.Return(e.ID)
			continue
		}
		held := *e
		held.Version, held.Position = e.Version+1, s.next()
		held.Claim = &Claim{Owner: "w", Ends: time.Now().Add(time.Duration(rnd.IntN(3)) * time.Millisecond)}
		s.ix.Put(&held)
		if how == 1 {
			s.ix.Touch(e.ID, s.next(), held.Version, Claim{Owner: "w", Ends: time.Now().Add(time.Hour)})
		}
		if how < 3 {
			back := held
			back.Version, back.Position, back.Claim = held.Version+1, s.next(), nil
			back.NotBefore = time.Now().Add(time.Duration(rnd.IntN(3)) * time.Millisecond)
			s.holders[n].Add(-1)
			s.ix.Put(&back)
			continue
		}
		s.holders[n].Add(-1)
		s.ix.Remove(e.ID, s.next())
		s.done.Add(1)
	}
	return len(taken) > 0
}

func (s *siege) look(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	changed := s.ix.Changed()
	p := s.ix.Page(PageRequest{Limit: 50, Visit: 300, Unclaimed: true, Claimed: true})
	for i := 1; i < len(p.Entries); i++ {
		if !p.Entries[i-1].Order().Less(p.Entries[i].Order()) {
			t.Error("a page is out of order")
		}
	}
	if len(p.Entries) > 0 {
		e := p.Entries[rnd.IntN(len(p.Entries))]
		s.ix.Get(e.ID)
		s.ix.Rank(e.ID, s.class(t, rnd))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_ = s.ix.Left(ctx, []job.ID{e.ID}) // most are still there when time is up
		cancel()
	}
	select {
	case <-changed:
	default:
	}
	s.ix.Count()
	s.ix.Next()
	for _, l := range s.ix.Tick(time.Now()) {
		s.ix.Again(l.ID, time.Now().Add(time.Millisecond))
	}
}

func TestHammer(t *testing.T) {
	t.Parallel()
	const jobs, workers = 3000, 6
	s := &siege{ix: New(), holders: make([]atomic.Int32, jobs+1)}
	var posting, rest sync.WaitGroup
	for p := range 2 {
		posting.Go(func() {
			for n := 1 + p; n <= jobs; n += 40 {
				var batch []*Entry
				for m := n; m <= jobs && m < n+40; m += 2 {
					e := entry(m)
					e.Position = s.next()
					batch = append(batch, e)
				}
				s.ix.PutAll(batch)
			}
		})
	}
	for i := range workers {
		rest.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			for s.done.Load() < jobs/2 && !t.Failed() {
				s.work(t, rnd)
			}
		})
	}
	rest.Go(func() {
		rnd := rand.New(rand.NewPCG(99, 7))
		for s.done.Load() < jobs/2 && !t.Failed() {
			s.look(t, rnd)
		}
	})
	rest.Go(func() {
		for s.done.Load() < jobs/2 && !t.Failed() {
			snapshot := s.ix.Sync()
			s.ix.Page(PageRequest{Limit: 10})
			snapshot.End(0)
			s.ix.Forget(driver.Position(s.position.Load() / 2))
		}
	})
	posting.Wait()
	rest.Wait()
	s.ix.check(t)
	if n := s.ix.Stats().Waiters; n != 0 {
		t.Errorf("%d waiters are left", n)
	}
}

// TestNobodySleepsOverAJob has workers that do nothing but wait to be woken. A
// wake-up that is lost leaves jobs that nobody takes.
func TestNobodySleepsOverAJob(t *testing.T) {
	t.Parallel()
	const jobs, workers = 4000, 40
	ix := New()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var left atomic.Int64
	left.Store(jobs)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			key := strconv.Itoa(i % 10)
			c, err := ix.Class(ctx, key, labelled(i%10))
			if err != nil {
				if ctx.Err() == nil { // else the others were so quick that nothing is left
					t.Error(err)
				}
				return
			}
			if i >= workers-5 {
				c = ix.everyone
			}
			for ctx.Err() == nil {
				if n := awaitOne(ctx, ix, c, i%3 == 0); n > 0 && left.Add(-int64(n)) == 0 {
					cancel()
				}
			}
		})
	}
	for n := 1; n <= jobs; n++ {
		ix.Put(entry(n))
	}
	all.Wait()
	if n := left.Load(); n != 0 {
		t.Errorf("%d jobs were slept over", n)
	}
	ix.check(t)
}

// awaitOne takes a job as a worker does. A fickle one gives the first that it
// gets back.
func awaitOne(ctx context.Context, ix *Index, c *Class, fickle bool) int {
	w := ix.Waiter(c)
	defer w.Close()
	for {
		for _, e := range ix.Take(context.Background(), c, 1) {
			if fickle {
				ix.Return(e.ID)
				fickle = false
				continue
			}
			ix.Remove(e.ID, 1<<40)
			return 1
		}
		select {
		case <-w.C:
		case <-ctx.Done():
			return 0
		}
	}
}
