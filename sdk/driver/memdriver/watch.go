package memdriver

import (
	"context"
	"iter"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A log is the last changes of a board. Positions in it have no holes.
type log struct {
	max     int
	list    []driver.Change
	changed chan struct{} // closed at the next change
}

func (l *log) add(c driver.Change) {
	if len(l.list) >= 2*l.max {
		l.list = slices.Clone(l.list[len(l.list)-l.max:]) // watchers may still look at the old one
	}
	l.list = append(l.list, c)
	close(l.changed)
	l.changed = make(chan struct{})
}

// since returns the changes after a position; false: they are not known.
func (l *log) since(after, now driver.Position) ([]driver.Change, bool) {
	list := l.list[max(0, len(l.list)-l.max):]
	if after > now || now-after > driver.Position(len(list)) {
		return nil, false
	}
	list = list[len(list)-int(now-after):]
	return slices.Clip(list), true
}

func (s *store) Watch(ctx context.Context, name string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		b, err := s.board(name)
		for err == nil {
			b.mu.Lock()
			list, known := b.events.since(after, b.position)
			next := driver.Changes{List: list, Position: b.position, Resync: !known}
			changed := b.events.changed
			b.mu.Unlock()
			after = next.Position
			if (len(list) > 0 || !known) && !yield(next, nil) {
				return
			}
			err = s.wait(ctx, name, b, changed)
		}
		yield(driver.Changes{}, err)
	}
}

// wait returns nil when changed is closed.
func (s *store) wait(ctx context.Context, name string, b *board, changed <-chan struct{}) error {
	select {
	case <-changed:
		return ended(ctx)
	case <-ctx.Done():
		return ended(ctx)
	case <-b.dropped:
		return notOpen(name)
	case <-s.closed:
		return job.Errorf(job.Unavailable, "the store was closed")
	}
}
