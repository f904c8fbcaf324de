package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/sleep"
)

// gatherFor is how long a round waits for others that ask at the same time.
const gatherFor = 5 * time.Millisecond

// rounds batches what many callers ask for at the same time: all that is asked for while
// one round goes on is the next round. So a thousand boards that are opened at once cost
// a few rounds and not a thousand.
type rounds[T any] struct {
	do   func(ctx context.Context, items []T) // what comes of each stands in the item
	turn chan struct{}                        // holds one as long as a round goes on

	mu      sync.Mutex
	waiting []*asked[T]
}

type asked[T any] struct {
	item T
	done bool // belongs to whoever has the turn
}

func newRounds[T any](do func(context.Context, []T)) *rounds[T] {
	return &rounds[T]{do: do, turn: make(chan struct{}, 1)}
}

// join returns once the item was in a round. The error is that of ctx.
func (r *rounds[T]) join(ctx context.Context, item T) error {
	a := &asked[T]{item: item}
	r.add(a)
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err() // it may still be in a round of others
	}
	if a.done {
		return nil
	}
	if err := sleep.For(ctx, gatherFor); err != nil {
		return err
	}
	r.mu.Lock()
	list := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	items := make([]T, len(list))
	for i, other := range list {
		items[i] = other.item
	}
	r.do(ctx, items)
	if err := ctx.Err(); err != nil { // only this one has gone: the others ask again
		for _, other := range list {
			if other != a {
				r.add(other)
			}
		}
		return err
	}
	for _, other := range list {
		other.done = true
	}
	return nil
}

func (r *rounds[T]) add(a *asked[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, a)
}
