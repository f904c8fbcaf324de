package seeded

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/sleep"
)

// watchBugs are drivers that tell everything, and too late.
func watchBugs() []Bug {
	return []Bug{
		{Name: "watch-slow", Where: Driver, Doc: "tells of one change at a time, and rests for 10 ms after each", Checker: "soon", busy: true, open: sharing(func(d driver.Driver) driver.Driver {
			return &wrongWatch{Driver: d, wrong: oneByOne}
		})},
		{Name: "watch-unwoken", Where: Driver, Doc: "is not woken by every third change, and tells of it with the next one", Checker: "soon", busy: true, open: sharing(func(d driver.Driver) driver.Driver {
			return &wrongWatch{Driver: d, wrong: unwoken}
		})},
	}
}

// sharing makes Open of what goes wrong with each of several drivers on one store.
func sharing(wrong func(driver.Driver) driver.Driver) func(context.Context, driver.Config) (driver.Driver, error) {
	var once sync.Once
	var store driver.Driver
	var err error
	return func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		once.Do(func() { store, err = memdriver.Open(ctx, c) })
		return wrong(&shared{store}), err
	}
}

// shared is a store that several drivers have open.
type shared struct{ driver.Driver }

// OpenBoard declares what a store of its own would.
func (s *shared) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := s.Driver.OpenBoard(ctx, spec)
	status.Durability = driver.Durable
	return status, err
}

// Close leaves the store to the others.
func (*shared) Close() error { return nil }

// wrongWatch is a driver that tells of changes in another way than its store.
type wrongWatch struct {
	driver.Driver
	wrong func(ctx context.Context, watch iter.Seq2[driver.Changes, error], yield func(driver.Changes, error) bool)
}

// Watch streams what changed.
func (w *wrongWatch) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) { w.wrong(ctx, w.Driver.Watch(ctx, board, after), yield) }
}

// oneByOne is what sdk/plugin once did to drivers that make a step of each change.
func oneByOne(ctx context.Context, watch iter.Seq2[driver.Changes, error], yield func(driver.Changes, error) bool) {
	for c, err := range watch {
		for len(c.List) > 1 {
			first := driver.Changes{List: c.List[:1:1], Position: c.List[0].Position}
			if !yield(first, nil) {
				return
			}
			c.List = c.List[1:]
			_ = sleep.For(ctx, 10*time.Millisecond) // its end is told by the watch
		}
		if !yield(c, err) {
			return
		}
		_ = sleep.For(ctx, 10*time.Millisecond)
	}
}

// unwoken keeps some steps until there is another one.
func unwoken(_ context.Context, watch iter.Seq2[driver.Changes, error], yield func(driver.Changes, error) bool) {
	var kept driver.Changes
	lost := every(3)
	for c, err := range watch {
		c.List = append(kept.List, c.List...)
		kept = driver.Changes{}
		if err == nil && !c.Resync && !c.Inbox && lost() {
			kept = c
			continue
		}
		if !yield(c, err) {
			return
		}
	}
}
