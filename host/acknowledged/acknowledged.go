// Package acknowledged remembers how far each board had come when this host was last
// told of a change, and what its driver wants to be reminded of when it opens the board
// again. It stands around the driver of a backend and writes into host/memory, which
// lies where no store's restore reaches it: so a store that was put back is found.
//
// Locks: progress.mu is held while the host's memory is written, which is a write
// without a sync.
package acknowledged

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/boardd/boardd/host/memory"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// Backend is what is remembered of the boards of one backend.
type Backend struct {
	name   string
	memory *memory.Memory
	logger *slog.Logger

	boards    sync.Map  // of *progress, by their keys
	forgetful sync.Once // of saying that nothing can be remembered
}

// Of returns what is remembered of a backend's boards.
func Of(backend string, m *memory.Memory, logger *slog.Logger) *Backend {
	return &Backend{name: backend, memory: m, logger: logger}
}

// Through returns a driver that remembers what d acknowledges. took is told how long
// each batch of changes took.
func (b *Backend) Through(d driver.Driver, took func(time.Duration)) driver.Driver {
	return &remembering{Driver: d, backend: b, took: took}
}

// remembering is a driver whose acknowledgements are remembered.
type remembering struct {
	driver.Driver

	backend *Backend
	took    func(time.Duration)
}

// progress is how far one board had come when the host was last told.
type progress struct {
	mu    sync.Mutex
	known Board

	// While the board is being opened, a change may be acknowledged by the store as the
	// driver has just found it, and the host has no witness of that yet. Beside the one of
	// before, the change would be taken for one of the store of before: it is not written
	// down until the board is open.
	opening int // calls that do
	behind  bool

	learned *Board // what another host knew when it was last heard of; nil: nobody has told

	// before is the driver's memory from before a loss that was reported last, nil if
	// there was none. It is what lies on the disk until the board was opened again:
	// should the host be killed before anybody has written the report down, the driver
	// tells of the loss again.
	before []byte
}

// of returns what is remembered of a board.
func (b *Backend) of(board string) *progress {
	if a, ok := b.boards.Load(board); ok {
		return a.(*progress)
	}
	known := Recall(b.memory.Get(Key(b.name, board)))
	a, _ := b.boards.LoadOrStore(board, &progress{known: known})
	return a.(*progress)
}

// Recall adds to a specification what is remembered of the board, by this host or by another
// one that has seen more of it.
func (b *Backend) Recall(spec *driver.BoardSpec) {
	a := b.of(spec.Name)
	a.mu.Lock()
	defer a.mu.Unlock()
	most := &a.known
	if l := a.learned; l != nil && (l.Position > most.Position || most.Witness == nil) {
		most = l
	}
	spec.Witness, spec.Seen = most.Witness, most.Position
}

// remember keeps what is known of a board. What cannot be kept does not stop the
// board: only a later loss would go unseen. The caller has a.mu.
func (b *Backend) remember(board string, a *progress) {
	known := a.known
	if a.before != nil {
		known.Witness = a.before
	}
	if err := b.memory.Put(Key(b.name, board), known.encode()); err != nil {
		b.forgetful.Do(func() {
			b.logger.Error("what was acknowledged could not be remembered: a store that is put back may go unnoticed", "board", board, "error", err)
		})
	}
}

// begin notes that the board is being opened, and returns what ends that.
func (b *Backend) begin(board string) (end func()) {
	a := b.of(board)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opening++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.opening--
		if forgotten := b.of(board) != a; forgotten || !a.behind || a.opening > 0 {
			return
		}
		a.behind = false
		b.remember(board, a)
	}
}

// OpenBoard adds what is remembered and keeps what comes back.
func (r *remembering) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	defer r.backend.begin(spec.Name)()
	r.backend.Recall(&spec)
	status, err := r.Driver.OpenBoard(ctx, spec)
	if err == nil {
		r.backend.Opened(&spec, &status)
	}
	return status, err
}

// Learn hears what another host knows of a board: one that closed it, or that has it open. The
// driver is reminded of it when the board is opened here, if it is more than is known here.
func (b *Backend) Learn(board string, known Board) {
	a := b.of(board)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.learned = &known; known.Witness == nil {
		a.learned = nil
	}
}

// Known is what is remembered of a board, for another host.
func (b *Backend) Known(board string) Board {
	a := b.of(board)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// Opened keeps what came back when a board was opened with a specification.
func (b *Backend) Opened(spec *driver.BoardSpec, status *driver.BoardStatus) {
	a := b.of(spec.Name)
	a.mu.Lock()
	defer a.mu.Unlock()
	if status.Loss != "" {
		a.known.Position, a.before = status.Position, spec.Witness
	} else {
		a.known.Position, a.before = max(a.known.Position, status.Position), nil
	}
	a.known.Witness, a.behind, a.learned = status.Witness, false, nil
	b.remember(spec.Name, a)
}

// Apply notes how far the board has come before anybody is told of it.
func (r *remembering) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	begun := time.Now()
	results := r.Driver.Apply(ctx, board, ops)
	r.took(time.Since(begun))
	failpoint.Hit("acknowledged/before-remember")
	last := latest(results)
	a := r.backend.of(board)
	a.mu.Lock()
	defer a.mu.Unlock()
	if last > a.known.Position {
		a.known.Position = last
		if a.opening > 0 {
			a.behind = true
			return results
		}
		r.backend.remember(board, a)
		failpoint.Hit("acknowledged/after-remember")
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
	failpoint.Hit("acknowledged/before-forget")
	r.backend.Forget(board)
	return nil
}

// Came says which move has brought a board to the store. What is remembered of it from before
// it left there once, and what a host remembers that was away meanwhile, is of another board:
// it is forgotten.
func (b *Backend) Came(board, move string) {
	key := cameKey(b.name, board)
	if string(b.memory.Get(key)) == move {
		return
	}
	b.Forget(board)
	if err := b.memory.Put(key, []byte(move)); err != nil {
		b.logger.Warn("by which move a board has come could not be remembered", "board", board, "error", err)
	}
}

// Made says which board of the catalog has the name now, by its ID. What is remembered of an
// earlier one, which was deleted while this host looked away or was away, is forgotten.
func (b *Backend) Made(board, id string) {
	key := madeKey(b.name, board)
	before := string(b.memory.Get(key))
	if before == id {
		return
	}
	if before != "" { // else it was seen by a boardd that did not ask
		b.Forget(board)
	}
	if err := b.memory.Put(key, []byte(id)); err != nil {
		b.logger.Warn("which board has a name could not be remembered", "board", board, "error", err)
	}
}

// Gone forgets all of a board that the catalog does not have any more.
func (b *Backend) Gone(board string) {
	b.Forget(board)
	for _, key := range []string{cameKey(b.name, board), madeKey(b.name, board)} {
		if err := b.memory.Forget(key); err != nil {
			b.logger.Warn("a board that was dropped could not be forgotten", "board", board, "error", err)
		}
	}
}

// Forget forgets a board that was dropped, or that comes anew from another store.
func (b *Backend) Forget(board string) {
	b.boards.Delete(board)
	if err := b.memory.Forget(Key(b.name, board)); err != nil {
		b.logger.Warn("a board that was dropped could not be forgotten", "board", board, "error", err)
	}
}
