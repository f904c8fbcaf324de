package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
	"github.com/boardd/boardd/sdk/sleep"
)

// backoff is how long to wait after how many crashes in a period.
var backoff = []time.Duration{0, 50 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second}

// Run keeps the program running until ctx ends or Close is called; then it drains
// and ends it. It may be called once.
func (s *Supervisor) Run(ctx context.Context) error {
	s.mu.Lock()
	again := s.ran
	s.ran = true
	s.mu.Unlock()
	if again {
		return errors.New("supervisor: Run was called before")
	}
	defer close(s.ended)
	defer s.burials.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		err := s.live(ctx)
		if ctx.Err() != nil {
			s.update(func(state *State) {
				*state = State{Restarts: state.Restarts, Version: state.Version, LastError: state.LastError}
			})
			return nil
		}
		if sleep.For(ctx, s.crashed(err)) != nil {
			return nil
		}
	}
}

// crashed counts the end of a process and says how long to wait.
func (s *Supervisor) crashed(err error) time.Duration {
	now := time.Now()
	s.mu.Lock()
	s.crashes = append(slices.DeleteFunc(s.crashes, func(t time.Time) bool { return now.Sub(t) > s.spec.Period }), now)
	n := len(s.crashes)
	s.mu.Unlock()
	givenUp := n > s.spec.MaxCrashes
	pause := backoff[min(n, len(backoff))-1]
	if givenUp {
		pause = s.spec.Pause
	}
	s.spec.Logger.Error("the driver is not running", "error", err, "crashes", n, "given_up", givenUp, "again_in", pause)
	s.update(func(state *State) {
		state.Running, state.PID, state.Since, state.Store = false, 0, time.Time{}, nil
		state.GivenUp, state.LastError = givenUp, err
	})
	return pause
}

// live is the life of one process. The error says how it ended.
func (s *Supervisor) live(ctx context.Context) error {
	failpoint.Hit("supervisor/before-start")
	p, err := plugin.Start(ctx, s.spec.Command)
	if err != nil {
		return err
	}
	defer s.bury(p)
	failpoint.Hit("supervisor/handshaken")
	in, err := s.open(ctx, p)
	if err != nil {
		return err
	}
	failpoint.Hit("supervisor/opened")
	s.reopen(ctx, in)
	s.publish(in)
	defer s.current.CompareAndSwap(in, nil)
	err = s.watch(ctx, in)
	s.current.CompareAndSwap(in, nil)
	if ctx.Err() != nil {
		p.Kill()
	}
	return err
}

// bury ends a process. The next one need not wait for more than its death: the
// rest, which talks to the dead, may take seconds on a bad day.
func (s *Supervisor) bury(p *plugin.Process) {
	s.burials.Go(p.Abort)
	timer := time.NewTimer(deathWait)
	defer timer.Stop()
	select {
	case <-p.Exited():
	case <-timer.C:
	}
}

// deathWait is how long a process that was killed may take to go.
const deathWait = 2 * time.Second

func (s *Supervisor) open(ctx context.Context, p *plugin.Process) (*incarnation, error) {
	d, err := p.Open(ctx, driver.Config{Settings: s.spec.Settings, DataDir: s.spec.DataDir, Logger: s.spec.Logger})
	if err != nil {
		return nil, err
	}
	return &incarnation{process: p, driver: d, gone: p.Lost()}, nil
}

// publish lets calls through.
func (s *Supervisor) publish(in *incarnation) {
	s.mu.Lock()
	s.info = in.process.Info()
	s.mu.Unlock()
	s.current.Store(in)
	s.update(func(state *State) {
		if state.Version != "" {
			state.Restarts++
		}
		state.Running, state.GivenUp, state.Since = true, false, time.Now()
		state.PID, state.Version, state.Store = in.process.PID(), or(in.process.Info().Version, "unknown"), nil
	})
	s.spec.Logger.Info("the driver is running", "driver", in.process.Info().Name, "version", in.process.Info().Version, "pid", in.process.PID())
}

// watch returns when the process is of no more use.
func (s *Supervisor) watch(ctx context.Context, in *incarnation) error {
	probes := time.NewTicker(s.spec.Probe)
	defer probes.Stop()
	misses := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-in.gone:
			return in.ending()
		case <-probes.C:
		}
		err := s.probe(ctx, in)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			misses = 0
			s.stored(err)
			continue
		}
		if misses++; misses >= s.spec.Misses {
			return fmt.Errorf("driver %s hangs: it left %d questions for its health unanswered for %v each", in.process.Info().Name, misses, s.spec.Probe)
		}
	}
}

func (s *Supervisor) probe(ctx context.Context, in *incarnation) error {
	ctx, cancel := context.WithTimeout(ctx, s.spec.Probe)
	defer cancel()
	return in.driver.Health(ctx)
}

// stored keeps what the driver says of its store.
func (s *Supervisor) stored(err error) {
	s.mu.Lock()
	before := s.state.Store
	s.mu.Unlock()
	if job.KindOf(before) == job.KindOf(err) {
		return
	}
	switch {
	case err == nil && job.KindOf(before) == job.QuotaExceeded:
		s.spec.Logger.Info("the store has room again")
	case err == nil:
		s.spec.Logger.Info("the store answers again")
	case job.KindOf(err) == job.QuotaExceeded:
		s.spec.Logger.Warn("the store is full: what makes a board larger is refused", "error", err)
	default:
		s.spec.Logger.Warn("the store does not answer", "error", err)
	}
	s.update(func(state *State) { state.Store = err })
}

// reopenTimeout bounds how long boards that open slowly keep the others waiting.
const reopenTimeout = 10 * time.Second

// reopen opens every board that was open, so that calls find it. One that can not
// be opened now is opened when it is asked for.
func (s *Supervisor) reopen(ctx context.Context, in *incarnation) {
	ctx, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	s.mu.Lock()
	specs := make([]driver.BoardSpec, 0, len(s.boards))
	for _, spec := range s.boards {
		specs = append(specs, spec)
	}
	s.mu.Unlock()
	var opening sync.WaitGroup
	places := make(chan struct{}, 8)
	for _, spec := range specs {
		places <- struct{}{}
		opening.Go(func() {
			defer func() { <-places }()
			if err := s.openOn(ctx, in, spec); err != nil {
				in.closed.Store(spec.Name, &closedBoard{})
				s.spec.Logger.Warn("a board could not be opened again", "board", spec.Name, "error", err)
			}
		})
	}
	opening.Wait()
}

// openOn opens a board on one process and remembers what the driver wants
// remembered.
func (s *Supervisor) openOn(ctx context.Context, in *incarnation, spec driver.BoardSpec) error {
	if s.spec.Recall != nil {
		s.spec.Recall(&spec)
	}
	status, err := in.driver.OpenBoard(ctx, spec)
	if err != nil {
		return err
	}
	if status.Loss != "" && s.spec.Recall != nil {
		return nil // whoever remembers the board has to be told, and opens it again
	}
	if s.spec.Opened != nil {
		s.spec.Opened(&spec, &status)
	}
	s.remember(spec, status)
	return nil
}

func (s *Supervisor) remember(spec driver.BoardSpec, status driver.BoardStatus) {
	spec.Witness = status.Witness
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boards[spec.Name] = spec
}

// repeatable reports whether the contract makes a second try of op harmless: the
// store knows it by its token, its nonces or its request.
func repeatable(op *driver.Op) bool {
	switch {
	case op.Kind == driver.Claim && op.Claim != nil:
		return !slices.ContainsFunc(op.Claim.Candidates, func(c driver.Candidate) bool { return c.Nonce == [16]byte{} })
	case op.Precondition == driver.HeldByToken || op.Precondition == driver.Lapsed:
		// An update leaves the claim as it is, so only the version could tell that
		// it was made, and would tell it as a refusal.
		return op.Kind != driver.Update || op.Version == 0 || op.Request != [16]byte{}
	}
	return op.Request != [16]byte{}
}

// cutOff reports whether a call failed because its process went away.
func (in *incarnation) cutOff(err error) bool {
	switch job.KindOf(err) {
	case job.Unavailable, job.OutcomeUnknown, job.Interrupted, job.Internal:
	default:
		return false
	}
	return in.lost()
}
