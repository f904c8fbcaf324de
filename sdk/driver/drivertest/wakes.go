package drivertest

import (
	"context"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// wakes returns a driver as what tells for which boards postings are left; nil: it does not tell.
func (e *env) wakes(d driver.Driver) driver.Waker {
	e.Helper()
	w, ok := d.(driver.Waker)
	if !ok {
		e.Logf("the driver does not tell for which boards postings are left")
		return nil
	}
	ctx, cancel := context.WithCancel(e.Context())
	cancel() // a driver in another process may not tell all the same
	for _, err := range w.WatchInboxes(ctx) {
		switch job.KindOf(err) {
		case job.NoKind, job.Interrupted:
		case job.Unsupported:
			e.Logf("the driver does not tell for which boards postings are left")
			return nil
		default:
			e.Fatalf("WatchInboxes of a caller who has gone: %v, want Interrupted", err)
		}
	}
	return w
}

// wakens checks that a stream names a board for which a posting waits as it begins, and one for
// which one is left later.
func (e *env) wakens(w driver.Waker) {
	e.Helper()
	before := &env{T: e.T, suite: e.suite, driver: e.driver, name: boardName("inbox/waits-already")}
	before.openBoard(nil)
	before.leave(newID())
	left := false
	for boards, err := range w.WatchInboxes(e.Context()) {
		if err != nil {
			e.Fatalf("WatchInboxes: %v", err)
		}
		switch {
		case left && slices.Contains(boards, e.name):
			return
		case !left && slices.Contains(boards, e.name):
			e.Errorf("WatchInboxes named a board before a posting was left for it")
		case !left && slices.Contains(boards, before.name):
			e.leave(newID())
			left = true
		}
	}
	e.Fatalf("WatchInboxes ended without an error")
}

// inboxWakes checks that what a stream names a board for can be read by then.
func inboxWakes(e *env) {
	if !e.hasInbox() {
		return
	}
	w := e.wakes(e.driver)
	if w == nil {
		return
	}
	e.wakens(w)
	if n := len(e.inbox(0)); n != 1 {
		e.Errorf("%d postings wait once WatchInboxes has named the board: want 1", n)
	}
}

// hostsWakes checks that a driver names boards that nobody has opened on it.
func hostsWakes(e *env) {
	if !e.hasInbox() || e.suite.harness.Hosts == nil || e.suite.harness.OneHost {
		return
	}
	d, err := e.suite.harness.Hosts(e.T)()
	if err != nil {
		e.Fatalf("a driver on a store that others have open: %v", err)
	}
	e.Cleanup(func() { _ = d.Close() })
	if w := e.wakes(d); w != nil {
		e.wakens(w)
	}
}
