package poll

import (
	"context"
	"sync"
	"time"
)

// figureTime is how long one answer may take.
const figureTime = 10 * time.Second

// A Figure is a number that is dear to ask the store for. It is asked for while nobody waits,
// at most once in a period, and only when somebody wants it.
type Figure struct {
	every time.Duration
	ask   func(ctx context.Context) (int64, error)
	end   context.CancelFunc
	life  context.Context //nolint:containedctx // it ends what Value started, at Close
	asked sync.WaitGroup

	mu    sync.Mutex
	last  int64
	next  time.Time // when it may be asked for again
	going bool      // it is being asked for, or Close was called
}

// NewFigure returns a figure that ask answers for, which is asked once in a period.
func NewFigure(every time.Duration, ask func(ctx context.Context) (int64, error)) *Figure {
	f := &Figure{every: every, ask: ask}
	f.life, f.end = context.WithCancel(context.Background())
	return f
}

// Value is the last answer; 0 where there was none, or where the last one failed. It does not wait.
func (f *Figure) Value() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); !f.going && !now.Before(f.next) {
		f.going, f.next = true, now.Add(f.every)
		f.asked.Go(f.again)
	}
	return f.last
}

func (f *Figure) again() {
	ctx, cancel := context.WithTimeout(f.life, figureTime)
	defer cancel()
	n, err := f.ask(ctx)
	if err != nil {
		n = 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.going = n, f.life.Err() != nil
}

// Close ends what Value has begun, and waits for it.
func (f *Figure) Close() {
	f.end()
	f.mu.Lock()
	f.going = true
	f.mu.Unlock()
	f.asked.Wait()
}
