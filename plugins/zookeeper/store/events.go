package store

import (
	"context"
	"iter"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// defaultEvents is how many changes a board remembers for its watchers.
const defaultEvents = 8192

// events are the last changes of a board, in the order in which they became
// known here, which is nearly that of their positions: our own are known at
// once, others' when they were read.
type events struct {
	max     int
	floor   uint64 // every change after it is in the list or still to come
	list    []driver.Change
	first   uint64 // the number of list[0]
	changed chan struct{}
	broken  error // the board has to be read anew
}

func (e *events) add(c driver.Change) {
	if len(e.list) >= 2*e.max {
		drop := len(e.list) - e.max
		for i := range e.list[:drop] {
			e.floor = max(e.floor, uint64(e.list[i].Position))
		}
		e.list = slices.Clone(e.list[drop:]) // watchers may still look at the old one
		e.first += uint64(drop)
	}
	e.list = append(e.list, c)
}

// wake lets watchers look again.
func (e *events) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// restart begins the list anew: what was before floor is not known.
func (e *events) restart(floor uint64) {
	e.first += uint64(len(e.list)) + 1
	e.list, e.floor, e.broken = nil, floor, nil
	e.wake()
}

// upTo returns the position up to which every change is in the list. b.mu is
// held.
func (b *board) upTo() uint64 { return min(b.folder.upTo, b.log.upTo) }

// A watcher is one stream of changes.
type watcher struct {
	board *board
	after uint64 // the position that the watcher has
	next  uint64 // the number of the change that comes next; 0: not begun
}

// Watch streams what changes after a position.
func (s *Store) Watch(ctx context.Context, name string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		b, err := s.ready(ctx, name)
		if err != nil {
			yield(driver.Changes{}, err)
			return
		}
		w := &watcher{board: b, after: uint64(after)}
		for {
			changes, something, changed, err := w.step()
			if err != nil {
				yield(driver.Changes{}, err)
				return
			}
			if something && !yield(changes, nil) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(driver.Changes{}, alive(ctx))
				return
			case <-b.life.Done():
				yield(driver.Changes{}, notOpen(name))
				return
			}
		}
	}
}

// step returns what is new since the last one.
func (w *watcher) step() (changes driver.Changes, something bool, changed <-chan struct{}, err error) {
	b := w.board
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &b.events
	if e.broken != nil {
		return driver.Changes{}, false, nil, e.broken
	}
	begins := w.next == 0
	switch {
	case begins && (w.after < e.floor || w.after > b.horizon), !begins && w.next < e.first:
		changes.Resync = true
		w.after, begins = b.upTo(), true
	}
	if begins {
		w.next = e.first
	}
	list := e.list[min(w.next-e.first, uint64(len(e.list))):]
	w.next = e.first + uint64(len(e.list))
	if w.next == 0 {
		w.next = e.first
	}
	if begins {
		list = slices.DeleteFunc(slices.Clone(list), func(c driver.Change) bool { return uint64(c.Position) <= w.after })
	}
	changes.List = slices.Clip(list)
	before := w.after
	w.after = max(w.after, b.upTo())
	changes.Position = driver.Position(w.after)
	return changes, len(list) > 0 || changes.Resync || w.after > before, e.changed, nil
}

// emit tells watchers of a change. b.mu is held.
func (b *board) emit(event job.EventType, v *view, at instant, position uint64, when int64, reason, owner string) {
	b.events.add(driver.Change{
		Event: event, Job: v.id, Position: driver.Position(position), At: atMillis(when), Reason: reason, Owner: owner, Record: v.show(at, 0),
	})
}
