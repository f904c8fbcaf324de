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
}

// acknowledged is how far one board had come when the host was last told.
type acknowledged struct {
	mu    sync.Mutex
	known recollection

	// before is the driver's memory from before a loss that was reported last, nil if
	// there was none. It is what lies on the disk until the board was opened again:
	// should the host be killed before anybody has written the report down, the driver
	// tells of the loss again.
	before []byte
}

// acknowledged returns what is remembered of a board.
func (b *backend) acknowledged(board string) *acknowledged {
	if a, ok := b.boards.Load(board); ok {
		return a.(*acknowledged)
	}
	known := recall(b.memory.Get(boardMemory(b.config.Name, board)))
	a, _ := b.boards.LoadOrStore(board, &acknowledged{known: known})
	return a.(*acknowledged)
}

// recall adds to a specification what is remembered of the board.
func (b *backend) recall(spec *driver.BoardSpec) {
	a := b.acknowledged(spec.Name)
	a.mu.Lock()
	defer a.mu.Unlock()
	spec.Witness, spec.Seen = a.known.memory, a.known.position
}

// remember keeps what is known of a board. What cannot be kept does not stop the
// board: only a later loss would go unseen. The caller has a.mu.
func (b *backend) remember(board string, a *acknowledged) {
	known := a.known
	if a.before != nil {
		known.memory = a.before
	}
	if err := b.memory.Put(boardMemory(b.config.Name, board), known.encode()); err != nil {
		b.forgetful.Do(func() {
			b.logger.Error("what was acknowledged could not be remembered: a store that is put back may go unnoticed", "board", board, "error", err)
		})
	}
}

// OpenBoard adds what is remembered and keeps what comes back.
func (r *remembering) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	r.backend.recall(&spec)
	status, err := r.Driver.OpenBoard(ctx, spec)
	if err != nil {
		return status, err
	}
	a := r.backend.acknowledged(spec.Name)
	a.mu.Lock()
	defer a.mu.Unlock()
	if status.Loss != "" {
		a.known.position, a.before = status.Position, spec.Witness
	} else {
		a.known.position, a.before = max(a.known.position, status.Position), nil
	}
	a.known.memory = status.Witness
	r.backend.remember(spec.Name, a)
	return status, nil
}

// Apply notes how far the board has come before anybody is told of it.
func (r *remembering) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	begun := time.Now()
	results := r.Driver.Apply(ctx, board, ops)
	r.backend.latency.Observe(time.Since(begun))
	last := latest(results)
	a := r.backend.acknowledged(board)
	a.mu.Lock()
	defer a.mu.Unlock()
	if last > a.known.position {
		a.known.position = last
		r.backend.remember(board, a)
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

// DropBoard drops a board and forgets it.
func (r *remembering) DropBoard(ctx context.Context, board string) error {
	if err := r.Driver.DropBoard(ctx, board); err != nil {
		return err
	}
	r.backend.boards.Delete(board)
	if err := r.backend.memory.Forget(boardMemory(r.backend.config.Name, board)); err != nil {
		r.backend.logger.Warn("a board that was dropped could not be forgotten", "board", board, "error", err)
	}
	return nil
}
