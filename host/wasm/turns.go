package wasm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Bounds of compilations that wait.
const (
	MaxQueued    = 16              // of one account; further ones are refused
	MaxQueueTime = 5 * time.Minute // then one that waits is refused
)

// DefaultCompilations is how many compilations an engine runs at once.
const DefaultCompilations = 2

// turns lets so many compilations run at once and has the others wait, first come
// first served. The zero value lets one run.
type turns struct {
	refusals atomic.Int64

	mu      sync.Mutex
	running int
	line    []chan struct{} // closed when it is their turn
}

func (t *turns) load() (running, queued int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running, len(t.line)
}

// enter waits for a turn; leave has to be called after it. most is how many may
// run, queue how many may wait (0: any number).
func (t *turns) enter(ctx context.Context, most, queue int) error {
	t.mu.Lock()
	if t.running < max(most, 1) {
		t.running++
		t.mu.Unlock()
		return nil
	}
	if queue > 0 && len(t.line) >= queue {
		t.mu.Unlock()
		return job.Errorf(job.QuotaExceeded, "%d modules wait to be compiled already: try again later", queue)
	}
	mine := make(chan struct{})
	t.line = append(t.line, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	for i, other := range t.line {
		if other == mine {
			t.line = append(t.line[:i:i], t.line[i+1:]...)
			t.mu.Unlock()
			return job.Errorf(job.QuotaExceeded, "other modules are being compiled: try again later")
		}
	}
	t.mu.Unlock()
	t.leave() // the turn came as the time was over
	return job.Errorf(job.QuotaExceeded, "other modules are being compiled: try again later")
}

// leave hands the turn to who waits longest.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) == 0 {
		t.running--
		return
	}
	close(t.line[0])
	t.line = t.line[1:]
}

// turn waits until a module of an account may be compiled: one of an account at a
// time, so that among accounts each has its turn however many modules one brings.
func (e *Engine) turn(ctx context.Context, a *Account) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, MaxQueueTime)
	defer cancel()
	defer func() {
		if err != nil {
			e.turns.refusals.Add(1)
		}
	}()
	if a != nil {
		if err := a.turns.enter(ctx, 1, MaxQueued); err != nil {
			return nil, err
		}
	}
	if err := e.turns.enter(ctx, e.compilations(), 0); err != nil {
		if a != nil {
			a.turns.leave()
		}
		return nil, err
	}
	return func() {
		e.turns.leave()
		if a != nil {
			a.turns.leave()
		}
	}, nil
}

func (e *Engine) compilations() int {
	if e.config.Compilations == nil {
		return DefaultCompilations
	}
	if n := e.config.Compilations(); n > 0 {
		return n
	}
	return DefaultCompilations
}
