package client

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// silence is how long a watch may be still before it is taken for dead. The
// server sends a heartbeat every 15 s.
const silence = 45 * time.Second

// Watch goes through the board's events after the given cursor; with the empty
// cursor, from now on. It connects again by itself and goes on where it was, so
// that no event is missed or seen twice; when the board has forgotten that much
// of its past, a RESYNC event says so and the watch goes on from the present:
// list the board again. Heartbeats are not shown.
//
// It ends with an error, which comes without an event: that of ctx, or one that
// connecting again does not mend.
func (b *Board) Watch(ctx context.Context, from string) iter.Seq2[*Event, error] {
	return (&watch{board: b, cursor: from}).events(ctx)
}

// events goes through the events of a watch.
func (w *watch) events(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for failed := 0; ; failed++ {
			more, seen, err := w.once(ctx, yield)
			if !more {
				return
			}
			if seen {
				failed = 0
			}
			if end := w.end(ctx, err); end != nil {
				yield(nil, end)
				return
			}
			if w.moved && seen {
				continue
			}
			// The end of ctx is seen by the next turn.
			_ = sleep.For(ctx, backoff(failed, 50*time.Millisecond, orDefault(w.slowest, 5*time.Second)))
		}
	}
}

// watch is a watch over several connections.
type watch struct {
	board   *Board
	cursor  string
	owner   string        // whose jobs' events; empty: all
	slowest time.Duration // between two tries to connect; 0: 5 s
	opened  func()        // called when a watch from now on has begun; may be nil
	token   string        // that the last connection was signed with
	moved   bool          // the last connection ended since the board is another server's now
}

// once passes on the events of one connection. more is false when the caller
// has had enough. A stream from now on begins with a heartbeat, so that one that
// is cut before anything happened can be gone on with too.
func (w *watch) once(ctx context.Context, yield func(*Event, error) bool) (more, seen bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var quiet atomic.Bool
	timer := time.AfterFunc(silence, func() { quiet.Store(true); cancel() })
	defer timer.Stop()

	ctx, way := onWay(ctx, w.board.name)
	request := connect.NewRequest(&boarddv1.WatchBoardRequest{Board: w.board.name, From: w.cursor, Owner: w.owner})
	w.token = w.board.client.credentials.sign(request.Header())
	stream, err := w.board.client.rpc.WatchBoard(ctx, request)
	if err != nil {
		return true, false, w.lost(way, &quiet, err)
	}
	defer func() { cancel(); _ = stream.Close() }()
	for stream.Receive() {
		timer.Stop() // how long the caller takes is its own business
		seen = true
		event := stream.Msg()
		begun := w.cursor == ""
		if event.GetCursor() != "" {
			w.cursor = event.GetCursor()
		}
		if begun && w.opened != nil {
			w.opened()
		}
		if event.GetType() != boarddv1.EventType_HEARTBEAT && !yield(event, nil) {
			return false, true, nil
		}
		timer.Reset(silence)
	}
	return true, seen, w.lost(way, &quiet, stream.Err())
}

// lost is the error of a stream that broke. A server that was silent is left; from one that
// says whose the board is now, the watch goes on there at once.
func (w *watch) lost(on *way, quiet *atomic.Bool, err error) error {
	servers := w.board.client.servers
	if quiet.Load() {
		servers.silent(on)
		return job.Errorf(job.Unavailable, "no word from the server for %v", silence)
	}
	w.moved = servers.ended(on, err)
	return err
}

// end returns the error that ends the whole watch, or nil to connect again.
func (w *watch) end(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &job.Error{Op: "watch", Kind: job.Interrupted, Err: ctx.Err()}
	}
	if err == nil {
		return nil // the server ended the stream: it stops, or makes room
	}
	failed := callError("watch", err)
	if _, ok := errors.AsType[*unmade](err); ok && w.owner == "" { // a worker goes on, as its other calls do
		return failed
	}
	switch failed.Kind {
	case job.Unavailable, job.Interrupted, job.Aborted, job.Internal, job.QuotaExceeded, job.OutcomeUnknown:
		return nil
	case job.Unauthenticated:
		if w.board.client.credentials.renew(w.token) {
			return nil
		}
	}
	return failed
}

// EventPage is a part of a board's history.
type EventPage struct {
	Events []*Event
	Cursor string // where to go on
}

// Events returns up to most events after a cursor, and waits up to wait for the
// first of them. It serves programs that cannot keep a stream open.
func (b *Board) Events(ctx context.Context, from string, most int32, wait time.Duration) (*EventPage, error) {
	answer, err := call(ctx, b.client, "list events", wait, b.client.rpc.ListEvents,
		&boarddv1.ListEventsRequest{Board: b.name, From: from, Max: most, Wait: duration(wait)})
	if err != nil {
		return nil, err
	}
	return &EventPage{Events: answer.GetEvents(), Cursor: answer.GetCursor()}, nil
}
