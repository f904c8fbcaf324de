package plugin

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// waker is a store in which others leave postings for boards.
type waker struct {
	*store
	boards []string
}

func (w waker) WatchInboxes(context.Context) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		if yield(w.boards, nil) {
			yield(nil, job.Errorf(job.Corrupt, "it is broken"))
		}
	}
}

// TestWatchInboxes has the names of more boards than a message has arrive, of any bytes, and how
// the stream ends.
func TestWatchInboxes(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	boards := []string{"no \xff UTF-8"}
	for i := range namesSent {
		boards = append(boards, fmt.Sprint("default/b", i))
	}
	program := programOf(s)
	program.Info.Wakes = true
	program.Open = func(context.Context, driver.Config) (driver.Driver, error) { return waker{s, boards}, nil }
	d, err := Pipe(t.Context(), program, driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	got, err := collected(d.(driver.Waker).WatchInboxes(t.Context()))
	if !slices.Equal(slices.Concat(got...), boards) || job.KindOf(err) != job.Corrupt {
		t.Errorf("%d messages came with %d names, and %v: want the %d names as they are, and %v", len(got), len(slices.Concat(got...)), err, len(boards), job.Corrupt)
	}
}

// TestWatchInboxesNot has a driver that does not tell.
func TestWatchInboxesNot(t *testing.T) {
	t.Parallel()
	if _, err := collected(piped(t, newStore(driver.Config{})).(driver.Waker).WatchInboxes(t.Context())); job.KindOf(err) != job.Unsupported {
		t.Errorf("got %v, want %v", err, job.Unsupported)
	}
}
