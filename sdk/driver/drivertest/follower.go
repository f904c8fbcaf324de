package drivertest

import (
	"context"
	"sync"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A follower is one watcher of the check's board and what it has seen.
type follower struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	list     []driver.Change
	position driver.Position
	resyncs  int
	err      error
	backward bool
}

// follow begins to watch; the check's end ends it.
func (e *env) follow(after driver.Position) *follower {
	f := &follower{done: make(chan struct{}), position: after}
	ctx, cancel := context.WithCancel(e.Context())
	f.cancel = cancel
	go func() {
		defer close(f.done)
		for changes, err := range e.driver.Watch(ctx, e.name, after) {
			f.take(changes, err)
		}
	}()
	e.Cleanup(func() {
		cancel()
		<-f.done
	})
	return f
}

func (f *follower) take(changes driver.Changes, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.err = err
		return
	}
	if changes.Resync {
		f.resyncs++
	} else if changes.Position < f.position {
		f.backward = true
	}
	f.list = append(f.list, changes.List...)
	f.position = changes.Position
}

// reached reports whether everything up to a position has come.
func (f *follower) reached(p driver.Position) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position >= p
}

// seen returns the changes of one job, as they came.
func (f *follower) seen(id job.ID) []driver.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []driver.Change
	for _, c := range f.list {
		if c.Job == id {
			list = append(list, c)
		}
	}
	return list
}

// until waits for a position.
func (f *follower) until(e *env, p driver.Position) {
	e.Helper()
	e.eventually("a watch that reaches position "+itoa(uint64(p)), func() bool { return f.reached(p) })
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.backward {
		e.Errorf("a watch's Position went back")
	}
	f.check(e)
}

// untilResync waits until the watcher is told to look at everything anew.
func (f *follower) untilResync(e *env, what string) {
	e.Helper()
	e.eventually(what, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.resyncs > 0
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.check(e)
}

// check says with what the watch ended, if it did. f.mu is held.
func (f *follower) check(e *env) {
	e.Helper()
	if f.err != nil {
		e.Errorf("the watch ended with: %v", f.err)
	}
}
