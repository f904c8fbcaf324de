package plugin

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

var errWatch = errors.New("the watch ended")

// stepped is a watch of the steps, with a pause before each.
func stepped(pause time.Duration, steps ...driver.Changes) func(context.Context) iter.Seq2[driver.Changes, error] {
	return func(ctx context.Context) iter.Seq2[driver.Changes, error] {
		return func(yield func(driver.Changes, error) bool) {
			for _, c := range steps {
				time.Sleep(pause)
				if ctx.Err() != nil || !yield(c, nil) {
					return
				}
			}
			yield(driver.Changes{}, errWatch)
		}
	}
}

// numbered is n steps of a change each.
func numbered(n int) []driver.Changes {
	steps := make([]driver.Changes, n)
	for i := range steps {
		at := driver.Position(i + 1)
		steps[i] = driver.Changes{List: []driver.Change{{Position: at}}, Position: at}
	}
	return steps
}

// A driver that makes a step of each change is not held up by the pace, however many come.
func TestGatheredKeepsUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pause    time.Duration
		messages int // at most
		took     time.Duration
	}{
		"all at once":            {0, 4, 20 * time.Millisecond},
		"a thousand in a second": {time.Millisecond, 102, time.Second + watchPace},
		"far between":            {20 * time.Millisecond, 1000, 20*time.Second + watchPace},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun, messages, at := time.Now(), 0, driver.Position(0)
			for changes, err := range (&server{}).gathered(t.Context(), stepped(c.pause, numbered(1000)...)) {
				if err != nil {
					if !errors.Is(err, errWatch) {
						t.Errorf("%s: it ended with %v", name, err)
					}
					break
				}
				messages++
				for _, change := range changes.List {
					if at++; change.Position != at {
						t.Fatalf("%s: position %d came in the place of %d", name, change.Position, at)
					}
				}
				if changes.Position != at {
					t.Errorf("%s: a message up to %d says %d", name, at, changes.Position)
				}
				if c.pause > watchPace && time.Since(begun) != time.Duration(at)*c.pause {
					t.Errorf("%s: a change after a still moment came late", name)
				}
			}
			if at != 1000 || messages > c.messages || time.Since(begun) > c.took {
				t.Errorf("%s: %d changes in %d messages and %v", name, at, messages, time.Since(begun))
			}
		})
	}
}

// A step that says that changes are not known any more is joined to none.
func TestGatheredResync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		steps := numbered(6)
		steps[3] = driver.Changes{Resync: true, Position: 4}
		steps[5].Inbox = true
		var got []driver.Position
		for c, err := range (&server{}).gathered(t.Context(), stepped(0, steps...)) {
			if err != nil {
				break
			}
			got = append(got, c.Position)
			if c.Resync && (len(c.List) > 0 || c.Position != 4) || c.Inbox != (c.Position == 6) {
				t.Errorf("a message of %+v", c)
			}
		}
		if want := []driver.Position{1, 3, 4, 6}; !slices.Equal(got, want) {
			t.Errorf("messages up to %v, want %v", got, want)
		}
	})
}

// Whoever stops listening ends the driver's watch, and returns when it has ended.
func TestGatheredEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		watch := func(ctx context.Context) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				defer func() { ended = true }()
				for yield(driver.Changes{}, nil) {
					continue
				}
				<-ctx.Done()
			}
		}
		for _, err := range (&server{}).gathered(t.Context(), watch) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if !ended {
			t.Error("the driver's watch goes on")
		}
	})
}
