package store

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// defaultEvents is how many changes a board remembers for its watchers.
const defaultEvents = 8192

// events are the last changes of a board, in the order of their positions, which
// is the order in which ZooKeeper made them. They become known here in another one:
// our own with the answers of their transactions, others' when they are read. So a
// change is told only when every change before it is known.
type events struct {
	max     int
	floor   uint64 // every change after it is in the list or still to come
	list    []driver.Change
	first   uint64          // the number of list[0]
	waiting []driver.Change // known, and perhaps not all that was before them, in no order
	told    uint64          // everything up to here is in the list, and nothing is added to that
	wanted  uint64          // somebody waits until told is as far as this
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

// tell moves on the position up to which every change is told.
func (e *events) tell(upTo uint64) {
	if upTo <= e.told {
		return
	}
	e.told = upTo
	ready := func(c driver.Change) bool { return uint64(c.Position) <= upTo }
	var list []driver.Change
	for _, c := range e.waiting {
		if ready(c) {
			list = append(list, c)
		}
	}
	e.waiting = slices.DeleteFunc(e.waiting, ready)
	// An extension that is found out late has no position of its own. It comes last: a
	// watcher that goes on from its position would miss what came after it.
	slices.SortStableFunc(list, func(a, b driver.Change) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(lateness(a), lateness(b)))
	})
	for i := range list {
		if i > 0 && sameChange(&list[i-1], &list[i]) {
			continue // it was found in the log as well
		}
		e.add(list[i])
	}
	e.wake()
}

func lateness(c driver.Change) int {
	if c.Event == job.Extended {
		return 1
	}
	return 0
}

func sameChange(a, b *driver.Change) bool {
	return a.Position == b.Position && a.Job == b.Job && a.Event == b.Event
}

// restart begins the list anew: what was before floor is not known.
func (e *events) restart(floor uint64) {
	e.first += uint64(len(e.list)) + 1
	e.list, e.floor, e.broken = nil, floor, nil
	e.waiting = slices.DeleteFunc(e.waiting, func(c driver.Change) bool { return uint64(c.Position) <= floor })
	e.told = floor
	e.wake()
}

// upTo returns the position up to which every change is known. b.mu is held.
func (b *board) upTo() uint64 { return min(b.folder.upTo, b.log.upTo, b.silence.upTo()) }

// floor returns the position after which every change is told to who begins to watch. What was
// done on a board that comes from another store before the last step of its move is not: who
// watched the old one may be at a position between the imports. b.mu is held.
func (b *board) floor() uint64 {
	if b.root.offset == 0 {
		return b.events.floor
	}
	return max(b.events.floor, b.root.zxid)
}

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
		from := b.now().zxid(after)
		if err := b.overtake(ctx, from); err != nil {
			yield(driver.Changes{}, err)
			return
		}
		w := &watcher{board: b, after: from}
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
	case begins && (w.after < b.floor() || w.after > b.horizon), !begins && w.next < e.first:
		changes.Resync = true
		w.after, begins = b.sofar(e.told), true
	}
	if begins {
		w.next = e.first
	}
	list := e.list[min(w.next-e.first, uint64(len(e.list))):]
	w.next = e.first + uint64(len(e.list))
	if w.next == 0 {
		w.next = e.first
	}
	seen, _ := slices.BinarySearchFunc(list, w.after+1, func(c driver.Change, after uint64) int { return cmp.Compare(uint64(c.Position), after) })
	list = list[seen:]
	at := b.instant()
	changes.List = at.shownOf(list)
	before := w.after
	w.after = max(w.after, b.sofar(e.told))
	changes.Position = at.shown(w.after)
	return changes, len(list) > 0 || changes.Resync || w.after > before, e.changed, nil
}

// shownOf returns changes as watchers are told them. What a board remembers has the numbers of
// ZooKeeper's transactions, and records that are as they are shown.
func (i instant) shownOf(list []driver.Change) []driver.Change {
	if i.offset == 0 {
		return slices.Clip(list)
	}
	list = slices.Clone(list)
	for n := range list {
		list[n].Position = i.shown(uint64(list[n].Position))
	}
	return list
}

// emit has watchers told of a change. b.mu is held.
func (b *board) emit(event job.EventType, rec *driver.Record, position uint64, when int64, reason, owner string) {
	position = max(position, b.events.told+1) // of what is found out late, such as another host's extension
	if event == job.Extended && b.frozen > 0 && position > b.frozen {
		return // nobody may have a cursor beyond where the board was frozen: see sofar
	}
	b.events.waiting = append(b.events.waiting, driver.Change{
		Event: event, Job: rec.Posting.ID, Position: driver.Position(position), At: atMillis(when), Reason: reason, Owner: owner, Record: rec,
	})
}
