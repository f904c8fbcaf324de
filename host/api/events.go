package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/job"
)

// sendWithin is how long a watcher may take for what it is told of at a time.
const sendWithin = 30 * time.Second

// maxCursor is the size of the longest cursor that is looked at, in bytes.
const maxCursor = 1 << 10

type controllerKey struct{}

// sendOne sends one message of a stream. Between messages there is no deadline: on HTTP/2 one
// that passes resets the stream at once, and there may be nothing to send for days. Without one
// for a message, a slow receiver is only slower to be noticed.
func sendOne(ctx context.Context, send func() error) error {
	controller, ok := ctx.Value(controllerKey{}).(*http.ResponseController)
	if ok {
		_ = controller.SetWriteDeadline(time.Now().Add(sendWithin))
	}
	if err := send(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	if ok {
		_ = controller.SetWriteDeadline(time.Time{})
	}
	return nil
}

// endSoon gives a stream that has sent all its messages time for its end.
func endSoon(ctx context.Context) {
	if controller, ok := ctx.Value(controllerKey{}).(*http.ResponseController); ok {
		_ = controller.SetWriteDeadline(time.Now().Add(sendWithin))
	}
}

// WatchBoard streams what happens on a board.
func (s *service) WatchBoard(ctx context.Context, r *connect.Request[boarddv1.WatchBoardRequest], stream *connect.ServerStream[boarddv1.Event]) error {
	if done, err := passStream(ctx, s.passing, boarddv1connect.BoardServiceWatchBoardProcedure, r.Msg, stream); done {
		return err
	}
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "WatchBoard")
	if err != nil {
		return err
	}
	if err := checkCursor(r.Msg.GetFrom()); err != nil {
		return err
	}
	if len(r.Msg.GetOwner()) > job.MaxOwner {
		return invalid("owner", "want at most %d bytes", job.MaxOwner)
	}
	ctx, release := s.untilStop(ctx)
	defer release()
	if err := sendOne(ctx, func() error { return stream.Send(nil) }); err != nil { // the headers, so that the client knows that it watches
		return err
	}
	frames, err := newFrames(ctx)
	if err != nil {
		return err
	}
	for events, err := range b.WatchTogether(ctx, r.Msg.GetOwner(), r.Msg.GetFrom()) {
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errStopping) {
				return cause
			}
			return err
		}
		if err := frames.send(events); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func checkCursor(cursor string) error {
	if len(cursor) > maxCursor {
		return invalid("from", "this is not a cursor of this board: want what an event brought")
	}
	return nil
}

// ListEvents is WatchBoard for those who would rather ask again.
func (s *service) ListEvents(ctx context.Context, r *connect.Request[boarddv1.ListEventsRequest]) (*connect.Response[boarddv1.ListEventsResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ListEvents")
	if err != nil {
		return nil, err
	}
	if err := checkCursor(r.Msg.GetFrom()); err != nil {
		return nil, err
	}
	most := int(r.Msg.GetMax())
	if most < 0 || most > board.MaxPage {
		return nil, invalid("max", "want 1 to %d, or 0 for %d, got %d", board.MaxPage, board.DefaultPage, most)
	}
	if most == 0 {
		most = board.DefaultPage
	}
	wait, err := waitOf(ctx, r.Msg.GetWait())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListEventsResponse{}
	err = s.waiting(ctx, wait, func(ctx context.Context, wait time.Duration) error {
		events, cursor, err := b.Events(ctx, r.Msg.GetFrom(), most, wait)
		response.Events, response.Cursor = nil, cursor
		for _, e := range events {
			response.Events = append(response.Events, toEvent(e))
		}
		return err
	}, true)
	if err != nil {
		return nil, err
	}
	return answer(response)
}
