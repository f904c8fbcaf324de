package host

import (
	"context"
	"slices"
	"sync"
)

// openLimiter lets boards take a step of their opening a few at a time, in the order in which
// they came. Boards that a call waits for go first.
type openLimiter struct {
	mu      sync.Mutex
	free    int
	waiting []*openSlot
}

// openSlot is a board's place in the limiter's queue.
type openSlot struct {
	called chan struct{} // closed when it is its turn
	asked  bool          // somebody waits for it
}

func newOpenLimiter(atOnce int) *openLimiter { return &openLimiter{free: atOnce} }

// enter waits for the turn. After nil, leave must be called.
func (l *openLimiter) enter(ctx context.Context, t *openSlot) error {
	l.mu.Lock()
	if err := ctx.Err(); err != nil {
		l.mu.Unlock()
		return err
	}
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return nil
	}
	called := make(chan struct{})
	t.called = called
	if t.asked {
		l.waiting = slices.Insert(l.waiting, 0, t)
	} else {
		l.waiting = append(l.waiting, t)
	}
	l.mu.Unlock()
	select {
	case <-called:
		return nil
	case <-ctx.Done():
		l.quit(t)
		return ctx.Err()
	}
}

// quit takes t out of the queue. If it was called at the same moment, its turn goes to
// the next one.
func (l *openLimiter) quit(t *openSlot) {
	l.mu.Lock()
	i := slices.Index(l.waiting, t)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 {
		l.leave()
	}
}

// leave lets the next one go.
func (l *openLimiter) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.free++
		return
	}
	close(l.waiting[0].called)
	l.waiting[0] = nil // it is a part of its board, which would be kept
	l.waiting = l.waiting[1:]
}

// first moves a turn to the front, whether it waits already or not.
func (l *openLimiter) first(t *openSlot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.asked {
		return
	}
	t.asked = true
	if i := slices.Index(l.waiting, t); i > 0 {
		l.waiting = slices.Insert(slices.Delete(l.waiting, i, i+1), 0, t)
	}
}
