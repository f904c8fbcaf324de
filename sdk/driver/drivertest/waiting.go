package drivertest

import (
	"context"
	"sync"
)

// A waitingRoom runs the checks that wait, all at once, since waiting costs
// nothing: a test runs only as many parts at a time as there are processors.
type waitingRoom struct {
	suite   *suite
	begin   func()
	running sync.WaitGroup
	done    map[string]chan struct{}
	reports map[string]*reporter
}

// newWaitingRoom makes a room whose checks end before t does.
func newWaitingRoom(t T, s *suite) *waitingRoom {
	w := &waitingRoom{suite: s, done: map[string]chan struct{}{}, reports: map[string]*reporter{}}
	w.begin = sync.OnceFunc(func() { w.run(t.Context()) })
	t.Cleanup(w.running.Wait)
	return w
}

func (w *waitingRoom) run(ctx context.Context) {
	for _, c := range w.suite.checks() {
		if !c.waits {
			continue
		}
		r, done := newReporter(ctx, c.name), make(chan struct{})
		w.reports[c.name], w.done[c.name] = r, done
		w.running.Go(func() {
			defer close(done)
			r.attempt(func() { w.suite.run(r, c) })
			r.end()
		})
	}
}

// report waits for a check and passes on what it found. The first call lets all
// begin.
func (w *waitingRoom) report(t T, name string) {
	t.Helper()
	w.begin()
	<-w.done[name]
	for _, note := range w.reports[name].notes {
		t.Logf("%s", note)
	}
	for _, problem := range w.reports[name].problems {
		t.Errorf("%s", problem)
	}
}
