package host

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// remembering is a driver of which the host remembers what it acknowledged: a store
// that was put back, or lost its last changes, is found out when a board is opened.
// It also times the driver's changes.
type remembering struct {
	driver.Driver

	backend *backend
	boards  sync.Map // of *acknowledged, by name
}

// acknowledged is how far one board had come when the host was last told.
type acknowledged struct {
	mu    sync.Mutex
	known recollection
}

func (r *remembering) board(name string) *acknowledged {
	if a, ok := r.boards.Load(name); ok {
		return a.(*acknowledged)
	}
	known := recall(r.backend.memory.Get(boardMemory(r.backend.config.Name, name)))
	a, _ := r.boards.LoadOrStore(name, &acknowledged{known: known})
	return a.(*acknowledged)
}

// OpenBoard adds what is remembered and keeps what comes back. What cannot be kept
// does not stop the board: only a later loss would go unseen.
func (r *remembering) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	a := r.board(spec.Name)
	a.mu.Lock()
	spec.Memory = a.known.memory
	a.mu.Unlock()
	status, err := r.Driver.OpenBoard(ctx, spec)
	if err != nil {
		return status, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if status.Loss != "" || a.known.position < status.Position {
		a.known.position = status.Position
	}
	a.known.memory = status.Memory
	r.keep(spec.Name, a)
	return status, nil
}

// Apply notes how far the board has come before anybody is told of it.
func (r *remembering) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	begun := time.Now()
	results := r.Driver.Apply(ctx, board, ops)
	r.backend.latency.observe(time.Since(begun))
	last := latest(results)
	a := r.board(board)
	a.mu.Lock()
	defer a.mu.Unlock()
	if last > a.known.position {
		a.known.position = last
		r.keep(board, a)
	}
	return results
}

// latest returns the last position at which one of results made a change.
func latest(results []driver.Result) (last driver.Position) {
	for i := range results {
		switch r := &results[i]; {
		case r.Kind != job.NoKind:
		case len(r.Claims) > 0:
			for j := range r.Claims {
				last = max(last, r.Claims[j].Position)
			}
		default:
			last = max(last, r.Position)
		}
	}
	return last
}

// keep remembers a board. The caller has a.mu.
func (r *remembering) keep(board string, a *acknowledged) {
	if err := r.backend.memory.Put(boardMemory(r.backend.config.Name, board), a.known.encode()); err != nil {
		r.backend.forgetful.Do(func() {
			r.backend.logger.Error("what was acknowledged could not be remembered: a store that is put back may go unnoticed", "board", board, "error", err)
		})
	}
}

// DropBoard drops a board and forgets it.
func (r *remembering) DropBoard(ctx context.Context, board string) error {
	if err := r.Driver.DropBoard(ctx, board); err != nil {
		return err
	}
	r.boards.Delete(board)
	if err := r.backend.memory.Forget(boardMemory(r.backend.config.Name, board)); err != nil {
		r.backend.logger.Warn("a board that was dropped could not be forgotten", "board", board, "error", err)
	}
	return nil
}
