package host

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
)

// sleepers are the boards that rest, in the order in which they are to be opened though nobody
// calls. One goroutine and one timer look after all of them.
//
// The mutex is held for arithmetic only. Where both are held, a board's beginning.mu is taken
// before it.
type sleepers struct {
	kick chan struct{} // the first one is another one now

	mu  sync.Mutex
	due sleepersByTime
}

func newSleepers() *sleepers { return &sleepers{kick: make(chan struct{}, 1)} }

// sleeper is a board's place among them.
type sleeper struct {
	due time.Time
	at  int // in the heap, from 1 on; 0: it is not there
}

// add has a board waken when it is due.
func (l *sleepers) add(s *Hosted, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.sleeps.due = due
	if heap.Push(&l.due, s); s.sleeps.at > 1 {
		return
	}
	select {
	case l.kick <- struct{}{}:
	default: // it is about to look
	}
}

// remove forgets a board, if it is there.
func (l *sleepers) remove(s *Hosted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.sleeps.at > 0 {
		heap.Remove(&l.due, s.sleeps.at-1)
	}
}

// next takes a board that is due, or returns for how long none is, which is board.ClockLook at most.
func (l *sleepers) next(now time.Time) (s *Hosted, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.due) == 0 {
		return nil, board.ClockLook
	}
	if wait = l.due[0].sleeps.due.Sub(now); wait > 0 {
		return nil, min(wait, board.ClockLook)
	}
	return heap.Pop(&l.due).(*Hosted), 0
}

// run wakens boards until ctx ends.
func (l *sleepers) run(ctx context.Context) {
	timer := time.NewTimer(board.ClockLook)
	defer timer.Stop()
	for ctx.Err() == nil {
		s, wait := l.next(time.Now())
		if s != nil {
			s.call()
			continue
		}
		timer.Reset(wait)
		select {
		case <-l.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// sleepersByTime is a heap.
type sleepersByTime []*Hosted

// Len is part of heap.Interface, like the next four.
func (h sleepersByTime) Len() int { return len(h) }

// Less reports whether one is due before another one.
func (h sleepersByTime) Less(i, j int) bool { return h[i].sleeps.due.Before(h[j].sleeps.due) }

// Swap exchanges two.
func (h sleepersByTime) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].sleeps.at, h[j].sleeps.at = i+1, j+1
}

// Push adds one at the end.
func (h *sleepersByTime) Push(x any) {
	s := x.(*Hosted)
	*h = append(*h, s)
	s.sleeps.at = len(*h)
}

// Pop takes the last one away.
func (h *sleepersByTime) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.sleeps.at = 0
	return s
}
