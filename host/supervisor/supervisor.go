// Package supervisor keeps a driver's program running. A Supervisor is itself a
// driver.Driver, one that outlives its process: it starts the program, configures
// it, opens its boards again after a restart, kills it when it hangs, and repeats
// what a dying process left without an answer.
//
// Locks, in the orders in which they are taken where several are held:
//
//	Supervisor.telling, Supervisor.mu
//	closedBoard.mu, Supervisor.mu
//
// Supervisor.telling is held while Spec.Changed is called, which therefore must not call
// the Supervisor back. closedBoard.mu is held while the driver opens the board, so that
// all calls on that board wait for the first one. Supervisor.mu is held while memory is
// read or written. The driver is never asked with telling or Supervisor.mu held.
package supervisor

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// Spec says what to keep running. Only Name and Command are needed.
type Spec struct {
	Name     string // of the backend, for messages and the log
	Command  plugin.Command
	Settings []byte // as driver.Config
	DataDir  string // as driver.Config
	Logger   *slog.Logger

	// Changed is called after each change of State, one call at a time; it must
	// not call the Supervisor back.
	Changed func(State)

	// Recall puts into the specification of a board, which is about to be opened by
	// another process, what is remembered of the board by then. It may be nil: then
	// that is what the last process said when it opened the board.
	Recall func(*driver.BoardSpec)

	// Opened is told what another process said when it opened a board with such a
	// specification, before any call reaches the board there. What tells of a loss is not
	// passed on: the board is opened again. It may be nil.
	Opened func(*driver.BoardSpec, *driver.BoardStatus)

	Wait       time.Duration // for a process that is away; 0: 2 s
	Probe      time.Duration // between two questions for health, and for each answer; 0: 1 s
	Misses     int           // questions without an answer before a process counts as hung; 0: 3
	MaxCrashes int           // in Period, before it is given up for a while; 0: 5
	Period     time.Duration // 0: 60 s
	Pause      time.Duration // before a program that was given up is tried again; 0: 10 s
}

func (s *Spec) setDefaults() {
	s.Wait = or(s.Wait, 2*time.Second)
	s.Probe = or(s.Probe, time.Second)
	s.Misses = or(s.Misses, 3)
	s.MaxCrashes = or(s.MaxCrashes, 5)
	s.Period = or(s.Period, time.Minute)
	s.Pause = or(s.Pause, 10*time.Second)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	s.Logger = s.Logger.With("backend", s.Name)
	if s.Command.Logger == nil {
		s.Command.Logger = s.Logger
	}
}

func or[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}

// State says how the program is.
type State struct {
	Running   bool      // it takes calls
	GivenUp   bool      // it crashed too often and is tried again only now and then
	Since     time.Time // of the present Running
	Restarts  int       // processes after the first that took calls
	PID       int       // 0 if there is no process
	Version   string    // what the program said last
	LastError error     // why it was last not running; nil if it never was
	Store     error     // what the driver last said of its store; nil: it answers
}

// A Supervisor is a driver whose process comes and goes. Run must be called once.
type Supervisor struct {
	spec    Spec
	current atomic.Pointer[incarnation] // nil while the process is away
	closing chan struct{}
	ended   chan struct{} // Run has returned
	once    sync.Once
	burials sync.WaitGroup // of processes that ended

	mu      sync.Mutex
	ran     bool
	state   State
	info    driver.Info
	changed chan struct{} // closed at the next change of current or state
	boards  map[string]driver.BoardSpec
	crashes []time.Time // in the last Period

	telling sync.Mutex // one call of Changed at a time; it guards no field
}

var _ driver.Driver = (*Supervisor)(nil)

// New makes a Supervisor that does nothing before Run.
func New(spec Spec) *Supervisor {
	spec.setDefaults()
	return &Supervisor{
		spec: spec, closing: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
		boards: make(map[string]driver.BoardSpec),
	}
}

// State returns how the program is now.
func (s *Supervisor) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Info returns what the program said of itself; empty before it first ran.
func (s *Supervisor) Info() driver.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// Ready waits until the program takes calls, and returns why it does not if ctx
// ends first or the program can not be opened with its settings.
func (s *Supervisor) Ready(ctx context.Context) error {
	for {
		s.mu.Lock()
		running, last, changed := s.state.Running, s.state.LastError, s.changed
		s.mu.Unlock()
		switch {
		case running:
			return nil
		case job.KindOf(last) == job.Invalid:
			return last
		}
		select {
		case <-changed:
		case <-s.ended:
			return s.away(last)
		case <-ctx.Done():
			return s.away(last)
		}
	}
}

const notRunning = "its driver is not running"

// away is the error of calls that nobody can take.
func (s *Supervisor) away(cause error) error {
	return &job.Error{Kind: job.Unavailable, Message: "backend " + s.spec.Name + ": " + notRunning, Err: cause}
}

// Close drains the program, ends it and waits for Run.
func (s *Supervisor) Close() error {
	s.once.Do(func() { close(s.closing) })
	s.mu.Lock()
	ran := s.ran
	s.mu.Unlock()
	if ran {
		<-s.ended
	}
	return nil
}

// update changes the state and tells everybody.
func (s *Supervisor) update(change func(*State)) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	change(&s.state)
	state := s.state
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if s.spec.Changed != nil {
		s.spec.Changed(state)
	}
}
