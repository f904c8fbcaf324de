package memdriver

import (
	"context"
	"iter"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
)

// A log is the last changes of a board. Positions in it have no holes.
type log struct {
	max  int
	list []driver.Change
}

func (l *log) add(c driver.Change) {
	if len(l.list) >= 2*l.max {
		l.list = slices.Clone(l.list[len(l.list)-l.max:]) // watchers may still look at the old one
	}
	l.list = append(l.list, c)
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
	b, err := s.board(name)
	if err != nil {
		return func(yield func(driver.Changes, error) bool) { yield(driver.Changes{}, err) }
	}
	return poll.Changes(ctx, &b.bell, after, func(ctx context.Context, after driver.Position) (driver.Changes, error) {
		if _, err := s.board(name); err != nil { // dropped
			return driver.Changes{}, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		list, known := b.events.since(after, b.position)
		return driver.Changes{List: list, Position: b.position, Resync: !known}, ended(ctx)
	})
}
