package history

import (
	"sync"
	"time"
)

// Recorder collects a history. Its methods may be called from many goroutines.
type Recorder struct {
	began time.Time

	mu      sync.Mutex
	order   int64
	history History
}

// NewRecorder begins a history.
func NewRecorder(store string, seed uint64) *Recorder {
	return &Recorder{began: time.Now(), history: History{Store: store, Seed: seed}}
}

// Mark is a moment.
type Mark struct {
	Order int64
	At    time.Duration
}

// Now returns the present moment. No two are the same.
func (r *Recorder) Now() Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now()
}

func (r *Recorder) now() Mark {
	r.order++
	return Mark{r.order, time.Since(r.began)}
}

// Add keeps the ops of one call that began at a moment and has ended now.
func (r *Recorder) Add(from Mark, ops ...Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := r.now()
	for _, op := range ops {
		op.From, op.Begin, op.To, op.End = from.Order, from.At, to.Order, to.At
		if op.Outcome == Unknown {
			op.To, op.End = int64(Forever), Forever
		}
		r.history.Ops = append(r.history.Ops, op)
	}
}

// Calls returns how many ops there are so far.
func (r *Recorder) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.history.Ops)
}

// AddList keeps a listing that began at a moment and has ended now.
func (r *Recorder) AddList(from Mark, l List) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.Begin, l.End = from.At, r.now().At
	r.history.Lists = append(r.history.Lists, l)
}

// AddCount keeps counts that were asked for at a moment and have come now.
func (r *Recorder) AddCount(from Mark, c Count) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Begin, c.End = from.At, r.now().At
	r.history.Counts = append(r.history.Counts, c)
}

// AddWatcher keeps what somebody saw.
func (r *Recorder) AddWatcher(w Watcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Watchers = append(r.history.Watchers, w)
}

// AddFault keeps a fault that began at a moment and has ended now.
func (r *Recorder) AddFault(from Mark, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Faults = append(r.history.Faults, Fault{Name: name, Begin: from.At, End: r.now().At})
}

// Change lets something be said of the history as a whole.
func (r *Recorder) Change(change func(*History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.history)
}

// History returns what was collected. Nothing may be added after it.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.history
}
