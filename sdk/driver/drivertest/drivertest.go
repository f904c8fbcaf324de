// Package drivertest runs a driver and checks that it keeps the contract of
// package driver. Run is for tests, Check for programs. The package does not
// import package testing.
//
// A driver's own test is
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{Open: func(t drivertest.T) driver.Driver { ... }})
//	}
package drivertest

import (
	"context"
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// T is what a check reports to. A *testing.T is one.
type T interface {
	Name() string
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any) // only on the check's own goroutine
	Logf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
	TempDir() string
}

// Harness says how to get at the driver under test. Only Open is needed.
type Harness struct {
	// Open opens a driver on a store. The suite closes it. Boards are named at
	// random, so that a store may be used again.
	Open func(t T) driver.Driver

	// Board says how a board of that name is to be opened; nil: by its name.
	Board func(name string) driver.BoardSpec

	// Store makes a store that outlives its driver, and returns what opens it,
	// each time after the driver before was closed. nil: restarts are not checked;
	// nor are they where a board declares itself Volatile.
	Store func(t T) func() driver.Driver

	// Hosts makes a store and returns what opens one more driver on it, while those
	// before are open. nil: what several hosts do together is not checked.
	Hosts func(t T) func() (driver.Driver, error)

	// Killable makes a store and returns what opens one more driver on it, as Hosts does, and
	// what kills the store's process and starts it again while drivers have it open. nil: what
	// becomes of programs then is not checked.
	Killable func(t T) (open func() (driver.Driver, error), kill func())

	// OneHost says that a store is for one driver at a time, and that a second one
	// is refused; see driver.Info.
	OneHost bool

	// Leave has somebody else leave postings with these ids, in their order and with any
	// content, in the store that Open and Hosts open. nil: inboxes are not checked.
	Leave func(t T, board string, ids []job.ID)

	// Forgetful returns a board that remembers at most so many changes for its
	// watchers. nil: a watch that is too late is not checked.
	Forgetful func(name string) (driver.BoardSpec, int)

	PerCheck bool     // open a driver for each check, not one for all
	Seed     uint64   // of the random programs; 0: from chance
	Programs int      // how many random programs, of each of the two sorts; 0: 24
	Only     []string // run the checks with these names, or in these groups; none: all
}

// A Runner is a T that can run parts, each of its own type: a *testing.T.
type Runner[S any] interface {
	T
	Run(name string, part func(S)) bool
	Parallel()
}

// Run checks everything, in parallel parts named after the checks. Leases
// really run out: the checks that wait for that do so all at once.
func Run[S Runner[S]](t S, h Harness) {
	t.Helper()
	s := &suite{harness: h}
	if !h.PerCheck {
		s.driver = s.open(t)
	}
	room := newWaitingRoom(t, s)
	for _, c := range s.checks() {
		t.Run(c.name, func(t S) {
			t.Parallel()
			if c.waits {
				room.report(t, c.name)
				return
			}
			s.run(t, c)
		})
	}
}

// RunIn is Run with each check in a bubble, which is synctest.Test. The driver
// is opened in the bubble, and its time is the bubble's, so nothing waits.
func RunIn[S Runner[S]](t S, bubble func(S, func(S)), h Harness) {
	t.Helper()
	s := &suite{harness: h, bubble: true}
	for _, c := range s.checks() {
		t.Run(c.name, func(t S) {
			t.Parallel()
			bubble(t, func(t S) { s.run(t, c) })
		})
	}
}

// Names returns the names of all checks, as GROUP/NAME.
func Names() []string {
	var names []string
	for _, c := range allChecks() {
		names = append(names, c.name)
	}
	return names
}

// A suite is one run of the checks.
type suite struct {
	harness Harness
	bubble  bool
	driver  driver.Driver // for all checks; nil: one for each
}

// A check is one thing that a driver must do, on a board of its own.
type check struct {
	name string
	run  func(e *env)
	spec func(spec *driver.BoardSpec) // nil: the board as the harness has it

	waits bool // for a second or more
}

func allChecks() []check {
	return slices.Concat(
		postChecks, claimChecks, leaseChecks, timeoutChecks, keyChecks, importChecks, moveChecks, groupChecks, tokenChecks, releaseChecks, removeChecks, trashChecks,
		matrixChecks(), retryChecks(), batchChecks, raceChecks, trafficChecks, hostsChecks, expiryChecks, watchChecks, scanChecks,
		documentChecks, nameChecks, largeChecks, cancelChecks, limitChecks, rateChecks, inboxChecks, historyChecks, boardChecks, lossChecks,
		restartChecks, randomChecks,
	)
}

// checks returns those that are wanted.
func (s *suite) checks() []check {
	only := s.harness.Only
	if len(only) == 0 {
		return allChecks()
	}
	return slices.DeleteFunc(allChecks(), func(c check) bool {
		return !slices.ContainsFunc(only, func(name string) bool {
			return c.name == name || strings.HasPrefix(c.name, name+"/")
		})
	})
}

func (s *suite) open(t T) driver.Driver {
	t.Helper()
	d := s.harness.Open(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

func (s *suite) run(t T, c check) {
	d := s.driver
	if d == nil {
		d = s.open(t)
	}
	e := &env{T: t, suite: s, driver: d, name: boardName(c.name)}
	e.openBoard(c.spec)
	c.run(e)
}

func (s *suite) spec(name string) driver.BoardSpec {
	if s.harness.Board == nil {
		return driver.BoardSpec{Name: name}
	}
	return s.harness.Board(name)
}
