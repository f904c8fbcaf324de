package workload

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Watchers are those who watch the board of a load.
type Watchers struct {
	load *Load
	end  chan struct{} // closed when last is set
	last string        // the job whose post is the last thing to be seen

	group sync.WaitGroup
	stop  context.CancelFunc
}

// Watch has the board watched: by a stream, by polls, and by a stream that begins
// anew from time to time where it was.
func (l *Load) Watch(ctx context.Context) *Watchers {
	ctx, stop := context.WithCancel(ctx)
	w := &Watchers{load: l, end: make(chan struct{}), stop: stop}
	for n, how := range []struct {
		name string
		see  func(*watching, context.Context) error
	}{
		{"stream", (*watching).stream},
		{"polls", (*watching).poll},
		{"resumed", (*watching).resume},
	} {
		w.group.Go(func() {
			c, _ := l.Connect(n)
			one := &watching{Watchers: w, board: c.Board(l.Board)}
			one.Name, one.Board, one.Opened = how.name, l.Board, history.Forever
			one.run(ctx, how.see)
		})
	}
	return w
}

// Until says that the post of a job, which is to be made now, is the last thing to be
// seen.
func (w *Watchers) Until(last string) {
	w.last = last
	close(w.end)
}

// Wait returns when every watcher has seen the last thing, or the time is up.
func (w *Watchers) Wait(patience time.Duration) {
	timer := time.AfterFunc(patience, w.stop)
	w.group.Wait()
	timer.Stop()
	w.stop()
}

// watching is one watcher.
type watching struct {
	*Watchers
	history.Watcher

	board  *client.Board
	cursor string
}

func (w *watching) run(ctx context.Context, see func(*watching, context.Context) error) {
	for ctx.Err() == nil && w.cursor == "" { // from now on
		if page, err := w.board.Events(ctx, "", 1, 0); err == nil {
			w.cursor, w.Opened = page.Cursor, w.load.Recorder.Now().At
		} else if sleep.For(ctx, 50*time.Millisecond) != nil {
			break
		}
	}
	for ctx.Err() == nil && !w.Caught {
		if err := see(w, ctx); err != nil {
			_ = sleep.For(ctx, 50*time.Millisecond) // the end of ctx is seen by the next turn
		}
	}
	w.Closed = w.load.Recorder.Now().At
	w.load.Recorder.AddWatcher(w.Watcher)
}

// saw keeps an event and reports whether it is the last one.
func (w *watching) saw(e *client.Event) bool {
	generation, position, _ := strings.Cut(e.GetCursor(), ".")
	seen := history.Event{Type: job.EventType(e.GetType()), Job: e.GetJob().GetUuid(), Owner: e.GetJob().GetOwner(), Seen: w.load.Recorder.Now().At}
	seen.Generation, _ = strconv.ParseUint(generation, 10, 64) // one that is no number is 0, which does not grow
	seen.Position, _ = strconv.ParseUint(position, 10, 64)
	if seen.Type == job.Heartbeat {
		return false
	}
	if seen.Type != job.ClaimedEvent {
		seen.Owner = ""
	}
	w.Events = append(w.Events, seen)
	w.cursor = e.GetCursor()
	select {
	case <-w.end:
		// A Resync may stand for the last thing, which is not shown any more then.
		w.Caught = w.Caught || seen.Job == w.last || seen.Type == job.Resync
	default:
	}
	return w.Caught
}

func (w *watching) stream(ctx context.Context) error { return w.from(ctx, 1<<30) }

// resume leaves the stream after some events and comes back.
func (w *watching) resume(ctx context.Context) error { return w.from(ctx, 20) }

func (w *watching) from(ctx context.Context, most int) error {
	for e, err := range w.board.Watch(ctx, w.cursor) {
		if err != nil {
			return err
		}
		most--
		if w.saw(e) || most <= 0 {
			return nil
		}
	}
	return nil
}

func (w *watching) poll(ctx context.Context) error {
	page, err := w.board.Events(ctx, w.cursor, 50, time.Second)
	if err != nil {
		return err
	}
	for _, e := range page.Events {
		w.saw(e)
	}
	w.cursor = page.Cursor
	return nil
}
