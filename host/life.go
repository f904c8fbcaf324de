package host

import (
	"context"
	"sync"
	"sync/atomic"
)

// latch is a channel that is closed once, and that is made when somebody waits for that: most
// boards rest or are another server's, and nobody waits for anything of them. The zero value is
// open.
type latch struct {
	c atomic.Pointer[chan struct{}]
}

// shut is the channel of latches that were closed.
var shut = func() *chan struct{} {
	c := make(chan struct{})
	close(c)
	return &c
}()

// close closes the latch, if it is open.
func (l *latch) close() {
	if c := l.c.Swap(shut); c != nil && c != shut {
		close(*c)
	}
}

// closed reports whether the latch is closed.
func (l *latch) closed() bool { return l.c.Load() == shut }

// done returns a channel that is closed as soon as the latch is.
func (l *latch) done() <-chan struct{} {
	if c := l.c.Load(); c != nil {
		return *c
	}
	c := make(chan struct{})
	l.c.CompareAndSwap(nil, &c)
	return *l.c.Load()
}

// life is a context that is made when somebody needs it, and ends with a reason. The zero value
// goes on.
type life struct {
	made atomic.Pointer[made] // nil: nobody needed it yet; it is read without mu, since each call on a board does

	mu   sync.Mutex
	over error // the reason; nil: it goes on
}

// made is the context of a life.
type made struct {
	ctx    context.Context //nolint:containedctx // of what lives, not of a call
	cancel context.CancelCauseFunc
}

// within returns the context, which ends with another one, too. It is the same one each time.
func (l *life) within(other context.Context) context.Context {
	if m := l.made.Load(); m != nil {
		return m.ctx
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made.Load() == nil {
		ctx, cancel := context.WithCancelCause(other)
		l.made.Store(&made{ctx, cancel})
		if l.over != nil {
			cancel(l.over)
		}
	}
	return l.made.Load().ctx
}

// end ends the life. The first reason is the one that counts.
func (l *life) end(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil {
		l.over = reason
	}
	if m := l.made.Load(); m != nil {
		m.cancel(l.over)
	}
}

// ended reports whether the life has been ended.
func (l *life) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over != nil
}
