package board

import (
	"context"
	"sync"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// inFlight knows which jobs have an operation under way, so that no job ever has
// two: a driver may run what it is given in any order and side by side.
//
// It also knows how far back answers that are still under way may reach, see
// horizon.
type inFlight struct {
	mu     sync.Mutex
	busy   map[job.ID]struct{}
	waited map[job.ID]chan struct{} // of those, the ones that somebody waits for; closed when the job is free

	// Two counts of calls under way: of those that began before the last mark,
	// and of those since.
	old, young int
	generation uint64
	oldMark    driver.Position // no call under way began before this was reported
	youngMark  driver.Position
}

func newInFlight() *inFlight {
	return &inFlight{busy: map[job.ID]struct{}{}, waited: map[job.ID]chan struct{}{}}
}

// lock waits until none of the jobs has an operation under way, and takes them
// all. The ids are distinct. The caller has to call unlock with the stay returned.
func (f *inFlight) lock(ctx context.Context, ids []job.ID) (stay, error) {
	for {
		wait, s := f.tryLock(ids)
		if wait == nil {
			return s, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return stay{}, &job.Error{
				Kind: job.Interrupted, Err: context.Cause(ctx),
				Message: "nothing was changed: an earlier operation on the same job is still under way",
			}
		}
	}
}

// tryLock takes all of the jobs, or returns what to wait for.
func (f *inFlight) tryLock(ids []job.ID) (wait <-chan struct{}, s stay) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if _, ok := f.busy[id]; !ok {
			continue
		}
		ch := f.waited[id]
		if ch == nil {
			ch = make(chan struct{})
			f.waited[id] = ch
		}
		return ch, stay{}
	}
	for _, id := range ids {
		f.busy[id] = struct{}{}
	}
	return nil, f.enter()
}

// try takes those of the jobs that are free, and returns them and the others. It
// reorders ids. The caller has to call unlock with taken and the stay.
func (f *inFlight) try(ids []job.ID) (taken, others []job.ID, s stay) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for i, id := range ids {
		if _, ok := f.busy[id]; ok {
			continue
		}
		f.busy[id] = struct{}{}
		ids[n], ids[i] = ids[i], ids[n]
		n++
	}
	return ids[:n], ids[n:], f.enter()
}

func (f *inFlight) unlock(ids []job.ID, s stay) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		delete(f.busy, id)
		if len(f.waited) > 0 {
			if ch := f.waited[id]; ch != nil {
				close(ch)
				delete(f.waited, id)
			}
		}
	}
	f.leave(s)
}

// stay marks when a call began.
type stay struct{ generation uint64 }

// read enters a call that changes nothing but whose answer goes into the index. The
// caller has to call done with the stay returned.
func (f *inFlight) read() stay {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.enter()
}

func (f *inFlight) done(s stay) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave(s)
}

// enter counts a call that begins. The caller holds f.mu.
func (f *inFlight) enter() stay {
	f.young++
	return stay{f.generation}
}

// leave counts a call that ends. The caller holds f.mu.
func (f *inFlight) leave(s stay) {
	if s.generation == f.generation {
		f.young--
	} else {
		f.old--
	}
}

// horizon takes the position up to which all changes have been reported, and returns
// one such that each call under way began when the changes up to it had been reported
// already. So no answer still to come can be older than that.
func (f *inFlight) horizon(reported driver.Position) driver.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.old == 0 {
		f.oldMark, f.youngMark = f.youngMark, reported
		f.old, f.young = f.young, 0
		f.generation++
		if f.old == 0 {
			f.oldMark = reported
		}
	}
	return f.oldMark
}
