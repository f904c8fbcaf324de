package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// An incarnation is one process and its driver.
type incarnation struct {
	process *plugin.Process
	driver  driver.Driver
	gone    <-chan struct{} // closed when the connection to the process is

	closed sync.Map // of *closedBoard, by name
}

// A closedBoard could not be opened again yet.
type closedBoard struct {
	mu     sync.Mutex // held while the driver opens the board
	opened bool
}

// lost reports whether the connection to the process is gone.
func (in *incarnation) lost() bool {
	select {
	case <-in.gone:
		return true
	default:
		return false
	}
}

// endingWait is how long the end of a process is waited for after its connection.
const endingWait = 500 * time.Millisecond

// ending says why the process is of no more use.
func (in *incarnation) ending() error {
	if err := in.process.Fault(); err != nil {
		return err
	}
	timer := time.NewTimer(endingWait)
	defer timer.Stop()
	select {
	case <-in.process.Exited():
		return in.process.Ending()
	case <-timer.C:
		return errors.New("driver " + in.process.Info().Name + " broke its connection off")
	}
}

// opened makes sure that a board that was open before is open on this process.
func (s *Supervisor) opened(ctx context.Context, in *incarnation, board string) error {
	found, ok := in.closed.Load(board)
	if !ok {
		return nil
	}
	c := found.(*closedBoard)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened {
		return nil
	}
	s.mu.Lock()
	spec, known := s.boards[board]
	s.mu.Unlock()
	if known {
		if err := s.openOn(ctx, in, spec); err != nil {
			return &job.Error{Op: "open board", Kind: job.Unavailable, Message: "board " + board + " could not be opened again", Err: err}
		}
	}
	c.opened = true
	in.closed.Delete(board)
	return nil
}

// await returns the present process, or waits for the next as long as ctx and wait
// allow.
func (s *Supervisor) await(ctx context.Context, wait time.Duration) (*incarnation, error) {
	if in := s.current.Load(); in != nil && !in.lost() {
		return in, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		state, changed := s.state, s.changed
		s.mu.Unlock()
		in := s.current.Load() // what comes after this comes with a change
		switch {
		case in != nil && !in.lost():
			return in, nil
		case state.GivenUp:
			return nil, s.away(state.LastError)
		}
		select {
		case <-changed:
		case <-s.closing:
			return nil, s.away(errors.New("the backend is closed"))
		case <-s.ended:
			return nil, s.away(errors.New("the backend is closed"))
		case <-timer.C:
			return nil, s.away(state.LastError)
		case <-ctx.Done():
			return nil, &job.Error{Kind: job.Interrupted, Err: context.Cause(ctx)}
		}
	}
}
