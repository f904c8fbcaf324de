package host

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// A moveRun is this host at a move. What the catalog says of the move is changed by this host
// alone as long as it is at it, and by whoever gives the move up.
type moveRun struct {
	*mover

	at     catalog.At
	logger *slog.Logger

	mu    sync.Mutex
	board catalog.Board // as it was written last
	kept  time.Time     // since when a move that is given up leaves something in the new store
	jobs  atomic.Int64  // that were brought
	round atomic.Int64
}

// errNotMine ends a run: the move is another host's now, or is further than was thought.
var errNotMine = errors.New("the move is another host's, or was changed")

// drive goes on with a move as far as that goes, and returns how long it is to be left alone.
func (m *mover) drive(ctx context.Context, at catalog.At) time.Duration {
	r := &moveRun{mover: m, at: at, logger: m.host.logger.With("tenant", at.Tenant, "board", at.Name)}
	if err := r.begin(ctx); err != nil {
		return lookEvery
	}
	dropping := r.present().State == catalog.Moved // which was due
	var since time.Time                            // when it could not go on first
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		move := r.present()
		if !move.Active() && (move.State != catalog.Moved || !dropping) {
			return 0
		}
		err := r.advance(ctx, move.State)
		switch {
		case err == nil && move.State == catalog.Moved:
			return 0
		case err == nil:
			since, pause = time.Time{}, firstPause
			continue
		case errors.Is(err, errKilled):
			<-ctx.Done() // it never goes on
			return 0
		case errors.Is(err, errNotMine):
			if r.again(ctx) != nil {
				return lookEvery
			}
			continue
		case ctx.Err() != nil:
			return 0
		}
		if since.IsZero() || move.State == catalog.Preparing && time.Since(move.Begun) < move.Wait { // then claims are waited for
			since = time.Now()
		}
		r.logger.Warn("a move of the board does not go on", "state", move.State, "to", move.To.Backend, "error", err)
		if move.State == catalog.Moved {
			return time.Minute
		}
		if early := move.State == catalog.Preparing || move.State == catalog.Copying || move.State == catalog.Freezing; early && (lasting(err) || time.Since(since) >= m.giveUp) {
			if r.update(ctx, func(move *catalog.Move) { move.State, move.Problem = catalog.Abandoning, err.Error() }) == nil {
				continue
			}
		}
		if sleep.For(ctx, pause) != nil {
			return 0
		}
	}
	return 0
}

// lasting reports whether an error does not go away by itself.
func lasting(err error) bool {
	switch job.KindOf(err) {
	case job.Unavailable, job.OutcomeUnknown, job.Interrupted, job.Aborted:
		return false
	}
	return true
}

// errKilled is the end of a run in a test.
var errKilled = errors.New("the host was killed here")

// reached is told what the run is about to do.
func (r *moveRun) reached(name string) error {
	if r.step == nil {
		return nil
	}
	if r.step(name) != nil {
		return errKilled
	}
	return nil
}

// begin makes the move this host's.
func (r *moveRun) begin(ctx context.Context) error {
	c := r.host.catalog.open()
	if c == nil {
		return errNotMine
	}
	b, err := c.Reread(ctx, r.at)
	if err != nil {
		return err
	}
	if b.Move == nil {
		return errNotMine
	}
	r.board = b
	return r.update(ctx, func(m *catalog.Move) { m.Host = r.host.id })
}

// again reads the move once more, which may still be this host's.
func (r *moveRun) again(ctx context.Context) error {
	c := r.host.catalog.open()
	b, err := c.Reread(ctx, r.at)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.Move == nil || b.Move.ID != r.board.Move.ID || b.Move.Host != r.host.id {
		return errNotMine
	}
	r.board = b
	return nil
}

// present is the move as it was written last.
func (r *moveRun) present() catalog.Move {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.board.Move
}

// update changes the move in the catalog, unless it is another host's or in another state
// than this host knows.
func (r *moveRun) update(ctx context.Context, change func(*catalog.Move)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.board.Move
	next := *before
	next.Beat++
	change(&next)
	written, err := r.host.catalog.open().Amend(ctx, r.at, func(b *catalog.Board) error {
		switch now := b.Move; {
		case now == nil || now.ID != before.ID:
			return errNotMine
		case now.Host == next.Host && now.State == next.State && now.Beat == next.Beat:
			return catalog.ErrStands // by a try of which the store did not tell
		case now.Host != before.Host || now.State != before.State:
			return errNotMine
		}
		b.SetMove(next)
		return nil
	})
	switch {
	case job.KindOf(err) == job.NotFound:
		return errNotMine
	case err != nil:
		return err
	}
	r.board = written
	return nil
}

// alive says again and again that this host is at the move, and calls stop when it no longer
// is.
func (r *moveRun) alive(ctx context.Context, stop context.CancelCauseFunc) {
	for sleep.For(ctx, beatEvery) == nil {
		if err := r.update(ctx, func(m *catalog.Move) {
			if !m.Compared {
				m.Jobs, m.Rounds = r.jobs.Load(), r.round.Load()
			}
		}); errors.Is(err, errNotMine) {
			stop(err)
			return
		}
	}
}

// moveID is the move's, as drivers take it.
func moveID(m *catalog.Move) (id [16]byte, err error) {
	raw, err := hex.DecodeString(m.ID)
	if err != nil || len(raw) != len(id) {
		return id, job.Errorf(job.Corrupt, "the move has the id %.80q: want 32 hexadecimal digits", m.ID)
	}
	return [16]byte(raw), nil
}

// advance does what a move in a state needs, and writes down that it is done.
func (r *moveRun) advance(ctx context.Context, state catalog.MoveState) error {
	ctx, stop := context.WithCancelCause(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { r.alive(ctx, stop) })
	defer beating.Wait()
	defer stop(nil)
	var err error
	switch state {
	case catalog.Preparing:
		err = r.prepare(ctx)
	case catalog.Copying:
		err = r.copy(ctx)
	case catalog.Freezing:
		err = r.goOn(ctx)
	case catalog.Switched:
		err = r.admit(ctx)
	case catalog.Abandoning:
		err = r.undo(ctx)
	case catalog.Moved:
		err = r.drop(ctx)
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errNotMine) {
		return cause
	}
	return err
}
