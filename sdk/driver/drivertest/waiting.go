package drivertest

import "sync"

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
	w.begin = sync.OnceFunc(w.run)
	for _, c := range s.checks() {
		if c.waits {
			w.done[c.name] = make(chan struct{})
			w.reports[c.name] = newReporter(t.Context(), c.name)
		}
	}
	t.Cleanup(func() {
		w.running.Wait()
		for _, r := range w.reports {
			r.cancel()
		}
	})
	return w
}

func (w *waitingRoom) run() {
	for _, c := range w.suite.checks() {
		if !c.waits {
			continue
		}
		w.running.Go(func() {
			defer close(w.done[c.name])
			r := w.reports[c.name]
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
