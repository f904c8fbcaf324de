package board

import (
	"context"
	"sync/atomic"
	"time"
)

// Idle is how long a call waited for something to happen, as against its own work.
type Idle struct{ nanos atomic.Int64 }

// Time returns it.
func (i *Idle) Time() time.Duration { return time.Duration(i.nanos.Load()) }

type idleKey struct{}

// WithIdle returns a context whose calls count into an Idle.
func WithIdle(ctx context.Context) (context.Context, *Idle) {
	i := new(Idle)
	return context.WithValue(ctx, idleKey{}, i), i
}

// idle counts from now on until stop is called.
func idle(ctx context.Context) (stop func()) {
	i, ok := ctx.Value(idleKey{}).(*Idle)
	if !ok {
		return func() {}
	}
	begun := time.Now()
	return func() { i.nanos.Add(int64(time.Since(begun))) }
}
