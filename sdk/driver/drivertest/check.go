package drivertest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Finding is the outcome of one check.
type Finding struct {
	Check    string
	Problems []string // what the driver did wrong; none: it passed
	Notes    []string
}

// Summary counts the checks that were run.
type Summary struct {
	Passed, Failed int
}

// atOnce is how many checks Check runs at a time; most of them wait.
const atOnce = 8

// checkTime is how long a check may take; a driver that hangs is a finding.
const checkTime = 2 * time.Minute

// Check runs the suite outside of a test and reports each check when it is
// done, one at a time. When ctx ends, what has not begun is left out. It
// returns when everything that it started has ended.
func Check(ctx context.Context, h Harness, report func(Finding)) Summary {
	s := &suite{harness: h}
	whole := &reporter{name: "open"} // lasts as long as all checks
	whole.ctx, whole.cancel = context.WithCancel(ctx)
	var summary Summary
	finish := func(r *reporter) {
		if len(r.problems) > 0 {
			summary.Failed++
		} else {
			summary.Passed++
		}
		report(Finding{Check: r.name, Problems: r.problems, Notes: r.notes})
	}
	whole.attempt(func() {
		if !h.PerCheck {
			s.driver = s.open(whole)
		}
	})
	if whole.failed() {
		whole.end()
		finish(whole)
		return summary
	}
	done := make(chan *reporter)
	go func() {
		defer close(done)
		runAll(ctx, s, done)
	}()
	for r := range done {
		finish(r)
	}
	whole.end()
	if whole.failed() {
		finish(whole)
	}
	return summary
}

func runAll(ctx context.Context, s *suite, done chan<- *reporter) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, atOnce)
	for _, c := range s.checks() {
		slots <- struct{}{}
		if ctx.Err() != nil {
			return
		}
		running.Go(func() {
			r := newReporter(ctx, c.name)
			r.attempt(func() { s.run(r, c) })
			r.end()
			done <- r
			<-slots
		})
	}
}

// A reporter is the T of a check outside of a test.
type reporter struct {
	name   string
	ctx    context.Context //nolint:containedctx // it is what Context returns, as in package testing
	cancel context.CancelFunc

	broken atomic.Bool

	mu       sync.Mutex
	problems []string
	notes    []string
	cleanups []func()
}

func newReporter(ctx context.Context, name string) *reporter {
	r := &reporter{name: name}
	r.ctx, r.cancel = context.WithTimeout(ctx, checkTime)
	return r
}

// attempt runs part of a check on a goroutine that Fatalf can end, and waits
// for it. A panic is a problem of the check.
func (r *reporter) attempt(part func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		part()
	}()
	<-done
}

// end runs the cleanups, last first.
func (r *reporter) end() {
	r.cancel()
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		last := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		r.attempt(last)
	}
}

func (r *reporter) failed() bool { return r.broken.Load() }

func (r *reporter) Name() string             { return r.name }
func (r *reporter) Helper()                  {}
func (r *reporter) Context() context.Context { return r.ctx }

func (r *reporter) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken.Store(true)
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *reporter) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *reporter) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *reporter) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *reporter) TempDir() string {
	dir, err := os.MkdirTemp("", "drivertest")
	if err != nil {
		r.Fatalf("no folder for the check: %v", err)
	}
	r.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			r.Errorf("the check's folder cannot be taken away: %v", err)
		}
	})
	return dir
}
