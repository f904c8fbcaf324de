package peers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A plan says how much is measured.
type plan struct {
	handlers []int         // of the workers that empty a queue
	drain    time.Duration // about how long a queue takes to be emptied, by the rate of the turn before
	atMost   int           // jobs in it, and at least a tenth of that in the first turn
	lone     int           // jobs posted one after the other, each when the last one is being worked on
	half     time.Duration // for which jobs are posted at half the rate of 64 handlers
	each     int           // jobs that each of very many handlers does
	round    int           // jobs in each turn beside a transaction that is held open
}

// whole is what the table is made of.
var whole = plan{
	handlers: []int{1, 10, 64, 256}, drain: 500 * time.Millisecond, atMost: 10_000, lone: 150, half: time.Second, each: 10, round: 2000,
}

// quick is just enough to see that everything runs.
var quick = plan{
	handlers: []int{1, 10}, drain: 50 * time.Millisecond, atMost: 200, lone: 5, half: 50 * time.Millisecond, each: 2, round: 50,
}

// figures are what was measured of one peer, a value for each turn.
type figures struct {
	enqueued []float64         // jobs posted in a second
	worked   map[int][]float64 // by handlers, jobs done in a second
	lone     []time.Duration   // from post to handler, all turns together
	half     []time.Duration   // likewise
}

// turn measures a peer once.
func (p *plan) turn(t *testing.T, one *peer, f *figures) error {
	t.Helper()
	for _, n := range p.handlers {
		if err := p.empty(t.Context(), one, f, n); err != nil {
			return fmt.Errorf("%s, %d handlers: %w", one.name, n, err)
		}
	}
	if err := p.loneWorker(t.Context(), one, f); err != nil {
		return fmt.Errorf("%s, a lone worker: %w", one.name, err)
	}
	if err := p.halfLoad(t.Context(), one, f); err != nil {
		return fmt.Errorf("%s, half load: %w", one.name, err)
	}
	return nil
}

// empty fills a queue and has a worker empty it, with as many jobs as the turn before says.
func (p *plan) empty(ctx context.Context, one *peer, f *figures, handlers int) error {
	n := max(p.atMost/20, 20)
	if rates := f.worked[handlers]; len(rates) > 0 {
		n = min(max(int(rates[len(rates)-1]*p.drain.Seconds()), n), p.atMost)
	}
	enqueued, worked, err := emptied(ctx, one, handlers, n)
	if err != nil {
		return err
	}
	f.enqueued = append(f.enqueued, enqueued)
	f.worked[handlers] = append(f.worked[handlers], worked)
	return nil
}

// emptied fills a queue with n jobs and has a worker empty it, and returns how many jobs a
// second were posted and done. What counts for the latter is the time from the first
// handler's beginning to the last one's end.
func emptied(ctx context.Context, one *peer, handlers, n int) (enqueued, worked float64, err error) {
	list := payloads(n)
	began := time.Now()
	if err := one.Post(ctx, list); err != nil {
		return 0, 0, err
	}
	enqueued = float64(n) / time.Since(began).Seconds()
	var begun, done atomic.Int64
	var first atomic.Int64
	all := make(chan time.Time, 1)
	stop, err := one.Work(handlers, func([]byte) {
		if begun.Add(1) == 1 {
			first.Store(int64(time.Since(base)))
		}
		if done.Add(1) == int64(n) {
			all <- time.Now()
		}
	})
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	select {
	case last := <-all:
		return enqueued, float64(n) / (last.Sub(base) - time.Duration(first.Load())).Seconds(), nil
	case <-time.After(patience):
		return 0, 0, fmt.Errorf("%d of %d jobs were done after %s", done.Load(), n, patience)
	}
}

const patience = 2 * time.Minute

// loneWorker posts jobs for a worker with one handler that has nothing else to do.
func (p *plan) loneWorker(ctx context.Context, one *peer, f *figures) error {
	ages := make(chan time.Duration, 1)
	stop, err := one.Work(1, func(payload []byte) { ages <- age(payload) })
	if err != nil {
		return err
	}
	defer stop()
	for range p.lone {
		if err := one.Post(ctx, payloads(1)); err != nil {
			return err
		}
		select {
		case took := <-ages:
			f.lone = append(f.lone, took)
		case <-time.After(patience):
			return fmt.Errorf("a job was not begun after %s", patience)
		}
		time.Sleep(time.Millisecond) // the worker waits again
	}
	return nil
}

// halfLoad posts jobs at half the rate at which the most handlers do them, up to 64, each
// millisecond those that are due then. A job that is posted late has been due all the same.
func (p *plan) halfLoad(ctx context.Context, one *peer, f *figures) error {
	handlers := p.handlers[min(2, len(p.handlers)-1)]
	rates := f.worked[handlers]
	perTick := rates[len(rates)-1] / 2 / 1000
	n := max(int(perTick*float64(p.half.Milliseconds())), 1)
	var mu sync.Mutex
	var ages []time.Duration
	all := make(chan struct{})
	stop, err := one.Work(handlers, func(payload []byte) {
		took := age(payload)
		mu.Lock()
		defer mu.Unlock()
		if ages = append(ages, took); len(ages) == n {
			close(all)
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	due := make(chan [][]byte, n)
	failed := make(chan error, n)
	var posting sync.WaitGroup
	for range 16 {
		posting.Go(func() {
			for part := range due {
				if err := one.Post(ctx, part); err != nil {
					failed <- err
				}
			}
		})
	}
	began, posted := time.Now(), 0
	for tick := 1; posted < n; tick++ {
		at := began.Add(time.Duration(tick) * time.Millisecond)
		time.Sleep(time.Until(at))
		var part [][]byte
		for ; posted < n && posted < int(perTick*float64(tick)); posted++ {
			part = append(part, stamped(at))
		}
		if len(part) > 0 {
			due <- part
		}
		if tick > 10*int(p.half.Milliseconds()) { // less than a job in a tick, and rounded down
			for ; posted < n; posted++ {
				due <- [][]byte{stamped(at)}
			}
		}
	}
	close(due)
	posting.Wait()
	select {
	case err := <-failed:
		return err
	case <-all:
		f.half = append(f.half, ages...)
		return nil
	case <-time.After(patience):
		mu.Lock()
		defer mu.Unlock()
		return fmt.Errorf("%d of %d jobs were begun after %s", len(ages), n, patience)
	}
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// quantile is the value below which a part of the list lies.
func quantile(list []time.Duration, part float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(float64(len(sorted))*part), len(sorted)-1)]
}
