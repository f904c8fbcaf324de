package embedded

import (
	"context"
	"iter"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// How many entries a step of a watch looks at in memory, and how many changes
// it carries. An entry, which is one commit, is never taken apart.
const (
	watchEntries = 64
	watchChanges = 512
)

// Watch streams what was committed after a position.
func (s *Store) Watch(ctx context.Context, name string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		b, err := s.board(name)
		if err != nil {
			yield(driver.Changes{}, err)
			return
		}
		w := watch{board: b, at: uint64(after)}
		for {
			changes, err := w.next(ctx)
			if err != nil {
				yield(driver.Changes{}, err)
				return
			}
			if !yield(changes, nil) {
				return
			}
		}
	}
}

// watch is the state of one watcher.
type watch struct {
	board *board
	at    uint64 // everything up to here has been reported
}

// next waits for something to report.
func (w *watch) next(ctx context.Context) (driver.Changes, error) {
	s := w.board.store
	for {
		step := w.look()
		switch {
		case step.err != nil:
			return driver.Changes{}, step.err
		case step.resync:
			w.at = step.position
			return driver.Changes{Resync: true, Position: driver.Position(w.at)}, nil
		case step.fromFile:
			return w.fromFile(step.position)
		case len(step.entries) > 0:
			return w.fromMemory(step.entries)
		}
		select {
		case <-step.wake:
		case <-ctx.Done():
			return driver.Changes{}, &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
		case <-s.closing:
			return driver.Changes{}, s.gone()
		}
	}
}

// step is what a look at the board's memory gives a watcher to do.
type step struct {
	err      error
	resync   bool
	fromFile bool
	entries  []entry
	position uint64
	wake     <-chan struct{}
}

func (w *watch) look() step {
	b := w.board
	b.store.gate.RLock()
	defer b.store.gate.RUnlock()
	now := b.state.position
	switch {
	case b.store.dead.Load():
		return step{err: b.store.gone()}
	case b.dropped.Load():
		return step{err: notOpen(b.name)}
	case w.at > now || w.at < b.state.forgotten:
		return step{resync: true, position: now}
	case w.at == now:
		b.ring.waiting.Store(true)
		return step{wake: b.ring.wake}
	}
	entries, ok := b.ring.after(w.at, watchEntries)
	if ok && len(entries) == 0 { // the position moved without a change, as a loss makes it
		return step{resync: true, position: now}
	}
	return step{entries: entries, fromFile: !ok, position: now}
}

func (w *watch) fromMemory(entries []entry) (driver.Changes, error) {
	at := w.board.instant()
	var list []driver.Change
	for i := range entries {
		if len(list) >= watchChanges {
			break
		}
		for c, err := range entries[i].each(w.at, at) {
			if err != nil {
				return driver.Changes{}, &job.Error{Kind: job.Internal, Message: "a change in memory cannot be read", Err: err}
			}
			list = append(list, c)
		}
		w.at = entries[i].last
	}
	return driver.Changes{List: list, Position: driver.Position(w.at)}, nil
}

// fromFile reads older changes. One that is no longer there, or cannot be read,
// makes the watcher scan again.
func (w *watch) fromFile(now uint64) (driver.Changes, error) {
	var list []driver.Change
	reached, whole := w.at, true
	at := w.board.instant()
	err := w.board.store.read(func() { now = w.board.state.position }, func(m *snapshot) error {
		cursor := m.table(w.board, inChanges).cursor()
		for key, value := cursor.seek(uintKey(w.at + 1)); key != nil && len(list) < watchChanges; key, value = cursor.next() {
			e := entry{value: value}
			if err := e.check(key); err != nil {
				whole = false
				return nil // the watcher is told to scan again
			}
			for c, err := range e.each(reached, at) {
				if err != nil || uint64(c.Position) != reached+1 {
					whole = false
					return nil // as above
				}
				list = append(list, c)
				reached = uint64(c.Position)
			}
		}
		return nil
	})
	if err != nil {
		return driver.Changes{}, err
	}
	if !whole || reached == w.at {
		w.at = now
		return driver.Changes{Resync: true, Position: driver.Position(now)}, nil
	}
	w.at = reached
	return driver.Changes{List: list, Position: driver.Position(reached)}, nil
}
